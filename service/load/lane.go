package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// lane is an http.RoundTripper with one connection for one request at a time. http.Transport and its
// goroutines would take as much processor time as the service.
type lane struct {
	mu   sync.Mutex // of conn, which stop closes
	conn net.Conn
	over bool
	to   string // the scheme and host that conn is to

	in    *bufio.Reader
	out   *bufio.Writer
	whole bool   // whether the last answer was read to its end
	again func() // if set, is called when a request is sent again over a new connection
}

// RoundTrip implements http.RoundTripper. If a connection that was used before closes without an
// answer, RoundTrip sends the request over a new one, because the service closes idle connections. It
// skips interim answers (1xx).
func (l *lane) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		fresh, err := l.open(r)
		if err != nil {
			return nil, err
		}
		answer, begun, err := l.exchange(r)
		if err == nil {
			return answer, nil
		}
		l.close()
		if fresh || begun || r.Context().Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		if l.again != nil {
			l.again()
		}
		if r.GetBody != nil {
			again := *r
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
			r = &again
		}
	}
}

// open connects, unless there is a connection that can be used.
func (l *lane) open(r *http.Request) (fresh bool, err error) {
	to := r.URL.Scheme + "://" + r.URL.Host
	if l.conn != nil {
		if l.whole && l.in.Buffered() == 0 && l.to == to { // unsolicited bytes are not the next answer
			return false, nil
		}
		l.close()
	}
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	}
	conn, err := new(net.Dialer).DialContext(r.Context(), "tcp", address)
	if err != nil {
		return false, err
	}
	if r.URL.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: r.URL.Hostname()})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		conn.Close()
		return false, context.Canceled
	}
	l.conn, l.to = conn, to
	if l.in == nil {
		l.in, l.out = bufio.NewReaderSize(nil, 4<<10), bufio.NewWriterSize(nil, 32<<10)
	}
	l.in.Reset(conn)
	l.out.Reset(conn)
	return true, nil
}

// exchange sends a request and reads the head of its answer; begun reports whether any of it arrived.
func (l *lane) exchange(r *http.Request) (answer *http.Response, begun bool, err error) {
	if err := l.limit(r); err != nil {
		return nil, false, err
	}
	l.head(r)
	if r.Body != nil {
		if _, err := io.Copy(l.out, r.Body); err != nil {
			return nil, false, err
		}
	}
	if err := l.out.Flush(); err != nil {
		return nil, false, err
	}
	if _, err := l.in.Peek(1); err != nil {
		return nil, false, err
	}
	for interim := true; interim; interim = answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols {
		if answer, err = http.ReadResponse(l.in, r); err != nil {
			return nil, true, err
		}
	}
	l.whole = false
	answer.Body = body{answer.Body, l, !answer.Close}
	return answer, true, nil
}

// limit sets the deadline of a request.
func (l *lane) limit(r *http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return context.Canceled
	}
	deadline, _ := r.Context().Deadline()
	return l.conn.SetDeadline(deadline)
}

func (l *lane) head(r *http.Request) {
	w := l.out
	line := func(parts ...string) {
		for _, p := range parts {
			w.WriteString(p)
		}
		w.WriteString("\r\n")
	}
	line(r.Method, " ", r.URL.RequestURI(), " HTTP/1.1")
	line("Host: ", r.URL.Host)
	for name, values := range r.Header {
		for _, v := range values {
			line(name, ": ", v)
		}
	}
	if r.Body != nil {
		line("Content-Length: ", strconv.FormatInt(r.ContentLength, 10))
	}
	line()
}

// body records in the lane that it was read to its end.
type body struct {
	io.ReadCloser
	lane *lane
	kept bool // whether the connection can be used again
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.lane.whole = b.kept
	}
	return n, err
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// stop ends the request in progress and all later ones.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.conn != nil {
		_ = l.conn.SetDeadline(time.Unix(1, 0))
	}
}
