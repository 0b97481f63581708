package server_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
)

// A caller's request id appears in the answer, in problems and in the log, unless it might be anything else.
func TestCallersRequestID(t *testing.T) {
	s := started(t, nil)
	const id = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	a := s.want(404, "GET", "/v1/placements/home", "", "X-Request-Id", id)
	if a.header.Get("X-Request-Id") != id || !strings.Contains(a.body, `"request_id":"`+id+`"`) ||
		!strings.Contains(s.log.String(), `"request_id":"`+id+`"`) {
		t.Errorf("%v %s\n%s", a.header, a.body, s.log)
	}
	longest := strings.Repeat("x", 128)
	for _, good := range []string{"a", longest, "A.b_c:d~e/f+g=h@i-9"} {
		expect.Equal(t, s.ask("GET", "/healthz", "", "X-Request-Id", good).header.Get("X-Request-Id"), good, good,
			"became")
	}
	for _, bad := range []string{"", longest + "x", "a b", "é", "a\tb", `"`, "<a>", "vitrine_token", "a,b"} {
		if got := s.ask("GET", "/healthz", "", "X-Request-Id", bad).header.Get("X-Request-Id"); got == bad ||
			got == "" {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// A 201's Location leads to the new resource.
func TestLocation(t *testing.T) {
	s := started(t, nil)
	a := s.want(201, "PUT", "/v1/placements/home", home)
	expect.Equal(t, a.header.Get("Location"), "/v1/placements/home", "Location of a placement")
	expect.Equal(t, s.want(200, "PUT", "/v1/placements/home", home).header.Get("Location"), "", "Location at 200")
	for _, request := range []string{`{"decision_id":"a:b",` + items + `}`, `{` + items + `}`} {
		a := s.want(201, "POST", "/v1/placements/home/decisions", request)
		at := s.want(200, "GET", a.header.Get("Location"), "")
		if parsed(t, a.body).Decision == "" || !strings.Contains(at.body,
			`"decision_id":"`+parsed(t, a.body).Decision+`"`) {
			t.Errorf("%s is at %s: %s", a.body, a.header.Get("Location"), at.body)
		}
	}
	if got := s.want(200, "POST", "/v1/placements/home/decisions", `{"decision_id":"a:b",`+items+`}`).header.Get(
		"Location"); got != "" {
		t.Errorf("Location of a repeated decision: %q", got)
	}
}

// OPTIONS lists a path's methods, without a key, and does not reveal whether the named thing exists.
func TestOptions(t *testing.T) {
	s, _ := locked(t, storedKey(t, "a", keys.ScopeRead))
	for path, want := range map[string]string{
		"/v1/placements/none":                        "GET, HEAD, PUT, DELETE, OPTIONS",
		"/v1/placements/none/decisions":              "POST, OPTIONS",
		"/v1/placements":                             "GET, HEAD, OPTIONS",
		"/personalizer/v1.0/rank":                    "POST, OPTIONS",
		"/v1/placements/home/decisions/none/outcome": "POST, OPTIONS",
		"/":                                "GET, HEAD, OPTIONS",
		"/v1/placements/none/personalizer": "",
	} {
		a := s.ask("OPTIONS", path, "")
		if status := map[bool]int{true: 404, false: 204}[want == ""]; a.status != status ||
			a.header.Get("Allow") != want {
			t.Errorf("OPTIONS %s: %d %v", path, a.status, a.header)
		}
		if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Vary") != "" {
			t.Errorf("CORS is on by default: %v", a.header)
		}
	}
}

// storedKey is a new key in file format.
func storedKey(t testing.TB, name string, scopes ...string) string {
	t.Helper()
	_, key := keys.New(name, scopes...)
	return key.Table()
}

// Pages of the origins in the allow-list may call the service and read its answers; others may not.
func TestCORS(t *testing.T) {
	const shop, other = "https://shop.example", "https://evil.example"
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Origins = []string{"http://localhost:3000", shop} })
	preflight := []string{"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers",
		"authorization,content-type"}
	a := s.want(204, "OPTIONS", "/v1/placements/home", "", append(preflight, "Origin", shop)...)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": shop, "Access-Control-Allow-Methods": "GET, HEAD, PUT, DELETE, OPTIONS",
		"Access-Control-Max-Age": "600", "Vary": "Origin",
		"Access-Control-Allow-Credentials": "",
	} {
		expect.Equal(t, a.header.Get(name), want, "the preflight's", name, "is")
	}
	for _, name := range []string{"Authorization", "Content-Type", "Ocp-Apim-Subscription-Key", "Last-Event-ID",
		"X-Request-Id", "Traceparent"} {
		if !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("pages may not send %s: %q", name, a.header.Get("Access-Control-Allow-Headers"))
		}
	}
	a = s.want(201, "PUT", "/v1/placements/home", home, "Origin", shop, "Sec-Fetch-Site", "cross-site")
	if a.header.Get("Access-Control-Allow-Origin") != shop ||
		!strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
		t.Errorf("an answer to a page of the shop: %v", a.header)
	}
	if a := s.want(404, "GET", "/v1/placements/none", "", "Origin", shop); a.header.Get(
		"Access-Control-Allow-Origin") != shop {
		t.Errorf("a page of the shop cannot read a problem: %v", a.header)
	}
	for _, origin := range []string{other, "https://shop.example.evil.example", "null", "https://shop.example:8443",
		"http://shop.example"} {
		for _, a := range []answer{
			s.ask("OPTIONS", "/v1/placements/home", "", append(preflight, "Origin", origin)...),
			s.ask("GET", "/v1/placements", "", "Origin", origin),
		} {
			if a.header.Get("Access-Control-Allow-Origin") != "" ||
				a.header.Get("Access-Control-Allow-Methods") != "" || a.header.Get("Vary") != "Origin" {
				t.Errorf("an answer to %s: %d %v", origin, a.status, a.header)
			}
		}
		s.problem(403, "forbidden", "", "PUT", "/v1/placements/home", home, "Origin", origin)
	}
	for _, bad := range []string{"*", "https://*.example", "shop.example", "https://shop.example/",
		"https://Shop.example", "ftp://shop.example", "https://", "null", "https://a@b"} {
		if server.CheckOrigin(bad) == nil {
			t.Errorf("the origin %q is taken", bad)
		}
	}
}

// RateLimit headers tell a key its remaining rate and places; a service without such limits sends none.
func TestRateLimitHeaders(t *testing.T) {
	limited := func(change func(*server.Limits), stored ...string) *service {
		path := filepath.Join(t.TempDir(), "keys.toml")
		s := started(t, func(o *server.Options, _ *engine.Options) {
			if stored != nil {
				write(t, path, strings.Join(stored, ""))
				o.Keys, _ = keys.Open(path, o.Clock, o.Logger)
			}
			change(&o.Limits)
		})
		return s
	}
	expect := func(a answer, policy, state string) {
		t.Helper()
		expect.Equal(t, a.header.Get("RateLimit-Policy"), policy, "RateLimit-Policy")
		expect.Equal(t, a.header.Get("RateLimit"), state, "RateLimit")
	}
	s := limited(func(*server.Limits) {})
	expect(s.want(200, "GET", "/v1/placements", ""), "", "")

	s = limited(func(l *server.Limits) { l.Rate, l.Burst = 2, 5 })
	expect(s.want(200, "GET", "/v1/placements", ""), `"rate";q=6;w=3`, `"rate";r=4;t=1`)
	for range 3 {
		s.want(200, "GET", "/v1/placements", "")
	}
	expect(s.want(200, "GET", "/v1/placements", ""), `"rate";q=6;w=3`, `"rate";r=0;t=3`)
	expect(s.want(429, "GET", "/v1/placements", ""), `"rate";q=6;w=3`, `"rate";r=0;t=3`)
	s.clock.advance(1250 * time.Millisecond)
	expect(s.want(200, "GET", "/v1/placements", ""), `"rate";q=6;w=3`, `"rate";r=1;t=2`)
	expect(s.want(200, "GET", "/healthz", ""), "", "")

	s = limited(func(l *server.Limits) { l.Rate, l.Burst = 50, 3 })
	expect(s.want(200, "GET", "/v1/placements", ""), `"rate";q=50;w=1`, `"rate";r=2;t=1`)

	token, key := keys.New("a", keys.ScopeRead)
	s = limited(func(l *server.Limits) { l.Concurrent = 40 }, key.Table(), storedKey(t, "b", keys.ScopeRead))
	s.token = token
	expect(s.want(200, "GET", "/v1/placements", ""), `"places";q=30;qu="concurrent-requests"`, `"places";r=29`)
	s = limited(func(l *server.Limits) { l.Concurrent, l.Rate = 40, 10 }, key.Table())
	s.token = token
	expect(s.want(200, "GET", "/v1/placements", ""), `"rate";q=10;w=1, "places";q=40;qu="concurrent-requests"`,
		`"rate";r=9;t=1, "places";r=39`)
}

// HEAD answers as GET does.
func TestHead(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	tag := s.want(200, "HEAD", "/v1/placements/home", "").header.Get("ETag")
	if tag == "" || tag != s.want(200, "GET", "/v1/placements/home", "").header.Get("ETag") {
		t.Errorf("the ETag is %q", tag)
	}
	for _, method := range []string{"GET", "HEAD"} {
		s.want(304, method, "/v1/placements/home", "", "If-None-Match", tag)
		s.want(200, method, "/v1/placements/home", "", "If-None-Match", `"99"`)
	}
}
