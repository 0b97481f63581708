package sockets

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
)

// pipes is a listener in memory.
type pipes struct{ dialed, ended chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// caller is the client's end of a connection, and counts the server's actions on it.
type caller struct {
	net.Conn
	answers atomic.Int32
	closed  atomic.Bool
}

// room is a server with a limited number of connections, and its callers.
type room struct {
	*testing.T
	*pipes
	limited *Limited
	hold    chan struct{} // requests for /hold are answered once it is closed
	leave   chan struct{} // nil, or delays news of closed connections until it is closed
}

func newRoom(t *testing.T, maximum int) *room {
	r := &room{T: t, pipes: &pipes{dialed: make(chan net.Conn), ended: make(chan net.Conn)}, hold: make(chan struct{})}
	r.limited = Limit(r.pipes, maximum)
	h := &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/hold" {
				<-r.hold
			}
		}),
		ConnState: func(c net.Conn, now http.ConnState) {
			if now == http.StateClosed && r.leave != nil {
				<-r.leave
			}
			r.limited.State(c, now)
		},
	}
	served := make(chan error)
	go func() { served <- h.Serve(r.limited) }()
	t.Cleanup(func() {
		h.Close()
		<-served
	})
	return r
}

// dial connects, and records answers and the end of the connection.
func (r *room) dial() *caller {
	here, there := net.Pipe()
	c := &caller{Conn: here}
	r.Cleanup(func() { here.Close() })
	go func() {
		in := bufio.NewReader(here)
		for {
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				c.closed.Store(true)
				return
			}
			a.Body.Close()
			c.answers.Add(1)
		}
	}()
	go func() { // a listener queues connections
		select {
		case r.dialed <- there:
		case <-r.ended:
		}
	}()
	synctest.Wait()
	return c
}

// ask sends a request without waiting for the answer.
func (c *caller) ask(path string) {
	go io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	synctest.Wait()
}

// open fails if one of these callers has lost its connection.
func (r *room) open(callers ...*caller) {
	r.Helper()
	for i, c := range callers {
		if c.closed.Load() {
			r.Errorf("connection %d of %d is closed", i+1, len(callers))
		}
	}
}

// gone fails if one of these callers is still connected.
func (r *room) gone(callers ...*caller) {
	r.Helper()
	for i, c := range callers {
		if !c.closed.Load() {
			r.Errorf("connection %d of %d is open", i+1, len(callers))
		}
	}
}

func (r *room) answered(c *caller, want int32) {
	r.Helper()
	if n := c.answers.Load(); n != want {
		r.Errorf("%d answers, want %d", n, want)
	}
}

// Connections that send no data, or half a header, make room after a moment, oldest first, so that newcomers are not
// shut out.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, 3)
		first := r.dial()
		time.Sleep(time.Millisecond)
		half := r.dial()
		go io.WriteString(half, "GET / HTTP/1.1\r\nHost: ")
		time.Sleep(time.Millisecond)
		last := r.dial()
		newcomer := r.dial()
		newcomer.ask("/")
		time.Sleep(silence - 3*time.Millisecond)
		synctest.Wait()
		r.open(first, half, last)
		r.answered(newcomer, 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		r.gone(first)
		r.open(half, last)
		r.answered(newcomer, 1)
		time.Sleep(time.Second)
		newcomer.ask("/")
		next := r.dial()
		next.ask("/")
		r.gone(half)
		r.open(last, newcomer)
		r.answered(next, 1)
	})
}

// Connections are closed in the order in which they became quiet. A connection with a request in progress stays open.
func TestQuietestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, 3)
		var callers []*caller
		for _, path := range []string{"/hold", "/", "/"} {
			c := r.dial()
			c.ask(path)
			callers = append(callers, c)
			time.Sleep(time.Hour)
		}
		busy, idle, later := callers[0], callers[1], callers[2]
		idle.ask("/") // idle since then
		time.Sleep(time.Hour)
		r.dial().ask("/")
		r.gone(later)
		r.open(busy, idle)
		r.answered(idle, 2)
		time.Sleep(time.Hour)
		r.dial().ask("/")
		r.gone(idle)
		r.open(busy)
		close(r.hold)
		synctest.Wait()
		r.answered(busy, 1)
	})
}

// While every connection is busy with a request, a newcomer waits for the first to end.
func TestNewcomerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, 1)
		busy := r.dial()
		busy.ask("/hold")
		newcomer := r.dial()
		newcomer.ask("/")
		time.Sleep(time.Hour)
		synctest.Wait()
		r.open(busy)
		r.answered(newcomer, 0)
		close(r.hold)
		synctest.Wait()
		r.answered(busy, 1)
		r.gone(busy)
		r.answered(newcomer, 1)
	})
}

// A newcomer closes only one connection, however long that takes to end, and waits until then.
func TestNewcomerClosesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, 3)
		r.leave = make(chan struct{})
		var idle []*caller
		for range 3 {
			c := r.dial()
			c.ask("/")
			idle = append(idle, c)
			time.Sleep(time.Millisecond)
		}
		newcomer := r.dial()
		newcomer.ask("/")
		idle[2].ask("/") // something happens in the meantime
		time.Sleep(time.Hour)
		synctest.Wait()
		r.gone(idle[0])
		r.open(idle[1:]...)
		r.answered(newcomer, 0)
		close(r.leave)
		synctest.Wait()
		r.open(idle[1:]...)
		r.answered(newcomer, 1)
	})
}

// If a connection is closed to make room just as its request arrives, it keeps its place until it gets the answer, and
// another connection is closed.
func TestClosedWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{dialed: make(chan net.Conn, 1), ended: make(chan net.Conn)}
		l := Limit(p, 2)
		asks, _ := net.Pipe()
		idle, far := net.Pipe()
		for _, c := range []net.Conn{asks, idle} {
			l.State(c, http.StateNew)
			l.State(c, http.StateActive)
			l.State(c, http.StateIdle)
			time.Sleep(time.Millisecond)
		}
		taken := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			taken <- err
		}()
		newcomer, _ := net.Pipe()
		p.dialed <- newcomer
		synctest.Wait()
		expect.Refused(asks.Write(nil))(t, "the longest idle is not closed")
		l.State(asks, http.StateActive)
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the next one is not closed: %v", err)
		}
		l.State(idle, http.StateClosed)
		expect.Error(t, <-taken, nil)
	})
}

// A caller that does not read cannot delay newcomers: an encrypted connection that makes room is closed without a TLS
// alert.
func TestEncryptedMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{dialed: make(chan net.Conn, 1), ended: make(chan net.Conn)}
		l := Limit(p, 1)
		here, _ := net.Pipe()
		l.State(tls.Server(here, &tls.Config{}), http.StateIdle)
		here.SetDeadline(time.Now()) // not used again except to see that it is closed
		newcomer, _ := net.Pipe()
		p.dialed <- newcomer
		go l.Accept()
		synctest.Wait()
		expect.Refused(here.SetDeadline(time.Time{}))(t, "it is not closed")
		l.Close()
	})
}
