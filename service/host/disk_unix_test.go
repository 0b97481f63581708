//go:build linux || darwin

package host

import (
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Connections leave files for the log and its snapshots.
func TestConnectionsAndFiles(t *testing.T) {
	var limit unix.Rlimit
	fatal.If(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 2000, Max: limit.Max}))
	s := Default()
	l := s.limits()
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	expect.Equal(t, l.Connections, 500)
}
