package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// window is a placement with rows of item, user and cross columns.
const window = `{"max_size":3,"max_request_items":9000,"policy":{"name":"ucb-mnl"},"features":[{"name":"age","kind":"number","from":"shopper"},{"name":"x","kind":"number"},
	{"name":"both","kind":"cross","of":["age","x"]},{"name":"x1","kind":"number"},{"name":"brand","kind":"category","columns":3,"default":""}]`

// goods are n items of a window.
func goods(seed uint64, n int) []api.CatalogueItem {
	rng := rand.New(rand.NewPCG(seed, 1))
	items := make([]api.CatalogueItem, n)
	for i := range items {
		items[i] = api.CatalogueItem{
			ID: itemID(i), Features: api.Values{api.Number("x1", rng.NormFloat64()), api.Number("x", rng.NormFloat64()),
				api.Text("brand", []string{"a", "b"}[rng.IntN(2)])},
			Revenue: new(0.5 + rng.Float64()), Attributes: map[string]any{"half": float64(i % 2)},
		}
	}
	return items
}

func putItems(t testing.TB, e *engine.Engine, name string, items []api.CatalogueItem) *api.ItemsChanged {
	t.Helper()
	a := fatal.Or(e.PutItems(t.Context(), name, items, 0))(t)
	return a
}

func aged(age float64) api.Values { return api.Values{api.Number("age", age)} }

// A decision by ids equals the decision on the same items with their features: the page, its probabilities and the
// learner's round. The rules mean the same.
func TestIDsAreItems(t *testing.T) {
	for _, more := range []string{"", `,"seed":1`, `,"log_items":"all"`, `,"mode":"explore","explore_share":0.5`,
		`,"limits":[{"feature":"brand","max":1}]`} {
		n := 60
		if more == `,"seed":1` {
			n = 700 // as many rows as this are not written out
		}
		stores := []*memlog.Store{new(memlog.Store), new(memlog.Store)}
		var engines []*engine.Engine
		for _, s := range stores {
			e := opened(t, engine.Options{Store: s})
			put(t, e, "home", window+more+"}")
			putItems(t, e, "home", goods(1, n))
			engines = append(engines, e)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		for round := range 40 {
			full := &api.Request{Decision: fmt.Sprint("d", round), User: aged(rng.NormFloat64())}
			byID := &api.Request{Decision: full.Decision, User: full.User}
			for i, item := range goods(1, n) {
				if round%2 == 0 || rng.IntN(2) == 0 {
					full.Items = append(full.Items, api.Item{ID: item.ID, Features: item.Features,
						Revenue: item.Revenue})
					if round%2 == 1 {
						byID.Candidates = append(byID.Candidates, itemID(i))
					}
				}
			}
			rng.Shuffle(len(byID.Candidates), func(i, j int) { c := byID.Candidates; c[i], c[j] = c[j], c[i] })
			switch some := full.Items; round % 5 {
			case 1:
				full.Include, full.Exclude = []string{some[0].ID}, []string{some[1].ID, some[3].ID}
			case 2:
				full.Limits = []api.Limit{{Items: []string{some[0].ID, some[1].ID, some[2].ID}, Max: new(1)}}
				if strings.Contains(more, "limits") {
					full.Limits = nil
				}
			case 3:
				if n == 60 && more == "" {
					full.Slots = []api.Slot{{ID: "a", Exclude: []string{some[2].ID}}, {ID: "b"}}
				}
			}
			byID.Include, byID.Exclude, byID.Limits, byID.Slots = full.Include, full.Exclude, full.Limits, full.Slots
			want, got := decide(t, engines[0], "home", full, 0), decide(t, engines[1], "home", byID, 0)
			if got.Catalogue.Version != 4 || want.Catalogue != nil {
				t.Fatalf("the catalogues are %+v and %+v", want.Catalogue, got.Catalogue)
			}
			got.Catalogue = nil
			expect.Equal(fatal.T(t), asSeen(got), asSeen(want), more, "round", round)
			for _, e := range engines {
				item := ""
				if len(want.IDs()) > 0 && round%3 > 0 {
					item = want.IDs()[0]
				}
				fatal.If(t, e.Outcome(t.Context(), "home", full.Decision, item, 0))
				wait(t, e)
			}
		}
		mine, its := offers(t, stores[0]), offers(t, stores[1])
		for k := range mine {
			its[k] = engines[1].Whole(t, "home", its[k])
			if !slices.Equal(mine[k].Features, its[k].Features) || !slices.Equal(mine[k].Revenue, its[k].Revenue) ||
				!slices.Equal(mine[k].ItemIDs, its[k].ItemIDs) || mine[k].Candidates != its[k].Candidates {
				t.Fatalf("%s: offer %d has other rows by ids than by items", more, k)
			}
		}
	}
}

// Items of a request come before the catalogue's, and replace the one with their id.
func TestItemsAndIDs(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+`,"limits":[{"feature":"brand","max":1}]}`)
	putItems(t, e, "home", goods(1, 20))
	own := func(id string) api.Item {
		return api.Item{ID: id, Features: api.Values{api.Number("x", 1), api.Number("x1", 1), api.Text("brand", "c")},
			Revenue: new(9.0)}
	}
	for i, c := range []struct {
		request api.Request
		want    []string // must be shown
		n       int
	}{
		{api.Request{Items: []api.Item{own("new")}, Candidates: []string{"sku3"}, Include: []string{"new", "sku3"}},
			[]string{"new", "sku3"}, 2},
		{api.Request{Items: []api.Item{own("sku3")}, Filter: "true"}, []string{"sku3"}, 20},
		{api.Request{Items: []api.Item{own("sku3"), own("z")}, Candidates: []string{"sku3", "sku4"}}, nil, 3},
		{api.Request{Items: []api.Item{own("z")}}, []string{"z"}, 1},
		{api.Request{Filter: "half == 1", Candidates: []string{"sku1", "sku2"}}, nil, 1},
	} {
		c.request.User, c.request.Decision = aged(1), fmt.Sprint("d", i)
		a := decide(t, e, "home", &c.request, 0)
		for _, id := range c.want {
			if !slices.Contains(a.IDs(), id) {
				t.Errorf("request %d shows %v, want %q too", i, a.IDs(), id)
			}
		}
		d := fatal.Or(e.Decision(t.Context(), "home", c.request.Decision))(t)
		expect.Equal(t, d.Offer.Reply().CatalogueEntry == 4, i != 3, "request", i, "the catalogue has the version",
			d.Offer.Reply().CatalogueEntry)
	}
}

// The log gives the catalogue again: from its first entry, from snapshots between changes, and when a
// chunk is one of many.
func TestCatalogueIsReplayed(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", window+"}")
	if a := putItems(t, e, "home", goods(1, 6000)); a.Items != 6000 || a.Changed != 6000 || a.CatalogueEntry < 3 {
		t.Errorf("%+v: want 6000 items in several chunks", a)
	}
	early := snapshot(t, e)
	patch := []api.CatalogueItem{{ID: "sku7", Revenue: new(4.0), Features: api.Values{api.Number("x", 3)}},
		{ID: "nothing", Revenue: new(1.0)}}
	a, err := e.PatchItems(t.Context(), "home", patch, 0)
	if err != nil || a.Changed != 1 || !slices.Equal(a.Unknown, []string{"nothing"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := e.DeleteItems(t.Context(), "home", []string{"sku3", "nothing", "sku3"}, 0); err != nil ||
		a.Changed != 1 || a.Items != 5999 || len(a.Unknown) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	decide(t, e, "home", &api.Request{Decision: "d", User: aged(1)}, 0)
	put(t, e, "home", strings.Replace(window, `{"name":"x1","kind":"number"},`,
		`{"name":"x1","kind":"number","scale":2},`, 1)+"}")
	decide(t, e, "home", &api.Request{Decision: "f", User: aged(1)}, 0)
	data := snapshot(t, e)
	for what, from := range map[string][]byte{"the first entry": nil, "an early snapshot": early,
		"the last snapshot": data} {
		if !bytes.Equal(replayed(t, engine.Options{Store: store, Snapshot: from}), data) {
			t.Errorf("the state from %s is another one", what)
		}
	}
	e.Close()
	again := opened(t, engine.Options{Store: store, Snapshot: early})
	item, err := again.Item("home", "sku7")
	if err != nil || *item.Revenue != 4 || item.Features[0].Number != 3 {
		t.Errorf("%+v, %v", item, err)
	}
	expect.Fails(again.Item("home", "sku3"))(t, engine.ErrNotFound, "an item that was deleted")
	was := decide(t, again, "home", &api.Request{Decision: "f", User: aged(1)}, 0)
	if !was.Decoded || was.Catalogue.Version == 0 {
		t.Errorf("%+v", was)
	}
	count := 0
	for page, from := (*api.ItemPage)(nil), 0; page == nil || page.Next > 0; from = page.Next {
		if page, err = again.Items("home", from, 1000); err != nil {
			t.Fatal(err)
		}
		count += len(page.Items)
	}
	expect.Equal(t, count, 5999, "the pages have n items")
}

// Decisions go on while prices change, and each sees one version of the catalogue: a chunk's prices change together.
func TestPricesChangeBetweenDecisions(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", window+`,"log_items":"all"}`)
	items := goods(2, 50)
	for i := range items {
		items[i].Revenue = new(100.0)
	}
	putItems(t, e, "home", items)
	stop := make(chan struct{})
	var deciding sync.WaitGroup
	for g := range 3 {
		deciding.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				r := &api.Request{Decision: fmt.Sprintf("d%d.%d", g, k), User: aged(1)}
				if k%2 == 0 {
					r.Filter = "half == 0"
				}
				if _, err := e.Decide(context.Background(), "home", r, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for price := range 100 {
		for i := range items {
			items[i].Revenue = new(float64(price))
		}
		var err error
		if price%2 == 0 {
			_, err = e.PatchItems(t.Context(), "home", items, 0)
		} else {
			_, err = e.PutItems(t.Context(), "home", items, 0)
		}
		fatal.If(t, err)
	}
	close(stop)
	deciding.Wait()
	prices := map[float64]bool{}
	for k, o := range offers(t, store) {
		if len(slices.Compact(slices.Clone(o.Revenue))) > 1 {
			t.Fatalf("offer %d has the prices %v", k, o.Revenue)
		}
		if o.Revenue != nil {
			prices[o.Revenue[0]] = true
		}
	}
	if len(prices) < 2 {
		t.Errorf("decisions have seen the prices %v", prices)
	}
}

// A change that is not lawful is refused whole, and names what is wrong.
func TestBadCatalogues(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	two := goods(1, 3)
	two[2].ID = "sku0"
	for _, c := range []struct {
		items []api.CatalogueItem
		want  string
	}{
		{two, `/items/2/id: "sku0" is item 0 too, with different values`},
		{[]api.CatalogueItem{goods(1, 1)[0], {ID: "b"}},
			"/items/1/features/x: is missing, and the feature has no default"},
		{[]api.CatalogueItem{{ID: "b", Features: api.Values{api.Number("x", 1e19), api.Number("x1", 1)}}},
			"/items/0/features/x: 1e+19: is 1e+19 after scaling"},
	} {
		expect.Prefix(e.PutItems(t.Context(), "home", c.items, 0))(t, c.want)
	}
	if page, err := e.Items("home", 0, 10); err != nil || page.Count != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	expect.Message(e.Decide(t.Context(), "home", &api.Request{}, 0))(t, "/items: must "+
		"have at least one item", "an empty catalogue")
	putItems(t, e, "home", goods(1, 20))
	put(t, e, "small", window+`,"catalogue_of":"home"}`)
	for name, config := range map[string]string{
		`/catalogue_of: there is no placement "nowhere"`:        window + `,"catalogue_of":"nowhere"}`,
		`/catalogue_of: "self" is this placement: leave it out`: window + `,"catalogue_of":"self"}`,
		`/catalogue_of: "small" has the catalogue of "home"`:    window + `,"catalogue_of":"small"}`,
		`/catalogue_of: placement "home" has other features`: strings.Replace(window, `"columns":3`, `"columns":4`,
			1) + `,"catalogue_of":"home"}`,
	} {
		expect.Prefix(e.Put(t.Context(), "self", []byte(config), 0))(t, name)
	}
	expect.Part(e.Put(t.Context(), "home",
		[]byte(strings.Replace(window, `{"name":"x1"`, `{"name":"y","kind":"number"},{"name":"x1"`, 1)+"}"),
		0))(t, "small", "features of a shared catalogue")
	expect.Part(e.Delete(t.Context(), "home", nil, 0))(t, "small", "a shared catalogue is deleted")
	fatal.If(t, e.Delete(t.Context(), "small", nil, 0))
	expect.Prefix(e.Put(t.Context(), "home",
		[]byte(strings.Replace(window, `{"name":"x1"`, `{"name":"y","kind":"number"},{"name":"x1"`, 1)+"}"),
		0))(t, `/features: the catalogue does not fit: item "sku`, "features that the items do not have")
	expect.Error(t, e.Delete(t.Context(), "home", nil, 0), nil)
}

// Items take memory from the budget, and give it back.
func TestItemsAreCharged(t *testing.T) {
	b := budget.New(400 << 20)
	e := opened(t, engine.Options{Store: new(memlog.Store), Budget: b})
	put(t, e, "home", window+`,"memory_bytes":1000000}`)
	before := b.Usage().Placements
	putItems(t, e, "home", goods(1, 1000))
	if grown := b.Usage().Placements - before; grown < 80_000 || grown > 150_000 ||
		charged(t, e, "home") != before+grown {
		t.Errorf("1000 items are charged %d bytes, the placement %d", grown, charged(t, e, "home"))
	}
	var ids []string
	for i := range 1000 {
		ids = append(ids, itemID(i))
	}
	if _, err := e.DeleteItems(t.Context(), "home", ids, 0); err != nil || b.Usage().Placements != before {
		t.Errorf("%d bytes are charged, %d before: %v", b.Usage().Placements, before, err)
	}
	full := opened(t, engine.Options{Store: new(memlog.Store), Budget: budget.New(before + before/3 + 1000)})
	put(t, full, "home", window+`,"memory_bytes":1000000}`)
	expect.Fails(full.PutItems(t.Context(), "home", goods(1, 1000), 0))(t, engine.ErrMemory, "items without room")
}

// Lists of groups take memory from the budget while there is room for them. Items have precedence, and decisions do
// without.
func TestListsOfGroupsAreCharged(t *testing.T) {
	const n, room = 1000, 6000 // bytes, more than a list and less than two
	decide := func(e *engine.Engine, limits ...api.Limit) {
		t.Helper()
		a := decide(t, e, "home", &api.Request{User: api.Values{api.Number("age", 0)}, Limits: limits}, 0)
		if odd := slices.Collect(func(yield func(string) bool) {
			for _, id := range a.IDs() {
				if item, _ := e.Item("home", id); item.Attributes["half"] == 1.0 && !yield(id) {
					return
				}
			}
		}); len(limits) > 0 && limits[0].Attribute != "" && len(odd) > 1 {
			t.Fatalf("%v of %v are in one half", odd, a.IDs())
		}
	}
	half, brand := api.Limit{Attribute: "half", Max: new(1)}, api.Limit{Feature: "brand", Max: new(2)}
	plenty := budget.New(400 << 20)
	e := opened(t, engine.Options{Store: new(memlog.Store), Budget: plenty})
	put(t, e, "home", window+`,"memory_bytes":1000000}`)
	putItems(t, e, "home", goods(1, n))
	items := plenty.Usage().Placements
	is := func(what string, lists int) {
		t.Helper()
		if have := plenty.Usage().Placements - items; have < int64(4*n*lists) || have > int64((4*n+1000)*lists) ||
			charged(t, e, "home") != items+have {
			t.Errorf("%s: %d bytes are charged, the placement %d, want about %d × %d", what, have,
				charged(t, e, "home")-items, lists, 4*n)
		}
	}
	decide(e)
	is("no limit", 0)
	decide(e, half)
	is("a limit", 1)
	decide(e, half)
	decide(e, brand)
	is("two limits", 2)
	put(t, e, "home", strings.Replace(window, `{"name":"x1"`,
		`{"name":"other","kind":"number","default":0},{"name":"x1"`, 1)+`,"memory_bytes":1000000}`)
	items = charged(t, e, "home")
	is("another schema", 0)
	decide(e, half)
	is("a limit again", 1)
	if err := e.Delete(t.Context(), "home", nil, 0); err != nil || plenty.Usage().Placements != 0 {
		t.Errorf("%d bytes are charged to a placement that was deleted: %v", plenty.Usage().Placements, err)
	}
	// A list fits beside these items, and not beside more of them.
	e = opened(t, engine.Options{Store: new(memlog.Store), Budget: budget.New(1 << 30)})
	put(t, e, "home", window+`,"memory_bytes":1000000}`)
	putItems(t, e, "home", goods(1, n))
	tight := budget.New((charged(t, e, "home") + room) / 3 * 4)
	e = opened(t, engine.Options{Store: new(memlog.Store), Budget: tight})
	put(t, e, "home", window+`,"memory_bytes":1000000}`)
	for some := range slices.Chunk(goods(1, n), 20) { // because a change sets aside more than it takes in the end
		putItems(t, e, "home", some)
	}
	items = tight.Usage().Placements
	decide(e, half)
	if have := tight.Usage().Placements; have <= items {
		t.Errorf("%d bytes are charged with a list, %d without", have, items)
	}
	putItems(t, e, "home", goods(1, n+20)[n:]) // needs the memory of the list
	before := tight.Usage().Placements
	if before > items+4000 {
		t.Errorf("%d bytes are charged with 20 more items, %d before", before, items)
	}
	tight.Charge(room)
	decide(e, half)
	if have := tight.Usage().Placements; have != before+room {
		t.Errorf("%d bytes are charged for a list without room", have-before-room)
	}
}

// The memory that a request may take grows with its possible catalogue candidates.
func TestCatalogueSize(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", strings.Replace(window, "9000", "10", 1)+"}")
	putItems(t, e, "home", goods(1, 200))
	for want, r := range map[int64]*api.Request{
		0:                {Items: []api.Item{{ID: "a"}}},
		200 * (8*7 + 32): {},
		2 * (8*7 + 32):   {Candidates: []string{"sku1", "nothing"}},
	} {
		expect.Equal(t, fatal.Or(e.View("home"))(t).Page.CatalogueSize(r), want, r, "takes n bytes")
	}
}

// Items take more room in the log when they are replaced or deleted than when they are put, because the log holds their
// former values, too. The entries stay small, and an item too large for an entry is refused, without a halt.
func TestLargeItemsChange(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", window+"}")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	const n = 100
	ids := make([]string, n)
	for _, fill := range []string{"a", "b"} {
		items := goods(1, n)
		for i := range items {
			ids[i] = items[i].ID
			items[i].Payload = []byte(`"` + strings.Repeat(fill, 16_000) + `"`)
		}
		if a, err := e.PutItems(ctx, "home", items, 0); err != nil || a.Changed != n {
			t.Fatalf("with %s: %+v, %v", fill, a, err)
		}
	}
	if a, err := e.PutItems(ctx, "home", goods(1, n/2), 0); err != nil || a.Changed != n/2 {
		t.Fatalf("without payloads: %+v, %v", a, err)
	}
	if a, err := e.DeleteItems(ctx, "home", ids, 0); err != nil || a.Changed != n || a.Items != 0 {
		t.Errorf("deleted: %+v, %v", a, err)
	}
	for entry, err := range store.Entries(ctx, 1) {
		if fatal.If(t, err); len(entry) > 300_000 {
			t.Errorf("an entry of %d bytes", len(entry))
		}
	}
	for _, fill := range []string{"c", "d"} {
		large := goods(1, 1)
		large[0].Features[2] = api.Text("brand", strings.Repeat(fill, 600_000))
		_, err := e.PutItems(ctx, "home", large, 0)
		if field := new(api.FieldError); fill == "d" && (!errors.As(err, &field) || !strings.Contains(err.Error(),
			"at most 999932 fit")) || fill == "c" && err != nil {
			t.Errorf("a brand of 600,000 bytes: %v", err)
		}
	}
	if a, err := e.DeleteItems(ctx, "home", ids, 0); err != nil || a.Changed != 1 || a.Items != 0 {
		t.Errorf("deleted the large one: %+v, %v", a, err)
	}
}

// Parallel changes of a catalogue take turns, so that none is made in vain.
func TestParallelPushes(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", goods(1, 1)) // the brands are known
	const pushes, n = 8, 100
	var all sync.WaitGroup
	for k := range pushes {
		items := goods(uint64(k), n)
		for i := range items {
			items[i].ID = fmt.Sprintf("%d:%d", k, i)
			items[i].Payload = []byte(`"` + strings.Repeat("x", 16_000) + `"`)
		}
		all.Go(func() {
			made, err := e.PutCounted(t.Context(), "home", items)
			expect.Error(t, err, nil)
			expect.Equal(t, made, n, "records")
		})
	}
	all.Wait()
	expect.Equal(t, fatal.Or(e.Items("home", 0, 1))(t).Count, pushes*n+1, "items")
}

// An error in a later chunk says how many items were changed, and values beyond their features' bounds are counted.
func TestPartsOfAPatch(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number","max":50}],"policy":{"name":"uniform"}}`)
	items := make([]api.CatalogueItem, 1000)
	for i := range items {
		items[i] = api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", float64(i))},
			Payload: jsontext.Value(`"` + strings.Repeat("x", 1000) + `"`)}
	}
	a := putItems(t, e, "home", items)
	expect.Equal(t, a.Clipped, 949, "values beyond the bound")
	expect.Equal(t, fatal.Or(e.Stats("home"))(t).Clipped, 949, "in the statistics")
	for i := range items {
		items[i] = api.CatalogueItem{ID: items[i].ID, Revenue: new(2.0)}
	}
	items[999].Revenue = new(-1.0)
	_, err := e.PatchItems(t.Context(), "home", items, 0)
	if err == nil {
		t.Fatal("a negative revenue was stored")
	}
	changed := 0
	for _, item := range fatal.Or(e.Items("home", 0, 1000))(t).Items {
		if item.Revenue != nil {
			changed++
		}
	}
	if changed == 0 {
		t.Error("want more than one chunk")
	}
	expect.Contains(t, err.Error(), fmt.Sprintf("the first %d of 1000 items were changed, and the others were not", changed), "the error")
}
