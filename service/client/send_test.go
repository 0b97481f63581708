package client_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/client"
)

// reply is a fake service's answer.
func reply(status int, mediaType, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {mediaType}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body))}
}

const busy = `{"type":"urn:vitrine:problem:busy","title":"Service Unavailable","status":503,"detail":"full","request_id":"x-1"}`

// scripted answers requests in turn, the last answer again and again, and notes when they came.
type scripted struct {
	answers []func() (*http.Response, error)
	came    []time.Duration
	began   time.Time
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	answer := s.answers[min(len(s.came), len(s.answers)-1)]
	s.came = append(s.came, time.Since(s.began))
	return answer()
}

func status(code int, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return reply(code, "application/problem+json", busy, headers...), nil }
}

func done() (*http.Response, error) { return reply(204, "", ""), nil }

func failing(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

// Waits double up to 5 s, are drawn below that, and come after what the service asks for.
func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		jitter  float64
		answers []func() (*http.Response, error)
		came    []time.Duration
	}{
		{"at once", 0.5, []func() (*http.Response, error){done}, []time.Duration{0}},
		{"doubling", 0.5, slices.Concat(slices.Repeat([]func() (*http.Response, error){failing(io.EOF)}, 9),
			[]func() (*http.Response, error){done}),
			[]time.Duration{0, 25 * ms, 75 * ms, 175 * ms, 375 * ms, 775 * ms, 1575 * ms, 3175 * ms, 5675 * ms,
				8175 * ms}},
		{"no jitter", 0, []func() (*http.Response, error){status(503), status(429), status(502), status(504), done},
			[]time.Duration{0, 0, 0, 0, 0}},
		{"asked to wait", 0.5, []func() (*http.Response, error){status(429, "Retry-After", "3"),
			status(503, "Retry-After", "nonsense"), done}, []time.Duration{0, 3025 * ms, 3075 * ms}},
		{"until a time", 0, []func() (*http.Response, error){status(503, "Retry-After", "Sat, 01 Jan 2000 "+
			"00:00:07 GMT"), done}, []time.Duration{0, 7000 * ms}},
		{"a time that is over", 0, []func() (*http.Response, error){status(503, "Retry-After", "Sat, 01 Jan 1990 "+
			"00:00:07 GMT"), done}, []time.Duration{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the time is 2000-01-01
				s := &scripted{answers: c.answers}
				k := &client.Client{Base: "http://x", HTTP: s, Jitter: func() float64 { return c.jitter }}
				fatal.If(t, k.Outcome(t.Context(), "home", "d", ""))
				expect.List(t, s.came, c.came, "attempts at")
			})
		})
	}
}

// Patience, the context and refusals end the attempts.
func TestEndsOfPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answers: []func() (*http.Response, error){status(503)}}
		c := &client.Client{Base: "http://x", HTTP: s}
		err := c.Outcome(t.Context(), "home", "d", "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Kind() != "busy" || p.Status != 503 || p.RequestID != "x-1" ||
			!strings.Contains(err.Error(), "attempts: busy: full") {
			t.Errorf("%v", err)
		}
		if last := s.came[len(s.came)-1]; last > 30*time.Second || last < 20*time.Second {
			t.Errorf("the last attempt was after %v", last)
		}
		for _, patience := range []time.Duration{-1, time.Second} { // the second: less than is asked for
			s = &scripted{answers: []func() (*http.Response, error){status(503, "Retry-After", "18446744073709551615")}}
			c = &client.Client{Base: "http://x", HTTP: s, Patience: patience}
			if err := c.Outcome(t.Context(), "home", "d", ""); !errors.As(err, &p) || len(s.came) != 1 ||
				s.came[0] != 0 {
				t.Errorf("%v, attempts at %v", err, s.came)
			}
		}
		for _, code := range []int{301, 400, 401, 403, 404, 408, 409, 413, 422, 500, 501} {
			s = &scripted{answers: []func() (*http.Response, error){status(code)}}
			c = &client.Client{Base: "http://x", HTTP: s}
			if err := c.Outcome(t.Context(), "home", "d", ""); !errors.As(err, &p) || p.Status != code ||
				len(s.came) != 1 {
				t.Errorf("%d: %v, attempts at %v", code, err, s.came)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s = &scripted{answers: []func() (*http.Response, error){failing(io.EOF)}}
		c = &client.Client{Base: "http://x", HTTP: s}
		began := time.Now()
		if err := c.Outcome(ctx, "home", "d", ""); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, io.EOF) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// An attempt without an answer in time is followed by another.
func TestAttemptsTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := &client.Client{Base: "http://x", Timeout: 2 * time.Second, Jitter: func() float64 { return 0 },
			HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
				if n++; n == 3 {
					return done()
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
		began := time.Now()
		if err := c.Outcome(t.Context(), "home", "d", ""); err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		n = 3
		time.AfterFunc(time.Second, cancel)
		expect.Error(t, c.Outcome(ctx, "home", "d", ""), context.Canceled)
	})
}

// Delete takes a missing placement for deleted only after an attempt that may have deleted it.
func TestDeleteOfNoPlacement(t *testing.T) {
	missing := func() (*http.Response, error) {
		return reply(404, "application/problem+json", `{"type":"urn:vitrine:problem:not-found"}`), nil
	}
	problem := func(kind string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return reply(503, "application/problem+json", `{"type":"urn:vitrine:problem:`+kind+`"}`), nil
		}
	}
	for name, c := range map[string]struct {
		first   func() (*http.Response, error)
		deleted bool
	}{
		"refused":         {status(503), false},
		"too many":        {status(429), false},
		"starting":        {problem("starting"), false},
		"follower":        {problem("follower"), false},
		"internal":        {problem("internal"), true},
		"not connected":   {failing(&net.OpError{Op: "dial", Err: io.EOF}), false},
		"an answer lost":  {failing(io.EOF), true},
		"a proxy's error": {func() (*http.Response, error) { return reply(502, "text/html", "<p>"), nil }, true},
	} {
		k := &client.Client{Base: "http://x", HTTP: &scripted{answers: []func() (*http.Response, error){c.first, missing}}}
		if err := k.Delete(t.Context(), "home"); (err == nil) != c.deleted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Errors that another attempt cannot mend are returned at once.
func TestNotWorthwhile(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	ask := func(c *client.Client) error {
		c.Retrying = func(err error, _ time.Duration) { t.Errorf("%s: %v is followed by another attempt", c.Base, err) }
		_, err := c.Stats(t.Context(), "home")
		return err
	}
	var unknown x509.UnknownAuthorityError
	if err := ask(&client.Client{Base: secure.URL, HTTP: own}); !errors.As(err, &unknown) {
		t.Error(err)
	}
	for _, base := range []string{"", "127.0.0.1:8080", "localhost:8080", "ftp://x", "http://%zz"} {
		expect.Part(ask(&client.Client{Base: base}))(t, "must be a URL", base)
	}
	if err := ask(&client.Client{Base: "http://127.0.0.1:1", Key: "secret\n"}); err == nil ||
		!strings.Contains(err.Error(), "line break") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	long := reply(200, "application/json", "")
	long.ContentLength = 1 << 40
	for name, answer := range map[string]*http.Response{
		"client: the answer has the type \"text/html\"": reply(200, "text/html; charset=utf-8", "<p>"),
		"client: the answer cannot be read":             reply(200, "application/json", "{"),
		"client: the answer has more than":              long,
		"Not Found: not an answer of the service":       reply(404, "text/html", "<p>"),
		"Not Found: a problem that cannot be read":      reply(404, "application/problem+json", "{"),
		"conflict: no reason was given": reply(409, "application/problem+json",
			`{"type":"urn:vitrine:problem:conflict"}`),
		"client: the answer has the type \"\"": reply(200, "", "x"),
	} {
		c := &client.Client{Base: "http://x",
			HTTP: roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil })}
		expect.Prefix(ask(c))(t, name)
	}
	for _, page := range []string{"<p>", ""} {
		c := &client.Client{Base: "http://x", HTTP: roundTrip(func(*http.Request) (*http.Response, error) {
			return reply(200, "text/html", page), nil
		})}
		expect.Refused(c.Outcome(t.Context(), "home", "d", "sku1"))(t, "an outcome is answered with the page", page)
	}
}

// A body that does not end is not read to its end.
func TestEndlessAnswer(t *testing.T) {
	answer := reply(200, "application/json", "")
	answer.ContentLength = -1
	answer.Body = io.NopCloser(spaces{})
	n := 0
	c := &client.Client{Base: "http://x",
		HTTP: roundTrip(func(*http.Request) (*http.Response, error) { n++; return answer, nil })}
	if _, err := c.Stats(t.Context(), "home"); err == nil || !strings.Contains(err.Error(), "more than") || n != 1 {
		t.Errorf("%v after %d attempts", err, n)
	}
}

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}
