package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// silence is how long a new connection has for the header of its first request before it may be closed to make room.
const silence = 250 * time.Millisecond

// limitedListener takes at most a number of connections. One more closes the connection that has been quiet the
// longest: idle between requests, or silent since it was taken. While every connection has a request it waits.
type limitedListener struct {
	net.Listener
	most int

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]time.Time // when each may be closed to make room; zero while it has a request
	closed  bool
}

func limitConnections(l net.Listener, most int) *limitedListener {
	limited := &limitedListener{Listener: l, most: most, open: map[net.Conn]time.Time{}}
	limited.changed = sync.NewCond(&limited.mu)
	return limited
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.most && !l.closed {
		l.makeRoom()
		l.changed.Wait()
	}
	if l.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// makeRoom closes the connection that has been quiet the longest. It stays the longest until http.Server lets go
// of it, so that no other is closed meanwhile. If it may not be closed yet, a change is signaled when it may.
// The caller holds mu.
func (l *limitedListener) makeRoom() {
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
		longest = encrypted.NetConn() // no farewell, which might wait for a caller that does not read
	}
	longest.Close()
}

func (l *limitedListener) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

// state follows a connection. It is http.Server's ConnState, which calls it for a new connection before the next Accept.
func (l *limitedListener) state(c net.Conn, now http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now {
	case http.StateNew:
		l.open[c] = time.Now().Add(silence)
	case http.StateActive: // also if it was closed while its request came: it stays until it has the answer
		l.open[c] = time.Time{}
	case http.StateIdle:
		l.open[c] = time.Now()
	case http.StateClosed:
		delete(l.open, c)
	}
	l.changed.Broadcast()
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.changed.Broadcast()
	return l.Listener.Close()
}
