package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// paused is a context that stops the goroutine asking for its error the n-th time, until it may go on.
type paused struct {
	context.Context
	n        int
	at, goOn chan struct{}
}

func pausedAt(t *testing.T, n int) *paused {
	return &paused{t.Context(), n, make(chan struct{}), make(chan struct{})}
}

func (p *paused) Err() error {
	if p.n--; p.n == 0 {
		close(p.at)
		<-p.goOn
	}
	return p.Context.Err()
}

// others does what other callers do: decisions of this placement, also with a brand that is new, and of another one, a
// push and statistics.
func others(t *testing.T, e *engine.Engine) {
	t.Helper()
	decide(t, e, "other", goodsRequest("", 3), 0)
	decide(t, e, "home", goodsRequest("", 3), 0)
	fresh := goodsRequest("", 3)
	fresh.Items[0].Features[2] = api.Text("brand", "new")
	decide(t, e, "home", fresh, 0)
	item := goods(e.Sequence(), 1)
	item[0].ID = "pushed"
	expect.Equal(t, putItems(t, e, "home", item).Changed, 1, "items have changed")
	for _, name := range []string{"home", "other"} {
		if _, err := e.Stats(name); err != nil {
			t.Error(err)
		}
	}
}

func goodsRequest(id string, n int) *api.Request {
	r := &api.Request{Decision: id, User: aged(1)}
	for _, item := range goods(7, n) {
		r.Items = append(r.Items, api.Item{ID: item.ID, Features: item.Features})
	}
	return r
}

// While a filter, groups or a change of features work on a large catalogue, other callers do not wait.
func TestNobodyWaitsForACatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	put(t, e, "other", window+"}")
	putItems(t, e, "home", goods(1, 9000-1))
	for name, call := range map[string]func(ctx context.Context) error{
		"a filter": func(ctx context.Context) error {
			_, err := e.Decide(ctx, "home", &api.Request{User: aged(1), Filter: "half == 1 and x > 0"}, 0)
			return err
		},
		"groups": func(ctx context.Context) error {
			_, err := e.Decide(ctx, "home", &api.Request{User: aged(1),
				Limits: []api.Limit{{Attribute: "half", Max: new(1)}}}, 0)
			return err
		},
		"a preview of other features": func(ctx context.Context) error {
			_, err := e.Preview(ctx, "home",
				[]byte(strings.Replace(window, `"x1","kind":"number"`, `"x1","kind":"number","scale":2`, 1)+"}"),
				engine.Change{}, 1e18)
			return err
		},
	} {
		ctx := pausedAt(t, 2)
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		<-ctx.at
		others(t, e)
		close(ctx.goOn)
		expect.Error(t, <-done, nil, name)
	}
}

// slow is a policy that stops in Offer, if it is asked about many items, and shows the best ones by their first
// feature.
func slow(at, goOn chan struct{}) func(setup.Spec) (vitrine.Learner, error) {
	return func(s setup.Spec) (vitrine.Learner, error) {
		return &always{toy{size: s.Size}, func(x *vitrine.Context) vitrine.Offer {
			if x.NumItems() > 1000 {
				at <- struct{}{}
				<-goOn
			}
			gain := make([]float64, x.NumItems())
			for i := range gain {
				gain[i] = 100 + x.Features.At(i, 1)
			}
			return vitrine.Offer{Assortment: x.Feasible.MaxGain(nil, gain), Propensity: 1}
		}}, nil
	}
}

// While the policy works on many items, other callers do not wait. If an item that it shows changed meanwhile, it is
// asked again.
func TestNobodyWaitsForAPolicy(t *testing.T) {
	at, goOn := make(chan struct{}), make(chan struct{})
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: slow(at, goOn)})
	put(t, e, "home", window+"}")
	put(t, e, "other", window+"}")
	items := goods(1, 5000)
	items[17].Features[1] = api.Number("x", 50) // the best
	putItems(t, e, "home", items)
	var a *offer.Offer
	done := make(chan error, 1)
	for _, r := range []*api.Request{{User: aged(1)}, {User: aged(1), Filter: "half == 1"},
		{User: aged(1), Limits: []api.Limit{{Feature: "brand", Max: new(1)}}}} {
		go func() {
			var err error
			a, err = e.Decide(t.Context(), "home", r, 0)
			done <- err
		}()
		<-at
		others(t, e)
		goOn <- struct{}{}
		if err := <-done; err != nil || a.IDs()[0] != itemID(17) {
			t.Fatalf("%v is shown: %v", a, err)
		}
	}
	go func() {
		var err error
		a, err = e.Decide(t.Context(), "home", &api.Request{User: aged(1)}, 0)
		done <- err
	}()
	<-at
	fatal.Or(e.DeleteItems(t.Context(), "home", []string{itemID(17)}, 0))(t)
	goOn <- struct{}{}
	select {
	case <-at: // again
		goOn <- struct{}{}
	case err := <-done:
		t.Fatalf("%v is shown after %s was deleted: %v", a.IDs(), itemID(17), err)
	}
	if err := <-done; err != nil || a.IDs()[0] == itemID(17) {
		t.Errorf("%v is shown after %s was deleted: %v", a, itemID(17), err)
	}
}

// A caller who leaves stops its filter, and its unfinished change of features does not happen.
func TestWhoLeavesStopsTheWork(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", goods(1, 5000))
	before := snapshot(t, e)
	other := []byte(strings.Replace(window, `"x1","kind":"number"`, `"x1","kind":"number","scale":2`, 1) + "}")
	for name, call := range map[string]func(ctx context.Context) error{
		"a filter": func(ctx context.Context) error {
			_, err := e.Decide(ctx, "home", &api.Request{User: aged(1), Filter: "half == 1 and x > 0"}, 0)
			return err
		},
		"other features": func(ctx context.Context) error {
			_, err := e.Put(ctx, "home", other, 0)
			return err
		},
	} {
		inner, cancel := context.WithCancel(t.Context())
		ctx := pausedAt(t, 2)
		ctx.Context = inner
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		<-ctx.at
		cancel()
		close(ctx.goOn)
		err := <-done
		expect.Error(t, err, context.Canceled, name)
		var unfinished *engine.UnfinishedError
		if is := errors.As(err, &unfinished); is != (name == "other features") ||
			is && unfinished.What != "the placement was not changed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(before, snapshot(t, e)) {
		t.Error("the state has changed")
	}
	if _, err := e.Put(t.Context(), "home", other, 0); err != nil {
		t.Errorf("then it goes through: %v", err)
	}
}

// After a change of features the categories know the items' values, as if the items were put then, in live traffic, in
// a replay and on a follower.
func TestOtherFeaturesLearn(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store}
	e, f := opened(t, o), follower(t, o)
	put(t, e, "home", `{"max_size":1,"max_request_items":100,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	put(t, e, "home", brands)
	var items []api.CatalogueItem
	for i := range 20 {
		items = append(items, api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", float64(i)),
			api.Text("brand", fmt.Sprint("b", i%15))}})
	}
	putItems(t, e, "home", items)
	put(t, e, "home", strings.Replace(brands, `"kind":"category"`, `"kind":"category","own_columns":20,"columns":24`,
		1))
	s, err := e.Stats("home")
	if want := (api.Category{Feature: "brand", Learned: 15, OwnColumns: 20, SharedColumns: 4}); err != nil ||
		len(s.Categories) != 1 || s.Categories[0] != want {
		t.Errorf("categories %+v, want %+v: %v", s.Categories, want, err)
	}
	before := e.Sequence()
	choose(t, e, &api.Request{Candidates: []string{itemID(3), itemID(4)}}, 1)
	choose(t, e, branded("1", "b3"), 1)
	expect.Equal(t, e.Sequence(), before+2, e.Sequence()-before, "entries for two decisions of known values")
	now := snapshot(t, e)
	if !bytes.Equal(now, replayed(t, o)) {
		t.Error("a replay gives another state")
	}
	if reach(t, f, e.Sequence()); !bytes.Equal(now, snapshot(t, f)) {
		t.Error("a follower has another state")
	}
}

// An item that is pushed while a change of features is computed is there afterwards.
func TestPushDuringOtherFeatures(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", goods(1, 100))
	ctx := pausedAt(t, 2)
	done := make(chan error, 1)
	go func() {
		_, err := e.Put(ctx, "home", []byte(strings.Replace(window, `"x1","kind":"number"`,
			`"x1","kind":"number","scale":2`, 1)+"}"), 0)
		done <- err
	}()
	<-ctx.at
	pushed := goods(2, 1)
	pushed[0].ID = "pushed"
	putItems(t, e, "home", pushed)
	close(ctx.goOn)
	fatal.If(t, <-done)
	if _, err := e.Item("home", "pushed"); err != nil {
		t.Error(err)
	}
}

// All candidates of the catalogue may be replaced by items of the request, however many those are.
func TestItemsReplaceAllCandidates(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", goods(1, 1))
	r := goodsRequest("", 2000)
	r.Candidates = []string{itemID(0)}
	if a := decide(t, e, "home", r, 0); len(a.IDs()) != 3 {
		t.Errorf("%v is shown", a.IDs())
	}
}
