package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/wait"
	"vitrine/service/api"
)

const (
	maxAnswer = 16 << 20 // bytes
	minWait   = 50 * time.Millisecond
	maxWait   = 5 * time.Second
)

// payload is a body in two parts.
type payload struct {
	mediaType  string // "" if there is no body
	head, rest []byte // shared between attempts
	match      string // the ETag that must match, or ""
}

func (p payload) open() io.ReadCloser { return io.NopCloser(&net.Buffers{p.head, p.rest}) }

// answer is an answer and the number of attempts that it took.
type answer struct {
	attempts int
	unsure   bool // whether one of them failed, but may have acted
	status   int
	etag     string
	body     []byte
}

func (a *answer) decode(into any) error {
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("client: the answer cannot be read: %w", err)
	}
	return nil
}

// send makes attempts until one succeeds, fails for good, or would begin after c.Patience.
func (c *Client) send(ctx context.Context, method, path string, body payload) (a answer, err error) {
	began := time.Now()
	for ceiling := minWait; ; ceiling = min(2*ceiling, maxWait) {
		var after time.Duration
		after, err = c.round(ctx, began, method, path, body, &a)
		if err == nil || after < 0 || c.Patience < 0 || ctx.Err() != nil {
			return a, err
		}
		pause := after + time.Duration(c.jitter()*float64(ceiling))
		if time.Since(began)+pause > c.patience() {
			return a, fmt.Errorf("after %d attempts: %w", a.attempts, err)
		}
		if c.Retrying != nil {
			c.Retrying(err, pause)
		}
		if wait.For(ctx, pause) != nil {
			return a, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func (c *Client) patience() time.Duration { return cmp.Or(c.Patience, 30*time.Second) }

// The waits after errors that a retry does not mend.
const (
	never     = -1 // at any address
	elsewhere = -2 // at the same address
)

// round makes an attempt at each address, until one does not send the call to the next address. If it fails, after is
// the min time until the next round, or never.
func (c *Client) round(ctx context.Context, began time.Time, method, path string, body payload,
	a *answer) (after time.Duration, err error) {
	list, err := c.addresses.read(c.Base)
	if err != nil {
		return never, err
	}
	after = never
	for i, at := 0, int(c.addresses.first.Load()); ; i, at = i+1, (at+1)%len(list) {
		var wait time.Duration
		a.attempts++
		wait, err = c.attempt(ctx, list[at], method, path, body, a)
		a.unsure = a.unsure || mayHaveActed(err)
		if err == nil || wait == never || a.status == http.StatusTooManyRequests || ctx.Err() != nil {
			return wait, err
		}
		c.addresses.next(at)
		if wait >= 0 && (after < 0 || wait < after) {
			after = wait
		}
		if i == len(list)-1 || c.Patience >= 0 && time.Since(began) > c.patience() {
			return after, err
		}
		if c.Retrying != nil {
			c.Retrying(err, 0)
		}
	}
}

// attempt sends a request once. If it fails, after is the min time until the next attempt, never or elsewhere.
func (c *Client) attempt(ctx context.Context, base, method, path string, body payload,
	a *answer) (after time.Duration, err error) {
	trying, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, 10*time.Second))
	defer cancel()
	a.status = 0
	r, err := c.request(trying, base, method, path, body)
	if err != nil {
		return never, err
	}
	response, err := c.transport().RoundTrip(r)
	if err != nil {
		return waitAfter(err), err
	}
	defer response.Body.Close()
	a.status, a.etag = response.StatusCode, response.Header.Get("ETag")
	if a.body, err = readAll(response); err != nil {
		return waitAfter(err), err
	}
	if response.StatusCode < 300 {
		if t := mediaType(response.Header); a.status != http.StatusNoContent && t != asJSON {
			return never, fmt.Errorf("client: the answer has the type %q, want %q: is %s a decision service?", t,
				asJSON, base)
		}
		if c.ReadYourWrites {
			c.wrote.note(response.Header.Get(api.EntryHeader))
		}
		return 0, nil
	}
	p := problemOf(response.StatusCode, response.Header, a.body)
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(response.Header), p
	}
	return never, p
}

func (c *Client) request(ctx context.Context, base, method, path string, body payload) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if method == http.MethodGet {
		if entries := c.wrote.text(); entries != "" {
			query := r.URL.Query()
			query.Set("entry", entries)
			r.URL.RawQuery = query.Encode()
		}
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: Key has a character that no token has, perhaps a line break at its end")
	}
	r.Header["Idempotency-Key"] = nil // is not sent, but allows net/http to retry
	if c.Key != "" {
		r.Header["Authorization"] = []string{"Bearer " + c.Key}
	}
	if body.match != "" {
		r.Header["If-Match"] = []string{body.match}
	}
	if body.mediaType != "" {
		r.Header["Content-Type"] = []string{body.mediaType}
		r.ContentLength = int64(len(body.head) + len(body.rest))
		r.Body = body.open()
		r.GetBody = func() (io.ReadCloser, error) { return body.open(), nil }
	}
	return r, nil
}

var errTooLong = fmt.Errorf("client: the answer has more than %d bytes", maxAnswer)

// readAll reads a body to its end, so that the connection can be used again.
func readAll(r *http.Response) ([]byte, error) {
	if r.ContentLength > maxAnswer {
		return nil, errTooLong
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, maxAnswer+1))
	if n > maxAnswer {
		return nil, errTooLong
	}
	return b.Bytes(), err
}

// mayHaveActed reports whether a failed attempt may have changed something.
func mayHaveActed(err error) bool {
	var p *api.Problem
	if errors.As(err, &p) {
		return p.Status >= 500 && !slices.Contains([]string{"busy", "starting", "follower"}, p.Kind())
	}
	var dial *net.OpError
	return err != nil && !(errors.As(err, &dial) && dial.Op == "dial")
}

// waitAfter returns the wait after an attempt without an answer: 0, never or elsewhere.
func waitAfter(err error) time.Duration {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var name *net.DNSError
	switch {
	case errors.Is(err, errTooLong):
		return never
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &name) && name.IsNotFound:
		return elsewhere
	}
	return 0
}

// retryAfter returns the wait that the service asks for.
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
	given := h.Get("Content-Type")
	if given == asJSON {
		return given
	}
	t, _, _ := mime.ParseMediaType(given)
	return t
}

// pooled is the transport of clients without one of their own.
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
	return rand.Float64()
}

// writes is the last log entry named by answers. The zero value is ready.
type writes struct{ last atomic.Uint64 }

// text returns the entry for a read, or "".
func (w *writes) text() string {
	if last := w.last.Load(); last > 0 {
		return strconv.FormatUint(last, 10)
	}
	return ""
}

// note remembers the entry of an answer if it is the last so far. A text without an entry is ignored.
func (w *writes) note(text string) {
	entry, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return
	}
	for last := w.last.Load(); entry > last && !w.last.CompareAndSwap(last, entry); last = w.last.Load() {
	}
}

// addresses are Base's addresses, and the one to begin with.
type addresses struct {
	once sync.Once
	list []string
	err  error // of a wrong address

	first atomic.Uint32
}

// read returns the addresses in a Base. The base of later calls does not matter.
func (a *addresses) read(base string) ([]string, error) {
	a.once.Do(func() {
		for address := range strings.SplitSeq(base, ",") {
			address = strings.TrimSpace(address)
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
				strings.ContainsAny(address, "?#") {
				a.err = fmt.Errorf("client: Base %q: must be a URL such as %q, or several with commas between them",
					address, "http://127.0.0.1:8080")
				return
			}
			a.list = append(a.list, strings.TrimSuffix(address, "/"))
		}
	})
	return a.list, a.err
}

// next makes calls begin with the address after one that failed, unless another call did so already.
func (a *addresses) next(failed int) {
	a.first.CompareAndSwap(uint32(failed), uint32((failed+1)%len(a.list)))
}

// problemOf reads an error answer. It may come from a proxy, which does not send problems.
func problemOf(status int, header http.Header, body []byte) *api.Problem {
	p := &api.Problem{Title: http.StatusText(status), Status: status, RequestID: header.Get("X-Request-Id")}
	if mediaType(header) != "application/problem+json" {
		p.Detail = "not an answer of the service"
		return p
	}
	read := *p
	if err := json.Unmarshal(body, &read); err != nil {
		p.Detail = "a problem that cannot be read"
		return p
	}
	read.Status = status
	return &read
}
