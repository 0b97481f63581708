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

// If a request contains both Content-Length and Transfer-Encoding, a proxy may use the first to find the end and the
// server the second, so that the body smuggles in a request that the proxy has never seen. net/http silently drops the
// length. Therefore the head of each request is kept until the handler has checked it.

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

// MaxHeader limits the head of a request, in bytes.
const MaxHeader = 16 << 10

// headConn is a connection that remembers the bytes read since it was last idle, up to the end of a request's head.
type headConn struct {
	net.Conn

	mu   sync.Mutex
	head []byte
	full bool // the head is complete
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
		c.full = len(c.head) > 2*MaxHeader || bytes.Contains(tail, []byte("\n\r\n")) ||
			bytes.Contains(tail, []byte("\n\n"))
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

// headOf returns the header fields of the request in progress as they were sent. It returns false if it cannot
// attribute fields to this request.
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

// WithHead is meant for ConnContext of http.Server.
func WithHead(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, headKey{}, c)
}

// HasTwoLengths reports whether a request specifies the length of its body in two ways. If so, it closes the connection
// after the answer. It also does so for a chunked request with an unavailable head, because the request arrived along
// with an earlier one or over TLS.
func HasTwoLengths(w http.ResponseWriter, r *http.Request) bool {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) { // net/http ignores Transfer-Encoding in HTTP/1.0
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
