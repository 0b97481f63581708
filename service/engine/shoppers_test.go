package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// remembering is a placement whose rows have the counts of a shopper's past in the columns 1 and 2.
const remembering = `{"max_size":3,"min_size":3,"features":[{"name":"x","kind":"number"},{"name":"seen","kind":"number","history":"seen"},{"name":"owned","kind":"number","history":"bought"}],
	"policy":{"name":"ucb-mnl"},"attribution_window":"30m","shopper_history":{"keep":"24h"}}`

const day = 24 * 60 * minute

func keysOf(t testing.TB) *shoppers.File {
	t.Helper()
	f := fatal.Or(shoppers.Open(filepath.Join(t.TempDir(), "shoppers")))(t)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// visit decides for a shopper among three items, and returns the page's rows by item.
func visit(t testing.TB, e *engine.Engine, store *memlog.Store, id, shopper string, now int64,
	change func(*api.Request)) (o *offer.Offer, rows map[string][]float64) {
	t.Helper()
	r := priced(id)
	if r.ShopperID = shopper; change != nil {
		change(r)
	}
	o = decide(t, e, "home", r, now)
	entry := fatal.Or(store.Entry(t.Context(), e.Sequence()))(t)
	rows = map[string][]float64{}
	logged := fatal.Or(eventlog.Decode(entry))(t).Body.(*eventlog.Offered)
	for i, item := range logged.ItemIDs {
		rows[item] = logged.Features[i*logged.Width+1 : (i+1)*logged.Width]
	}
	return o, rows
}

// The rows of the next page count the views and purchases of a shopper, by hand: sales, late ones, withdrawn ones,
// items bought later, deferred pages, and how long it is kept. Others see nothing of it.
func TestShoppersAreRemembered(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Shoppers: keysOf(t)}
	e := opened(t, o)
	put(t, e, "home", remembering)
	n := 0
	check := func(what, shopper string, now int64, want map[string][]float64) {
		t.Helper()
		n++
		_, rows := visit(t, e, store, fmt.Sprint("check", n), shopper, now,
			func(r *api.Request) { r.Defer = true }) // is not counted
		for id, row := range rows {
			if want[id] == nil {
				want[id] = []float64{0, 0}
			}
			expect.List(t, row, want[id], what, id, "has")
		}
		expect.Equal(t, len(rows), 3, what, "rows")
	}
	check("nothing", "anna", 0, map[string][]float64{})
	visit(t, e, store, "a", "anna", 0, func(r *api.Request) { r.Exclude = []string{"sku2"} })
	check("one page", "anna", 1, map[string][]float64{"sku0": {1, 0}, "sku1": {1, 0}})
	check("of another shopper", "bert", 1, map[string][]float64{})
	check("of nobody", "", 1, map[string][]float64{})
	is(t, "a basket", e.Choose(t.Context(), "home", "a", []api.Choice{{Item: "sku0", Quantity: new(3)}, {Item: "sku1"}},
		2), nil)
	check("a basket", "anna", 2, map[string][]float64{"sku0": {1, 1}, "sku1": {1, 1}})
	is(t, "no sale", e.Correct(t.Context(), "home", "a", api.Correction{ID: "x", Item: "sku1"}, 3), nil)
	check("a sale withdrawn", "anna", 3, map[string][]float64{"sku0": {1, 1}, "sku1": {1, 0}})
	visit(t, e, store, "b", "anna", 4, nil)
	is(t, "nothing", e.Outcome(t.Context(), "home", "b", "", 5), nil)
	is(t, "bought later", e.Correct(t.Context(), "home", "b", api.Correction{ID: "later", Item: "sku2",
		Value: new(4.0)}, 6), nil)
	check("two pages", "anna", 6, map[string][]float64{"sku0": {2, 1}, "sku1": {2, 0}, "sku2": {1, 1}})
	visit(t, e, store, "c", "anna", 7, nil)
	is(t, "a late sale", e.Outcome(t.Context(), "home", "c", "sku1", 7+31*minute), engine.ErrLate)
	check("a late sale", "anna", 8+31*minute, map[string][]float64{"sku0": {3, 1}, "sku1": {3, 1}, "sku2": {2, 1}})
	is(t, "the deferred page", e.Outcome(t.Context(), "home", "check2", "sku0", 9), nil)
	check("a deferred page", "anna", 10+31*minute, map[string][]float64{"sku0": {4, 2}, "sku1": {4, 1}, "sku2": {3, 1}})
	replays(t, e, o)
	live := snapshot(t, e)
	o.Snapshot = live
	replays(t, e, o)
	check("a day after the last sale", "anna", day+7+31*minute, map[string][]float64{"sku1": {4, 1}})
	visit(t, e, store, "d", "bert", 3*day, nil)
	if s := fatal.Or(e.Stats("home"))(t).Shoppers; s == nil || s.Remembered != 1 || s.Forgotten != 0 {
		t.Errorf("%+v are remembered, want only the last one", s)
	}
	check("three days later", "anna", 3*day, map[string][]float64{})
	put(t, e, "home", strings.Replace(strings.Replace(strings.Replace(remembering, `,"history":"seen"`, "", 1),
		`,"history":"bought"`, "", 1), `,"shopper_history":{"keep":"24h"}`, "", 1))
	if s := fatal.Or(e.Stats("home"))(t).Shoppers; s != nil {
		t.Errorf("%+v are remembered without the setting", s)
	}
	o.Snapshot = nil
	replays(t, e, o)
}

// A repeated request for another shopper gets a conflict only while the placement remembers the first one.
func TestAnotherShopperIsAnotherRequest(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Shoppers: keysOf(t)})
	put(t, e, "home", remembering)
	r := priced("a")
	r.ShopperID = "anna"
	decide(t, e, "home", r, 0)
	if a := decide(t, e, "home", r, 1); !a.Decoded {
		t.Error("the repeated request got an answer of its own")
	}
	r.ShopperID = "bert"
	expect.Fails(e.Decide(t.Context(), "home", r, 2))(t, engine.ErrConflict)
}

// A late outcome tells that a deferred page was shown: its shopper then has seen it once, however it ended.
func TestLateOutcomesAreViews(t *testing.T) {
	for _, c := range []struct{ deferred, activated, evicted bool }{
		{evicted: true}, {deferred: true}, {deferred: true, evicted: true}, {true, true, false}, {true, true, true},
	} {
		store := new(memlog.Store)
		o := engine.Options{Store: store, Shoppers: keysOf(t)}
		e := opened(t, o)
		put(t, e, "home", remembering)
		visit(t, e, store, "a", "anna", 0, func(r *api.Request) { r.Defer = c.deferred })
		if c.activated {
			fatal.If(t, e.Activate(t.Context(), "home", "a", 1))
		}
		end := 31 * int64(minute)
		if c.evicted {
			n, err := e.EvictBefore(t.Context(), e.Sequence()+1, end, 2)
			is(t, "evicting", err, nil)
			expect.Equal(t, n, 1, "decisions were evicted")
		}
		o.Snapshot = snapshot(t, e)
		is(t, "a late sale", e.Outcome(t.Context(), "home", "a", "sku1", end), engine.ErrLate)
		_, rows := visit(t, e, store, "b", "anna", end, nil)
		expect.Equal(t, fmt.Sprint(rows), "map[sku0:[1 0] sku1:[1 1] sku2:[1 0]]", "after a late sale of", c,
			"the shopper has")
		replays(t, e, o)
	}
}

// Items that a shopper owns are hidden, unless the request includes them or slots would stay empty. Filters know them, too.
func TestWhatShoppersOwnIsHidden(t *testing.T) {
	for _, more := range []string{"", `,"log_items":"all"`, `,"mode":"explore","explore_share":1`} {
		store := new(memlog.Store)
		o := engine.Options{Store: store, Shoppers: keysOf(t)}
		e := opened(t, o)
		put(t, e, "home", strings.Replace(remembering, `"24h"}`, `"24h","hide_bought":true}`+more, 1))
		for i := range 3 {
			fatal.Or(e.PutItems(t.Context(), "home",
				[]api.CatalogueItem{{ID: itemID(i), Features: api.Values{api.Number("x", float64(i))}}}, 0))(t)
		}
		number := 0
		show := func(what string, change func(*api.Request), want ...string) {
			t.Helper()
			for _, catalogue := range []bool{false, true} {
				r := priced(fmt.Sprint("show", number))
				if number++; catalogue {
					r.Items = nil
				}
				if r.ShopperID = "anna"; change != nil {
					change(r)
				}
				if !catalogue && r.Filter != "" {
					continue
				}
				a := decide(t, e, "home", r, 2)
				for _, id := range a.IDs() {
					if !slices.Contains(want, id) {
						t.Errorf("%s%s: %v, want some of %v", what, more, a.IDs(), want)
					}
				}
				if len(want) == 0 && a.Propensity != 1 {
					t.Errorf("%s%s: an empty page has the propensity %v", what, more, a.Propensity)
				}
				tried, _, err := try(t.Context(), e, "home", r, 2)
				if err != nil || more == "" && !cmp.Equal(slices.Sorted(slices.Values(tried.IDs())),
					slices.Sorted(slices.Values(a.IDs()))) {
					t.Errorf("%s%s: tried %v, %v, want %v", what, more, tried, err, a.IDs())
				}
				why := fatal.Or(e.Explain(t.Context(), "home", r.Decision, 3, nil))(t)
				if slices.ContainsFunc(why.Rules, func(c api.RuleCost) bool {
					return c.Rule == "exclude" || c.Rule == "slot"
				}) {
					t.Errorf("%s%s: nobody set the rules %+v", what, more, why.Rules)
				}
			}
		}
		visit(t, e, store, "a", "anna", 0, func(r *api.Request) { r.Include = []string{"sku1"} })
		is(t, "a sale", e.Outcome(t.Context(), "home", "a", "sku1", 1), nil)
		show("hidden", nil, "sku0", "sku2")
		show("another shopper", func(r *api.Request) { r.ShopperID = "bert" }, "sku0", "sku1", "sku2")
		show("included", func(r *api.Request) { r.Include = []string{"sku1"} }, "sku0", "sku1", "sku2")
		show("slots", func(r *api.Request) { r.Slots = []api.Slot{{}, {}} }, "sku0", "sku2")
		show("full slots", func(r *api.Request) { r.Slots = make([]api.Slot, 3) }, "sku0", "sku1", "sku2")
		show("a filter", func(r *api.Request) { r.Filter, r.Include = "bought == 0 and x < 2", nil }, "sku0")
		show("a filter that leaves nothing", func(r *api.Request) { r.Filter = "seen > 500" })
		for want, r := range map[string]*api.Request{"/slots: ": {Slots: []api.Slot{{}}}, "/include/0: ": {Include: []string{"sku1"}}} {
			r.ShopperID, r.Filter = "anna", "seen > 500"
			expect.Prefix(e.Decide(t.Context(), "home", r, 2))(t, want, "a filter that leaves nothing")
		}
		show("one next to limits", func(r *api.Request) {
			r.Filter, r.Limits = "bought > 5", []api.Limit{{Group: "new", Min: 1}, {Items: []string{"sku0"}, Max: new(1)}}
		})
		show("bought again", func(r *api.Request) { r.Filter, r.Include = "owned > 0", []string{"sku1"} }, "sku1")
		wait(t, e)
		replays(t, e, o)
		for entry, err := range store.Entries(t.Context(),
			1) { // the log has the rows of all candidates, or lets them be rebuilt
			fatal.If(t, err)
			offered, ok := fatal.Or(eventlog.Decode(entry))(t).Body.(*eventlog.Offered)
			if !ok || more == "" {
				continue
			}
			whole := e.Whole(t, "home", offered)
			logged := fatal.Or(offer.Of(offered))(t)
			if d := offered.Decision; (d == "show0" || d == "show1") &&
				logged.Rules != `{"hidden":["sku1"]}` {
				t.Errorf("decision %s has the rules %s", d, logged.Rules)
			}
			for i, id := range whole.ItemIDs {
				if owned := whole.Features[i*whole.Width+2]; (owned > 0) != (id == "sku1" &&
					slices.ContainsFunc(logged.Past, func(p feature.Past) bool {
						return p.ID == id && p.Bought > 0
					})) && logged.Catalogue != nil {
					t.Errorf("decision %s: item %s has the count %v, and the log %v", offered.Decision, id, owned,
						logged.Past)
				}
			}
		}
	}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", toys)
	fatal.Or(e.PutItems(t.Context(), "home", []api.CatalogueItem{{ID: "a", Features: api.Values{api.Number("x", 1)}}},
		0))(t)
	expect.Part(e.Decide(t.Context(), "home", &api.Request{ShopperID: "anna", Filter: "bought == 0"}, 1))(t,
		"set its shopper_history", "a filter without a history")
}

// Counts are in the rows of a large catalogue, too, whose items a policy otherwise takes as they are stored.
func TestCountsInALargeCatalogue(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Shoppers: keysOf(t)})
	put(t, e, "home", remembering)
	var items []api.CatalogueItem
	for i := range 300 {
		items = append(items, api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", float64(i)/300)}})
	}
	putItems(t, e, "home", items)
	for seen := range 3 {
		_, rows := visit(t, e, store, fmt.Sprint("d", seen), "anna", int64(seen),
			func(r *api.Request) { r.Items, r.Include = nil, []string{"sku5", "sku299"} })
		for _, id := range []string{"sku5", "sku299"} {
			expect.List(t, rows[id], []float64{float64(seen), 0}, id, "has the counts")
		}
	}
}

// The memory is bounded: the shoppers who came longest ago are forgotten, and counted. A shopper who comes again stays.
func TestForgottenShoppers(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Shoppers: keysOf(t)}
	e := opened(t, o)
	put(t, e, "home", `{"max_size":3,"min_size":3,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"shopper_history":{"keep":"24h","memory_bytes":1048576,"hide_bought":true}}`)
	decideFor := func(id, shopper string) *offer.Offer {
		t.Helper()
		r := priced(id)
		r.ShopperID = shopper
		return decide(t, e, "home", r, 1)
	}
	for _, shopper := range []string{"first", "loyal"} {
		decideFor(shopper, shopper)
		is(t, "a sale", e.Outcome(t.Context(), "home", shopper, "sku1", 1), nil)
	}
	const more = 3000
	for k := range more {
		decideFor(fmt.Sprint("d", k), fmt.Sprint("shopper ", k))
		if k%100 == 0 {
			decideFor(fmt.Sprint("loyal", k), "loyal")
		}
	}
	s := fatal.Or(e.Stats("home"))(t)
	if h := s.Shoppers; h.Bytes > 1<<20 || h.Bytes < 1<<20-2000 || h.Forgotten == 0 ||
		h.Forgotten+uint64(h.Remembered) != more+2 {
		t.Errorf("%+v", h)
	}
	if a := decideFor("x", "loyal"); slices.Contains(a.IDs(), "sku1") {
		t.Error("a shopper who came often is forgotten")
	}
	if a := decideFor("y", "first"); !slices.Contains(a.IDs(), "sku1") {
		t.Error("the first shopper is remembered")
	}
	replays(t, e, o)
	for range 3 {
		fatal.If(t, e.SweepShoppers(t.Context()))
	}
	known := 0
	for k := range more {
		if key := fatal.Or(o.Shoppers.Key(t.Context(), fmt.Sprint("shopper ", k), ""))(t); key != (shoppers.Key{}) {
			known++
		}
	}
	if h := fatal.Or(e.Stats("home"))(t).Shoppers; known+2 != h.Remembered {
		t.Errorf("there are keys of %d shoppers, and %d are remembered", known+2, h.Remembered)
	}
}

// The key of a shopper stays while a deferred page waits: its sale still needs the shopper's name.
func TestKeysStayForDeferredPages(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Shoppers: keysOf(t)}
	e := opened(t, o)
	put(t, e, "home", remembering)
	visit(t, e, store, "a", "anna", 0, func(r *api.Request) { r.Defer = true })
	for range 2 {
		fatal.If(t, e.SweepShoppers(t.Context()))
	}
	is(t, "a sale", e.Outcome(t.Context(), "home", "a", "sku1", 1), nil)
	if _, rows := visit(t, e, store, "b", "anna", 2, nil); !slices.Equal(rows["sku1"], []float64{1, 1}) {
		t.Errorf("sku1 has %v, want one view and one sale", rows["sku1"])
	}
	replays(t, e, o)
}

// hooked is a store of keys, and a policy, that call a function at each question.
type hooked struct {
	shoppers.Store
	showing
	asked func()
}

func (h *hooked) Key(ctx context.Context, id, drawsFor string) (shoppers.Key, error) {
	defer h.asked()
	return h.Store.Key(ctx, id, drawsFor)
}

func (h *hooked) Policy() vitrine.Policy { return h }

func (h *hooked) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	h.asked()
	return h.showing.Policy().Offer(x, rng)
}

// The key of a shopper stays while a decision for which it was asked is not in the log yet, however long that takes.
func TestKeysStayForDecisions(t *testing.T) {
	var e *engine.Engine
	n := 0
	sweep := func() {
		if n++; n == 2 { // the first policy is tried when it is made
			for range 3 {
				fatal.If(t, e.SweepShoppers(t.Context()))
			}
		}
	}
	keys := keysOf(t)
	e = opened(t, engine.Options{Store: new(memlog.Store), Shoppers: keys,
		Build: func(setup.Spec) (vitrine.Learner, error) { return &hooked{asked: sweep}, nil }})
	put(t, e, "home", strings.Replace(remembering, `3,"min_size":3`, "1", 1))
	n = 1
	r := priced("a")
	r.ShopperID = "anna"
	decide(t, e, "home", r, 0)
	if key := fatal.Or(keys.Key(t.Context(), "anna", ""))(t); n < 2 || key == (shoppers.Key{}) {
		t.Errorf("after %d questions the key of the decision's shopper is gone", n)
	}
}

// A process that may not lead any more does not sweep: the new leader may know later visits.
func TestOnlyLeadersSweep(t *testing.T) {
	keys, paused := keysOf(t), error(nil)
	e := opened(t, engine.Options{Store: new(memlog.Store), Shoppers: keys,
		Confirm: func(context.Context) error { return paused }})
	key := fatal.Or(keys.Key(t.Context(), "anna", "home"))(t)
	paused = errors.New("another process may lead")
	for range 3 {
		if err := e.SweepShoppers(t.Context()); err != nil {
			is(t, "a sweep", err, engine.ErrNoLeader)
		}
	}
	if again := fatal.Or(keys.Key(t.Context(), "anna", ""))(t); again != key {
		t.Error("the key is gone")
	}
}

// A follower that was paused asks for the key of a shopper again.
func TestPausedFollowersAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		keys := &hooked{Store: keysOf(t)}
		keys.asked = func() {
			if asked++; asked == 1 {
				time.Sleep(shoppers.MaxFlight + 1)
				fatal.If(t, keys.Erase(t.Context(), "anna")) // as a sweep would
			}
		}
		p := newPair(t, engine.Options{Shoppers: keys})
		p.put(t, remembering)
		r := priced("a")
		r.ShopperID = "anna"
		decide(t, p.follower, "home", r, leaderTime)
		_, rows := visit(t, p.leader, p.store, "b", "anna", leaderTime, nil)
		if asked != 3 || !slices.Equal(rows["sku1"], []float64{1, 0}) {
			t.Errorf("after %d questions for a key sku1 has %v, want one view", asked, rows["sku1"])
		}
	})
}

// A deferred page that was never activated counts as seen once its outcome comes, late.
func TestLateOutcomeOfADeferredPage(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Shoppers: keysOf(t)}
	e := opened(t, o)
	put(t, e, "home", remembering)
	visit(t, e, store, "a", "anna", 0, func(r *api.Request) { r.Defer = true })
	is(t, "a late sale", e.Outcome(t.Context(), "home", "a", "sku1", 31*minute), engine.ErrLate)
	is(t, "no sale", e.Correct(t.Context(), "home", "a", api.Correction{ID: "x", Item: "sku1"}, 32*minute), nil)
	is(t, "another item", e.Correct(t.Context(), "home", "a", api.Correction{ID: "y", Item: "sku0", Value: new(1.0)},
		33*minute), nil)
	_, rows := visit(t, e, store, "b", "anna", 34*minute, nil)
	expect.Equal(t, rows, map[string][]float64{"sku0": {1, 1}, "sku1": {1, 0}, "sku2": {1, 0}}, "the shopper's past")
	replays(t, e, o)
}

// A shopper with many items keeps those bought last.
func TestManyItemsOfAShopper(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Shoppers: keysOf(t)})
	put(t, e, "home", `{"max_size":1,"min_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"shopper_history":{"keep":"24h","hide_bought":true}}`)
	one := func(id, item string) *offer.Offer {
		t.Helper()
		return decide(t, e, "home", &api.Request{Decision: id, ShopperID: "anna",
			Items: []api.Item{{ID: item, Features: api.Values{api.Number("x", 1)}}}}, 1)
	}
	one("bought", "bought")
	is(t, "a sale", e.Outcome(t.Context(), "home", "bought", "bought", 1), nil)
	for k := range 600 {
		one(fmt.Sprint("d", k), fmt.Sprint("seen", k))
	}
	if a := one("again", "bought"); len(a.IDs()) != 0 {
		t.Errorf("%v is shown again", a.IDs())
	}
}

// Neither the log nor a snapshot says who a shopper is: no id, no hash of one, and no hash of a request with one. After an
// erasure a shopper is a new one, in the variants of an experiment, too, and asking again is another request.
func TestErasure(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Shoppers: keysOf(t), Build: buildFixed}
	e := opened(t, o)
	const anna = "anna@example.com"
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"mode":"experiment","experiment":{"name":"test","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"uniform","share":0.5}]},
		"shopper_history":{"keep":"24h","hide_bought":true}}`)
	r := priced("a")
	r.ShopperID = anna
	first := decide(t, e, "home", r, 1)
	if again := decide(t, e, "home", r, 1); !again.Decoded || first.Shopper == "" {
		t.Errorf("asked again: %+v", again)
	}
	is(t, "a sale", e.Outcome(t.Context(), "home", "a", first.IDs()[0], 2), nil)
	units := map[uint64]bool{first.Unit: true}
	for k := range 20 {
		fatal.If(t, e.EraseShopper(t.Context(), anna))
		next := priced(fmt.Sprint("next", k))
		next.ShopperID = anna
		o := decide(t, e, "home", next, 3)
		if o.Shopper == first.Shopper || units[o.Unit] {
			t.Fatal("an erased shopper is recognised")
		}
		units[o.Unit] = true
	}
	if units[abtest.Unit("home", anna)] {
		t.Error("the unit follows from the id")
	}
	is(t, "asked again", errOf(e.Decide(t.Context(), "home", r, 4)), engine.ErrConflict)
	unknown := opened(t, engine.Options{Store: new(memlog.Store),
		Build: buildFixed}) // the same request, whose hash is without a key
	put(t, unknown, "home", strings.Replace(toys, `"policy":{}`, `"policy":{"name":"0"}`, 1))
	plain := decide(t, unknown, "home", r, 1)
	everything := [][]byte{snapshot(t, e)}
	for entry, err := range store.Entries(t.Context(), 1) {
		fatal.If(t, err)
		everything = append(everything, entry)
	}
	hash := shoppers.HashOf(anna)
	for _, data := range everything {
		for what, secret := range map[string][]byte{"the id": []byte(anna), "the hash of the id": hash[:],
			"the hash of the request": plain.Request[:]} {
			if bytes.Contains(data, secret) {
				t.Errorf("%s is in the log or a snapshot", what)
			}
		}
	}
	replays(t, e, o)
	is(t, "a long id", e.EraseShopper(t.Context(), strings.Repeat("x", setup.MaxUnit+1)), api.ErrInvalid)
	if err := errOf(unknown.Decide(t.Context(), "home", &api.Request{Items: priced("").Items,
		ShopperID: strings.Repeat("x", 201)}, 1)); err == nil || strings.Contains(err.Error(), "xx") {
		t.Errorf("a long id: %v", err)
	}
}

// A follower with the same keys knows the past of the leader's shoppers, and tells the leader of the visits of its own.
func TestFollowersRememberShoppers(t *testing.T) {
	keys := keysOf(t)
	p := newPair(t, engine.Options{Shoppers: keys})
	p.put(t, strings.Replace(remembering, `"24h"}`, `"24h","hide_bought":true}`, 1))
	ask := func(e *engine.Engine, id string) []string {
		t.Helper()
		reach(t, p.follower, p.leader.Sequence())
		r := priced(id)
		r.ShopperID = "anna"
		return decide(t, e, "home", r, leaderTime).IDs()
	}
	ask(p.leader, "a")
	is(t, "a sale", p.leader.Outcome(t.Context(), "home", "a", "sku1", leaderTime), nil)
	if ids := ask(p.follower, "b"); slices.Contains(ids, "sku1") || len(ids) != 2 {
		t.Errorf("the follower shows %v", ids)
	}
	is(t, "a sale", p.follower.Outcome(t.Context(), "home", "b", "sku0", leaderTime), nil)
	expect.List(t, ask(p.leader, "c"), []string{"sku2"}, "the leader shows")
	reach(t, p.follower, p.leader.Sequence())
	if string(snapshot(t, p.follower)) != string(snapshot(t, p.leader)) {
		t.Error("the follower has another state")
	}

	fatal.Or(keys.Key(t.Context(), "a shopper of no placement", "home"))(t)
	for _, e := range []*engine.Engine{p.follower, p.leader} {
		for range 2 {
			fatal.If(t, e.SweepShoppers(t.Context()))
		}
		if key := fatal.Or(keys.Key(t.Context(), "a shopper of no placement", ""))(t); (key == shoppers.Key{}) != (e == p.leader) {
			t.Error("not the leader alone has swept the keys")
		}
	}
}

// A history that cannot be is refused. A history that begins or ends would divide an experiment's shoppers again.
func TestBadHistories(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed, Shoppers: keysOf(t)})
	const plain = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"}`
	for want, more := range map[string]string{
		`/shopper_history/keep: "": must be a duration`:            `,"shopper_history":{"keep":""}}`,
		`/shopper_history/keep: "9000h": must be a duration`:       `,"shopper_history":{"keep":"9000h"}}`,
		`/shopper_history/keep: "-1h": must be a duration`:         `,"shopper_history":{"keep":"-1h"}}`,
		"/shopper_history/memory_bytes: 1000: must be":             `,"shopper_history":{"keep":"1h","memory_bytes":1000}}`,
		`/features/0/history: "seen": set shopper_history, or not`: "",
	} {
		text := plain + more
		if more == "" {
			text = strings.Replace(plain, `"number"`, `"number","history":"seen"`, 1) + "}"
		}
		expect.Part(e.Put(t.Context(), "home", []byte(text), 0))(t, want)
	}
	const test = plain + `,"mode":"experiment","experiment":{"name":"test","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"uniform","share":0.5}]}`
	put(t, e, "home", test+"}")
	expect.Part(e.Put(t.Context(), "home", []byte(test+`,"shopper_history":{"keep":"1h"}}`), 1))(t,
		"/shopper_history: cannot change while the experiment")
	if c := fatal.Or(setup.Parse([]byte(plain + `,"shopper_history":{"keep":"90m"}}`)))(
		t); c.KeepShoppers() != 90*time.Minute || c.ShopperBytes() != 16<<20 {
		t.Errorf("%v, %d bytes", c.KeepShoppers(), c.ShopperBytes())
	}
	expect.Refused(e.Decide(t.Context(), "none", &api.Request{}, 1))(t, "a decision of no placement")
}
