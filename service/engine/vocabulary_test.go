package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

const brands = `{"max_size":1,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"}],"policy":{"name":"ucb-mnl"}}`

// branded is a request with an item of each brand.
func branded(id string, brands ...string) *api.Request {
	r := &api.Request{Decision: id}
	for i, b := range brands {
		r.Items = append(r.Items, api.Item{ID: fmt.Sprint("i", i), Features: api.Values{api.Number("x", 0.1),
			api.Text("brand", b)}})
	}
	return r
}

func choose(t testing.TB, e *engine.Engine, r *api.Request, now int64) *offer.Offer {
	t.Helper()
	a := decide(t, e, "home", r, now)
	return a
}

// Eight brands get eight columns. They are in the log, before the first decision that uses them, in snapshots and after
// a replay.
func TestCategoriesLearn(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", brands)
	choose(t, e, branded("1", "a", "b", "c", "a"), 1)
	middle := snapshot(t, e)
	before := e.Sequence()
	choose(t, e, branded("2", "c", "d", "e", "f", "g", "h"), 2)
	expect.Equal(t, e.Sequence(), before+2, e.Sequence()-before, "entries for a decision with new values")
	before = e.Sequence()
	choose(t, e, branded("3", "h", "a"), 3)
	choose(t, e, branded("2", "c", "d", "e", "f", "g", "h"), 3)
	expect.Equal(t, e.Sequence(), before+1, e.Sequence()-before,
		"entries for a decision of known values, and one that was made before")
	want := api.Category{Feature: "brand", Learned: 8, OwnColumns: 12, SharedColumns: 4}
	s, err := e.Stats("home")
	if err != nil || len(s.Categories) != 1 || s.Categories[0] != want {
		t.Errorf("categories %+v, %v, want %+v", s.Categories, err, want)
	}
	var kinds []string
	for entry, err := range store.Entries(t.Context(), 2) {
		fatal.If(t, err)
		event := fatal.Or(eventlog.Decode(entry))(t)
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", event.Body), "*eventlog."))
	}
	expect.Equal(t, fmt.Sprint(kinds), "[CategoryValuesAdded Offered CategoryValuesAdded Offered Offered]",
		"the log has")
	now := snapshot(t, e)
	for _, from := range [][]byte{nil, middle, now} {
		if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: from})) {
			t.Error("a replay gives another state")
		}
	}
	// Another policy sees the same columns.
	put(t, e, "home", strings.Replace(brands, "ucb-mnl", "ts-mnl", 1))
	if s, _ := e.Stats("home"); s.Categories[0] != want {
		t.Errorf("after a change of the policy %+v", s.Categories)
	}
}

// A refused request adds no values.
func TestRefusedValuesAreForgotten(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", brands)
	before := e.Sequence()
	r := branded("", "a", "b")
	r.Include = []string{"nobody"}
	if _, err := e.Decide(t.Context(), "home", r, 0); err == nil || e.Sequence() != before {
		t.Errorf("%v, with %d entries", err, e.Sequence()-before)
	}
	if s, _ := e.Stats("home"); s.Categories[0].Learned != 0 {
		t.Errorf("learned %+v", s.Categories)
	}
}

// Many callers with the same new values give each one column.
func TestCallersLearnTogether(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", brands)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 20 {
				if _, err := e.Decide(t.Context(), "home", branded("", fmt.Sprint(i), fmt.Sprint((i+caller)%20), "all"),
					0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	s, err := e.Stats("home")
	if err != nil || s.Categories[0].Learned != 12 || s.Categories[0].Collisions == 0 {
		t.Errorf("21 values in 16 columns: %+v, %v", s.Categories, err)
	}
	c := fatal.Or(e.Config("home"))(t)
	answer := c.Answer()
	if len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], "times the policy took two values for the same") ||
		len(answer.Notes) != 2 || !strings.Contains(answer.Notes[0], "(12 have)") {
		t.Errorf("the placement says %q, %q", answer.Notes, answer.Warnings)
	}
	wait(t, e)
	replays(t, e, engine.Options{Store: store})
}

// The items of a catalogue teach the categories of all placements that use it.
func TestCataloguesLearn(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "shelf", brands)
	put(t, e, "home", strings.Replace(brands, `"max_size"`, `"catalogue_of":"shelf","max_size"`, 1))
	var items []api.CatalogueItem
	for i, b := range []string{"a", "b", "c", "a"} {
		items = append(items, api.CatalogueItem{ID: fmt.Sprint("i", i),
			Features: api.Values{api.Number("x", 0.1), api.Text("brand", b)}})
	}
	fatal.Or(e.PutItems(t.Context(), "shelf", items, 1))(t)
	middle := snapshot(t, e)
	choose(t, e, &api.Request{}, 2)
	choose(t, e, branded("x", "d"), 3)
	fatal.Or(e.PutItems(t.Context(), "shelf",
		append(items, api.CatalogueItem{ID: "late", Features: api.Values{api.Number("x", 0.1),
			api.Text("brand", "e")}}), 4))(t)
	choose(t, e, &api.Request{}, 5)
	for _, name := range []string{"shelf", "home"} {
		if s, err := e.Stats(name); err != nil || s.Categories[0].Learned != 5 || s.Categories[0].Collisions != 0 {
			t.Errorf("%s: categories %+v, %v", name, s.Categories, err)
		}
	}
	wait(t, e)
	now := snapshot(t, e)
	for _, from := range [][]byte{nil, middle, now} {
		if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: from})) {
			t.Error("a replay gives another state")
		}
	}
}

// A learner that decided in an experiment is kept without it, also if the categories of a shared catalogue learned
// meanwhile: a rollback brings back the policy alone.
func TestRollBackBehindAnExperiment(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildFixed}
	e := opened(t, o)
	shelf := strings.Replace(brands, "ucb-mnl", "0", 1)
	put(t, e, "shelf", shelf)
	shared := strings.Replace(shelf, `"max_size"`, `"catalogue_of":"shelf","max_size"`, 1)
	put(t, e, "home", strings.TrimSuffix(shared, "}")+`,"mode":"experiment","experiment":{"name":"summer","variants":[
		{"name":"own","show":"policy","share":0.5},{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.5}]}}`)
	for k := range 20 {
		id := fmt.Sprint("d", k)
		r := branded(id, "a", fmt.Sprint("b", k%3))
		r.ShopperID = id
		decide(t, e, "home", r, 1)
		is(t, "no sale", e.Outcome(t.Context(), "home", id, "", 1), nil)
	}
	fatal.Or(e.Put(t.Context(), "home", []byte(strings.Replace(shared, `"name":"0"`, `"name":"1"`, 1)), 2))(t) // adopts
	live := snapshot(t, e)
	replays(t, e, o)
	fatal.If(t, e.RollBack(t.Context(), "home", fatal.Or(e.Versions("home", 0))(t)[0].Version, nil, 3))
	if c := fatal.Or(e.Config("home"))(t); c.Mode != api.Learn || c.Experiment != nil {
		t.Errorf("after a rollback the placement is %s", c.Canonical())
	}
	replays(t, e, o)
	o.Snapshot = live
	replays(t, e, o)
}

// A rollback does not take the features away from a catalogue that others share: as a put, it names them.
func TestRollBackOfASharedCatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "shelf", strings.Replace(toys, `"policy":{}`, `"policy":{"name":"ucb-mnl"}`, 1))
	one(t, e, "shelf", "d", 1)
	version := fatal.Or(e.Keep(t.Context(), "shelf", "good", 1))(t)
	put(t, e, "shelf", brands)
	put(t, e, "home", strings.Replace(brands, `"max_size"`, `"catalogue_of":"shelf","max_size"`, 1))
	expect.Prefix(e.RollBack(t.Context(), "shelf", version, nil, 2))(t,
		"/features: this placement shares its catalogue with home")
	fatal.If(t, e.Delete(t.Context(), "home", nil, 2))
	fatal.If(t, e.RollBack(t.Context(), "shelf", version, nil, 2))
}

// A rollback does not make the catalogue's items lose a feature that every item needs, and so leave the page empty: as a
// put, it names an item and the feature.
func TestRollBackOfAFeature(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	price := `{"max_size":1,"policy":{"name":"ucb-mnl"},"features":[{"name":"price","kind":"number"%s}]}`
	put(t, e, "home", fmt.Sprintf(price, ""))
	item := []api.CatalogueItem{{ID: "boots", Features: api.Values{api.Number("price", 1)}, Revenue: new(1.0)}}
	putItems(t, e, "home", item)
	decide(t, e, "home", &api.Request{Decision: "d"}, 1)
	is(t, "a sale", e.Outcome(t.Context(), "home", "d", "boots", 1), nil)
	version := fatal.Or(e.Keep(t.Context(), "home", "good", 1))(t)
	put(t, e, "home", strings.Replace(fmt.Sprintf(price, `,"default":0`), "price", "cost", 1))
	expect.Prefix(e.RollBack(t.Context(), "home", version, nil, 2))(t,
		`/features: the catalogue does not fit: item "boots": `)
	put(t, e, "home", fmt.Sprintf(price, `,"default":0`))
	putItems(t, e, "home", item)
	fatal.If(t, e.RollBack(t.Context(), "home", version, nil, 2))
	if d := decide(t, e, "home", &api.Request{Decision: "e"}, 3); len(d.Shown) != 1 {
		t.Errorf("after the rollback the page shows %v", d.Shown)
	}
}

// A placement with learned category values may share a catalogue only if the owner learned the same values first: from
// then on it learns as the owner does.
func TestCatalogueOfOtherValues(t *testing.T) {
	for _, c := range []struct {
		shelf []string
		fits  bool
	}{{nil, false}, {[]string{"a"}, false}, {[]string{"c"}, false}, {[]string{"b", "a"}, false},
		{[]string{"a", "b"}, true}, {[]string{"a", "b", "c"}, true}} {
		e := opened(t, engine.Options{Store: new(memlog.Store)})
		put(t, e, "home", brands)
		choose(t, e, branded("1", "a", "b"), 1)
		put(t, e, "shelf", brands)
		if c.shelf != nil {
			fatal.Or(e.Decide(t.Context(), "shelf", branded("2", c.shelf...), 2))(t)
		}
		_, err := e.Put(t.Context(), "home",
			[]byte(strings.Replace(brands, `"max_size"`, `"catalogue_of":"shelf","max_size"`, 1)), 3)
		switch {
		case !c.fits:
			expect.Prefix(err)(t, "/catalogue_of: the categories of this placement "+
				"have learned other values than those of \"shelf\"", c.shelf)
			continue
		case err != nil:
			t.Fatal(err)
		}
		items := []api.CatalogueItem{{ID: "i", Features: api.Values{api.Number("x", 0.1), api.Text("brand", "d")}}}
		fatal.Or(e.PutItems(t.Context(), "shelf", items, 4))(t)
		choose(t, e, &api.Request{}, 5)
	}
}

// Values with columns of their own are no collisions, also of shoppers of a placement with a catalogue.
func TestNewShopperValuesOfACatalogueDoNotCollide(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"},{"name":"segment","kind":"category","from":"shopper","default":"none"}],"policy":{"name":"uniform"}}`)
	putItems(t, e, "home", []api.CatalogueItem{{ID: "a", Features: api.Values{api.Number("x", 1)}},
		{ID: "b", Features: api.Values{api.Number("x", 2)}}})
	for i, segment := range []string{"young", "old", "vip", "b2b", "student", "press"} {
		choose(t, e, &api.Request{Decision: segment, User: api.Values{api.Text("segment", segment)}}, int64(i+1))
	}
	s := fatal.Or(e.Stats("home"))(t)
	expect.Equal(t, s.Categories[0], api.Category{Feature: "segment", Learned: 7, OwnColumns: 12, SharedColumns: 4},
		"the category of shoppers, with its default")
}
