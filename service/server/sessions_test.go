package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/sockets"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
)

// own are the headers of a request by a page of the service.
var own = []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost"}

// signedIn signs in, and returns the cookie.
func (s *service) signedIn(token string) *http.Cookie {
	s.Helper()
	a := s.want(200, "POST", "/v1/session", fmt.Sprintf(`{"key":%q}`, token), own...)
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		s.Fatalf("signing in set %d cookies", len(cookies))
	}
	return cookies[0]
}

// session returns what the service says about a session.
func (s *service) session(cookie string) (v api.Session) {
	s.Helper()
	fatal.If(s, json.Unmarshal([]byte(s.want(200, "GET", "/v1/session", "", "Cookie", cookie).body), &v))
	return v
}

// A key becomes a cookie that no script can read and no other site can send. The answer's body contains neither.
func TestSignIn(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead, keys.ScopeAdmin)
	s, _ := locked(t, key.Table())
	if v := s.session(""); !v.Required || v.Key != "" || len(v.Scopes) != 0 {
		t.Errorf("nobody is signed in: %+v", v)
	}
	a := s.want(200, "POST", "/v1/session", `{"key":" `+token+`\n"}`, own...)
	set := a.header.Get("Set-Cookie")
	name, value, _ := strings.Cut(strings.Split(set, ";")[0], "=")
	if set != name+"="+value+"; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict" || len(value) < 50 {
		t.Errorf("the cookie is %q", set)
	}
	if strings.Contains(a.body, value) || strings.Contains(a.body, token) ||
		a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer is %v %s", a.header, a.body)
	}
	cookie := name + "=" + value
	s.want(200, "GET", "/v1/placements", "", "Cookie", cookie)
	s.want(201, "PUT", "/v1/placements/home", plain, append(own, "Cookie", cookie)...)
	if v := s.session(cookie); !v.Required || v.Key != "shop" || strings.Join(v.Scopes, " ") != "read admin" ||
		v.Placements != nil || !v.Expires.Equal(s.clock.now().Add(12*time.Hour)) {
		t.Errorf("the session is %+v", v)
	}
	over := s.want(200, "POST", "/v1/session", `{"key":"`+token+`"}`, "Origin", "https://localhost", "Sec-Fetch-Site",
		"same-origin")
	if !strings.HasSuffix(over.header.Get("Set-Cookie"), "; Secure; SameSite=Strict") {
		t.Errorf("over TLS the cookie is %q", over.header.Get("Set-Cookie"))
	}
	out := s.want(204, "DELETE", "/v1/session", "", append(own, "Cookie", cookie)...)
	expect.Equal(t, out.header.Get("Set-Cookie"), name+"=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
		"signing out sets")
	s.problem(401, "unauthorized", "", "GET", "/v1/placements", "", "Cookie", cookie)
	s.want(204, "DELETE", "/v1/session", "", append(own, "Cookie", cookie)...)
	for _, line := range strings.Split(s.log.String(), "\n") {
		if strings.Contains(line, value) || strings.Contains(line, token) {
			t.Errorf("the log has a secret: %s", line)
		}
	}
}

// A session may do what its key may now, and ends with the key.
func TestSessionIsItsKey(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	key.Placements = []string{"home"}
	owner, ownersKey := keys.New("owner", keys.Scopes...)
	s, path := locked(t, key.Table()+ownersKey.Table())
	s.token = owner
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(201, "PUT", "/v1/placements/other", plain)
	s.token = ""
	cookie := s.signedIn(token).String()
	cookie, _, _ = strings.Cut(cookie, ";")
	with := append(own, "Cookie", cookie)
	s.want(200, "GET", "/v1/placements/home", "", with...)
	s.problem(404, "not-found", "", "GET", "/v1/placements/other", "", with...)
	s.problem(403, "forbidden", "", "GET", "/metrics", "", with...)
	s.problem(403, "forbidden", "", "PUT", "/v1/placements/home", plain, with...)
	if list := s.want(200, "GET", "/v1/placements", "", with...).body; strings.Contains(list, "other") {
		t.Errorf("the list is %s", list)
	}

	key.Placements, key.Scopes = []string{"other"}, []string{keys.ScopeRead, keys.ScopeAdmin}
	write(t, path, key.Table()+ownersKey.Table())
	s.clock.advance(time.Minute)
	s.problem(404, "not-found", "", "GET", "/v1/placements/home", "", with...)
	s.want(204, "DELETE", "/v1/placements/other", "", with...)

	s.problem(401, "unauthorized", "", "GET", "/v1/placements/other", "",
		append(with, "Authorization", "Bearer wrong")...)
	write(t, path, ownersKey.Table())
	s.clock.advance(time.Minute)
	s.problem(401, "unauthorized", "", "GET", "/v1/placements/other", "", with...)
	write(t, path, key.Table()+ownersKey.Table()) // the key again, and not its sessions
	s.clock.advance(time.Minute)
	s.problem(401, "unauthorized", "", "GET", "/v1/placements/other", "", with...)
}

// Pages of other origins cannot use a session, also where their origin may call the service with a key, and where they
// are of the same site.
func TestSessionOfAnotherOrigin(t *testing.T) {
	token, key := keys.New("shop", keys.Scopes...)
	s, _ := locked(t, key.Table())
	s.token = token
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.token = ""
	cookie, _, _ := strings.Cut(s.signedIn(token).String(), ";")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"},
		{"Sec-Fetch-Site", "none"},
		{"Sec-Fetch-Site", "unheard-of"},
		{"Origin", "http://localhost:3000"},
		{"Origin", "http://evil.example"},
		{"Origin", "null"},
		{},
	} {
		headers = append(headers, "Cookie", cookie)
		s.problem(403, "origin", "", "DELETE", "/v1/placements/home", "", headers...)
		s.problem(403, "origin", "", "POST", "/v1/placements/home/decisions", `{`+items+`}`, headers...)
		s.problem(403, "origin", "", "DELETE", "/v1/session", "", headers...)
		s.problem(403, "origin", "", "POST", "/v1/session", `{"key":"`+token+`"}`, headers[:len(headers)-2]...)
		reads := 403
		if site := headers[0]; site == "Cookie" || headers[1] == "none" {
			reads = 200
		}
		s.want(reads, "GET", "/v1/placements/home", "", headers...)
		s.want(reads, "GET", "/v1/session", "", headers...)
	}
	s.want(200, "GET", "/v1/placements/home", "", "Cookie", cookie, "Origin", "http://LOCALHOST")
	s.want(204, "DELETE", "/v1/placements/home", "", "Cookie", cookie, "Origin", "http://localhost")
}

// A session ends after its life, and a key's oldest one when there are too many; other keys' sessions stay.
func TestSessionsAreBounded(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	other, otherKey := keys.New("other", keys.ScopeRead)
	s, _ := locked(t, key.Table()+otherKey.Table())
	others := s.signedIn(other)
	var all []*http.Cookie
	for range 65 {
		all = append(all, s.signedIn(token))
		s.clock.advance(time.Second)
	}
	alive := func(c *http.Cookie) bool { return s.session(c.Name+"="+c.Value).Key != "" }
	if alive(all[0]) || !alive(all[1]) || !alive(all[64]) || !alive(others) {
		t.Errorf("the oldest is alive %t, the second %t, the last %t, the other key's %t", alive(all[0]), alive(all[1]),
			alive(all[64]), alive(others))
	}
	s.clock.advance(12*time.Hour - 2*time.Second)
	if alive(all[63]) || !alive(all[64]) {
		t.Errorf("after twelve hours the last but one is alive %t, the last, a second younger, %t", alive(all[63]),
			alive(all[64]))
	}
	s.clock.advance(time.Second)
	if alive(all[64]) {
		t.Error("the last one does not end")
	}
}

// Wrong keys that come at the same moment are not more.
func TestWrongSignInsAtOnce(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	s, _ := locked(t, key.Table())
	var tried atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range 64 {
		group.Go(func() {
			<-begin
			for range 20 {
				r := httptest.NewRequest("POST", "http://localhost/v1/session", strings.NewReader(`{"key":"wrong"}`))
				r.Header.Set("Origin", "http://localhost")
				r.RemoteAddr = "192.0.2.1:1"
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code == 401 {
					tried.Add(1)
				}
			}
		})
	}
	close(begin)
	group.Wait()
	expect.Equal(t, tried.Load(), 10, "wrong keys were tried at once")
	s.clock.advance(10 * time.Second)
	s.signedIn(token)
}

// Wrong keys are few, by the address that they come from. The right one is accepted all the same: others may share the
// address.
func TestWrongSignIns(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	s, _ := locked(t, key.Table())
	from := func(address, key string) int {
		r := httptest.NewRequest("POST", "http://localhost/v1/session", strings.NewReader(`{"key":"`+key+`"}`))
		r.Header.Set("Origin", "http://localhost")
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if (w.Code == 429) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%d with Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	for range 20 {
		expect.Equal(fatal.T(t), from("192.0.2.1:1", token), 200, "a right key")
	}
	for i := range 12 {
		expect.Equal(t, from(fmt.Sprintf("192.0.2.1:%d", i), "wrong"), 401+28*(i/10), "wrong key", i)
		expect.Equal(t, from(fmt.Sprintf("[2001:db8::%d]:1", i), ""), 401+28*(i/10), "wrong key", i,
			"of an IPv6 network")
	}
	expect.Equal(t, from("192.0.2.1:9", token), 200, "then a right key")
	expect.Equal(t, from("192.0.2.1:9", "wrong"), 429, "then a wrong one")
	expect.Equal(t, from("192.0.2.2:9", "wrong"), 401, "from another address")
	s.clock.advance(10 * time.Second)
	for want := 401; want <= 429; want += 28 {
		expect.Equal(t, from("192.0.2.1:9", "wrong"), want, "later")
	}
	s.problem(400, "body", "", "POST", "/v1/session", `{"key":`, own...)
	s.problem(413, "too-large", "", "POST", "/v1/session", `{"key":"`+strings.Repeat("x", 5000)+`"}`, own...)
}

// Without keys nobody can sign in.
func TestNoKeysNoSession(t *testing.T) {
	s := started(t, nil)
	if v := s.session(""); v.Required || len(v.Scopes) != 4 {
		t.Errorf("the session is %+v", v)
	}
	if a := s.want(200, "POST", "/v1/session", `{"key":"x"}`); a.header.Get("Set-Cookie") != "" {
		t.Errorf("signing in sets %q", a.header.Get("Set-Cookie"))
	}
	expect.Equal(t, s.want(200, "GET", "/v1/keys", "").body, `{"required":false,"keys":[]}`, "the keys are")
}

// The list of keys contains no token and no hash, and is for keys to the whole service.
func TestListKeys(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeAdmin)
	key.Placements = []string{"home"}
	owner, ownersKey := keys.New("owner", keys.ScopeAdmin, keys.ScopeRead)
	s, _ := locked(t, key.Table()+ownersKey.Table())
	s.signedIn(token)
	s.token = owner
	want := `{"required":true,"keys":[{"name":"shop","scopes":["admin"],"placements":["home"],"sessions":1},{"name":"owner","scopes":["admin","read"],"sessions":0}]}`
	expect.Equal(t, s.want(200, "GET", "/v1/keys", "").body, want, "the keys are")
	s.token = token
	s.problem(403, "forbidden", "", "GET", "/v1/keys", "")
}

// A page listens to events by its cookie, until it signs out.
func TestEventsBySession(t *testing.T) {
	token, key := keys.New("shop", keys.Scopes...)
	s, _ := locked(t, key.Table())
	address, _ := s.run(server.Listen{})
	cookie := s.signedIn(token)
	r := fatal.Or(http.NewRequest("GET", "http://"+address+"/v1/events", nil))(t)
	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	a, err := client(nil).Do(r)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("%v: %+v", err, a)
	}
	defer a.Body.Close()
	in := bufio.NewScanner(a.Body)
	s.token = token
	s.want(201, "PUT", "/v1/placements/home", plain)
	if e := nextEvent(t, in); e.kind != "placement-put" {
		t.Errorf("the event is %+v", e)
	}
	s.want(204, "DELETE", "/v1/session", "", append(own, "Cookie", cookie.Name+"="+cookie.Value)...)
	s.want(201, "PUT", "/v1/placements/later", plain)
	if e := nextEvent(t, in); e.kind != "end" {
		t.Errorf("after signing out the event is %+v", e)
	}
}

// Behind a trusted proxy callers keep their addresses; a caller cannot choose one by a header.
func TestWrongSignInsBehindAProxy(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeRead)
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, key.Table())
	s := started(t, func(o *server.Options, _ *engine.Options) {
		var err error
		if o.Keys, err = keys.Open(path, o.Clock, o.Logger); err != nil {
			t.Fatal(err)
		}
		if o.Proxies, err = sockets.ParseProxies([]string{"10.0.0.1"}, ""); err != nil {
			t.Fatal(err)
		}
	})
	from := func(peer, forwarded, key string) int {
		r := httptest.NewRequest("POST", "http://localhost/v1/session", strings.NewReader(`{"key":"`+key+`"}`))
		r.Header.Set("Origin", "http://localhost")
		r.Header.Set("X-Forwarded-For", forwarded)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 11 {
		expect.Equal(t, from("10.0.0.1:1", fmt.Sprintf("203.0.113.%d, 198.51.100.1", i), "wrong"), 401+28*(i/10),
			"wrong key", i, "through the proxy")
		expect.Equal(t, from("192.0.2.1:1", fmt.Sprintf("203.0.113.%d", i), "wrong"), 401+28*(i/10), "wrong key", i,
			"from another peer")
	}
	expect.Equal(t, from("10.0.0.1:1", "198.51.100.2", "wrong"), 401, "a wrong key of another caller of the proxy")
	expect.Equal(t, from("10.0.0.1:1", "198.51.100.1", token), 200, "the right key")
	if line := s.log.String(); !strings.Contains(line, `"remote":"198.51.100.1"`) ||
		!strings.Contains(line, `"remote":"192.0.2.1"`) {
		t.Errorf("the log has not the callers' addresses: %s", line)
	}
}
