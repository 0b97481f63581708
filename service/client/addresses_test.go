package client_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/client"
)

// hosts answer by their names, and note which was asked when, and with which body.
type hosts struct {
	answers map[string]func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	asked  []string
	came   []time.Duration
	bodies []string
	began  time.Time
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		body = string(text)
	}
	h.mu.Lock()
	if h.began.IsZero() {
		h.began = time.Now()
	}
	h.asked, h.came, h.bodies = append(h.asked, r.URL.Host), append(h.came, time.Since(h.began)), append(h.bodies, body)
	h.mu.Unlock()
	return h.answers[r.URL.Host](r)
}

// take returns who was asked when since the last call.
func (h *hosts) take() (asked string, came []time.Duration, bodies []string) {
	asked, came, bodies = strings.Join(h.asked, ""), h.came, h.bodies
	h.asked, h.came, h.bodies, h.began = nil, nil, nil, time.Time{}
	return asked, came, bodies
}

func good(*http.Request) (*http.Response, error) {
	return reply(201, "application/json", `{"decision_id":"d"}`), nil
}

func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func refuses(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func answers(code int, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return status(code, headers...)() }
}

// A call goes round the addresses, and waits only after all failed. Later calls begin where one answered.
func TestAddresses(t *testing.T) {
	const second = time.Second
	noName := func(*http.Request) (*http.Response, error) { return nil, &net.DNSError{IsNotFound: true} }
	badCertificate := func(*http.Request) (*http.Response, error) {
		return nil, &tls.CertificateVerificationError{Err: errors.New("expired")}
	}
	limited := false
	limitsOnce := func(r *http.Request) (*http.Response, error) {
		if limited {
			return refuses(r)
		}
		limited = true
		return answers(429)(r)
	}
	type doing = func(*http.Request) (*http.Response, error)
	for _, c := range []struct {
		name    string
		a, b, c doing
		asked   string
		came    []time.Duration
		wrong   string // of the error
		then    string // is asked by the next call
	}{
		{"the first answers", good, good, good, "a", []time.Duration{0}, "", "a"},
		{"refusal", refuses, good, good, "ab", []time.Duration{0, 0}, "", "b"},
		{"two refusals", refuses, refuses, good, "abc", []time.Duration{0, 0, 0}, "", "c"},
		{"503 that asks for a wait", answers(503, "Retry-After", "9"), good, good, "ab", []time.Duration{0, 0}, "",
			"b"},
		{"502 and 504", answers(502), answers(504), good, "abc", []time.Duration{0, 0, 0}, "", "c"},
		{"one that hangs", hangs, good, good, "ab", []time.Duration{0, 3 * second}, "", "b"},
		{"no name, and a bad certificate", noName, badCertificate, good, "abc", []time.Duration{0, 0, 0}, "", "c"},
		{"no help anywhere", noName, badCertificate, noName, "abc", []time.Duration{0, 0, 0}, "lookup", "abc"},
		{"a refusal by the service", answers(409), good, good, "a", []time.Duration{0}, "full", "a"},
		{"a limit of the rate", answers(429, "Retry-After", "3"), good, good, "aa", []time.Duration{0, 3 * second},
			"after 2 attempts", "aa"},
		{"the shortest wait that is asked for", answers(503, "Retry-After", "4"), answers(503, "Retry-After", "3"),
			noName, "abcabc", []time.Duration{0, 0, 0, 3 * second, 3 * second, 3 * second}, "after 6 attempts",
			"abcabc"},
		{"patience ends within a round", hangs, hangs, hangs, "ab", []time.Duration{0, 3 * second}, "deadline", "ca"},
		{"a limit of the rate, then refusal", limitsOnce, good, good, "aab", []time.Duration{0, 0, 0}, "", "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hosts{answers: map[string]doing{"a": c.a, "b": c.b, "c": c.c}}
				k := &client.Client{Base: "http://a, http://b/,http://c", HTTP: h, Timeout: 3 * time.Second,
					Patience: 5 * time.Second, Jitter: func() float64 { return 0 }}
				_, err := k.Decide(t.Context(), "home", &api.Request{})
				if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, want %q", err, c.wrong)
				}
				asked, came, bodies := h.take()
				if asked != c.asked || !slices.Equal(came, c.came) {
					t.Errorf("asked %s at %v, want %s at %v", asked, came, c.asked, c.came)
				}
				if bodies[0] == "" || len(slices.Compact(bodies)) != 1 {
					t.Errorf("the bodies differ: %q", bodies)
				}
				_, _ = k.Decide(t.Context(), "home", &api.Request{})
				if asked, _, _ = h.take(); !strings.HasPrefix(asked, c.then) {
					t.Errorf("the next call asked %s, want %s", asked, c.then)
				}
			})
		})
	}
}

// A negative patience asks each address once, and Retrying counts each attempt but the first.
func TestAddressesOnce(t *testing.T) {
	h := &hosts{answers: map[string]func(*http.Request) (*http.Response, error){"a": refuses, "b": answers(503)}}
	retries := 0
	k := &client.Client{Base: "http://a,http://b", HTTP: h, Patience: -1,
		Retrying: func(error, time.Duration) { retries++ }}
	var p *api.Problem
	if _, err := k.Stats(t.Context(), "home"); !errors.As(err, &p) || p.Kind() != "busy" {
		t.Error(err)
	}
	if asked, _, _ := h.take(); asked != "ab" || retries != 1 {
		t.Errorf("asked %s with %d retries", asked, retries)
	}
}

// Servers that die, and come back, under many callers: every call is answered.
func TestServersDie(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	servers := []*httptest.Server{httptest.NewServer(handler), httptest.NewServer(handler), httptest.NewServer(handler)}
	var bases []string
	for _, s := range servers {
		bases = append(bases, s.URL)
	}
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	k := &client.Client{Base: strings.Join(bases, ","), HTTP: own}
	var callers sync.WaitGroup
	called, dead := make(chan struct{}), make(chan struct{})
	for range 4 {
		callers.Go(func() {
			for i := range 60 {
				if i == 20 {
					called <- struct{}{}
					<-dead
				}
				expect.Error(t, k.Outcome(t.Context(), "home", "d", ""), nil)
			}
		})
	}
	for range 4 {
		<-called
	}
	servers[0].CloseClientConnections()
	servers[0].Close()
	servers[1].Close()
	close(dead)
	callers.Wait()
	servers[2].Close()
}

// All addresses are read before the first call.
func TestWrongAddresses(t *testing.T) {
	for _, base := range []string{"http://x,", ",", "http://x,y:8080", "http://x,http://y z", "http://x?key=y"} {
		k := &client.Client{Base: base, HTTP: &hosts{}}
		expect.Part(k.Stats(t.Context(), "home"))(t, "must be a URL such as", base)
	}
}

// With ReadYourWrites, reads name the last entry that the client wrote.
func TestReadYourWrites(t *testing.T) {
	for _, own := range []bool{true, false} {
		entries := []string{"7", "12", "9", "", "x"}
		var queries []string
		k := &client.Client{Base: "http://x", ReadYourWrites: own,
			HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == "GET" {
					queries = append(queries, r.URL.RawQuery)
					return reply(200, "application/json", "{}"), nil
				}
				expect.Equal(t, r.URL.RawQuery, "", "a change asks for", r.URL)
				entry := entries[0]
				entries = entries[1:]
				return reply(204, "", "", "Vitrine-Entry", entry), nil
			})}
		read := func() {
			fatal.Or(k.Items(t.Context(), "home", 0, 5))(t)
		}
		read()
		for len(entries) > 0 {
			fatal.If(t, k.Outcome(t.Context(), "home", "d", ""))
			read()
		}
		want := slices.Repeat([]string{"from=0&limit=5"}, 6)
		if own {
			want = []string{"from=0&limit=5", "entry=7&from=0&limit=5", "entry=12&from=0&limit=5",
				"entry=12&from=0&limit=5", "entry=12&from=0&limit=5", "entry=12&from=0&limit=5"}
		}
		expect.List(t, queries, want, "reads ask")
	}
}
