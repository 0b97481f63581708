package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
)

// vaulted is a service with the placements home and vault, asked with a key only for home, and for one that does not
// exist.
func vaulted(t testing.TB) (s *service, path, file string) {
	t.Helper()
	token, key := keys.New("home's", keys.Scopes...)
	key.Placements = []string{"home", "nowhere"}
	owner, whole := keys.New("whole", keys.Scopes...)
	file = key.Table() + whole.Table()
	s, path = locked(t, file)
	s.token = owner
	s.want(201, "PUT", "/v1/placements/home", home)
	s.want(201, "PUT", "/v1/placements/vault", strings.Replace(plain, `"x"`, `"carat"`, 1))
	for _, id := range []string{"vault:gem-1", "vault:gem-2"} {
		s.want(201, "POST", "/v1/placements/vault/decisions", fmt.Sprintf(`{"decision_id":%q,%s}`, id, jewels))
	}
	s.want(204, "POST", "/v1/placements/vault/decisions/vault:gem-2/outcome", `{"choice":"jewel"}`)
	s.token = token
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"mine",`+items+`}`)
	return s, path, file
}

const jewels = `"items":[{"id":"jewel","features":{"carat":3}}]`

// secrets must stay hidden from a key for home.
var secrets = []string{"vault", "gem", "jewel", "carat"}

// without is an answer without what differs between requests.
func (a answer) without(said ...string) string {
	text := a.body
	for _, s := range append(said, a.header.Get("X-Request-Id")) {
		text = strings.ReplaceAll(text, s, "")
	}
	a.header.Del("X-Request-Id")
	a.header.Del("Content-Length")
	return fmt.Sprint(a.status, " ", a.header, " ", text)
}

// A limited key gets the same answer about another placement, byte for byte, as about a missing one; answers of all
// routes leave other placements out, and it cannot change them.
func TestLimitedKeys(t *testing.T) {
	s, _, _ := vaulted(t)
	fatal.If(t, s.engine.Wait(t.Context()))
	before := s.engine.Sequence()
	bodies := []string{"", "{", "{}", plain, `{` + jewels + `}`, `{"choice":"jewel"}`, `{"choice":null}`,
		`{"version":1}`}
	about := func(r server.Route, name, id, body string) string {
		event := strings.TrimPrefix(id, name+":")
		path := strings.NewReplacer("{name}", name, "{id}", id, "{version}", "v1.1-preview.3", "{event}",
			event).Replace(r.Path)
		return s.ask(r.Method, path, body).without(id, name)
	}
	for _, r := range s.Routes() {
		switch {
		case strings.Contains(r.Path, "{name}"), strings.Contains(r.Path, "{id}"):
			for _, body := range bodies {
				for _, id := range []string{"vault:gem-1", "vault:gem-2"} {
					got, want := about(r, "vault", id, body), about(r, "other", "other:cup-9", body)
					if got != want || !strings.HasPrefix(got, "404 ") && !r.Personalizer ||
						strings.HasPrefix(got, "2") {
						t.Errorf("%s %s %s: %s, and of what does not exist %s", r.Method, r.Path, body, got, want)
					}
				}
			}
		case r.Scope == "", r.Stream:
		case r.Personalizer: // of the placement personalizer, which is another one
			if text := about(r, "vault", "vault:gem-1", `{"actions":[{"id":"a"}]}`); strings.HasPrefix(text, "2") {
				t.Errorf("%s: %s", r.Path, text)
			}
		case r.Path == "/v1/placements", r.Path == "/v1/overview":
			if text := about(r, "vault", "vault:gem-1", ""); !strings.Contains(text, `"name":"home"`) ||
				strings.Contains(text, "vault") {
				t.Errorf("its own placement is not in the list, or another one is: %s", text)
			}
		default:
			s.problem(403, "forbidden", "", r.Method, r.Path, "")
		}
	}
	if now := s.engine.Sequence(); now != before {
		t.Errorf("the log has %d entries, and had %d", now, before)
	}
	for _, r := range s.Routes() {
		if r.Stream {
			continue
		}
		for _, body := range append(slices.Clip(bodies), home, `{`+items+`}`, `{"choice":"sku1"}`) {
			path := strings.NewReplacer("{name}", "home", "{id}", "mine", "{$}", "", "{version}", "v1.0", "{event}",
				"mine").Replace(r.Path)
			a := s.ask(r.Method, path, body)
			if a.status == 401 || a.status >= 500 {
				t.Errorf("%s %s %s: %d", r.Method, path, body, a.status)
			}
			for _, secret := range secrets {
				if !strings.Contains(body, secret) && strings.Contains(fmt.Sprint(a.header, a.body), secret) {
					t.Errorf("%s %s %s tells of %q: %s", r.Method, path, body, secret, a.body)
				}
			}
		}
	}
}

// A decision id used by another placement is free: a limited key can neither take others' ids nor learn of them.
func TestTakenIDs(t *testing.T) {
	s, _, _ := vaulted(t)
	s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"vault:gem-1","max_size":1,%s}`,
		items))
	s.want(200, "GET", "/v1/placements/home/decisions/vault:gem-1", "")
	s.problem(404, "not-found", "", "GET", "/v1/placements/vault/decisions/vault:gem-1", "")
	s.problem(404, "not-found", "", "POST", "/v1/placements/vault/decisions/vault:gem-1/outcome", `{"choice":"jewel"}`)
	s.want(204, "POST", "/v1/placements/home/decisions/vault:gem-1/activate", "")
	s.want(204, "POST", "/v1/placements/home/decisions/vault:gem-1/outcome", `{"choice":null}`)
	for name, want := range map[string]string{"home": "chosen", "vault": "open"} {
		if d, err := s.engine.Decision(t.Context(), name, "vault:gem-1"); err != nil || d.Status != want {
			t.Errorf("the decision of %s is %q, %v", name, d.Status, err)
		}
	}
	all := started(t, nil)
	for _, name := range []string{"a", "b"} {
		all.want(201, "PUT", "/v1/placements/"+name, plain)
		all.want(201, "POST", "/v1/placements/"+name+"/decisions",
			`{"decision_id":"one","items":[{"id":"a","features":{"x":1}}]}`)
	}
	all.want(204, "POST", "/v1/placements/a/decisions/one/activate", "")
	all.want(204, "POST", "/v1/placements/a/decisions/one/outcome", `{"choice":"a"}`)
	for name, want := range map[string]string{"a": "chosen", "b": "open"} {
		if a := all.want(200, "GET", "/v1/placements/"+name+"/decisions/one", ""); !strings.Contains(a.body,
			`"placement":"`+name+`"`) || !strings.Contains(a.body, `"status":"`+want+`"`) {
			t.Errorf("the decision of %s: %s, want it to be %s", name, a.body, want)
		}
	}
	for _, path := range []string{"/v1/placements/c/decisions/one", "/v1/placements/a/decisions/two"} {
		all.problem(404, "not-found", "", "GET", path, "")
		all.problem(404, "not-found", "", "POST", path+"/outcome", `{"choice":null}`)
		all.problem(404, "not-found", "", "POST", path+"/activate", "")
	}
}

// laterBody is a body that runs a function before it is sent.
type laterBody struct {
	before func()
	*strings.Reader
}

func (b *laterBody) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	return b.Reader.Read(p)
}

// A decision that goes over to another placement while its outcome is on its way is out of reach of a limited key.
func TestLimitedSlowOutcome(t *testing.T) {
	s, _, _ := vaulted(t)
	moves := func() {
		fatal.If(t, s.engine.Delete(t.Context(), "home", nil, 0))
		r := &api.Request{Decision: "mine",
			Items: []api.Item{{ID: "jewel", Features: api.Values{api.Number("carat", 3)}}}}
		fatal.Or(s.engine.Decide(t.Context(), "vault", r, s.clock.now().UnixNano()))(t)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/placements/home/decisions/mine/outcome",
		&laterBody{moves, strings.NewReader(`{"choice":"jewel"}`)})
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	d, err := s.engine.Decision(t.Context(), "vault", "mine")
	if err != nil || answer.Code != 404 || d.Status != "open" {
		t.Errorf("the outcome has the status %d, and the decision of the vault is %q, %v", answer.Code, d.Status, err)
	}
}

// A limited key cannot share other placements' catalogues, nor learn which exist. Settings made with an unlimited key
// stay.
func TestLimitedCatalogue(t *testing.T) {
	s, _, _ := vaulted(t)
	carat := strings.Replace(plain, `"x"`, `"carat"`, 1)
	with := func(catalogue, config string) string { return `{"catalogue_of":"` + catalogue + `",` + config[1:] }
	for _, config := range []string{carat, plain} { // of the vault's features, and of others
		s.problem(422, "invalid", "#/catalogue_of", "PUT", "/v1/placements/nowhere", with("vault", config))
		if got, want := s.ask("PUT", "/v1/placements/nowhere", with("vault", config)).without("vault"),
			s.ask("PUT", "/v1/placements/nowhere", with("other", config)).without("other"); got != want {
			t.Errorf("%s, and of what does not exist %s", got, want)
		}
	}
	fatal.Or(s.engine.Put(t.Context(), "nowhere", []byte(with("vault", carat)), 0))(t)
	s.want(200, "PUT", "/v1/placements/nowhere",
		with("vault", strings.Replace(carat, `{"max_size"`, `{"max_versions":3,"max_size"`, 1)))
	s.want(200, "PUT", "/v1/placements/nowhere", carat)
}

// A limited key that must not change a shared catalogue learns only the names of its own placements that share it.
func TestLimitedSharers(t *testing.T) {
	s, _, _ := vaulted(t)
	version := fatal.Or(s.engine.Keep(t.Context(), "home", "before", 0))(t)
	other := strings.Replace(home, `"features":[`, `"features":[{"name":"carat","kind":"number"},`, 1)
	s.want(200, "PUT", "/v1/placements/home", other)
	for _, name := range []string{"a-vault", "z-vault", "nowhere"} {
		fatal.Or(s.engine.Put(t.Context(), name, []byte(`{"catalogue_of":"home",`+other[1:]), 0))(t)
	}
	for _, c := range [][3]string{{"PUT", "/v1/placements/home", home}, {"DELETE", "/v1/placements/home", ""},
		{"POST", "/v1/placements/home/rollback", fmt.Sprintf(`{"version":%d}`, version)}} {
		if a := s.want(422, c[0], c[1], c[2]); strings.Contains(a.body, "vault") ||
			!strings.Contains(a.body, "shares its catalogue with nowhere, others") {
			t.Errorf("%s %s: %s", c[0], c[1], a.body)
		}
	}
	expect.Part(s.engine.Delete(t.Context(), "home", nil, 0))(t, "a-vault, nowhere, z-vault: ", "without a limit")
}

// A key for the placement personalizer may use the routes without a placement, and creates it there.
func TestLimitedPersonalizer(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeDecide, keys.ScopeRead)
	key.Placements = []string{"personalizer"}
	s, _ := locked(t, key.Table())
	s.want(201, "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, "Ocp-Apim-Subscription-Key", token)
	s.token = token
	s.want(200, "GET", "/v1/placements/personalizer", "")
}

// Without the setting a Rank makes no placement, and says which setting would. The placement may be put all the same.
func TestRankMakesNoPlacement(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeDecide)
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, key.Table())
	s := started(t, func(o *server.Options, _ *engine.Options) {
		var err error
		if o.Keys, err = keys.Open(path, o.Clock, o.Logger); err != nil {
			t.Fatal(err)
		}
		o.Personalizer = false
	})
	for _, route := range []string{"/personalizer/v1.0/rank", "/personalizer/v1.1-preview.3/multislot/rank"} {
		const body = `{"actions":[{"id":"a"}],"slots":[{"id":"s","baselineAction":"a"}]}`
		a := s.want(404, "POST", route, body, "Ocp-Apim-Subscription-Key", token)
		if !strings.Contains(a.body, `"ResourceNotFound"`) || !strings.Contains(a.body, "personalizer = true") {
			t.Errorf("%s: %s", route, a.body)
		}
	}
	if names, entries := s.engine.Placements(), s.engine.Sequence(); len(names) > 0 || entries > 0 {
		t.Errorf("a key with the scope decide has made %v, and %d entries", names, entries)
	}
	fatal.Or(s.engine.Put(t.Context(), "personalizer",
		[]byte(`{"max_size":1,"features":[{"name":"id","kind":"category"}],"policy":{"name":"uniform"}}`), 0))(t)
	s.want(201, "POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, "Ocp-Apim-Subscription-Key", token)
}

// A listener under a limited key hears only of its placements, whatever it asks for, and is disconnected once the key
// is limited to others.
func TestLimitedListener(t *testing.T) {
	s, path, file := vaulted(t)
	address, _ := s.run(server.Listen{})
	listen := func(query string) *bufio.Scanner {
		r := fatal.Or(http.NewRequest("GET", "http://"+address+"/v1/events"+query, nil))(t)
		r.Header.Set("Authorization", "Bearer "+s.token)
		a, err := client(nil).Do(r)
		if err != nil || a.StatusCode != 200 {
			t.Fatalf("%v, %v", a, err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return bufio.NewScanner(a.Body)
	}
	hears := func(in *bufio.Scanner, want string) {
		t.Helper()
		e := nextEvent(t, in)
		if text := fmt.Sprintln(e); strings.TrimSpace(fmt.Sprint(e.kind, " ", e.data["placement"])) != want ||
			strings.Contains(text, "vault") {
			t.Errorf("heard %s, want %s", text, want)
		}
	}
	all, home := listen(""), listen("?placement=home")
	for _, name := range []string{"vault", "none"} { // whether it exists or not
		s.problem(404, "not-found", "", "GET", "/v1/events?placement="+name, "")
	}
	for _, placement := range []string{"vault", "home"} {
		fatal.Or(s.engine.Change(t.Context(), placement, []byte(strings.Replace(plain, `"x"`, `"`+placement+`"`, 1)),
			engine.Change{Reset: true}, 0))(t)
	}
	hears(all, "learner-reset home")
	hears(home, "learner-reset home")
	write(t, path, strings.Replace(file, `"home", "nowhere"`, `"nowhere"`, 1))
	s.clock.advance(time.Minute)
	fatal.If(t, s.engine.Delete(t.Context(), "home", nil, 0))
	hears(all, "end <nil>")
	hears(home, "end <nil>")
}

// A key that spent its comparisons is told when to come back. Its decisions with known filters go on, as do other
// keys'.
func TestKeysPayForFilters(t *testing.T) {
	mine, key := keys.New("mine", keys.Scopes...)
	other, theirs := keys.New("theirs", keys.Scopes...)
	s, _ := locked(t, key.Table()+theirs.Table())
	s.token = mine
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(200, "PUT", "/v1/placements/home/items",
		`{"items":[{"id":"a","features":{"x":1}},{"id":"b","features":{"x":2}}]}`)
	const decisions = "/v1/placements/home/decisions"
	s.want(201, "POST", decisions, `{"filter":"x > 0.5"}`)
	s.Exhaust("mine")
	a := s.ask("POST", decisions, `{"filter":"x > 0.25"}`)
	if a.status != 429 || !strings.Contains(a.body, `:filters"`) || a.header.Get("Retry-After") == "" {
		t.Errorf("a new filter: %d %v %s", a.status, a.header, a.body)
	}
	s.want(201, "POST", decisions, `{"filter":"x > 0.5"}`)
	s.want(201, "POST", decisions, `{}`)
	s.token = other
	s.want(201, "POST", decisions, `{"filter":"x > 0.125"}`)
}
