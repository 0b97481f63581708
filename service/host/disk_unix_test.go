//go:build linux || darwin

package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Connections leave files for the log and its snapshots. A warning says so if more are configured.
func TestConnectionsAndFiles(t *testing.T) {
	var limit unix.Rlimit
	fatal.If(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 2000, Max: limit.Max}))
	s := Default()
	l := s.limits()
	var log bytes.Buffer
	s.Listen = "127.0.0.1:0"
	for _, s.Limits.Connections = range []int{0, 500, 501} {
		r := &service{Config: *s, Options: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		expect.Error(t, r.bind(t.Context()), nil)
		r.socket.Close()
		expect.Equal(t, strings.Contains(log.String(), "raise ulimit -n"), s.Limits.Connections == 501)
	}
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	expect.Equal(t, l.Connections, 500)
}
