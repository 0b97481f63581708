package server

import (
	"net"
	"net/http"
	"sync"
)

// limitedListener takes at most a number of connections. One more closes the connection that has been
// idle the longest, and waits only while every connection has a request.
type limitedListener struct {
	net.Listener
	most int

	mu     sync.Mutex
	freed  *sync.Cond
	open   int
	closed bool
	idle   map[net.Conn]uint64 // and when they became so, as a number that grows
	number uint64
}

func limitConnections(l net.Listener, most int) *limitedListener {
	limited := &limitedListener{Listener: l, most: most, idle: map[net.Conn]uint64{}}
	limited.freed = sync.NewCond(&limited.mu)
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
	for l.open >= l.most && !l.closed {
		oldest := l.longestIdle()
		if oldest == nil {
			l.freed.Wait()
			continue
		}
		delete(l.idle, oldest)
		l.mu.Unlock()
		oldest.Close() // whose state is closed soon
		l.mu.Lock()
	}
	if l.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	l.open++
	return c, nil
}

// state follows a connection. It is http.Server's ConnState.
func (l *limitedListener) state(c net.Conn, now http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.idle, c)
	switch now {
	case http.StateIdle:
		l.number++
		l.idle[c] = l.number
		l.freed.Signal() // a connection that waits may close this one
	case http.StateClosed:
		l.open--
		l.freed.Signal()
	}
}

// longestIdle returns the connection that has been idle the longest, nil if none is. The caller holds mu.
func (l *limitedListener) longestIdle() (oldest net.Conn) {
	for c, number := range l.idle {
		if oldest == nil || number < l.idle[oldest] {
			oldest = c
		}
	}
	return oldest
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.freed.Broadcast()
	return l.Listener.Close()
}
