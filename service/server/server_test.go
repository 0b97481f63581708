package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a server on an engine with a log in memory, asked without a network.
type service struct {
	testing.TB
	*server.Server
	engine *decision.Engine
	store  eventlog.Store
	feed   *server.Feed
	clock  *clock
	log    *lines
	token  string

	options server.Options
}

// clock is a time that tests move.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// lines is what was logged.
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
func started(t testing.TB, change func(o *server.Options, e *decision.Options)) *service {
	t.Helper()
	s := &service{TB: t, feed: new(server.Feed), clock: new(clock), log: new(lines)}
	s.clock.advance(time.Hour)
	store := new(memlog.Store)
	eo := decision.Options{Store: store, Build: setup.NewLearner, Applied: s.feed.Applied}
	so := server.Options{
		Clock: s.clock.now, Log: store, Feed: s.feed, Version: "test", Personalizer: true,
		Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&so, &eo)
	}
	var err error
	if s.engine, err = decision.Open(context.Background(), eo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.engine.Close)
	t.Cleanup(s.feed.Close)
	s.store, so.Engine = eo.Store, s.engine
	s.options = so
	s.Server = server.New(so)
	return s
}

// answer is what came back.
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
	if p.Type != "urn:vitrine:problem:"+kind || p.Status != status || p.Title != http.StatusText(status) || p.Detail == "" || p.RequestID != a.header.Get("X-Request-Id") {
		s.Errorf("%s %s %s: %s, want a problem of the kind %q", method, path, body, a.body, kind)
	}
	if status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		s.Errorf("%s %s: a 503 without Retry-After", method, path)
	}
	if pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != pointer) {
		s.Errorf("%s %s %s: %s, want the field %s", method, path, body, a.body, pointer)
	}
}

func same(t testing.TB, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	fatal.If(t, json.Unmarshal([]byte(want), &b))
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("-want +got\n%s", d)
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
	Version    uint64   `json:"policy_version"`
}

func parsed(t testing.TB, body string) (a reply) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &a, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return a
}

// Where the policy has estimates the probabilities are those of a choice, and the
// revenue is what they expect.
func TestEstimates(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(home, `{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20}`, `{"name":"ucb-mnl"}`, 1))
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

// The shapes of the API, in the order of a first use.
func TestExamples(t *testing.T) {
	s := started(t, nil)
	created := s.want(201, "PUT", "/v1/placements/home", home)
	if again := s.want(200, "PUT", "/v1/placements/home", home); again.body != created.body {
		t.Errorf("the same placement again: %s, was %s", again.body, created.body)
	}
	got := s.want(200, "GET", "/v1/placements/home", "")
	same(t, got.body, created.body)
	s.want(200, "PUT", "/v1/placements/home", got.body) // the returned configuration can be put
	same(t, s.want(200, "GET", "/v1/placements", "").body, `{"placements":[{"name":"home","config":`+got.body+`}]}`)

	request := `{"decision_id":"abc",` + items + `}`
	first := s.want(201, "POST", "/v1/placements/home/decisions", request)
	a := parsed(t, first.body)
	for k, i := range a.Assortment {
		if i.Position != k+1 {
			t.Errorf("position %d of %s", i.Position, first.body)
		}
	}
	if a.Decision != "abc" || len(a.Assortment) == 0 || a.Outside != nil { // in its warm-up the policy has no estimate
		t.Errorf("the answer %s", first.body)
	}
	if again := s.want(200, "POST", "/v1/placements/home/decisions", request); again.body != first.body {
		t.Errorf("the same request again: %s, was %s", again.body, first.body)
	}
	s.problem(409, "conflict", "", "POST", "/v1/placements/home/decisions", strings.Replace(request, "1.2", "1.3", 1))

	shown := a.Assortment[0].ID
	s.problem(422, "not-shown", "", "POST", "/v1/decisions/abc/outcome", `{"choice":"sku9"}`)
	s.want(204, "POST", "/v1/decisions/abc/outcome", `{"choice":"`+shown+`"}`)
	s.want(204, "POST", "/v1/decisions/abc/outcome", `{"choice":"`+shown+`"}`)
	s.problem(409, "conflict", "", "POST", "/v1/decisions/abc/outcome", `{"choice":null}`)
	s.problem(404, "not-found", "", "POST", "/v1/decisions/abd/outcome", `{"choice":null}`)
	same(t, s.want(200, "GET", "/v1/decisions/abc", "").body,
		strings.TrimSuffix(first.body, "}")+`,"placement":"home","by":"policy","time":"1970-01-01T01:00:00Z","status":"chosen","choice":"`+shown+`","earned":`+map[string]string{"sku1": "2.5", "sku2": "1.5"}[shown]+`}`)

	made := s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`)
	if a = parsed(t, made.body); a.Decision == "abc" {
		t.Fatal(made.body)
	}
	s.want(204, "POST", "/v1/decisions/"+a.Decision+"/outcome", `{"choice":null}`)

	fatal.If(t, s.engine.Wait(t.Context()))
	var stats api.Stats
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/stats", "").body), &stats); err != nil || stats.Decisions != 2 || stats.Outcomes != 2 || stats.Learned != 2 {
		t.Errorf("%+v, %v", stats, err)
	}

	version := fatal.Or(s.engine.Keep(t.Context(), "home", "", 0))(t)
	s.want(204, "POST", "/v1/placements/home/rollback", fmt.Sprintf(`{"version":%d}`, version))
	s.problem(404, "not-found", "", "POST", "/v1/placements/home/rollback", `{"version":1000}`)

	s.want(204, "DELETE", "/v1/placements/home", "")
	s.problem(404, "not-found", "", "DELETE", "/v1/placements/home", "")
	s.problem(404, "not-found", "", "GET", "/v1/decisions/abc", "")
	same(t, s.want(200, "GET", "/v1/placements", "").body, `{"placements":[]}`)
}

func TestBadInput(t *testing.T) {
	s := started(t, func(o *server.Options, _ *decision.Options) { o.Limits.Body = 100_000 })
	s.want(201, "PUT", "/v1/placements/home", home)
	decide := func(status int, kind, pointer, body string, headers ...string) {
		t.Helper()
		s.problem(status, kind, pointer, "POST", "/v1/placements/home/decisions", body, headers...)
	}
	decide(422, "invalid", "#/items/0/features/price", `{"items":[{"id":"a","features":{"price":"cheap","brand":"b"}}]}`)
	decide(422, "invalid", "#/items/0/features/price", `{"items":[{"id":"a","features":{"price":true,"brand":"b"}}]}`)
	decide(422, "invalid", "#/items/0/features/colour", `{"items":[{"id":"a","features":{"colour":"red"}}]}`)
	decide(422, "invalid", "#/items/0/features/price", `{"items":[{"id":"a","features":{"brand":"b"}}]}`)
	decide(422, "invalid", "#/items/0/features/price", `{"items":[{"id":"a","features":{"price":1e999,"brand":"b"}}]}`)
	decide(422, "invalid", "#/items/0/revenue", `{"items":[{"id":"a","features":{"price":1,"brand":"b"},"revenue":-1}]}`)
	decide(422, "invalid", "#/items", `{"items":[]}`)
	decide(422, "invalid", "#/items", `{}`)
	decide(422, "invalid", "#/size", `{"size":9,`+items+`}`)
	decide(422, "invalid", "#/include/0", `{"include":["sku3"],`+items+`}`)
	decide(422, "invalid", "#/exclude", `{"exclude":{},`+items+`}`)
	decide(422, "invalid", "#/at_most/0/most", `{"at_most":[{"items":["sku1"],"most":-1}],`+items+`}`)
	decide(422, "invalid", "#/decision_id", `{"decision_id":"a b",`+items+`}`)
	decide(422, "invalid", "#/decision_id", `{"decision_id":"..",`+items+`}`) // no path leads to it
	decide(422, "invalid", "#/baseline/0", `{"baseline":["sku9"],`+items+`}`)
	decide(422, "invalid", "", `[]`)
	decide(422, "invalid", "", strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	decide(400, "malformed", "", strings.Repeat(`{"items":`, 5000))
	decide(400, "malformed", "", strings.Repeat("[", 50_000))
	decide(400, "malformed", "#/items/0/features/price", `{"items":[{"id":"a","features":{"price":NaN,"brand":"b"}}]}`)
	decide(400, "malformed", "", ``)
	decide(400, "malformed", "", `{"items":[`)
	decide(400, "malformed", "", "{\"items\":[{\"id\":\"\xff\"}]}")
	decide(413, "too-large", "", `{"items":[`+strings.Repeat(`{"id":"a"},`, 10_000)+`]}`)
	decide(415, "media-type", "", `{}`, "Content-Type", "text/xml")
	decide(415, "media-type", "", `{}`, "Content-Encoding", "br")
	decide(400, "body", "", `{}`, "Content-Encoding", "gzip")
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf(`{"id":"%d","features":{"price":1,"brand":"b"}}`, i))
	}
	decide(422, "invalid", "#/items", `{"items":[`+strings.Join(many, ",")+`]}`)
	s.problem(404, "not-found", "", "POST", "/v1/placements/hom/decisions", `{`+items+`}`)

	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"d",`+items+`}`)
	for body, status := range map[string]int{
		`{"choice":1}`: 422, `{"choice":""}`: 422, `{}`: 422, `{"choise":null}`: 422, `[]`: 422, `{`: 400, ``: 400, `{"choice":null}{}`: 400,
		`{"choice":null,"choice":null}`: 400, `null`: 422,
	} {
		if a := s.ask("POST", "/v1/decisions/d/outcome", body); a.status != status {
			t.Errorf("outcome %s: %d, want %d: %s", body, a.status, status, a.body)
		}
	}
	s.problem(422, "invalid", "#/choice", "POST", "/v1/decisions/d/outcome", `{"choice":["sku1"]}`)
	if a := s.want(422, "POST", "/v1/decisions/d/outcome", `{"choice":"`+strings.Repeat("a", 90_000)+`"}`); len(a.body) > 2000 {
		t.Errorf("an outcome of 90 KB is repeated in %d bytes", len(a.body))
	}
	s.problem(404, "not-found", "", "POST", "/v1/decisions/%2e%2e%2fd/outcome", `{"choice":null}`)

	put := func(status int, kind, pointer, name, body string) {
		t.Helper()
		s.problem(status, kind, pointer, "PUT", "/v1/placements/"+name, body)
	}
	put(422, "invalid", "#/name", "a%20b", home)
	put(422, "invalid", "#/name", strings.Repeat("a", 65), home)
	put(422, "invalid", "#/name", "%2e%2e", home)
	put(422, "invalid", "#/max_size", "p", `{"max_size":"3"}`)
	put(422, "invalid", "#/max_sise", "p", `{"max_sise":3}`)
	put(422, "invalid", "#/features/0/kind", "p", strings.Replace(home, `"number"`, `"numbr"`, 1))
	put(422, "invalid", "#/policy", "p", strings.Replace(home, "onl-mnl", "onl-mln", 1))
	put(422, "invalid", "#/policy", "p", strings.Replace(home, `"lambda":3`, `"lamda":3`, 1))
	put(422, "invalid", "#/attribution_window", "p", strings.Replace(home, "30m", "soon", 1))
	put(422, "invalid", "#/mode", "p", strings.Replace(home, `"learn"`, `"guess"`, 1))
	put(400, "malformed", "", "p", `{"max_size":3`)
	put(400, "malformed", "", "p", `{"max_size":3,"max_size":3}`)

	s.problem(422, "invalid", "#/version", "POST", "/v1/placements/home/rollback", `{}`)
	s.problem(422, "invalid", "#/version", "POST", "/v1/placements/home/rollback", `{"version":-1}`)
	s.problem(404, "no-route", "", "GET", "/v2/placements", "")
	s.problem(405, "method", "", "DELETE", "/v1/placements", "")
	if allow := s.ask("POST", "/v1/placements/home", "").header["Allow"]; !cmp.Equal(allow, []string{"GET, HEAD, PUT, DELETE, OPTIONS"}) {
		t.Errorf("Allow: %q", allow)
	}
	s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`) // it still decides
	s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`, "Content-Type", "application/json; charset=utf-8")
	s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`, "Content-Type", "application/x-www-form-urlencoded")
}

// Whatever comes to a route of the table, it is a problem of the caller that says what is wrong, and the
// service goes on. Names in a path that cannot be are not found, or refused.
func TestGarbageOnEveryRoute(t *testing.T) {
	s := started(t, nil)
	bodies := []string{
		"", "null", "true", "0", `""`, "[]", "{", "}", `{"a"`, "{}{}", "\x00", "\xff\xfe", `{"a":NaN}`, `{"\xff":1}`, `{"items":1e999}`, `{"a":1,"a":1}`, "\xef\xbb\xbf{}",
		strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 20_000), `{"items":[` + strings.Repeat("{},", 1_000_000) + `{}]}`, strings.Repeat("\x0a", 10_000),
		`{"` + strings.Repeat("a", 100_000) + `":1}`, `{"choice":{},"version":"1","items":{},"max_size":[],"user":1}`, strings.Repeat(" ", 5<<20),
	}
	names := []string{
		"home", "%2e%2e", "a%2Fb", "%2F", "a%00b", "%ff", "%C3%A9", "%20", "a%0d%0ab", strings.Repeat("a", 15_000), "%25", "-", "*",
	}
	document := documentOf(s)
	check := func(r server.Route, path, mediaType, body string) {
		t.Helper()
		a := s.ask(r.Method, path, body, "Content-Type", mediaType)
		var p api.Problem
		err := json.Unmarshal([]byte(a.body), &p)
		if r.Personalizer && err == nil && p.Type == "" {
			var f fault
			err = json.Unmarshal([]byte(a.body), &f)
			p = api.Problem{Type: "urn:vitrine:problem:" + f.Error.InnerError.Code, Status: a.status, Detail: f.Error.Message}
		}
		if a.status < 400 || a.status >= 500 || err != nil || p.Status != a.status || p.Detail == "" || len(a.body) > 5000 {
			t.Errorf("%s %.60s, %s %.60q: %d %.300s, %v", r.Method, path, mediaType, body, a.status, a.body, err)
		}
		if _, ok := document.Paths[r.Path][strings.ToLower(r.Method)].Responses[strconv.Itoa(a.status)]; !ok && p.Type != "urn:vitrine:problem:no-route" {
			t.Errorf("%s %.60s, %s %.60q: the status %d is not in the OpenAPI document", r.Method, path, mediaType, body, a.status)
		}
	}
	for _, r := range s.Routes() {
		if !strings.Contains(r.Path, "{") || r.Path == "/{$}" {
			continue
		}
		for i, name := range names {
			path := strings.NewReplacer("{name}", name, "{id}", name, "{version}", "v1.1-preview.3", "{event}", name).Replace(r.Path)
			if i > 0 {
				if regexp.MustCompile(`\{(name|id|event)\}`).MatchString(r.Path) || r.Bodies != nil { // else nothing is wrong
					check(r, path, "", "{}")
				}
				continue
			}
			if r.Bodies == nil {
				continue
			}
			s.ask("PUT", "/v1/placements/home", home)
			s.ask("POST", "/v1/placements/home/decisions", `{"decision_id":"home",`+items+`}`)
			for _, body := range bodies {
				for _, mediaType := range append(r.Bodies, "text/xml", "application/json; charset", "a/b/c; =") {
					check(r, path, mediaType, body)
				}
			}
		}
	}
	s.want(200, "PUT", "/v1/placements/home", home)
	s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`)
}

// Lists that are longer than a placement takes are refused before there is memory for what
// they would become, in either form: a million items of two bytes are no gigabytes.
func TestLongLists(t *testing.T) {
	s := started(t, nil)
	var features []string
	for i := range 200 {
		features = append(features, fmt.Sprintf(`{"name":"x%d","kind":"number","default":0}`, i))
	}
	features = append(features, `{"name":"brand","kind":"category","default":"none"}`)
	s.want(201, "PUT", "/v1/placements/wide", `{"max_size":2,"max_items":100,"policy":{"name":"uniform"},"features":[`+strings.Join(features, ",")+`]}`)
	many := func(element string) string { return "[" + strings.Repeat(element+",", 1_000_000) + element + "]" }
	for _, c := range []struct{ field, body string }{
		{"#/items", `{"items":` + many(`{}`) + `}`},
		{"#/include", `{"items":[{"id":"a"}],"include":` + many(`""`) + `}`},
		{"#/exclude", `{"items":[{"id":"a"}],"exclude":` + many(`""`) + `}`},
		{"#/baseline", `{"items":[{"id":"a"}],"baseline":` + many(`""`) + `}`},
		{"#/at_most", `{"items":[{"id":"a"}],"at_most":` + many(`{}`) + `}`},
		{"#/at_most/0/items", `{"items":[{"id":"a"}],"at_most":[{"items":` + many(`""`) + `}]}`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.problem(422, "invalid", c.field, "POST", "/v1/placements/wide/decisions", c.body)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 40<<20 {
			t.Errorf("%s of %d bytes took %d bytes", c.field, len(c.body), taken)
		}
	}
}

// Ids of items are any text, and come back as they were given.
func TestItemIDs(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	for i, id := range []string{`"`, `\`, "a\nb\x00", "<script>", "été 🛍", "\u2028", " "} {
		quoted := fatal.Or(json.Marshal(id))(t)
		decision := fmt.Sprintf("d%d", i)
		a := parsed(t, s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":%q,"items":[{"id":%s,"features":{"x":1}}]}`, decision, quoted)).body)
		if len(a.Assortment) != 1 || a.Assortment[0].ID != id {
			t.Errorf("%q came back as %+v", id, a)
		}
		s.want(204, "POST", "/v1/decisions/"+decision+"/outcome", `{"choice":`+string(quoted)+`}`)
		var d struct {
			Choice string `json:"choice"`
		}
		if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/decisions/"+decision, "").body), &d); err != nil || d.Choice != id {
			t.Errorf("%q was taken, reported is %q, %v", id, d.Choice, err)
		}
	}
}

// Lengths are counted in bytes. Characters of several bytes reach the limit sooner; characters of one byte reach it at the same length.
func TestLengthsAreBytes(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(201, "PUT", "/v1/placements/shop", plain)
	n := 0
	decides := func(status int, field, body string) string {
		n++
		const path = "/v1/placements/home/decisions"
		body = fmt.Sprintf(`{"decision_id":"d%d",%s}`, n, body)
		if status == 422 {
			s.problem(422, "invalid", field, "POST", path, body)
			return ""
		}
		return s.want(status, "POST", path, body).body
	}
	puts := func(status int, field, item string) {
		body := fmt.Sprintf(`{"items":[{"features":{"x":1},%s}]}`, item)
		if status == 422 {
			s.problem(422, "invalid", field, "PUT", "/v1/placements/shop/items", body)
		} else {
			s.want(200, "PUT", "/v1/placements/shop/items", body)
		}
	}
	const one = `"items":[{"id":"a","features":{"x":1}}]`
	for _, limited := range []struct {
		field string
		bytes int
		send  func(status int, field, text string)
	}{
		{"#/items/0/id", 200, func(status int, field, text string) {
			answer := decides(status, field, fmt.Sprintf(`"items":[{"id":%q,"features":{"x":1}}]`, text))
			if status == 201 {
				if a := parsed(t, answer); len(a.Assortment) != 1 || a.Assortment[0].ID != text {
					t.Errorf("an id of %d bytes came back as %+v", len(text), a)
				}
				s.want(204, "POST", fmt.Sprintf("/v1/decisions/d%d/outcome", n), fmt.Sprintf(`{"choice":%q}`, text))
			}
		}},
		{"#/unit", 200, func(status int, field, text string) { decides(status, field, fmt.Sprintf(`%s,"unit":%q`, one, text)) }},
		{"#/slots/0/id", 1024, func(status int, field, text string) {
			decides(status, field, fmt.Sprintf(`%s,"slots":[{"id":%q}]`, one, text))
		}},
		{"#/items/0/id", 200, func(status int, field, text string) { puts(status, field, fmt.Sprintf(`"id":%q`, text)) }},
		{"#/items/0/groups/0", 100, func(status int, field, text string) {
			puts(status, field, fmt.Sprintf(`"id":"g","groups":[%q]`, text))
		}},
	} {
		for _, character := range []string{"x", "é", "€", "𝄞"} {
			full := strings.Repeat(character, limited.bytes/len(character))
			full += strings.Repeat("y", limited.bytes-len(full))
			limited.send(201, limited.field, full)
			limited.send(422, limited.field, full+"y")
			limited.send(422, limited.field, strings.Repeat(character, limited.bytes/len(character)+1))
		}
	}
	long := strings.Repeat("d", 128)
	s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":%q,%s}`, long, one))
	s.problem(422, "invalid", "#/decision_id", "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":%q,%s}`, long+"d", one))
	s.problem(422, "invalid", "#/decision_id", "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"é",%s}`, one))
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
		s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":%q,"items":[{"id":"sku","features":{"x":1}}]}`, id))
		taken = append(taken, memory()-before)
	}
	if taken[0] <= 1 || taken[1] != taken[0] || taken[2] != taken[0]+100 {
		t.Errorf("decisions with ids of 1, 1 and 101 bytes take %d bytes", taken)
	}
}

// An outcome after the window gets 200 instead of 204, whatever it is: it counts, and is not learned. It can be corrected, as any
// outcome, once for an id of the caller's.
func TestLateOutcomes(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	for _, id := range []string{"a", "b"} {
		s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"`+id+`","include":["sku1"],`+items+`}`)
	}
	s.clock.advance(31 * time.Minute)
	for range 2 {
		for id, choice := range map[string]string{"a": `"sku1"`, "b": `null`} {
			answer := s.want(200, "POST", "/v1/decisions/"+id+"/outcome", `{"choice":`+choice+`}`)
			same(t, answer.body, `{"status":"late","learned":false,"detail":"The decision had ended before this outcome came. The outcome is recorded and its revenue counts, but the policy does not learn from it."}`)
		}
	}
	s.problem(409, "conflict", "", "POST", "/v1/decisions/a/outcome", `{"choice":null}`)

	const corrections = "/v1/placements/home/decisions/a/corrections"
	for range 2 {
		s.want(204, "POST", corrections, `{"id":"return-1","item":"sku1","value":-1}`)
	}
	s.problem(409, "conflict", "", "POST", corrections, `{"id":"return-1","item":"sku1","value":-2}`)
	s.problem(422, "not-shown", "", "POST", corrections, `{"id":"return-2","item":"sku9"}`)
	s.problem(422, "invalid", "#/id", "POST", corrections, `{"item":"sku1","value":-1}`)
	s.problem(409, "conflict", "", "POST", "/v1/placements/home/decisions/b/corrections", `{"id":"c","item":"sku1"}`)
	s.problem(404, "not-found", "", "POST", "/v1/placements/home/decisions/c/corrections", `{"id":"c","item":"sku1"}`)
	var d api.Decision
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/decisions/a", "").body), &d); err != nil || d.Status != "late" || *d.Choice != "sku1" || d.Earned != 1.5 || len(d.Corrections) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	s.want(204, "POST", corrections, `{"id":"mistake","item":"sku1"}`)
	var stats api.Stats
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/stats", "").body), &stats); err != nil || stats.Late != 2 || stats.Corrected != 2 || stats.ByPolicy.Revenue != 0 || stats.ByPolicy.Purchases != 0 || stats.ByPolicy.Rounds != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// A failure of the service is not the caller's business in detail, but the
// log's, and other placements go on.
func TestFailures(t *testing.T) {
	s := started(t, func(_ *server.Options, o *decision.Options) { o.Build = brokenUnder("broken") })
	s.want(201, "PUT", "/v1/placements/broken", strings.Replace(plain, "ucb-mnl", "broken", 1))
	s.want(201, "PUT", "/v1/placements/sound", plain)
	const body = `{"items":[{"id":"a","features":{"x":1}}]}`
	s.problem(500, "policy", "", "POST", "/v1/placements/broken/decisions", body)
	if a := s.ask("POST", "/v1/placements/broken/decisions", body); strings.Contains(a.body, "boom") {
		t.Errorf("the answer is %s", a.body)
	}
	if !strings.Contains(s.log.String(), "boom") {
		t.Errorf("the log does not say why:\n%s", s.log)
	}
	s.want(201, "POST", "/v1/placements/sound/decisions", body)

	s.engine.Close()
	s.problem(503, "stopped", "", "POST", "/v1/placements/sound/decisions", body)
}

func TestStandingPages(t *testing.T) {
	s := started(t, nil)
	s.want(200, "GET", "/healthz", "")
	s.want(200, "GET", "/readyz", "")
	for _, path := range []string{"/", "/docs"} {
		page := s.want(200, "GET", path, "")
		if strings.Contains(page.body, "//") || !strings.Contains(page.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("the page at %s is not whole by itself", path)
		}
	}
	script := s.want(200, "GET", "/desk/index.js", "")
	if !strings.HasPrefix(script.header.Get("Content-Type"), "text/javascript") || script.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the script has the headers %v", script.header)
	}
	s.want(304, "GET", "/desk/index.js", "", "If-None-Match", script.header.Get("ETag"))
	s.problem(404, "not-found", "", "GET", "/desk/none.js", "")
}

func TestMetrics(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(home, `"learn"`, `"explore"`, 1))
	for i := range 20 {
		s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"%d",%s}`, i, items))
	}
	s.want(204, "POST", "/v1/decisions/3/outcome", `{"choice":null}`)
	s.want(404, "POST", "/v1/decisions/33/outcome", `{"choice":null}`)
	fatal.If(t, s.engine.Wait(t.Context()))
	text := s.want(200, "GET", "/metrics", "").body
	for _, line := range []string{
		`vitrine_decisions_total{placement="home"} 20`, `vitrine_outcomes_total{placement="home"} 1`, `vitrine_pending{placement="home"} 19`,
		`vitrine_learner_lag_rounds{placement="home"} 0`, `vitrine_log_lag_entries 0`, `vitrine_log_entries 22`, `vitrine_exploration_share{placement="home"} `,
		`vitrine_calibration_predicted_total{placement="home"} `, `vitrine_revenue_total{by="policy",placement="home"} 0`,
		`vitrine_request_seconds_count{method="POST",route="/v1/placements/{name}/decisions"} 20`,
		`vitrine_requests_total{method="POST",route="/v1/placements/{name}/decisions",status="2xx"} 20`,
		`vitrine_requests_total{method="POST",route="/v1/decisions/{id}/outcome",status="2xx"} 1`,
		`vitrine_requests_total{method="POST",route="/v1/decisions/{id}/outcome",status="4xx"} 1`,
		`vitrine_refusals_total{cause="not-found"} 1`, `vitrine_requests_in_progress 1`, `vitrine_requests_limit 256`,
		`vitrine_build_info{goversion="` + runtime.Version() + `",version="test"} 1`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("%s is missing", line)
		}
	}
}

// The series of requests are those of requests that came: a service with one placement has few, and each route that is
// used adds a histogram of 14 and a few counters.
func TestFewSeries(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	s.want(200, "GET", "/healthz", "")
	ours := func() (n int) {
		for line := range strings.Lines(s.want(200, "GET", "/metrics", "").body) {
			if strings.HasPrefix(line, "vitrine_") {
				n++
			}
		}
		return n
	}
	ours() // which is a route too
	before := ours()
	if before > 100 {
		t.Errorf("%d series of a service with one placement", before)
	}
	for i := range 10 {
		s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"%d",%s}`, i, items))
		s.ask("POST", "/v1/placements/home/decisions", `{`)
	}
	if after := ours(); after-before != 14+2+1 {
		t.Errorf("a route that is used adds %d series", after-before)
	}
}

// gauge is a line of /metrics.
func (s *service) gauge(name string) (v float64) {
	s.Helper()
	for line := range strings.Lines(s.want(200, "GET", "/metrics", "").body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			fatal.Or(fmt.Sscan(value, &v))(s)
			return v
		}
	}
	s.Fatalf("there is no metric %s", name)
	return 0
}

// Appends to the log are measured, and the epoch of its writer and the age of the snapshot are shown.
func TestLogMetrics(t *testing.T) {
	appends := server.NewAppends()
	s := started(t, func(o *server.Options, _ *decision.Options) {
		o.Appends, o.Log = appends, epochLog{o.Log}
		o.SnapshotAge = func() time.Duration { return 90 * time.Second }
	})
	appends.Observe(time.Second)
	appends.Observe(2 * time.Second)
	for name, want := range map[string]float64{"vitrine_log_append_seconds_count": 2, "vitrine_log_append_seconds_sum": 3, "vitrine_log_epoch": 7, "vitrine_snapshot_age_seconds": 90} {
		if got := s.gauge(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// epochLog is a log whose writer has an epoch.
type epochLog struct{ eventlog.Bounded }

func (l epochLog) Extent(ctx context.Context) (eventlog.Extent, error) {
	x, err := l.Bounded.Extent(ctx)
	x.Epoch = 7
	return x, err
}

// In the mode shadow the estimates of the policy's sets stand beside those of the baselines.
func TestShadowMetrics(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(plain, `"max_size"`, `"mode":"shadow","max_size"`, 1))
	for range 3 {
		s.want(201, "POST", "/v1/placements/home/decisions", `{"items":[{"id":"a","features":{"x":0}},{"id":"b","features":{"x":0}}],"baseline":["a"]}`)
	}
	text := s.want(200, "GET", "/metrics", "").body
	for _, line := range []string{ // utilities of 0: p(a|{a}) = 1/2, and of two items 1/3 each
		`vitrine_shadow_rounds_total{placement="home"} 3`, `vitrine_shadow_policy_total{placement="home"} 2`, `vitrine_shadow_baseline_total{placement="home"} 1.5`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

// A path that is not clean is nowhere, and not somewhere else, and is answered as all that is nowhere.
func TestUncleanPaths(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	for _, path := range []string{"//", "//v1/placements", "/v1//placements", "/v1/./placements", "/v1/x/../placements", "/../healthz", "/healthz/", "/v1/placements/home/"} {
		for _, method := range []string{"GET", "POST"} {
			before := len(s.log.String())
			s.problem(404, "no-route", "", method, path, "")
			if line := s.log.String()[before:]; !strings.Contains(line, `"status":404`) || strings.Contains(line, path) && path != "//" {
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

// The features of a placement change while a body comes: it is read by those that the placement has when it is decided.
func TestFeaturesChangeWhileABodyComes(t *testing.T) {
	shop := func(features string) string {
		return `{"max_size":1,"features":[` + features + `],"policy":{"name":"onl-mnl"}}`
	}
	const price, stock = `{"name":"price","kind":"number"}`, `{"name":"stock","kind":"number"}`
	store := new(memlog.Store)
	s := started(t, func(o *server.Options, e *decision.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", shop(price+","+stock))
	body := &lateBody{text: `{"decision_id":"late","items":[{"id":"a","features":{"price":9.5,"stock":3}}]}`, before: func() {
		s.want(200, "PUT", "/v1/placements/home", shop(stock+","+price))
	}}
	r := httptest.NewRequest("POST", "http://localhost/v1/placements/home/decisions", body)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for entry, err := range store.Entries(t.Context(), 1) {
		fatal.If(t, err)
		e := fatal.Or(eventlog.Decode(entry))(t)
		if o, ok := e.Body.(*eventlog.Offered); ok && !slices.Equal(o.Features, []float64{3, 9.5}) {
			t.Errorf("stock and price are in the log as %v", o.Features)
		}
	}
}

// lateBody is a body before which something happens.
type lateBody struct {
	text   string
	before func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	n := copy(p, b.text)
	if b.text = b.text[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
