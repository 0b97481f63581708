package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	largestAnswer = 16 << 20 // bytes
	firstWait     = 50 * time.Millisecond
	largestWait   = 5 * time.Second
)

// payload is a body in two parts, of which the second is shared.
type payload struct {
	mediaType string // "" is no body
	head      string
	rest      []byte
}

func (p payload) open() io.ReadCloser { return &p }

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	n := copy(b, p.head)
	p.head = p.head[n:]
	if n == 0 {
		n = copy(b, p.rest)
		p.rest = p.rest[n:]
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo, without a buffer between.
func (p *payload) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.head)
	p.head = p.head[n:]
	if err != nil {
		return int64(n), err
	}
	m, err := w.Write(p.rest)
	p.rest = p.rest[m:]
	return int64(n + m), err
}

// Close implements io.Closer.
func (*payload) Close() error { return nil }

// answered is what came back.
type answered struct {
	attempts  int
	status    int
	mediaType string
	body      []byte
}

func (a *answered) decode(into any) error {
	if a.mediaType != asJSON {
		return fmt.Errorf("client: an answer of the type %q, want %q", a.mediaType, asJSON)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("client: the answer cannot be read: %w", err)
	}
	return nil
}

// send asks until there is an answer, a problem that another attempt does not solve, or no patience.
func (c *Client) send(ctx context.Context, method, path string, body payload) (a answered, err error) {
	began := time.Now()
	for ceiling := firstWait; ; ceiling = min(2*ceiling, largestWait) {
		var after time.Duration
		a.attempts++
		after, err = c.attempt(ctx, method, path, body, &a)
		if err == nil || after < 0 || c.Patience < 0 {
			return a, err
		}
		if ctx.Err() != nil {
			return a, err
		}
		wait := after + time.Duration(c.jitter()*float64(ceiling))
		if time.Since(began)+wait > cmp.Or(c.Patience, 30*time.Second) {
			return a, fmt.Errorf("after %d attempts: %w", a.attempts, err)
		}
		if c.Retrying != nil {
			c.Retrying(err, wait)
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// never is a wait that is not worth it.
const never = -1

// attempt asks once. Where it fails, after is for how long not to ask again.
func (c *Client) attempt(ctx context.Context, method, path string, body payload, a *answered) (after time.Duration, err error) {
	trying, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, 10*time.Second))
	defer cancel()
	r, err := c.request(trying, method, path, body)
	if err != nil {
		return never, err
	}
	answer, err := c.transport().RoundTrip(r)
	if err != nil {
		return worthwhile(err), err
	}
	defer answer.Body.Close()
	a.status, a.mediaType = answer.StatusCode, mediaType(answer.Header)
	if a.body, err = readAll(answer); err != nil {
		return worthwhile(err), err
	}
	if answer.StatusCode < 300 {
		return 0, nil
	}
	p := problemOf(answer.StatusCode, answer.Header, a.body)
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(answer.Header), p
	}
	return never, p
}

func (c *Client) request(ctx context.Context, method, path string, body payload) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, nil)
	if err != nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("client: Base %q: must be a URL such as %q", c.Base, "http://127.0.0.1:8080")
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: Key has a character that no token has: there may be a line break at its end")
	}
	r.Header["Idempotency-Key"] = nil // is not sent, and tells net/http that it may send again
	if c.Key != "" {
		r.Header["Authorization"] = []string{"Bearer " + c.Key}
	}
	if body.mediaType != "" {
		r.Header["Content-Type"] = []string{body.mediaType}
		r.ContentLength = int64(len(body.head) + len(body.rest))
		r.Body = body.open()
		r.GetBody = func() (io.ReadCloser, error) { return body.open(), nil }
	}
	return r, nil
}

var errTooLong = fmt.Errorf("client: the answer has more than %d bytes", largestAnswer)

// readAll reads a body to its end, so that the connection can be used again.
func readAll(answer *http.Response) ([]byte, error) {
	if answer.ContentLength > largestAnswer {
		return nil, errTooLong
	}
	var b bytes.Buffer
	if answer.ContentLength > 0 {
		b.Grow(int(answer.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(answer.Body, largestAnswer+1))
	if n > largestAnswer {
		return nil, errTooLong
	}
	return b.Bytes(), err
}

// worthwhile returns the wait after an attempt that had no answer.
func worthwhile(err error) time.Duration {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var name *net.DNSError
	if errors.Is(err, errTooLong) || errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &name) && name.IsNotFound {
		return never
	}
	return 0
}

// retryAfter returns for how long the service says not to ask.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second)/2)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

func mediaType(h http.Header) string {
	switch given := h.Get("Content-Type"); given {
	case asJSON, asBinary:
		return given
	default:
		t, _, _ := mime.ParseMediaType(given)
		return t
	}
}

// pooled are the connections of clients that bring none.
var pooled = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	return t
}()

func (c *Client) transport() http.RoundTripper {
	if c.HTTP != nil {
		return c.HTTP
	}
	return pooled
}

// jitter draws uniformly from [0, 1).
func (c *Client) jitter() float64 {
	if c.Jitter != nil {
		return c.Jitter()
	}
	var b [8]byte
	rand.Read(b[:])
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}
