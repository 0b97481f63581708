package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"vitrine/internal/sockets"
	"vitrine/service/api"
	"vitrine/service/keys"
)

// Bounds on the desk's pages.
const (
	sessionLife    = 12 * time.Hour
	maxSessions    = 1024
	maxKeySessions = 64 // of one key: one more ends its oldest one
	maxSignIn      = 4 << 10

	wrongBurst = 10               // wrong keys of an address at once
	wrongEvery = 10 * time.Second // and one more after this
	maxWrong   = 4096             // addresses that are remembered
)

// sessionCookie is the cookie of a session. It is HttpOnly, so no script of the page can read it, and
// SameSite=Strict, so pages of other sites do not send it.
const sessionCookie = "vitrine_session"

// sessions holds the signed-in pages. A session stands for a key: it carries the key's present scopes and placements,
// and ends with it. Sessions are kept in memory only, by the hashes of their cookies.
type sessions struct {
	mu    sync.Mutex
	list  []session                      // the oldest first
	wrong map[netip.Prefix]*rate.Limiter // sign-ins with a wrong key, by address
}

type session struct {
	cookie  [sha256.Size]byte // its hash
	key     string            // the hash of the key's token
	expires time.Time
}

// begin begins a session of a key and returns the value of its cookie.
func (s *sessions) begin(key string, now time.Time) (value string, expires time.Time) {
	value, expires = rand.Text()+rand.Text(), now.Add(sessionLife)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(other *session) bool { return !now.Before(other.expires) })
	oldest := -1
	if len(s.list) >= maxSessions {
		oldest = 0
	}
	if s.of(key) >= maxKeySessions {
		oldest = slices.IndexFunc(s.list, func(other session) bool { return other.key == key })
	}
	if oldest >= 0 {
		s.list = slices.Delete(s.list, oldest, oldest+1)
	}
	s.list = append(s.list, session{sha256.Sum256([]byte(value)), key, expires})
	return value, expires
}

// drop ends some sessions. The caller holds mu.
func (s *sessions) drop(which func(*session) bool) {
	s.list = slices.DeleteFunc(s.list, func(other session) bool { return which(&other) })
}

// of returns the number of sessions of a key. The caller holds mu.
func (s *sessions) of(key string) (n int) {
	for i := range s.list {
		if s.list[i].key == key {
			n++
		}
	}
	return n
}

func (s *sessions) find(value string, now time.Time) (session, bool) {
	sum := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(other session) bool { return other.cookie == sum && now.Before(other.expires) })
	if i < 0 {
		return session{}, false
	}
	return s.list[i], true
}

func (s *sessions) end(value string) {
	sum := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(other *session) bool { return other.cookie == sum })
}

// count returns the number of sessions of a key.
func (s *sessions) count(key string, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(other *session) bool { return !now.Before(other.expires) })
	return s.of(key)
}

// isTooMany counts a wrong key from an address, and reports whether the address sent too many.
func (s *sessions) isTooMany(from netip.Addr, now time.Time) bool {
	network := sockets.NetworkOf(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.wrong[network]
	if l == nil {
		if s.wrong == nil || len(s.wrong) >= maxWrong {
			s.wrong = map[netip.Prefix]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)
		s.wrong[network] = l
	}
	return !l.AllowN(now, 1)
}

var errOtherOrigin = problemf(http.StatusForbidden, "origin", "the session of the desk is only for requests of "+
	"its own pages: send an API key in the header Authorization")

// ownPage reports whether a page of this service sent the request, or the user herself if it only reads. A browser says
// so in Sec-Fetch-Site, or over plain HTTP in Origin, which every writing request carries.
func ownPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "none": // an address that was typed, or a bookmark
		return reads
	case "":
		origin := r.Header.Get("Origin")
		if origin == "" {
			return reads
		}
		u, err := url.Parse(origin)
		return err == nil && strings.EqualFold(u.Host, r.Host)
	}
	return false
}

// bySession returns the key of the request's session. Without a session ok is false.
func (s *Server) bySession(c *call) (key keys.Key, ok bool, err error) {
	if forwarded(c) { // the follower found the session
		key, ok := s.keys.OfHash(c.Header.Get(sessionHeader))
		return key, ok, nil
	}
	cookie, err := c.Cookie(sessionCookie)
	if err != nil {
		return keys.Key{}, false, nil
	}
	if !ownPage(c.Request) {
		return keys.Key{}, false, errOtherOrigin
	}
	found, ok := s.sessions.find(cookie.Value, s.clock())
	if !ok {
		return keys.Key{}, false, nil
	}
	if key, ok = s.keys.OfHash(found.key); !ok {
		s.sessions.end(cookie.Value) // its key was removed
	}
	c.signedIn = ok
	return key, ok, nil
}

// sessionHeader carries the hash of a session's key in a request that a follower passes on to the leader, which does
// not know the session. No other request may carry it.
const sessionHeader = "Vitrine-Session"

// signIn answers a key with the cookie of a session.
func (s *Server) signIn(c *call) error {
	if s.keys == nil {
		return c.answerJSON(http.StatusOK, s.sessionOf(keys.Key{}, time.Time{}))
	}
	if !ownPage(c.Request) {
		return problemf(http.StatusForbidden, "origin", "only a page of the desk may sign in: send an API key in "+
			"the header Authorization")
	}
	var given api.SignIn
	body, err := io.ReadAll(http.MaxBytesReader(&c.w, c.Request.Body, maxSignIn))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(maxSignIn)
	case err != nil || json.Unmarshal(body, &given) != nil: // JSON's errors would quote the key
		return problemf(http.StatusBadRequest, "body", `the body must be of the form {"key":"…"}`)
	}
	now := s.clock()
	key, ok := s.keys.Find(strings.TrimSpace(given.Key))
	if !ok {
		return s.wrongKey(c, now)
	}
	c.key = key
	if cookie, err := c.Cookie(sessionCookie); err == nil {
		s.sessions.end(cookie.Value)
	}
	value, expires := s.sessions.begin(key.SHA256, now)
	c.setSession(value, int(sessionLife/time.Second))
	return c.answerJSON(http.StatusOK, s.sessionOf(key, expires))
}

// wrongKey counts a caller's wrong key. Only wrong keys are limited: many callers may share a proxy's address, and one
// of them must not lock the others out.
func (s *Server) wrongKey(c *call, now time.Time) error {
	if !s.sessions.isTooMany(s.options.Proxies.Caller(c.Request), now) {
		return problemf(http.StatusUnauthorized, "unauthorized", "the API key is unknown or was removed")
	}
	p := problemf(http.StatusTooManyRequests, "rate", "too many wrong keys came from this address: the right key "+
		"is still accepted")
	p.retry = strconv.Itoa(int(wrongEvery / time.Second))
	return p
}

// signOut ends the session of the request.
func (s *Server) signOut(c *call) error {
	cookie, err := c.Cookie(sessionCookie)
	if err != nil {
		return c.nothing()
	}
	if !ownPage(c.Request) {
		return errOtherOrigin
	}
	s.sessions.end(cookie.Value)
	c.setSession("", -1)
	return c.nothing()
}

// setSession sets the cookie, for an age in seconds. Over TLS, including a proxy's, the browser sends it only over TLS.
func (c *call) setSession(value string, age int) {
	http.SetCookie(&c.w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.TLS != nil || strings.HasPrefix(c.Header.Get("Origin"), "https:"),
	})
}

// getSession says who is signed in. An anonymous caller is no error, because each page asks when it begins.
func (s *Server) getSession(c *call) error {
	if s.keys == nil {
		return c.answerJSON(http.StatusOK, s.sessionOf(keys.Key{}, time.Time{}))
	}
	key, ok, err := s.bySession(c)
	if err != nil {
		return err
	}
	if !ok {
		return c.answerJSON(http.StatusOK, api.Session{Required: true, Scopes: []string{}})
	}
	c.key = key
	cookie, _ := c.Cookie(sessionCookie)
	found, _ := s.sessions.find(cookie.Value, s.clock())
	return c.answerJSON(http.StatusOK, s.sessionOf(key, found.expires))
}

func (s *Server) sessionOf(key keys.Key, expires time.Time) api.Session {
	if s.keys == nil {
		return api.Session{Scopes: keys.Scopes}
	}
	expires = expires.UTC()
	return api.Session{Required: true, Key: key.Name, Scopes: key.Scopes, Placements: key.Placements, Expires: &expires}
}

// listKeys lists the keys. It concerns the whole service.
func (s *Server) listKeys(c *call) error {
	list := api.KeyList{Required: s.keys != nil, Keys: []api.KeyEntry{}}
	if s.keys != nil {
		for _, k := range s.keys.All() {
			list.Keys = append(list.Keys, api.KeyEntry{Name: k.Name, Scopes: k.Scopes, Placements: k.Placements, Public: k.Public,
				Sessions: s.sessions.count(k.SHA256, s.clock())})
		}
	}
	return c.answerJSON(http.StatusOK, list)
}
