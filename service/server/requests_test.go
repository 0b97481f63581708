package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
)

// Bodies that the conversation requests.txt cannot hold: long, deep, and not UTF-8.
func TestBadInput(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Body = 100_000 })
	s.want(201, "PUT", "/v1/placements/home", home)
	decide := func(status int, kind, pointer, body string) {
		t.Helper()
		s.problem(status, kind, pointer, "POST", "/v1/placements/home/decisions", body)
	}
	decide(422, "invalid", "", strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	decide(400, "malformed", "", strings.Repeat(`{"items":`, 5000))
	decide(400, "malformed", "", strings.Repeat("[", 50_000))
	decide(400, "malformed", "#/items/0/features/price", `{"items":[{"id":"a","features":{"price":NaN,"brand":"b"}}]}`)
	decide(400, "malformed", "", "{\"items\":[{\"id\":\"\xff\"}]}")
	decide(413, "too-large", "", `{"items":[`+strings.Repeat(`{"id":"a"},`, 10_000)+`]}`)
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf(`{"id":"%d","features":{"price":1,"brand":"b"}}`, i))
	}
	decide(422, "invalid", "#/items", `{"items":[`+strings.Join(many, ",")+`]}`)

	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"d",`+items+`}`)
	if a := s.want(422, "POST", "/v1/placements/home/decisions/d/outcome", `{"choice":"`+strings.Repeat("a",
		90_000)+`"}`); len(a.body) > 2000 {
		t.Errorf("an outcome of 90 KB is repeated in %d bytes", len(a.body))
	}
	s.problem(404, "not-found", "", "POST", "/v1/placements/home/decisions/%2e%2e%2fd/outcome", `{"choice":null}`)
	for _, name := range []string{"a%20b", strings.Repeat("a", 65), "%2e%2e"} {
		s.problem(422, "invalid", "#/name", "PUT", "/v1/placements/"+name, home)
	}
	for _, mediaType := range []string{"", "application/json; charset=utf-8",
		"application/x-www-form-urlencoded"} { // it still decides
		s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`, "Content-Type", mediaType)
	}
}

// Any request to a route of the table gets an answer or a problem with a reason, and the service goes on. Impossible
// names in a path are not found, or refused.
func TestGarbageOnEveryRoute(t *testing.T) {
	s := started(t, nil)
	bodies := []string{
		"", "null", "true", "0", `""`, "[]", "{", "}", `{"a"`, "{}{}", "\x00", "\xff\xfe", `{"a":NaN}`, `{"\xff":1}`,
		`{"items":1e999}`, `{"a":1,"a":1}`, "\xef\xbb\xbf{}",
		strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 20_000), `{"items":[` + strings.Repeat("{},", 1_000_000) +
			`{}]}`, strings.Repeat("\x0a", 10_000),
		`{"` + strings.Repeat("a", 100_000) + `":1}`,
		`{"choice":{},"version":"1","items":{},"max_size":[],"shopper":1}`, strings.Repeat(" ", 5<<20),
	}
	names := []string{
		"home", "%2e%2e", "a%2Fb", "%2F", "a%00b", "%ff", "%C3%A9", "%20", "a%0d%0ab", strings.Repeat("a", 15_000),
		"%25", "-", "*",
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
			p = api.Problem{Type: "urn:vitrine:problem:" + f.Error.InnerError.Code, Status: a.status,
				Detail: f.Error.Message}
		}
		if a.status < 400 || a.status >= 500 || err != nil || p.Status != a.status || p.Detail == "" ||
			len(a.body) > 5000 {
			t.Errorf("%s %.60s, %s %.60q: %d %.300s, %v", r.Method, path, mediaType, body, a.status, a.body, err)
		}
		if _, ok := document.Paths[r.Path][strings.ToLower(r.Method)].Responses[strconv.Itoa(a.status)]; !ok &&
			p.Type != "urn:vitrine:problem:no-route" {
			t.Errorf("%s %.60s, %s %.60q: the status %d is not in the OpenAPI document", r.Method, path, mediaType,
				body, a.status)
		}
	}
	for _, r := range s.Routes() {
		if !strings.Contains(r.Path, "{") || r.Path == "/{$}" {
			continue
		}
		for i, name := range names {
			path := strings.NewReplacer("{name}", name, "{id}", name, "{version}", "v1.1-preview.3", "{event}",
				name).Replace(r.Path)
			if i > 0 {
				if regexp.MustCompile(`\{(name|id|event)\}`).MatchString(r.Path) ||
					r.Bodies != nil { // otherwise the request is valid
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

// Lists that are too long for a placement are refused before they take memory, in either form: a million items of two
// bytes do not become gigabytes.
func TestLongLists(t *testing.T) {
	s := started(t, nil)
	var features []string
	for i := range 200 {
		features = append(features, fmt.Sprintf(`{"name":"x%d","kind":"number","default":0}`, i))
	}
	features = append(features, `{"name":"brand","kind":"category","default":"none"}`)
	s.want(201, "PUT", "/v1/placements/wide",
		`{"max_size":2,"max_request_items":100,"policy":{"name":"uniform"},"features":[`+strings.Join(features,
			",")+`]}`)
	many := func(element string) string { return "[" + strings.Repeat(element+",", 1_000_000) + element + "]" }
	for _, c := range []struct{ field, body string }{
		{"#/items", `{"items":` + many(`{}`) + `}`},
		{"#/include", `{"items":[{"id":"a"}],"include":` + many(`""`) + `}`},
		{"#/exclude", `{"items":[{"id":"a"}],"exclude":` + many(`""`) + `}`},
		{"#/baseline", `{"items":[{"id":"a"}],"baseline":` + many(`""`) + `}`},
		{"#/limits", `{"items":[{"id":"a"}],"limits":` + many(`{}`) + `}`},
		{"#/limits/0/items", `{"items":[{"id":"a"}],"limits":[{"items":` + many(`""`) + `}]}`},
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
		a := parsed(t, s.want(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":%q,"items":[{"id":%s,"features":{"x":1}}]}`, decision, quoted)).body)
		if len(a.Assortment) != 1 || a.Assortment[0].ID != id {
			t.Errorf("%q came back as %+v", id, a)
		}
		s.want(204, "POST", "/v1/placements/home/decisions/"+decision+"/outcome", `{"choice":`+string(quoted)+`}`)
		var d struct {
			Choice string `json:"choice"`
		}
		if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/decisions/"+decision, "").body),
			&d); err != nil || d.Choice != id {
			t.Errorf("%q was taken, reported is %q, %v", id, d.Choice, err)
		}
	}
}

// Lengths are counted in bytes. Characters of several bytes reach the limit sooner; characters of one byte reach it at
// the same length.
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
		{"#/items/0/id", 1024, func(status int, field, text string) {
			answer := decides(status, field, fmt.Sprintf(`"items":[{"id":%q,"features":{"x":1}}]`, text))
			if status == 201 {
				if a := parsed(t, answer); len(a.Assortment) != 1 || a.Assortment[0].ID != text {
					t.Errorf("an id of %d bytes came back as %+v", len(text), a)
				}
				s.want(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/d%d/outcome", n), fmt.Sprintf(`{"choice":%q}`, text))
			}
		}},
		{"#/shopper_id", 200, func(status int, field, text string) {
			decides(status, field, fmt.Sprintf(`%s,"shopper_id":%q`, one, text))
		}},
		{"#/slots/0/id", 1024, func(status int, field, text string) {
			decides(status, field, fmt.Sprintf(`%s,"slots":[{"id":%q}]`, one, text))
		}},
		{"#/items/0/id", 200, func(status int, field, text string) {
			puts(status, field, fmt.Sprintf(`"id":%q`, text))
		}},
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
	s.problem(422, "invalid", "#/decision_id", "POST", "/v1/placements/home/decisions",
		fmt.Sprintf(`{"decision_id":%q,%s}`, long+"d", one))
	s.problem(422, "invalid", "#/decision_id", "POST", "/v1/placements/home/decisions",
		fmt.Sprintf(`{"decision_id":"é",%s}`, one))
}

// If a placement's features change while a body arrives, the new ones apply.
func TestFeaturesChangeWhileABodyComes(t *testing.T) {
	shop := func(features string) string {
		return `{"max_size":1,"features":[` + features + `],"policy":{"name":"onl-mnl"}}`
	}
	const price, stock = `{"name":"price","kind":"number"}`, `{"name":"stock","kind":"number"}`
	store := new(memlog.Store)
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", shop(price+","+stock))
	body := &laterBody{
		before: func() { s.want(200, "PUT", "/v1/placements/home", shop(stock+","+price)) },
		Reader: strings.NewReader(`{"decision_id":"late","items":[{"id":"a","features":{"price":9.5,"stock":3}}]}`),
	}
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

// A query with an unknown key, or the same key twice, is refused; probes and pages may carry any.
func TestUnknownQuery(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/v1/placements/home/items?limt=5", "", `unknown key "limt": did you mean "limit"?`},
		{"GET", "/v1/placements/home/series?from=2026", "", `unknown key "from": must be one of seconds, points, entry`},
		{"GET", "/v1/placements/home?x", "", `unknown key "x": must be one of entry`},
		{"GET", "/v1/placements/home/items?limit=2&limit=3", "", `the key "limit" twice: send one value`},
		{"PUT", "/v1/placements/home?rest=true", home, `unknown key "rest": did you mean "reset"?`},
		{"POST", "/v1/placements/home/decisions?strict=true", "{" + items + "}",
			`the key "strict": this request takes no query`},
		{"GET", "/v1/policies?a=%zz", "", "is not of the form key=value&key=value: invalid URL escape"},
	} {
		s.problem(400, "query", "", c.method, c.path, c.body)
		var p api.Problem
		fatal.If(t, json.Unmarshal([]byte(s.ask(c.method, c.path, c.body).body), &p))
		expect.Contains(t, p.Detail, c.want, c.path)
	}
	for _, path := range []string{"/healthz?probe=1", "/readyz?probe=1", "/metrics?format=text", "/?utm_source=x",
		"/openapi.json?v=1", "/v1/policies?entry=1"} {
		s.want(200, "GET", path, "")
	}
}
