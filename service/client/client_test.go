package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/replace"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a server that can be stopped and started again on the same log, at the same address.
type service struct {
	testing.TB
	store   engine.Log
	address string
	engine  *engine.Engine
	http    *httptest.Server
	options server.Options
	opened  atomic.Int64 // connections
}

func started(t testing.TB) *service {
	s := &service{TB: t, store: new(memlog.Store), address: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *service) start() {
	s.Helper()
	var err error
	if s.engine, err = engine.Open(context.Background(), engine.Options{Store: s.store,
		Build: setup.NewLearner}); err != nil {
		s.Fatal(err)
	}
	listener := fatal.Or(net.Listen("tcp", s.address))(s)
	s.address = listener.Addr().String()
	s.options.Engine = s.engine
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: server.New(s.options),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.opened.Add(1)
			}
		}}}
	s.http.Start()
}

func (s *service) stop() {
	s.http.CloseClientConnections()
	s.http.Close()
	s.engine.Close()
}

// client returns a client with connections that go through a way, or directly if it is nil.
func (s *service) client(way func(http.RoundTripper) http.RoundTripper) *client.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s.Cleanup(transport.CloseIdleConnections)
	c := &client.Client{Base: "http://" + s.address, HTTP: transport, Jitter: func() float64 { return 0 }}
	if way != nil {
		c.HTTP = way(transport)
	}
	return c
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// losing is a network that loses every other answer; all requests arrive.
func losing(n *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(to http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := to.RoundTrip(r)
			if err == nil && n.Add(1)%2 == 1 {
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				return nil, io.EOF
			}
			return answer, err
		})
	}
}

// cutting is one that cuts off every other answer within its body.
func cutting(n *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(to http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := to.RoundTrip(r)
			if err == nil && n.Add(1)%2 == 1 {
				answer.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(io.LimitReader(answer.Body, 7), broken{}), answer.Body}
			}
			return answer, err
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

var home = &api.Placement{
	MaxSize: 2,
	Features: []api.Feature{
		{Name: "price", Kind: "number"}, {Name: "brand", Kind: "category", Values: []string{"acme", "zenith"}},
		{Name: "age", Kind: "number", From: "shopper", Scale: new(10.0)}, {Name: "place", Kind: "category", From: "shopper"},
	},
	Policy: map[string]any{"name": "ucb-mnl"},
}

func request() *api.Request {
	return &api.Request{
		Items: []api.Item{
			{ID: "a/ü", Features: api.Values{api.Number("price", 1.5), api.Text("brand", "acme")}, Revenue: new(2.5)},
			{ID: "b", Features: api.Values{api.Number("price", -0.25), api.Text("brand", "zenith")}, Revenue: new(0.0)},
			{ID: "c", Features: api.Values{api.Number("price", 1e-3), api.Text("brand", "acme")}, Revenue: new(1.0)},
		},
		User: api.Values{api.Number("age", 44), api.Text("place", "Trier")}, MaxSize: 2, Include: []string{"b"},
		Exclude: []string{"c"},
		Limits:  []api.Limit{{Items: []string{"a/ü", "c"}, Max: new(1)}, {Feature: "brand", Max: new(1)}},
	}
}

// failed returns the error of a call that also returns something else.
func failed[T any](_ T, err error) error { return err }

// refused wants a problem of a kind.
func refused(t testing.TB, err error, status int, kind string) *api.Problem {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) {
		t.Fatalf("%v, want the problem %q", err, kind)
	}
	if p.Status != status || p.Kind() != kind || p.Detail == "" || p.RequestID == "" ||
		p.Title != http.StatusText(status) {
		t.Fatalf("%+v, want the problem %q", p, kind)
	}
	return p
}

// Every call works, whatever the network loses.
func TestCalls(t *testing.T) {
	for _, network := range []struct {
		name string
		way  func(*atomic.Int64) func(http.RoundTripper) http.RoundTripper
	}{{"good", nil}, {"losing answers", losing}, {"cutting answers", cutting}} {
		t.Run(network.name, func(t *testing.T) {
			s, ctx := started(t), t.Context()
			c := s.client(nil)
			if network.way != nil {
				c = s.client(network.way(new(atomic.Int64)))
			}
			expect.Equal(t, fatal.Or(c.Put(ctx, "home", home))(t), network.way == nil, "created is")
			if fatal.Or(c.Put(ctx, "home", home))(t) {
				t.Error("created twice")
			}
			a := fatal.Or(c.Decide(ctx, "home", request()))(t)
			if diff := cmp.Diff([]string{"a/ü", "b"}, a.Items()); diff != "" || len(a.Decision) < 20 ||
				*a.Assortment[1].Probability <= 0 || *a.OutsideProbability <= 0 || *a.ExpectedRevenue <= 0 {
				t.Errorf("%+v %s", a, diff)
			}
			again := request()
			again.Decision = a.Decision
			b := fatal.Or(c.Decide(ctx, "home", again))(t)
			a.Repeated = true
			expect.Equal(t, b, a)
			fatal.If(t, c.Outcome(ctx, "home", a.Decision, "a/ü"))
			fatal.If(t, c.Outcome(ctx, "home", a.Decision, "a/ü"))
			why := fatal.Or(c.Explain(ctx, "home", a.Decision))(t)
			trial := fatal.Or(c.Try(ctx, "home", request()))(t)
			if why.Decision != a.Decision || len(why.Items) != 2 || trial.Answer.Decision != "" ||
				!slices.Equal(trial.Answer.Items(), a.Items()) || trial.Explanation.Next == nil {
				t.Errorf("%+v %+v", why, trial)
			}
			d := fatal.Or(c.Decision(ctx, "home", a.Decision))(t)
			a.Repeated = false
			if diff := cmp.Diff(*a, d.Answer); diff != "" || d.Placement != "home" || d.Source != "policy" ||
				d.Status != "chosen" || *d.Choice != "a/ü" || time.Since(d.Time) > time.Hour {
				t.Errorf("%+v %s", d, diff)
			}
			earned := fatal.Or(c.Decide(ctx, "home", request()))(t)
			fatal.If(t, c.Reward(ctx, "home", earned.Decision, api.Reward{Item: "a/ü"},
				api.Reward{Item: "b", Value: 1}))
			if d := fatal.Or(c.Decision(ctx, "home", earned.Decision))(t); d.Choice == nil || *d.Choice != "b" {
				t.Errorf("%+v", d)
			}
			none := fatal.Or(c.Decide(ctx, "home", request()))(t)
			fatal.If(t, c.Outcome(ctx, "home", none.Decision, ""))
			if d := fatal.Or(c.Decision(ctx, "home", none.Decision))(t); d.Status != "chosen" || d.Choice != nil {
				t.Errorf("%+v", d)
			}
			if names := fatal.Or(c.Placements(ctx))(t); !reflect.DeepEqual(names, []string{"home"}) {
				t.Errorf("placements %q", names)
			}
			if x := fatal.Or(c.Insight(ctx, "home"))(t); x.Placement != "home" || x.Items == nil {
				t.Errorf("%+v", x)
			}
			stats := fatal.Or(c.Stats(ctx, "home"))(t)
			for stats.Learned < 3 {
				time.Sleep(time.Millisecond)
				stats = fatal.Or(c.Stats(ctx, "home"))(t)
			}
			version := fatal.Or(c.Keep(ctx, "home", "before the change"))(t)
			stats = fatal.Or(c.Stats(ctx, "home"))(t)
			if stats.Decisions != 3 || stats.Outcomes != 3 || stats.ByPolicy.Purchases != 2 ||
				len(stats.Versions) != 1 {
				t.Errorf("%+v", stats)
			}
			fatal.If(t, c.RollBack(ctx, "home", version))
			full := fatal.Or(c.Placement(ctx, "home"))(t)
			if full.MaxItems != 1000 || full.AttributionWindow != "30m0s" || len(full.Features) != 4 {
				t.Errorf("%+v", full)
			}
			if fatal.Or(c.Put(ctx, "home", full))(t) {
				t.Error("the placement's own configuration creates one")
			}
			full, etag, err := c.PlacementETag(ctx, "home")
			fatal.If(t, err)
			full.Seed++
			if p := refused(t, failed(c.Put(ctx, "home", full)), 409, "loss"); p.Lost == nil || p.Lost.Versions != 1 ||
				p.Pointer() != "#/seed" {
				t.Errorf("%+v", p)
			}
			refused(t, failed(c.Change(ctx, "home", full, client.Change{Reset: true, ETag: `"0"`})), 412,
				"precondition")
			fatal.If(t, failed(c.Change(ctx, "home", full, client.Change{Reset: true, ETag: etag})))
			full.Seed++
			fatal.If(t, failed(c.Change(ctx, "home", full, client.Change{Relearn: true})))
			if r := fatal.Or(c.Stats(ctx, "home"))(t).Relearning; r == nil || r.From == 0 {
				t.Errorf("the relearning %+v", r)
			}
			versions := fatal.Or(c.Versions(ctx, "home"))(t)
			for len(versions) == 1 && versions[0].Learned == nil { // the learner is behind
				time.Sleep(time.Millisecond)
				versions = fatal.Or(c.Versions(ctx, "home"))(t)
			}
			if len(versions) != 1 || versions[0].Version != version || versions[0].Note != "before the change" ||
				*versions[0].Learned != 3 {
				t.Errorf("%+v", versions)
			}
			fatal.If(t, c.EraseShopper(ctx, "shopper-7"))
			fatal.If(t, c.Delete(ctx, "home"))
			if network.way == nil {
				refused(t, c.Delete(ctx, "home"), 404, "not-found")
			}
			if names := fatal.Or(c.Placements(ctx))(t); len(names) != 0 {
				t.Errorf("placements %q", names)
			}
		})
	}
}

// Answers that were lost after the decision was made give one decision, with callers at the same time.
func TestLostAnswersAreOneDecision(t *testing.T) {
	s, ctx := started(t), t.Context()
	c := s.client(losing(new(atomic.Int64)))
	c.Put(ctx, "home", home)
	const callers, each = 8, 10
	ended := make(chan error)
	for range callers {
		go func() {
			var err error
			for range each {
				var a *api.Answer
				if a, err = c.Decide(ctx, "home", request()); err != nil {
					break
				}
				if err = c.Outcome(ctx, "home", a.Decision, a.Items()[0]); err != nil {
					break
				}
			}
			ended <- err
		}()
	}
	for range callers {
		fatal.If(t, <-ended)
	}
	stats := fatal.Or(c.Stats(ctx, "home"))(t)
	if stats.Decisions != callers*each || stats.Outcomes != callers*each || stats.Pending != 0 {
		t.Errorf("%d decisions, %d outcomes, want %d", stats.Decisions, stats.Outcomes, callers*each)
	}
}

// A change whose answer was lost is made once: its retry neither restarts another learner nor trains another one.
func TestLostAnswersAreOneChange(t *testing.T) {
	config := *home
	config.MaxVersions = 1
	onTrial, reset := config, config
	onTrial.Mode, onTrial.Experiment = api.Experimenting, &api.Experiment{Name: "summer", Variants: []api.Variant{
		{Name: "ours", Show: api.ShowPolicy, Share: 0.5}, {Name: "chance", Show: api.ShowUniform, Share: 0.5},
	}}
	reset.Seed = 7
	for _, c := range []struct {
		what          string
		before, after *api.Placement
		how           client.Change
		kinds         []string // of the changes, the latest first
	}{
		{"the learner begins again", &config, &reset, client.Change{Reset: true}, []string{"reset", "created"}},
		{"an experiment ends", &onTrial, &config, client.Change{Reset: true}, []string{"changed", "created"}},
		{"a learner that is trained takes over", &config, &reset, client.Change{Relearn: true},
			[]string{"swapped", "relearning-begun", "created"}},
	} {
		for _, tagged := range []bool{false, true} {
			s, ctx := started(t), t.Context()
			direct := s.client(nil)
			fatal.Or(direct.Put(ctx, "home", c.before))(t)
			for i := range 20 {
				r := request()
				r.ShopperID = fmt.Sprint(i) // in either variant
				fatal.If(t, direct.Outcome(ctx, "home", fatal.Or(direct.Decide(ctx, "home", r))(t).Decision, ""))
			}
			fatal.If(t, s.engine.Wait(ctx))
			if tagged {
				_, c.how.ETag, _ = direct.PlacementETag(ctx, "home")
			}
			sent := 0
			losing := s.client(func(to http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					answer, err := to.RoundTrip(r)
					if sent++; sent > 2 || err != nil {
						return answer, err
					}
					answer.Body.Close()
					err = s.engine.Wait(ctx)
					_, _, failed := s.engine.Exchange(ctx, 0)
					return nil, errors.Join(io.EOF, err, failed)
				})
			})
			_, err := losing.Change(ctx, "home", c.after, c.how)
			fatal.If(t, err)
			var kinds []string
			for _, change := range fatal.Or(s.engine.History(ctx, "home"))(t).Changes {
				kinds = append(kinds, change.Kind)
			}
			expect.List(t, kinds, c.kinds, c.what)
			expect.Equal(t, sent, 3, "attempts")
		}
	}
}

// A service that is started again answers what was asked meanwhile, and keeps what it answered before.
func TestServiceRestarts(t *testing.T) {
	s, ctx := started(t), t.Context()
	c := s.client(nil)
	fatal.Or(c.Put(ctx, "home", home))(t)
	before := fatal.Or(c.Decide(ctx, "home", request()))(t)
	s.stop()
	retries := 0
	c.Retrying = func(err error, _ time.Duration) {
		if retries++; retries == 3 {
			s.start()
		}
	}
	a := fatal.Or(c.Decide(ctx, "home", request()))(t)
	if retries < 3 || a.Repeated {
		t.Errorf("%d retries, %+v", retries, a)
	}
	r := request()
	r.Decision = before.Decision
	if again := fatal.Or(c.Decide(ctx, "home", r))(t); !again.Repeated ||
		!reflect.DeepEqual(again.Items(), before.Items()) {
		t.Errorf("%+v, was %+v", again, before)
	}
	fatal.If(t, c.Outcome(ctx, "home", before.Decision, "b"))
}

func TestRefusals(t *testing.T) {
	s, ctx := started(t), t.Context()
	retries := 0
	c := s.client(nil)
	c.Retrying = func(error, time.Duration) { retries++ }
	fatal.Or(c.Put(ctx, "home", home))(t)
	r := request()
	r.Decision = "one"
	fatal.Or(c.Decide(ctx, "home", r))(t)
	ask := func(change func(*api.Request)) error {
		r := request()
		change(r)
		_, err := c.Decide(ctx, "home", r)
		return err
	}
	refused(t, ask(func(r *api.Request) { r.Decision, r.MaxSize = "one", 1 }), 409, "conflict")
	if p := refused(t, ask(func(r *api.Request) { r.Items[1].ID = "" }), 422,
		"invalid"); p.Pointer() != "#/items/1/id" {
		t.Errorf("%+v", p)
	}
	if p := refused(t, ask(func(r *api.Request) { r.Decision = `a"}/` }), 422,
		"invalid"); p.Pointer() != "#/decision_id" {
		t.Errorf("%+v", p)
	}
	_, err := c.Decide(ctx, "nowhere/..", request())
	refused(t, err, 404, "not-found")
	_, err = c.Put(ctx, "bad", &api.Placement{})
	refused(t, err, 422, "invalid")
	_, err = c.Stats(ctx, "nowhere")
	refused(t, err, 404, "not-found")
	refused(t, c.Outcome(ctx, "home", "none", ""), 404, "not-found")
	refused(t, c.Outcome(ctx, "home", "one", "c"), 422, "not-shown")
	fatal.If(t, c.Outcome(ctx, "home", "one", "b"))
	refused(t, c.Outcome(ctx, "home", "one", ""), 409, "conflict")
	refused(t, c.RollBack(ctx, "home", 99), 404, "not-found")
	refused(t, c.Activate(ctx, "home", "none"), 404, "not-found")
	fatal.If(t, c.Activate(ctx, "home", "one"))
	fatal.If(t, ask(func(r *api.Request) { r.Decision, r.Defer = "deferred", true }))
	d, err := c.Decision(ctx, "home", "deferred")
	if err != nil || d.Status != "deferred" {
		t.Errorf("%+v, %v", d, err)
	}
	fatal.If(t, c.Activate(ctx, "home", "deferred"))
	if d, err = c.Decision(ctx, "home", "deferred"); err != nil || d.Status != "open" {
		t.Errorf("activated: %+v, %v", d, err)
	}
	expect.Refused(ask(func(r *api.Request) { r.User = api.Values{api.Number("age", math.NaN())} }))(t,
		"JSON has no NaN")
	if retries > 0 {
		t.Errorf("%d retries", retries)
	}
	expect.Equal(t, s.opened.Load(), 1, "connections for calls one after a")
}

// The token is sent, and is in no error.
func TestKey(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeDecide)
	path := filepath.Join(t.TempDir(), "keys.toml")
	fatal.If(t, replace.File(path, []byte(key.Table())))
	s := &service{TB: t, store: new(memlog.Store), address: "127.0.0.1:0"}
	s.options.Keys = fatal.Or(keys.Open(path, time.Now, nil))(t)
	s.start()
	t.Cleanup(s.stop)
	c := s.client(nil)
	_, err := c.Decide(t.Context(), "home", request())
	refused(t, err, 401, "unauthorized")
	c = s.client(nil)
	c.Key = token
	_, err = c.Decide(t.Context(), "home", request())
	refused(t, err, 404, "not-found")
	_, err = c.Stats(t.Context(), "home")
	refused(t, err, 403, "forbidden")
	s.stop()
	c = s.client(nil)
	c.Key, c.Patience = token, -1
	if _, err = c.Decide(t.Context(), "home", request()); err == nil || strings.Contains(err.Error(), token) {
		t.Error(err)
	}
	s.start()
}

// BenchmarkPrepare encodes a request of 100 items with 10 features.
func BenchmarkPrepare(b *testing.B) {
	var r api.Request
	for i := range 100 {
		item := api.Item{ID: fmt.Sprintf("item-%d", i)}
		for j := range 10 {
			item.Features = append(item.Features, api.Number(fmt.Sprintf("x%d", j), float64(1000*i+j)/1e6))
		}
		r.Items = append(r.Items, item)
	}
	b.ReportAllocs()
	for b.Loop() {
		fatal.Or(client.Prepare(&r))(b)
	}
}

// A shopper sees the same variant each time, and the report names the experiment.
func TestExperiments(t *testing.T) {
	s, ctx := started(t), t.Context()
	c := s.client(nil)
	config := *home
	config.Mode, config.Experiment = api.Experimenting, &api.Experiment{Name: "summer", Variants: []api.Variant{
		{Name: "ours", Show: api.ShowPolicy, Share: 0.5}, {Name: "chance", Show: api.ShowUniform, Share: 0.5},
	}}
	fatal.If(t, failed(c.Put(ctx, "home", &config)))
	for range 2 {
		r := request()
		r.ShopperID = "ann"
		if a := fatal.Or(c.Decide(ctx, "home", r))(t); a.Variant != "chance" && a.Variant != "ours" {
			t.Errorf("%+v", a)
		}
	}
	all := fatal.Or(c.Experiments(ctx, "home"))(t)
	if all.Experiment == nil || all.Experiment.Name != "summer" ||
		all.Experiment.Variants[0].Made+all.Experiment.Variants[1].Made != 2 || all.Past == nil {
		t.Errorf("%+v", all)
	}
	refused(t, failed(c.Experiments(ctx, "cart")), 404, "not-found")
}

// Items that do not fit into one body are sent in several, whatever the service's limit is. An error says in which. An item
// that fits into no body is an error.
func TestLargeItems(t *testing.T) {
	s := started(t)
	requests := 0
	c := s.client(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			return next.RoundTrip(r)
		})
	})
	fatal.Or(c.Put(t.Context(), "home", &api.Placement{MaxSize: 1, Features: []api.Feature{{Name: "x", Kind: "number"}}}))(t)
	items := make([]api.CatalogueItem, 700)
	for _, limit := range []int64{16 << 20, 4 << 20, 100_000} {
		s.stop()
		s.options.Limits.Body = limit
		s.start()
		for i := range items {
			items[i] = api.CatalogueItem{ID: fmt.Sprint(limit, i), Features: api.Values{api.Number("x", 1)},
				Payload: jsontext.Value(`"` + strings.Repeat("x", 12_000) + `"`)}
		}
		before := requests
		a := fatal.Or(c.PutItems(t.Context(), "home", items))(t)
		expect.Equal(t, a.Changed, len(items), "n items were put within", limit)
		expect.Equal(t, requests == before+1, limit == 16<<20, "one request is enough within", limit)
		for i := range items {
			items[i].ID, items[i].Payload = fmt.Sprint(limit, i+600), jsontext.Value(`"`+strings.Repeat("y", 12_000)+`"`)
		}
		a = fatal.Or(c.PatchItems(t.Context(), "home", items))(t)
		expect.Equal(t, a.Changed, 100, "n items were patched within", limit)
		expect.Equal(t, len(a.Unknown) >= 100, true, "the unknown items are named within", limit)
	}
	items[650].ID = ""
	_, err := c.PutItems(t.Context(), "home", items)
	var of, after, at int
	if p, ok := errors.AsType[*api.Problem](err); !ok {
		t.Error(err)
	} else if _, err := fmt.Sscanf(p.Pointer(), "#/items/%d/id", &at); err != nil {
		t.Error(p, err)
	}
	_, scan := fmt.Sscanf(err.Error(), "in the request of %d items after the first %d: invalid: /items/", &of, &after)
	expect.Equal(t, scan == nil && after > 0 && at < of && after+at == 650, true, "the wrong item is found by", err)
	items[650].ID = "x"
	s.stop()
	s.options.Limits.Body = 12_000
	s.start()
	_, err = c.PutItems(t.Context(), "home", items)
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != http.StatusRequestEntityTooLarge {
		t.Error(err)
	}
}
