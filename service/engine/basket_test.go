package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

const threeShown = `{"max_size":3,"features":[{"name":"x","kind":"number"}],"policy":{},"attribution_window":"30m"}`

// priced is a request of three items with the prices 1, 2 and 4.
func priced(id string) *api.Request {
	r := stock(id, 3)
	for i := range r.Items {
		r.Items[i].Revenue = new(float64(int(1) << i))
	}
	return r
}

// lastBody is the body of the last entry of a log.
func lastBody(t *testing.T, store *memlog.Store) (last eventlog.Body) {
	t.Helper()
	for entry, err := range store.Entries(t.Context(), 1) {
		fatal.If(t, err)
		last = fatal.Or(eventlog.Decode(entry))(t).Body
	}
	return last
}

// An outcome of several items, by hand: its event, its sums, its repetition and what contradicts it.
func TestBasket(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", threeShown)
	ids := decide(t, e, "home", priced("a"), 0).IDs()
	place := func(id string) int32 { return int32(slices.Index(ids, id) + 1) }
	choose := func(choices ...api.Choice) error { return e.Choose(t.Context(), "home", "a", choices, 1) }
	two, one := api.Choice{Item: "sku0", Quantity: new(2), Value: new(5.5)}, api.Choice{Item: "sku2"}
	for range 2 {
		is(t, "a basket", choose(two, one), nil)
		is(t, "in another order", choose(one, two), nil)
		is(t, "with the defaults", choose(api.Choice{Item: "sku2", Quantity: new(1), Value: new(4.0)}, two), nil)
	}
	is(t, "without an item", choose(two), engine.ErrConflict)
	is(t, "another quantity", choose(one, api.Choice{Item: "sku0", Quantity: new(3), Value: new(5.5)}),
		engine.ErrConflict)
	is(t, "another value", choose(one, api.Choice{Item: "sku0", Quantity: new(2)}), engine.ErrConflict)
	is(t, "a choice", e.Outcome(t.Context(), "home", "a", "sku0", 1), engine.ErrConflict)
	want := eventlog.Basket{{Place: place("sku0"), Quantity: 2, Value: 5.5},
		{Place: place("sku2"), Quantity: 1, Value: 4}}
	if want[0].Place > want[1].Place {
		slices.Reverse(want)
	}
	expect.Equal(t, lastBody(t, store),
		eventlog.Body(&eventlog.Chosen{Decision: "a", Choice: want[0].Place, Basket: want}))
	wait(t, e)
	s := fatal.Or(e.Stats("home"))(t)
	if g := s.ByPolicy; g.Rounds != 1 || g.Purchases != 1 || g.Revenue != 9.5 || g.Squares != 9.5*9.5 ||
		s.Outcomes != 1 || s.Learned != 1 {
		t.Errorf("%+v", s)
	}
	if s.Calibration.Revenue != 0 && s.Calibration.Revenue != 9.5/3 { // per unit
		t.Errorf("%+v", s.Calibration)
	}
	x := fatal.Or(e.Insight(t.Context(), "home", 1))(t)
	for _, item := range x.Items {
		if want := map[string][2]float64{"sku0": {1, 5.5}, "sku1": {0, 0},
			"sku2": {1, 4}}[item.ID]; float64(item.Taken) != want[0] || item.Revenue != want[1] {
			t.Errorf("%+v, want %v", item, want)
		}
	}
	d := fatal.Or(e.Decision(t.Context(), "home", "a"))(t)
	if d.Choice != ids[want[0].Place-1] || d.Earned != 9.5 || len(d.Choices) != 2 || d.Choices[0].Item != d.Choice {
		t.Errorf("%+v", d)
	}
	decide(t, e, "home", priced("b"), 0) // a choice takes less memory than two takes do
	fatal.If(t, e.Outcome(t.Context(), "home", "b", "sku0", 1))
	if both := fatal.Or(e.Stats("home"))(t).Memory; 2*s.Memory-both != 96+2*16 {
		t.Errorf("a basket takes %d bytes, and with a choice %d", s.Memory, both)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// One unit of one item at its revenue is the same event, and the same answer, whichever way it is reported; so is
// nothing.
func TestBasketOfOne(t *testing.T) {
	for _, same := range [][][]api.Choice{
		{{{Item: "sku1"}}, {{Item: "sku1", Quantity: new(1)}}, {{Item: "sku1", Value: new(2.0)}},
			{{Item: "sku1", Quantity: new(1), Value: new(2.0)}}},
		{nil, {}},
	} {
		for _, choices := range same {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: buildToy})
			put(t, e, "home", threeShown)
			item, place := "", int32(0)
			ids := decide(t, e, "home", priced("a"), 0).IDs()
			if len(choices) > 0 {
				item, place = "sku1", int32(slices.Index(ids, "sku1")+1)
			}
			is(t, "choices", e.Choose(t.Context(), "home", "a", choices, 1), nil)
			is(t, "the choice", e.Outcome(t.Context(), "home", "a", item, 1), nil)
			expect.Equal(t, lastBody(t, store), eventlog.Body(&eventlog.Chosen{Decision: "a", Choice: place}), choices)
			if d := fatal.Or(e.Decision(t.Context(), "home", "a"))(t); d.Choices != nil || d.Choice != item {
				t.Errorf("%+v", d)
			}
		}
	}
}

// An outcome that no page can have names the field, and says what to do.
func TestBadBaskets(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", threeShown)
	decide(t, e, "home", priced("a"), 0)
	for want, choices := range map[string][]api.Choice{
		"/choices/1/item: must be the id of an item that was shown": {
			{Item: "sku0"}, {}},
		`/choices/1/item: "sku0" is also choice 0: report each item once, with its quantity`: {
			{Item: "sku0"}, {Item: "sku0"}},
		"/choices/0/quantity: 0: must be from 1 to 1000; leave out an item that was not taken": {
			{Item: "sku0", Quantity: new(0)}},
		"/choices/0/quantity: 1001: must be from 1 to 1000; leave out an item that was not taken": {
			{Item: "sku0", Quantity: new(1001)}},
		"/choices/0/value: -1: must not be negative; report a return later, as a correction": {
			{Item: "sku0", Value: new(-1.0)}},
		"/choices/0/value: NaN: must be from 0 to 1e+12": {
			{Item: "sku0", Value: new(math.NaN())}},
		"/choices/0/value: 4006381333931: must be from 0 to 1e+12; send an amount of money, not an id or a timestamp": {
			{Item: "sku0", Value: new(4006381333931.0)}},
		"/choices: has 1001 items, and a page shows at most 1000: report each item once, with its quan": make(
			[]api.Choice, 1001),
		`item "sku9": the item was not shown in decision "a"`: {
			{Item: "sku0"}, {Item: "sku9"}},
	} {
		expect.Part(e.Choose(t.Context(), "home", "a", choices, 1))(t, want)
	}
	if _, ok := lastBody(t, store).(*eventlog.Offered); !ok {
		t.Error("the log has an outcome")
	}
}

// A basket counts whenever it comes, and so do later returns, a second month, and an item that was not sold after all. By hand.
func TestMoneyOfBaskets(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		store := new(memlog.Store)
		o := engine.Options{Store: store, Build: buildToy}
		e := opened(t, o)
		put(t, e, "home", threeShown)
		decide(t, e, "home", priced("a"), 0)
		now, expected := int64(1), error(nil)
		if isLate {
			now, expected = 2*halfHour, engine.ErrLate
		}
		basket := []api.Choice{{Item: "sku0", Quantity: new(2)}, {Item: "sku2", Value: new(3.5)}}
		is(t, "the basket", e.Choose(t.Context(), "home", "a", basket, now), expected)
		check := func(what string, earned float64, pages uint64, taken ...string) {
			t.Helper()
			s, d := fatal.Or(e.Stats("home"))(t), fatal.Or(e.Decision(t.Context(), "home", "a"))(t)
			if g := s.ByPolicy; g.Rounds != 1 || g.Purchases != pages || g.Revenue != earned ||
				g.Squares != earned*earned || d.Earned != earned {
				t.Errorf("%s: %+v and the decision %v, want %v and %d pages", what, g, d.Earned, earned, pages)
			}
			now += int64(minute) // an insight is kept for seconds
			sum := 0.0
			for _, item := range fatal.Or(e.Insight(t.Context(), "home", now))(t).Items {
				if sum += item.Revenue; (item.Taken == 1) != slices.Contains(taken, item.ID) || item.Taken > 1 {
					t.Errorf("%s: %+v, want %v taken", what, item, taken)
				}
			}
			expect.Equal(t, sum, earned, what, "the items have earned")
		}
		correct := func(id, item string, value *float64) error {
			return e.Correct(t.Context(), "home", "a", api.Correction{ID: id, Item: item, Value: value}, now)
		}
		check("the basket", 5.5, 1, "sku0", "sku2")
		for range 2 {
			is(t, "a return", correct("return", "sku0", new(-1.0)), nil)
			is(t, "a second month", correct("month", "sku2", new(3.5)), nil)
		}
		is(t, "the same id for another item", correct("return", "sku2", new(-1.0)), engine.ErrConflict)
		is(t, "a return of an item that was not taken", correct("x", "sku1", new(-1.0)), engine.ErrConflict)
		is(t, "a withdrawal of one", correct("x", "sku1", nil), engine.ErrConflict)
		check("a return and a second month", 8, 1, "sku0", "sku2")
		for range 2 {
			is(t, "no sale", correct("none", "sku2", nil), nil)
		}
		check("no sale", 1, 1, "sku0")
		is(t, "more of it", correct("more", "sku2", new(1.0)), engine.ErrConflict)
		is(t, "more of the other", correct("more", "sku0", new(0.25)), nil)
		check("more of the other", 1.25, 1, "sku0")
		for range 2 {
			is(t, "an item bought later", correct("later", "sku1", new(2.5)), nil)
		}
		is(t, "one that the page lacks", correct("x", "sku9", new(2.5)), engine.ErrNotShown)
		check("an item bought later", 3.75, 1, "sku0", "sku1")
		is(t, "a part of it", correct("part", "sku1", new(-0.5)), nil)
		check("a part of it", 3.25, 1, "sku0", "sku1")
		is(t, "none of the first", correct("nothing", "sku0", nil), nil)
		check("none of the first", 2, 1, "sku1")
		is(t, "none of all", correct("none-of-it", "sku1", nil), nil)
		check("none of all", 0, 0)
		is(t, "the basket again", e.Choose(t.Context(), "home", "a", basket, now), expected)

		d := fatal.Or(e.Decision(t.Context(), "home", "a"))(t)
		live := snapshot(t, e)
		for what, from := range map[string][]byte{"a replay": nil, "the snapshot": live} {
			again := opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})
			if string(snapshot(t, again)) != string(live) {
				t.Errorf("%s has another state", what)
			}
			its := fatal.Or(again.Decision(t.Context(), "home", "a"))(t)
			expect.Equal(t, []any{its.Choices, its.Corrections, its.Earned}, []any{d.Choices, d.Corrections, d.Earned},
				what)
		}
	}
}

// A page without a sale gets one when an item is bought later. The learner has learned that nothing was taken, and keeps to
// it. By hand.
func TestFirstItemBoughtLater(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", threeShown)
	decide(t, e, "home", priced("a"), 0)
	is(t, "nothing", e.Choose(t.Context(), "home", "a", nil, 1), nil)
	wait(t, e)
	learned := fatal.Or(e.Model(t.Context(), "home"))(t).State
	is(t, "an item", e.Correct(t.Context(), "home", "a", api.Correction{ID: "later", Item: "sku2", Value: new(3.5)}, 2),
		nil)
	wait(t, e)
	s, d := fatal.Or(e.Stats("home"))(t), fatal.Or(e.Decision(t.Context(), "home", "a"))(t)
	if g := s.ByPolicy; g.Rounds != 1 || g.Purchases != 1 || g.Revenue != 3.5 || d.Earned != 3.5 || d.Choice != "" ||
		d.Status != "chosen" {
		t.Errorf("%+v, %+v", g, d)
	}
	if state := fatal.Or(e.Model(t.Context(), "home"))(t).State; state != learned || s.Learned != 1 {
		t.Errorf("%d rounds are learned, and the state was %s and is %s", s.Learned, learned, state)
	}
	if body := lastBody(t, store).(*eventlog.Corrected); !body.Adds || body.Value != 3.5 || body.Before != 0 {
		t.Errorf("%+v", body)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// A learner gets one round for a page, with a take for each unit: at most 20, and one of each item first. A relearning from
// the log gets the same rounds.
func TestUnitsAreLearned(t *testing.T) {
	var rounds [][]vitrine.Choice
	build := func(s setup.Spec) (vitrine.Learner, error) {
		return &witness{&toy{size: s.Size}, func(r vitrine.Round) {
			rounds = append(rounds, append([]vitrine.Choice{r.Choice}, r.More...))
		}}, nil
	}
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", threeShown)
	for k, choices := range [][]api.Choice{
		nil, {{Item: "sku1"}}, {{Item: "sku2", Value: new(0.0)}}, {{Item: "sku0", Quantity: new(2)},
			{Item: "sku2", Quantity: new(3)}},
		{{Item: "sku1", Quantity: new(1000)}, {Item: "sku0"}},
	} {
		id := fmt.Sprint("d", k)
		decide(t, e, "home", priced(id), 0)
		is(t, "an outcome", e.Choose(t.Context(), "home", id, choices, 1), nil)
	}
	wait(t, e)
	sorted := func(list []vitrine.Choice) []vitrine.Choice { return slices.Sorted(slices.Values(list)) }
	want := [][]vitrine.Choice{{0}, {2}, {3}, {1, 1, 3, 3, 3}, append([]vitrine.Choice{1},
		slices.Repeat([]vitrine.Choice{2}, 19)...)}
	expect.Equal(fatal.T(t), len(rounds), len(want), "rounds")
	for k := range want {
		expect.List(t, sorted(rounds[k]), want[k], "round", k, rounds[k])
	}
	live := rounds
	rounds = nil
	again := opened(t, engine.Options{Store: store, Build: build})
	wait(t, again)
	expect.Equal(t, rounds, live, "a replay")
	rounds = nil
	relearn(t, e, strings.Replace(threeShown, `"policy":{}`, `"policy":{"name":"other"}`, 1))
	wait(t, e)
	expect.Equal(t, rounds, live, "a relearning")
}

// witness tells what it observes.
type witness struct {
	*toy
	see func(vitrine.Round)
}

func (w *witness) Observe(r vitrine.Round) error {
	w.see(r)
	return w.toy.Observe(r)
}
