package sockets

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/textproto"
	"sync"
)

// A request with both Content-Length and Transfer-Encoding ends in one place for a proxy that believes the first and in another for a
// server that believes the second, so its body can smuggle in a request that the proxy has never seen. net/http drops the length
// without a trace, so the head of each request is kept until the handler has looked at it.

// Heads accepts connections that remember the head of the request in progress.
type Heads struct{ net.Listener }

// Accept implements net.Listener.
func (l Heads) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: c}, nil
}

// MaxHeader is the longest head of a request, in bytes.
const MaxHeader = 16 << 10

// headConn is a connection that remembers what it has read since it was last idle, up to the end of a request's head.
type headConn struct {
	net.Conn

	mu   sync.Mutex
	head []byte
	full bool // the head has ended
}

// Read implements net.Conn.
func (c *headConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.full {
		from := max(len(c.head)-2, 0)
		c.head = append(c.head, b[:n]...)
		tail := c.head[from:]
		c.full = len(c.head) > 2*MaxHeader || bytes.Contains(tail, []byte("\n\r\n")) || bytes.Contains(tail, []byte("\n\n"))
	}
	return n, err
}

// idle forgets the head, because the next request begins.
func (c *headConn) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.full = c.head[:0], false
	if cap(c.head) > MaxHeader/2 {
		c.head = nil
	}
}

// headOf returns the fields of the request in progress as they came, and false if they cannot be told from others.
func (c *headConn) headOf(r *http.Request) (textproto.MIMEHeader, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(c.head)))
	line, err := in.ReadLine()
	if err != nil || line != r.Method+" "+r.RequestURI+" "+r.Proto {
		return nil, false
	}
	fields, err := in.ReadMIMEHeader()
	return fields, err == nil
}

type headKey struct{}

// WithHead is http.Server's ConnContext.
func WithHead(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, headKey{}, c)
}

// HasTwoLengths reports whether the body of a request has two lengths. Then the connection ends after the answer. If the head of a request in chunks cannot be seen, because the request came
// with an earlier one or over TLS, it ends, too.
func HasTwoLengths(w http.ResponseWriter, r *http.Request) bool {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) { // net/http ignores the encoding of a request of HTTP/1.0
		return false
	}
	var fields textproto.MIMEHeader
	seen := false
	if c, ok := r.Context().Value(headKey{}).(*headConn); ok {
		fields, seen = c.headOf(r)
	}
	two := fields["Content-Length"] != nil && fields["Transfer-Encoding"] != nil
	if two || !seen {
		w.Header().Set("Connection", "close")
	}
	return two
}
