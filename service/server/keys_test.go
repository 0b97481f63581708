package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/shoppers"
)

// locked is a service that asks for the keys of a file.
func locked(t testing.TB, text string) (s *service, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, text)
	s = started(t, func(o *server.Options, _ *engine.Options) {
		var err error
		if o.Keys, err = keys.Open(path, o.Clock, o.Logger); err != nil {
			t.Fatal(err)
		}
	})
	return s, path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
}

// Every route asks for its scope only, as its OpenAPI document says. Without a key there are only pages, the document
// and signs of life.
func TestScopes(t *testing.T) {
	tokens := map[string]string{}
	text := ""
	for _, scope := range keys.Scopes {
		token, key := keys.New("for "+string(scope), scope)
		tokens[scope] = token
		text += key.Table()
	}
	s, _ := locked(t, text)
	free := []string{"/healthz", "/readyz", "/openapi.json", "/docs", "/{$}", "/desk/{file}", "/v1/session",
		"/v1/policies"}
	scopes := map[string]string{
		"GET /v1/keys":              keys.ScopeAdmin,
		"PUT /v1/placements/{name}": keys.ScopeAdmin, "DELETE /v1/placements/{name}": keys.ScopeAdmin,
		"POST /v1/placements/{name}/rollback":                                     keys.ScopeAdmin,
		"POST /v1/placements/{name}/decisions":                                    keys.ScopeDecide,
		"POST /v1/placements/{name}/decisions/{id}/rewards":                       keys.ScopeOutcome,
		"PUT /personalizer/{version}/configurations/service":                      keys.ScopeAdmin,
		"DELETE /personalizer/{version}/model":                                    keys.ScopeAdmin,
		"PUT /v1/placements/{name}/personalizer/{version}/configurations/service": keys.ScopeAdmin,
		"DELETE /v1/placements/{name}/personalizer/{version}/model":               keys.ScopeAdmin,
		"POST /v1/placements/{name}/decisions/{id}/outcome":                       keys.ScopeOutcome,
		"POST /v1/placements/{name}/decisions/{id}/activate":                      keys.ScopeOutcome,
	}
	for _, r := range s.Routes() {
		path := strings.NewReplacer("{name}", "home", "{id}", "abc", "{$}", "", "{version}", "v1.1-preview.3",
			"{event}", "e", "{file}", "index.js").Replace(r.Path)
		if slices.Contains(free, r.Path) {
			s.token = ""
			if r.Method == "GET" {
				s.want(200, r.Method, path, "")
			}
			continue
		}
		want := scopes[r.Method+" "+r.Path]
		if want == "" && r.Method == "GET" && r.Path != "/v1/keys" {
			want = keys.ScopeRead
		}
		if r.Scope == "" || want != "" && r.Scope != want {
			t.Errorf("%s %s has the scope %q, want %q", r.Method, r.Path, r.Scope, want)
		}
		s.token = ""
		if r.Personalizer {
			s.refusedBy(r.Method, 401, "401", "", path, "")
		} else {
			s.problem(401, "unauthorized", "", r.Method, path, "")
		}
		for scope, token := range tokens {
			s.token = token
			if scope != r.Scope && r.Personalizer {
				s.refusedBy(r.Method, 403, "403", "", path, "")
			} else if scope != r.Scope {
				s.problem(403, "forbidden", "", r.Method, path, "")
			} else if r.Stream {
				continue
			} else if a := s.ask(r.Method, path, ""); a.status == 401 || a.status == 403 {
				t.Errorf("%s %s with the scope %q: %d", r.Method, r.Path, scope, a.status)
			}
		}
	}
}

func TestWrongTokens(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	s, _ := locked(t, key.Table())
	for _, header := range []string{
		"", token, "Basic " + token, "Bearer", "Bearer ", "Bearer " + token[:len(token)-1], "Bearer " + token + "A",
		"Bearer  " + token,
		"Bearer " + key.SHA256, "Bearer " + strings.ToUpper(token),
	} {
		s.problem(401, "unauthorized", "", "GET", "/v1/placements", "", "Authorization", header)
	}
	s.want(200, "GET", "/v1/placements", "", "Authorization", "bearer "+token)
}

// A key is added and withdrawn by changing the file. A spoilt file changes nothing.
func TestRotation(t *testing.T) {
	old, oldKey := keys.New("old", keys.ScopeRead)
	fresh, freshKey := keys.New("fresh", keys.ScopeRead)
	s, path := locked(t, oldKey.Table())
	try := func(token string, want int) {
		t.Helper()
		s.want(want, "GET", "/v1/placements", "", "Authorization", "Bearer "+token)
	}
	change := func(text string) {
		t.Helper()
		write(t, path, text)
		s.clock.advance(time.Minute)
	}
	try(old, 200)
	try(fresh, 401)
	change(oldKey.Table() + freshKey.Table())
	try(old, 200)
	try(fresh, 200)
	change(freshKey.Table())
	try(old, 401)
	try(fresh, 200)
	change("[[key]")
	try(fresh, 200)
	fatal.If(t, os.Remove(path))
	s.clock.advance(time.Minute)
	try(fresh, 200)
	if a := s.want(200, "GET", "/metrics", "", "Authorization", "Bearer "+fresh); !strings.Contains(a.body,
		"vitrine_process_problems 1\n") {
		t.Error(a.body)
	}
	if n := strings.Count(s.log.String(), "a changed file cannot be read"); n != 2 {
		t.Errorf("%d complaints, want 2:\n%s", n, s.log)
	}
}

// A listener under a withdrawn key is disconnected.
func TestWithdrawnListener(t *testing.T) {
	token, key := keys.New("gone", keys.ScopeRead)
	_, other := keys.New("other", keys.ScopeRead)
	s, path := locked(t, key.Table()+other.Table())
	address, _ := s.run(server.Listen{})
	r := fatal.Or(http.NewRequest("GET", "http://"+address+"/v1/events", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	events, err := client(nil).Do(r)
	if err != nil || events.StatusCode != 200 {
		t.Fatalf("%v, %v", events, err)
	}
	defer events.Body.Close()
	write(t, path, other.Table())
	s.clock.advance(time.Minute)
	fatal.Or(s.engine.Put(t.Context(), "secret", []byte(plain), 0))(t)
	if text, err := io.ReadAll(events.Body); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the withdrawn key hears %q, %v", text, err)
	}
}

// A file that is unreadable for a while is read as soon as possible, though it did not change, and causes one
// complaint.
func TestUnreadableForAWhile(t *testing.T) {
	old, oldKey := keys.New("old", keys.ScopeRead)
	fresh, freshKey := keys.New("fresh", keys.ScopeRead)
	s, path := locked(t, oldKey.Table())
	fatal.If(t, os.Rename(path, path+".old"))
	if err := os.Mkdir(path, 0o700); err != nil { // which opens, and does not read
		t.Fatal(err)
	}
	when := time.Unix(1e9, 0)
	stamp := func() {
		t.Helper()
		fatal.If(t, os.Chtimes(path, when, when))
	}
	for range 3 {
		s.clock.advance(time.Minute)
		s.want(200, "GET", "/v1/placements", "", "Authorization", "Bearer "+old)
	}
	if n := strings.Count(s.log.String(), "a changed file cannot be read"); n != 1 {
		t.Errorf("%d complaints:\n%s", n, s.log)
	}
	fatal.If(t, os.Remove(path))
	write(t, path, strings.Replace(freshKey.Table(), "name", "nam=", 1))
	stamp()
	s.clock.advance(time.Minute)
	s.want(401, "GET", "/v1/placements", "", "Authorization", "Bearer "+fresh)
	write(t, path, freshKey.Table()) // of the same size, at the same time
	stamp()
	s.clock.advance(time.Minute)
	s.want(200, "GET", "/v1/placements", "", "Authorization", "Bearer "+fresh)
	s.want(401, "GET", "/v1/placements", "", "Authorization", "Bearer "+old)
}

// The log contains nothing that callers send, wherever they put a secret: neither a valid token nor one typed into the
// wrong field.
func TestNoSecretIsLogged(t *testing.T) {
	token, key := keys.New("shop", keys.Scopes...)
	s, path := locked(t, key.Table())
	s.token = token
	s.want(201, "PUT", "/v1/placements/home", home)
	s.want(201, "POST", "/v1/placements/home/decisions", `{`+items+`}`)
	for _, place := range []string{"/v1/placements/" + token, "/" + token, "/v1/placements?key=" + token,
		"/v1/placements/home/decisions/" + token} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			s.ask(method, place, token)
			s.ask(method, place, token, "Authorization", token)
			s.ask(method, place, token, "Authorization", "Basic "+token, "X-Request-Id", token, "Content-Type", token)
			s.ask(method, place, token, "Authorization", "Bearer x"+token, token, token, "User-Agent", token, "Referer",
				token)
		}
	}
	for _, body := range []string{`{"` + token + `":1}`, `{"choice":"` + token + `"}`,
		`{"items":[{"id":"a","features":{"price":"` + token + `"}}]}`} {
		for _, path := range []string{"/v1/placements/home/decisions", "/v1/placements/home/decisions/abc/outcome",
			"/v1/placements/home/rollback"} {
			s.ask("POST", path, body)
		}
		s.ask("PUT", "/v1/placements/home", body)
	}
	write(t, path, token+"\n[[key]]\n"+token+" = 1")
	s.clock.advance(time.Minute)
	s.ask("GET", "/v1/placements", "")
	write(t, path, strings.Replace(key.Table(), key.SHA256, token, 1))
	s.clock.advance(time.Minute)
	s.ask("GET", "/v1/placements", "")
	log := s.log.String()
	if !strings.Contains(log, `"key":"shop"`) || !strings.Contains(log, `"status":401`) {
		t.Errorf("the log has not what it should:\n%s", log)
	}
	for _, secret := range []string{token, token[len("vitrine_"):], key.SHA256} {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("a secret is logged: %s", log[max(0, i-200):min(len(log), i+100)])
		}
	}
}

// Without keys a page of another site, in a browser on this machine, is refused.
func TestOwnPages(t *testing.T) {
	s := started(t, nil)
	s.want(200, "GET", "/v1/placements", "", "Origin", "http://localhost", "Sec-Fetch-Site", "same-origin")
	s.problem(403, "forbidden", "", "PUT", "/v1/placements/home", home, "Origin", "http://evil.example",
		"Sec-Fetch-Site", "cross-site")
	s.problem(403, "forbidden", "", "PUT", "/v1/placements/home", home, "Origin", "http://evil.example")
	s.want(201, "PUT", "/v1/placements/home", home)
	for host, want := range map[string]int{
		"localhost:8080": 200, "127.0.0.1": 200, "[::1]:80": 200, "[::1]": 200, "evil.example": 403,
		"localhost.evil.example:80": 403, "10.0.0.1": 403,
	} {
		expect.Equal(t, s.askHost(host, "/v1/placements"), want, "Host", host)
	}
}

func TestRates(t *testing.T) {
	a, aKey := keys.New("a", keys.ScopeRead)
	b, bKey := keys.New("b", keys.ScopeRead)
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, aKey.Table()+bKey.Table())
	s := started(t, func(o *server.Options, _ *engine.Options) {
		o.Keys, _ = keys.Open(path, o.Clock, o.Logger)
		o.Limits.Rate, o.Limits.Burst = 2, 3
	})
	for _, token := range []string{a, b} {
		s.token = token
		for range 3 {
			s.want(200, "GET", "/v1/placements", "")
		}
		s.problem(429, "rate", "", "GET", "/v1/placements", "")
	}
	expect.Equal(t, s.ask("GET", "/v1/placements", "").header.Get("Retry-After"), "1", "Retry-After")
	s.clock.advance(500 * time.Millisecond)
	s.want(200, "GET", "/v1/placements", "")
	s.problem(429, "rate", "", "GET", "/v1/placements", "")
	s.want(200, "GET", "/healthz", "")
}

// One key does not take the places of all, by requests that are slow or by listening to events.
func TestPlacesOfAKey(t *testing.T) {
	a, aKey := keys.New("a", keys.ScopeDecide, keys.ScopeRead, keys.ScopeAdmin)
	b, bKey := keys.New("b", keys.ScopeRead)
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, aKey.Table()+bKey.Table())
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) {
		e.Store, o.Log = store, nil
		o.Keys, _ = keys.Open(path, o.Clock, o.Logger)
		o.Limits.Concurrent, o.Limits.Subscribers = 2, 2 // one for each key
	})
	s.token = a
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	done := make(chan answer)
	go func() { done <- s.ask("POST", "/v1/placements/home/decisions", `{`+items+`}`) }()
	<-store.waiting
	s.problem(503, "busy", "", "GET", "/v1/placements", "")
	expect.Contains(t, s.log.String(), `"problem":"urn:vitrine:problem:busy"`, "output")
	expect.Equal(t, strings.Contains(s.log.String(), `"level":"ERROR"`), false, "a caller's own limit is an error")
	s.token = b
	s.want(200, "GET", "/v1/placements", "")
	close(store.gate)
	if got := <-done; got.status != 201 {
		t.Errorf("the first request: %d", got.status)
	}
	s.token = a
	s.want(200, "GET", "/v1/placements", "")

	address, _ := s.run(server.Listen{})
	listen := func(token string) int {
		r, _ := http.NewRequest("GET", "http://"+address+"/v1/events", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		got := fatal.Or(client(nil).Do(r))(t)
		t.Cleanup(func() { got.Body.Close() })
		return got.StatusCode
	}
	if first, second, other := listen(a), listen(a), listen(b); first != 200 || second != 503 || other != 200 {
		t.Errorf("who listens: %d, again with the same key %d, with another one %d", first, second, other)
	}
}

// With a public key a caller decides and reports outcomes, and learns neither revenues nor shoppers' pasts. It sends
// no money.
func TestPublicKeys(t *testing.T) {
	shop, shopKey := keys.New("shop", keys.Scopes...)
	page, pageKey := keys.New("page", keys.ScopeDecide, keys.ScopeOutcome)
	pageKey.Public = true
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, shopKey.Table()+pageKey.Table())
	s := started(t, func(o *server.Options, e *engine.Options) {
		o.Keys = fatal.Or(keys.Open(path, o.Clock, o.Logger))(t)
		people := fatal.Or(shoppers.Open(filepath.Join(t.TempDir(), "shoppers")))(t)
		t.Cleanup(func() { _ = people.Close() })
		e.Shoppers = people
	})
	s.token = shop
	s.want(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"},`+
		`{"name":"views","kind":"number","history":"seen"}],"policy":{"name":"ucb-mnl"},"shopper_history":{"keep":"1h"}}`)
	s.want(200, "PUT", "/v1/placements/home/items", `{"items":[{"id":"s3","features":{"x":1},"revenue":3.25,"attributes":{"brand":"acme"}}]}`)
	const decisions, visit = "/v1/placements/home/decisions", "/v1/placements/home/decisions/visit"
	s.want(201, "POST", decisions, `{"decision_id":"visit","shopper_id":"shopper-7"}`)
	money := s.want(201, "POST", decisions, `{"filter":"revenue == 3.25 and bought == 0","shopper_id":"shopper-7"}`).body
	expect.Contains(t, money, `"expected_revenue":1.`, "an answer to the shop's own key")
	s.want(204, "POST", visit+"/outcome", `{"choices":[{"item":"s3","value":7,"quantity":30}]}`)

	s.token = page
	for _, c := range []struct{ body, field string }{
		{`{"items":[{"id":"a","features":{"x":1}},{"id":"b","features":{"x":1},"revenue":1e100}]}`, "#/items/1/revenue"},
		{`{"shopper_id":"shopper-7","filter":"bought > 0","include":["s3"]}`, "#/filter"},
		{`{"shopper_id":"shopper-7","filter":"id != \"x\" and not (seen == 0)"}`, "#/filter"},
		{`{"shopper_id":"shopper-7","filter":"views > 0"}`, "#/filter"},
		{`{"filter":"brand == \"acme\" and revenue == 3.25"}`, "#/filter"},
		{`{"filter":"revenue in [1, 2]"}`, "#/filter"},
	} {
		s.problem(422, "invalid", c.field, "POST", decisions, c.body)
	}
	answer := s.want(201, "POST", decisions, `{"decision_id":"own","filter":"brand == \"acme\""}`).body
	// By the probabilities of an item of the request, which earns 1, and of one that earns as much, its revenue would follow.
	const unestimated = `"choice_probability":null}],"outside_probability":null,"expected_revenue":null,`
	expect.Contains(t, answer, unestimated, "an answer to a public key")
	expect.Contains(t, s.want(200, "POST", decisions, `{"decision_id":"own","filter":"brand == \"acme\""}`).body,
		unestimated, "a repeated answer to a public key")
	s.problem(422, "invalid", "#/choices/0/value", "POST", decisions+"/own/outcome",
		`{"choices":[{"item":"s3","value":0}]}`)
	many := s.want(422, "POST", decisions+"/own/outcome", `{"choices":[{"item":"s3","quantity":21}]}`).body
	expect.Contains(t, many, "must be at most 20 with a public key", "21 units")
	s.problem(403, "forbidden", "", "POST", visit+"/corrections", `{"id":"c1","item":"s3","value":0}`)
	s.problem(403, "forbidden", "", "POST", decisions+"/own/metrics", `{"metrics":{"margin":1e100}}`)
	s.want(204, "POST", decisions+"/own/outcome", `{"choices":[{"item":"s3","quantity":20}]}`)
	rank := s.want(201, "POST", "/v1/placements/home/personalizer/v1.0/rank",
		`{"eventId":"e","actions":[{"id":"a","features":[{"x":1}]}]}`).body
	expect.Contains(t, rank, `"eventId":"e"`, "a Rank")
	s.want(204, "POST", "/v1/placements/home/personalizer/v1.0/events/e/reward", `{"value":1}`)

	s.token = shop
	expect.Contains(t, s.want(200, "GET", "/v1/keys", "").body, `{"name":"page","scopes":["decide","outcome"],"public":true`,
		"the keys")
	expect.Contains(t, s.want(200, "GET", visit, "").body, `"earned":7}`, "the sale")
}

// A second key in a request might be taken for the first by something before the service.
func TestTwoKeysInARequest(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	s, _ := locked(t, key.Table())
	for _, name := range []string{"Authorization", "Ocp-Apim-Subscription-Key"} {
		r := httptest.NewRequest("GET", "http://localhost/v1/placements", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Add(name, "Bearer "+token)
		r.Header.Add(name, "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), name) {
			t.Errorf("two of %s: %d %s", name, w.Code, w.Body)
		}
	}
}
