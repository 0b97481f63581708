// Package natstest starts NATS servers for tests.
package natstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"vitrine/internal/fatal"
)

// patience is how long a server may take to start, even on a busy machine.
const patience = 5 * time.Minute

// Start starts a server that can store a log. It listens on 127.0.0.1, on a free port unless o names one, keeps its
// streams in o.StoreDir and ignores signals.
func Start(o server.Options) (*server.Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	o.JetStream, o.SyncAlways, o.NoSigs = true, true, true
	o.JetStreamMaxStore = 4 << 30
	s, err := server.NewServer(&o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		Stop(s)
		return nil, fmt.Errorf("the server is not ready after %v", patience)
	}
	return s, nil
}

// Stop stops a server and waits until it is gone.
func Stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// Serve starts a server for the duration of the test. If o names no directory, the test makes one.
func Serve(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	o.NoLog = true
	s, err := Start(o)
	fatal.If(t, err)
	t.Cleanup(func() { Stop(s) })
	return s
}

// URL starts a server for the duration of the test and returns its URL.
func URL(t testing.TB) string {
	t.Helper()
	return Serve(t, server.Options{NoSystemAccount: true}).ClientURL()
}

// JetStream connects to the streams of a server for the duration of the test.
func JetStream(t testing.TB, url string) nats.JetStreamContext {
	t.Helper()
	c, err := nats.Connect(url)
	fatal.If(t, err)
	t.Cleanup(c.Close)
	js, err := c.JetStream()
	fatal.If(t, err)
	return js
}
