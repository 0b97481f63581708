package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

const mixed = `{"max_size":2,"features":[{"name":"kind","kind":"category","values":["new","old"]},{"name":"a","kind":"number"},
 {"name":"u","kind":"number","from":"shopper"},{"name":"title","kind":"text","columns":8},{"name":"b","kind":"number"},{"name":"place","kind":"category","from":"shopper"},
 {"name":"c","kind":"cross","of":["a","u"]}],"policy":{"name":"ucb-mnl"}}`

// fuzzed are the routes with a body.
var fuzzed = []struct{ method, path, mediaType string }{
	{"PUT", "/v1/placements/home", "application/json"},
	{"POST", "/v1/placements/home/decisions", "application/json"},
	{"POST", "/v1/placements/mixed/decisions", "application/json"},
	{"POST", "/v1/placements/home/decisions/a/outcome", "application/json"},
	{"POST", "/v1/placements/home/rollback", "application/json"},
}

// Every body gets an answer that is no failure of the service; refusals are problems.
func FuzzBodies(f *testing.F) {
	for route, body := range []string{
		home, `{"decision_id":"a",` + items + `}`,
		`{"shopper":{"u":0.5,"place":"Trier"},"items":[{"id":"p","features":{"a":1,"b":2,"kind":"new","title":"red shoes"}}],"limits":[{"feature":"kind","max":1}]}`,
		`{"shopper":{"u":0.5,"place":"Trier"},"items":[{"id":"p","features":{"a":1,"b":2,"kind":"new","title":"red shoes"},"space":0.5},{"id":"q","features":{"a":1,"b":2,"kind":"new","title":"hat"}}],"capacity":1}`,
		`{"choice":"sku1"}`, `{"version":17}`,
	} {
		f.Add(uint8(route), []byte(body))
	}
	for _, body := range []string{`{"choices":[{"item":"sku1","quantity":2,"value":5.1},{"item":"sku2"}]}`,
		`{"choices":[]}`, `{"choices":null,"choice":null}`} {
		f.Add(uint8(3), []byte(body))
	}
	for route := range fuzzed {
		for _, body := range []string{"", "null", "{", "[]", `{"items":[{"id":"a","features":{"price":1e308}}]}`,
			"\x00", strings.Repeat("[", 2000)} {
			f.Add(uint8(route), []byte(body))
		}
	}
	s := started(f, nil)
	s.want(201, "PUT", "/v1/placements/mixed", mixed)
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		r := fuzzed[int(route)%len(fuzzed)]
		if s.ask("GET", "/v1/placements/home", "").status != 200 {
			s.ask("PUT", "/v1/placements/home", home)
		}
		a := s.ask(r.method, r.path, string(body), "Content-Type", r.mediaType)
		if a.status >= 500 {
			t.Fatalf("%s %s: %d %s", r.method, r.path, a.status, a.body)
		}
		if a.status < 400 {
			return
		}
		var p api.Problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != a.status ||
			p.Title != http.StatusText(a.status) || p.Detail == "" {
			t.Fatalf("%s %s: %s, %v", r.method, r.path, a.body, err)
		}
	})
}

// Every path gets an answer.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"/v1/placements/home", "/v1/placements/home/decisions/a/outcome", "/v1/placements/../x",
		"/%00", "/v1/placements/home/decisions/%ff", "//", "/v1//x", "*"} {
		f.Add("GET", path)
	}
	s := started(f, nil)
	f.Fuzz(func(t *testing.T, method, path string) {
		r, err := http.NewRequest(method, "http://localhost", strings.NewReader("{}"))
		if err != nil {
			t.Skip()
		}
		if r.URL.Path = "/" + strings.TrimPrefix(path, "/"); r.URL.Path == "/v1/events" {
			t.Skip()
		}
		w := &stuckWriter{header: http.Header{}, first: true, gate: make(chan struct{})}
		close(w.gate)
		s.ServeHTTP(w, r)
		if w.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %q passes beside", method, path)
		}
	})
}
