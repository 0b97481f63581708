// Package sockets provides listeners that limit the number of connections, that reveal parts of a request's head hidden
// by net/http, and that use TLS with a certificate from files.
package sockets

import (
	"bytes"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// silence is the time for which a new connection may send no data before it may be closed to make room.
const silence = 250 * time.Millisecond

// Limited limits the number of open connections. A connection beyond the limit closes the quietest one: the connection
// that is idle between requests, or silent since it was accepted, for the longest time. If every connection is busy
// with a request, Accept waits.
type Limited struct {
	net.Listener
	max int

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]time.Time // when each may be closed to make room; zero during a request
	closed  bool
}

// Limit limits a listener to n connections. [Limited.State] must be the ConnState of the http.Server.
func Limit(l net.Listener, n int) *Limited {
	limited := &Limited{Listener: l, max: n, open: map[net.Conn]time.Time{}}
	limited.changed = sync.NewCond(&limited.mu)
	return limited
}

// Accept implements net.Listener.
func (l *Limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.max && !l.closed {
		l.makeRoom()
		l.changed.Wait()
	}
	if l.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// makeRoom closes the quietest connection. It stays in open until http.Server reports it closed, so repeated calls
// close no other. If it may not be closed yet, makeRoom signals a change when it may. The caller must hold mu.
func (l *Limited) makeRoom() {
	var longest net.Conn
	for c, spare := range l.open {
		if !spare.IsZero() && (longest == nil || spare.Before(l.open[longest])) {
			longest = c
		}
	}
	if longest == nil {
		return
	}
	if wait := time.Until(l.open[longest]); wait > 0 {
		time.AfterFunc(wait, l.signal)
		return
	}
	if encrypted, ok := longest.(*tls.Conn); ok {
		longest = encrypted.NetConn() // without a TLS alert, because writing it could block
	}
	longest.Close()
}

func (l *Limited) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

// State is meant for ConnState of http.Server, which calls it for a new connection before the next Accept.
func (l *Limited) State(c net.Conn, now http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now {
	case http.StateNew:
		l.open[c] = time.Now().Add(silence)
	case http.StateActive:
		l.open[c] = time.Time{}
	case http.StateIdle:
		l.open[c] = time.Now()
	case http.StateClosed:
		delete(l.open, c)
	}
	l.changed.Broadcast()
}

// Close implements net.Listener.
func (l *Limited) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.changed.Broadcast()
	return l.Listener.Close()
}

// MaxHeader limits the head of a request, in bytes.
const MaxHeader = 16 << 10

// Errors logs the errors of an http.Server, which never quote the content of connections.
func Errors(to *slog.Logger) *log.Logger { return log.New(connections{to}, "", 0) }

type connections struct{ to *slog.Logger }

func (c connections) Write(b []byte) (int, error) {
	c.to.Warn("connection", "cause", string(bytes.TrimSpace(b)))
	return len(b), nil
}
