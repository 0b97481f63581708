package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/feed"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// followed makes a service that follows another one's log, and forwards calls to it. It numbers its decisions as the
// leader would.
func followed(t testing.TB, leader *service) *service {
	t.Helper()
	f := &service{TB: t, feed: new(feed.Feed), clock: leader.clock, log: leader.log, token: leader.token,
		store: leader.store}
	var err error
	f.engine, err = engine.Open(context.Background(), engine.Options{
		Store: leader.store, Shoppers: leader.shoppers, Build: setup.NewLearner, Applied: f.feed.Applied,
		NewID: leader.newID, Follow: leader.store.(eventlog.Followed), Leader: func() string { return "the leader" },
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			if leader.Server == nil {
				return nil, errors.New("nobody answers")
			}
			return leader.engine.Accept(ctx, proposal, leader.clock.now().UnixNano()), nil
		},
	})
	fatal.If(t, err)
	t.Cleanup(f.engine.Close)
	t.Cleanup(f.feed.Close)
	f.options = leader.options
	f.options.Engine, f.options.Feed = f.engine, f.feed
	of := leader.Server
	f.options.Forward = func(_ context.Context, request []byte) ([]byte, error) { return of.Forwarded(request), nil }
	f.Server = server.New(f.options)
	return f
}

// Every conversation with a follower is the one with a leader, to the byte.
func TestConversationsWithAFollower(t *testing.T) {
	files, err := filepath.Glob("testdata/conversation/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text := fatal.Or(os.ReadFile(file))(t)
			c := parseConversation(t, string(text))
			c.start(t)
			leader, f := c.engine, followed(t, c.service)
			c.Server, c.feed = f.Server, f.feed
			learn := func() {
				t.Helper()
				fatal.If(t, errors.Join(leader.Wait(t.Context()), f.engine.WaitFor(t.Context(), leader.Sequence()),
					f.engine.Wait(t.Context())))
			}
			var listening *step
			for i := range c.steps {
				s := &c.steps[i]
				switch {
				case strings.HasPrefix(s.line, "! "):
					c.do(s.line)
					learn()
				case s.head == nil:
				default:
					got := c.play(*s)
					learn()
					switch {
					case got == "":
						listening = s
					case s.head[0] == "GET /readyz": // it describes the process
					case filepath.Base(file) == "personalizer.txt": // the leader makes its first decision, so the draws differ
						expect.Equal(t, head(got), head(s.answer), s.head[0])
					default:
						c.compare(s, got)
					}
				}
			}
			if listening != nil {
				c.feed.Close()
				c.compare(listening, <-c.listener)
			}
		})
	}
}

// head is the beginning of an answer, before its body.
func head(answer string) string {
	head, _, _ := strings.Cut(answer, "\n\n")
	return head
}

// A call for the leader is answered by the leader, or by a problem that says that there is none. A forwarded request is
// not forwarded again.
func TestForwarding(t *testing.T) {
	leader := started(t, nil)
	f := followed(t, leader)
	const home = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`
	a := f.want(201, "PUT", "/v1/placements/home", home, "X-Request-Id", "mine")
	if a.header.Get("X-Request-Id") != "mine" || a.header.Get("Etag") == "" || a.header.Get("Vitrine-Entry") != "1" ||
		len(a.header.Values("X-Content-Type-Options")) != 1 {
		t.Errorf("%v", a.header)
	}
	f.want(200, "GET", "/v1/placements/home", "")
	if _, err := leader.engine.Config("home"); err != nil {
		t.Error(err)
	}
	leader.want(201, "PUT", "/v1/placements/cart", home)
	f.want(201, "POST", "/v1/placements/cart/decisions",
		`{"decision_id":"a","items":[{"id":"i","features":{"x":1}}]}`) // it looks for the placement
	leader.want(201, "POST", "/v1/placements/cart/decisions",
		`{"decision_id":"b","items":[{"id":"i","features":{"x":1}}]}`)
	f.want(204, "POST", "/v1/placements/cart/decisions/b/outcome", `{"choice":"i"}`) // and for the decision
	f.problem(422, "invalid", "#/max_size", "PUT", "/v1/placements/home", `{"max_size":0}`)
	f.options.Forward = func(context.Context, []byte) ([]byte, error) { return nil, engine.ErrNoLeader }
	f.Server = server.New(f.options)
	f.problem(503, "no-leader", "", "DELETE", "/v1/placements/home", "")
	f.want(200, "GET", "/v1/placements/home", "")
	f.options.Forward = func(context.Context, []byte) ([]byte, error) {
		return nil, fmt.Errorf("%w: nats://host:4222", engine.ErrUnanswered)
	}
	f.Server = server.New(f.options)
	f.problem(500, "unanswered", "", "DELETE", "/v1/placements/home", "")
	if a := f.want(500, "DELETE", "/v1/placements/home", ""); strings.Contains(a.body, "nats") ||
		a.header.Get("Retry-After") != "" {
		t.Errorf("%+v", a)
	}
	f.options.Forward = func(context.Context, []byte) ([]byte, error) { return []byte("nonsense"), nil }
	f.Server = server.New(f.options)
	f.problem(500, "internal", "", "DELETE", "/v1/placements/home", "")
	f.options.Forward = func(_ context.Context, request []byte) ([]byte, error) { return f.Forwarded(request), nil }
	f.Server = server.New(f.options)
	f.problem(503, "follower", "", "DELETE", "/v1/placements/home", "")
	if a := string(f.Forwarded([]byte("nonsense"))); !strings.HasPrefix(a, "HTTP/1.1 400 ") {
		t.Errorf("%q", a)
	}
	if s, err := leader.engine.Stats("home"); err != nil || s.Mode != api.Learn {
		t.Errorf("%+v, %v", s, err)
	}
}

// Without a leader a follower does not say that what it does not know does not exist: the caller would give up.
func TestUnknownWithoutALeader(t *testing.T) {
	leader := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Answer = time.Second })
	leader.want(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	f := followed(t, leader)
	f.want(200, "GET", "/v1/placements/home", "")
	leader.Server = nil
	f.problem(503, "slow", "", "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":null}`)
	f.problem(503, "slow", "", "GET", "/v1/placements/home/decisions/a", "")
	f.problem(503, "slow", "", "GET", "/v1/placements/cart", "")
	f.want(200, "GET", "/v1/placements/home", "")
}

// A follower's request cannot end the leader: a reading one is refused, because its answer may never end, and an
// abandoned one is answered all the same.
func TestForwardedIsContained(t *testing.T) {
	leader := started(t, func(o *server.Options, _ *engine.Options) {
		o.Demo = []api.Route{{Pattern: "POST /demo/x", Handle: func(api.Call) (any, error) {
			panic(http.ErrAbortHandler)
		}}}
	})
	for _, request := range []struct{ line, want string }{
		{"GET /v1/events", "405"},
		{"HEAD /v1/placements", "405"},
		{"POST /demo/x", "500"},
		{"DELETE /v1/placements/home", "404"},
	} {
		a := string(leader.Forwarded([]byte(request.line + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
		if !strings.HasPrefix(a, "HTTP/1.1 "+request.want) {
			t.Errorf("%s: %q, want %s", request.line, a, request.want)
		}
	}
}

// A leader that may have been replaced refuses changes, answers from its knowledge, and denies nothing.
func TestLeaderInDoubt(t *testing.T) {
	s := started(t, func(_ *server.Options, e *engine.Options) {
		e.Confirm = func(context.Context) error { return errors.New("another one writes the log") }
	})
	s.problem(503, "no-leader", "", "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":null}`)
	s.problem(503, "no-leader", "", "GET", "/v1/placements/home/decisions/a", "")
	s.problem(503, "no-leader", "", "GET", "/v1/placements/home", "")
	s.want(200, "GET", "/v1/placements", "")
}

// A follower's session counts at the leader. The header that says so counts only between processes.
func TestForwardingOfASession(t *testing.T) {
	token, key := keys.New("shop", keys.Scopes...)
	reads, readsKey := keys.New("reader", keys.ScopeRead)
	leader, _ := locked(t, key.Table()+readsKey.Table())
	f := followed(t, leader)
	with := func(token string) []string {
		cookie := f.signedIn(token)
		return append(slices.Clone(own), "Cookie", cookie.Name+"="+cookie.Value)
	}
	f.want(201, "PUT", "/v1/placements/home", plain, with(token)...)
	f.problem(403, "forbidden", "", "DELETE", "/v1/placements/home", "",
		append(with(reads), "Vitrine-Session", key.SHA256)...)
	for _, s := range []*service{leader, f} {
		s.problem(401, "unauthorized", "", "DELETE", "/v1/placements/home", "",
			append(slices.Clone(own), "Vitrine-Session", key.SHA256)...)
	}
	f.want(204, "DELETE", "/v1/placements/home", "", append(with(token), "Vitrine-Session", readsKey.SHA256)...)
	f.want(201, "PUT", "/v1/placements/home", plain, "Authorization", "Bearer "+token, "Vitrine-Session",
		readsKey.SHA256)
}

// A follower's requests are always answered, and the leader's answers reach the caller or count as failures.
func FuzzForwarded(f *testing.F) {
	for _, request := range []string{
		"PUT /v1/placements/home HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
		"DELETE /v1/placements/home HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /v1/placements/home/rollback HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n0\r\n\r\n", "PUT\r\n", "",
	} {
		for _, answer := range []string{
			"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nVitrine-Entry: 2\r\n\r\n{}", "HTTP/1.1 204 " +
				"No Content\r\n\r\n", "HTTP/1.1 099 Low\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "HTTP/9", "",
		} {
			f.Add([]byte(request), []byte(answer))
		}
	}
	leader := started(f, nil)
	follower := followed(f, leader)
	var answer []byte
	follower.options.Forward = func(context.Context, []byte) ([]byte, error) { return answer, nil }
	follower.Server = server.New(follower.options)
	f.Fuzz(func(t *testing.T, request, leaders []byte) {
		a := fatal.Or(http.ReadResponse(bufio.NewReader(bytes.NewReader(leader.Forwarded(request))), nil))(t)
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			t.Error(err)
		}
		answer = leaders
		if a := follower.ask("PUT", "/v1/placements/home", homeOfX); a.status < 200 {
			t.Errorf("%d: %s", a.status, a.body)
		}
	})
}
