package server_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/feed"
	"vitrine/service/server"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a server on an engine with a log in memory, asked without a network.
type service struct {
	testing.TB
	*server.Server
	engine *engine.Engine
	store  eventlog.Log
	feed   *feed.Feed
	clock  *clock
	log    *lines
	token  string

	shoppers shoppers.Store
	newID    func() string
	options  server.Options
}

// clock is a time that tests move.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// lines returns the log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// started makes a service. change may be nil.
func started(t testing.TB, change func(o *server.Options, e *engine.Options)) *service {
	t.Helper()
	s := &service{TB: t, feed: new(feed.Feed), clock: new(clock), log: new(lines)}
	s.clock.advance(time.Hour)
	store := new(memlog.Store)
	eo := engine.Options{Store: store, Build: setup.NewLearner, Applied: s.feed.Applied}
	so := server.Options{
		Clock: s.clock.now, Log: store, Feed: s.feed, Version: "test", Personalizer: true,
		Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&so, &eo)
	}
	var err error
	if s.engine, err = engine.Open(context.Background(), eo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.engine.Close)
	t.Cleanup(s.feed.Close)
	s.store, s.shoppers, s.newID, so.Engine = eo.Store, eo.Shoppers, eo.NewID, s.engine
	s.options = so
	s.Server = server.New(so)
	return s
}

// answer is an answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *service) ask(method, path, body string, headers ...string) answer {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return answer{w.Code, w.Result().Header, w.Body.String()}
}

// askHost asks under a name of the server's.
func (s *service) askHost(host, path string) int {
	r := httptest.NewRequest("GET", "http://"+host+path, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

// want asks, and expects a status.
func (s *service) want(status int, method, path, body string, headers ...string) answer {
	s.Helper()
	a := s.ask(method, path, body, headers...)
	if a.status != status {
		s.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, a.status, status, a.body)
	}
	return a
}

// problem asks, and expects a problem of a kind at a field.
func (s *service) problem(status int, kind, pointer, method, path, body string, headers ...string) {
	s.Helper()
	a := s.want(status, method, path, body, headers...)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		s.Errorf("%s %s: a problem of the type %q", method, path, got)
	}
	var p api.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		s.Fatalf("%s %s: %v: %s", method, path, err, a.body)
	}
	if p.Type != "urn:vitrine:problem:"+kind || p.Status != status || p.Title != http.StatusText(status) ||
		p.Detail == "" || p.RequestID != a.header.Get("X-Request-Id") {
		s.Errorf("%s %s %s: %s, want a problem of the kind %q", method, path, body, a.body, kind)
	}
	if status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		s.Errorf("%s %s: a 503 without Retry-After", method, path)
	}
	if pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != pointer) {
		s.Errorf("%s %s %s: %s, want the field %s", method, path, body, a.body, pointer)
	}
}

const (
	home  = `{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","values":["acme","zenith"]}],"policy":{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20},"attribution_window":"30m","mode":"learn"}`
	plain = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`
	items = `"items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},{"id":"sku2","features":{"price":0.7,"brand":"zenith"}}]`
)

// reply is an answer as its caller reads it.
type reply struct {
	Decision   string `json:"decision_id"`
	Assortment []struct {
		ID          string   `json:"id"`
		Position    int      `json:"position"`
		Probability *float64 `json:"choice_probability"`
	} `json:"assortment"`
	Outside    *float64 `json:"outside_probability"`
	Revenue    *float64 `json:"expected_revenue"`
	Propensity *float64 `json:"propensity"`
	Version    uint64   `json:"policy_entry"`
}

func parsed(t testing.TB, body string) (a reply) {
	t.Helper()
	fatal.If(t, json.Unmarshal([]byte(body), &a, json.RejectUnknownMembers(true)), body)
	return a
}

// If the policy makes estimates, the probabilities are a choice's, and the revenue is its expectation.
func TestEstimates(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home",
		strings.Replace(home, `{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20}`, `{"name":"ucb-mnl"}`, 1))
	a := parsed(t, s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`).body)
	total, revenue := *a.Outside, 0.0
	for _, i := range a.Assortment {
		total += *i.Probability
		revenue += *i.Probability * map[string]float64{"sku1": 2.5, "sku2": 1}[i.ID]
	}
	if math.Abs(total-1) > 1e-12 || math.Abs(revenue-*a.Revenue) > 1e-12 || revenue == 0 {
		t.Errorf("the probabilities sum to %v, the expected revenue is %v: %+v", total, revenue, a)
	}
}

// A remembered decision takes the bytes of its id besides a constant, so long ids fill a placement's memory sooner.
func TestIDsTakeMemory(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	memory := func() int {
		stats := fatal.Or(s.engine.Stats("home"))(t)
		return stats.Memory
	}
	var taken []int
	for _, id := range []string{"a", "b", strings.Repeat("c", 101)} {
		before := memory()
		s.want(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":%q,"items":[{"id":"sku","features":{"x":1}}]}`, id))
		taken = append(taken, memory()-before)
	}
	if taken[0] <= 1 || taken[1] != taken[0] || taken[2] != taken[0]+100 {
		t.Errorf("decisions with ids of 1, 1 and 101 bytes take %d bytes", taken)
	}
}

// A failure of the service is not the caller's business in detail, but the
// log's, and other placements go on.
func TestFailures(t *testing.T) {
	s := started(t, func(_ *server.Options, o *engine.Options) { o.Build = brokenUnder("broken") })
	s.want(201, "PUT", "/v1/placements/broken", strings.Replace(plain, "ucb-mnl", "broken", 1))
	s.want(201, "PUT", "/v1/placements/sound", plain)
	const body = `{"items":[{"id":"a","features":{"x":1}}]}`
	s.problem(500, "policy", "", "POST", "/v1/placements/broken/decisions", body)
	if a := s.ask("POST", "/v1/placements/broken/decisions", body); strings.Contains(a.body, "boom") {
		t.Errorf("the answer is %s", a.body)
	}
	expect.Contains(t, s.log.String(), "boom", "the log does not say why")
	s.want(201, "POST", "/v1/placements/sound/decisions", body)

	s.want(200, "GET", "/readyz", "")
	s.engine.Close()
	s.problem(503, "stopped", "", "POST", "/v1/placements/sound/decisions", body)
	s.problem(503, "stopped", "", "GET", "/readyz", "")
}

func TestStandingPages(t *testing.T) {
	s := started(t, nil)
	s.want(200, "GET", "/healthz", "")
	s.want(200, "GET", "/readyz", "")
	for _, path := range []string{"/", "/docs"} {
		page := s.want(200, "GET", path, "")
		if strings.Contains(page.body, "//") || !strings.Contains(page.header.Get("Content-Security-Policy"),
			"default-src 'none'") {
			t.Errorf("the page at %s is not whole by itself", path)
		}
	}
	script := s.want(200, "GET", "/desk/index.js", "")
	if !strings.HasPrefix(script.header.Get("Content-Type"), "text/javascript") ||
		script.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the script has the headers %v", script.header)
	}
	same := s.want(304, "GET", "/desk/index.js", "", "If-None-Match", script.header.Get("ETag"))
	for _, name := range []string{"Cache-Control", "ETag", "Vary"} { // RFC 9110, section 15.4.5
		if got, want := same.header.Get(name), script.header.Get(name); got != want || want == "" {
			t.Errorf("%s: %q with 304, %q with 200", name, got, want)
		}
	}
	s.problem(404, "not-found", "", "GET", "/desk/none.js", "")
}

// A path that is not clean is nowhere, and not somewhere else, and is answered as all that is nowhere.
func TestUncleanPaths(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	for _, path := range []string{"//", "//v1/placements", "/v1//placements", "/v1/./placements", "/v1/x/../placements",
		"/../healthz", "/healthz/", "/v1/placements/home/"} {
		for _, method := range []string{"GET", "POST"} {
			before := len(s.log.String())
			s.problem(404, "no-route", "", method, path, "")
			if line := s.log.String()[before:]; !strings.Contains(line, `"status":404`) ||
				strings.Contains(line, path) && path != "//" {
				t.Errorf("%s %s is logged as %q", method, path, line)
			}
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("OPTIONS", "*", nil)
	r.Host = "localhost"
	if s.ServeHTTP(w, r); w.Code != 404 || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("OPTIONS *: %d %v", w.Code, w.Header())
	}
}
