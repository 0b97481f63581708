package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
	"vitrine/service/feature"
)

func schemaOf(t testing.TB, text string) *feature.Schema {
	t.Helper()
	var features []api.Feature
	fatal.If(t, json.Unmarshal([]byte(text), &features))
	s := fatal.Or(feature.New(features))(t)
	return s
}

const shop = `[{"name":"price","kind":"number"},{"name":"brand","kind":"category","columns":4,"default":"none"},{"name":"age","kind":"number","from":"shopper"}]`

// draw returns an item with a random subset of the fields set.
func draw(rng *rand.Rand, id string) *api.CatalogueItem {
	item := &api.CatalogueItem{ID: id, Features: api.Values{api.Number("price", float64(rng.IntN(9)))}}
	if rng.IntN(2) == 0 {
		item.Features = append(item.Features, api.Text("brand", []string{"a", "b", "c"}[rng.IntN(3)]))
	}
	if rng.IntN(2) == 0 {
		item.Revenue = new(float64(rng.IntN(3)))
	}
	if rng.IntN(3) == 0 {
		item.Space = new(float64(rng.IntN(1000)) / 1000)
	}
	if rng.IntN(3) == 0 {
		item.Groups = []string{"sale", "new"}[:1+rng.IntN(2)]
	}
	if rng.IntN(4) == 0 {
		item.Available = new(false)
	}
	if rng.IntN(4) == 0 {
		item.ValidFrom = new(time.Unix(int64(rng.IntN(100)), 0).UTC())
	}
	if rng.IntN(4) == 0 {
		item.ValidUntil = new(time.Unix(int64(100+rng.IntN(100)), 0).UTC())
	}
	if rng.IntN(2) == 0 {
		item.Attributes = map[string]any{"season": []string{"summer", "winter"}[rng.IntN(2)]}
		if rng.IntN(2) == 0 {
			item.Attributes["rating"] = float64(rng.IntN(5))
		}
		if rng.IntN(2) == 0 {
			item.Attributes["fragile"] = rng.IntN(2) == 0
		}
	}
	if rng.IntN(3) == 0 {
		item.Payload = jsontext.Value(`{"title":"` + id + `"}`)
	}
	return item
}

func record(t testing.TB, item *api.CatalogueItem, s *feature.Schema) string {
	t.Helper()
	r := fatal.Or(Encode(item, s, ""))(t)
	return r
}

func apply(t testing.TB, c *Catalogue, version uint64, put, deleted []string) {
	t.Helper()
	change := fatal.Or(c.NewChange(put, deleted))(t)
	n := c.LenAfter(change)
	c.Apply(version, change)
	if c.Len() != n {
		t.Fatalf("%d items, %d were predicted", c.Len(), n)
	}
}

type model map[string]*api.CatalogueItem

// After any changes, the catalogue agrees with a map in items, rows and revenues, selects by the same rules, and
// restores to the same catalogue from its records.
func TestCatalogueIsAMap(t *testing.T) {
	s := schemaOf(t, strings.TrimSuffix(shop, "]")+
		`,{"name":"weight","kind":"number","center":3,"scale":7,"max":20,"default":1}]`)
	filters := slices.Sorted(maps.Keys(conditions))
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c, want := New(s), model{}
		var frozen *Frozen
		var were []string
		id := func() string { return fmt.Sprint("sku", rng.IntN(40)) }
		for version := uint64(1); version <= 30; version++ {
			put, deleted := map[string]string{}, []string{}
			for range rng.IntN(8) {
				item := draw(rng, id())
				if rng.IntN(2) == 0 {
					item.Features = append(item.Features, api.Number("weight",
						[]float64{math.Copysign(0, -1), 0, 3.1, 10, 19.7, 30}[rng.IntN(6)]))
				}
				r := fatal.Or(Encode(item, s, ""))(t)
				put[item.ID], want[item.ID] = r, item
			}
			if name := id(); rng.IntN(2) == 0 && put[name] == "" {
				deleted = append(deleted, name)
				delete(want, name)
			}
			change := fatal.Or(c.NewChange(slices.Sorted(maps.Values(put)), deleted))(t)
			c.Apply(version, change)
			compare(t, c, want, version)
			if frozen != nil && rng.IntN(4) == 0 {
				if diff := cmp.Diff(were, slices.Collect(frozen.Records())); diff != "" || len(were) != frozen.Len() {
					t.Fatalf("the items of version %d at version %d: %s", frozen.Version, version, diff)
				}
				frozen = nil
			}
			if frozen == nil && rng.IntN(2) == 0 {
				frozen, were = c.Freeze(), slices.Collect(c.Freeze().Records())
			}
			now := time.Unix(int64(rng.IntN(250)), 0)
			filter := ""
			if rng.IntN(4) > 0 {
				filter = filters[rng.IntN(len(filters))]
			}
			var ids []string
			for range rng.IntN(2) * rng.IntN(60) {
				ids = append(ids, id())
			}
			checkSelection(t, c, want, ids, filter, now)
			if rng.IntN(2) == 0 {
				checkGroups(t, c, want)
			}
		}
		records := slices.Collect(c.Freeze().Records())
		again := fatal.Or(Restore(s, c.Version(), slices.Values(records)))(t)
		compare(t, again, want, c.Version())
		expect.Equal(fatal.T(t), slices.Collect(again.Freeze().Records()), records)
		if again.Bytes() != c.Bytes() || again.limited != c.limited || again.earning != c.earning ||
			!maps.Equal(again.attributes, c.attributes) {
			t.Fatalf("restored: %d bytes, %d limited, %d earning, attributes %v; were %d, %d, %d, %v", again.Bytes(),
				again.limited, again.earning, again.attributes, c.Bytes(), c.limited, c.earning, c.attributes)
		}
	})
}

// Freezing an unchanged catalogue repeatedly keeps track only of snapshots that are still in use.
func TestFrozenAreForgotten(t *testing.T) {
	c := New(schemaOf(t, shop))
	held := c.Freeze()
	for range 100 {
		c.Freeze()
	}
	runtime.GC()
	if c.Freeze(); len(c.frozen) > 3 {
		t.Errorf("%d frozen catalogues are noted", len(c.frozen))
	}
	runtime.KeepAlive(held)
}

func compare(t *rapid.T, c *Catalogue, want model, version uint64) {
	if c.Len() != len(want) || c.Version() != version {
		t.Fatalf("%d items of version %d, want %d of %d", c.Len(), c.Version(), len(want), version)
	}
	row, earning := make([]float64, c.Split().Width()), false
	for id, item := range want {
		slot, ok := c.Find(id)
		if !ok || c.ID(slot) != id {
			t.Fatalf("item %q is at %d, %v", id, slot, ok)
		}
		values := fatal.Or(new(feature.Placer).Item(item.Features, c.Split().Schema(), func() string { return "" }))(t)
		fatal.Or(c.Split().Items(row, []api.Item{{Features: values}}))(t)
		expect.List(fatal.T(t), row, c.Row(slot), "item", id, "has the row")
		whole, err := Encode(item, c.Split().Schema(), "")
		if err != nil || !c.Has(whole) {
			t.Fatalf("item %q is %v, want %v: %v", id, c.Item(slot), item, err)
		}
		revenue := 1.0
		if item.Revenue != nil {
			revenue = *item.Revenue
		}
		earning = earning || revenue != 1
		if c.Revenue(slot) != revenue || c.Payload(slot) != string(item.Payload) {
			t.Fatalf("item %q has the revenue %v and the payload %q", id, c.Revenue(slot), c.Payload(slot))
		}
	}
	if (c.Revenues() != nil) != earning {
		t.Fatalf("revenues other than 1: %v, want %v", c.Revenues() != nil, earning)
	}
}

// checkGroups compares the groups of a catalogue's items with their values.
func checkGroups(t *rapid.T, c *Catalogue, want model) {
	for by, value := range map[GroupsBy]func(item *api.CatalogueItem) any{
		{Category: "brand"}: func(item *api.CatalogueItem) any {
			for _, f := range item.Features {
				if f.Name == "brand" {
					return f.Text
				}
			}
			return "none"
		},
		{Attribute: "season"}: func(item *api.CatalogueItem) any { return item.Attributes["season"] },
		{Attribute: "rating"}: func(item *api.CatalogueItem) any { return item.Attributes["rating"] },
		{Group: "new"}: func(item *api.CatalogueItem) any {
			if slices.Contains(item.Groups, "new") {
				return "new"
			}
			return nil
		},
	} {
		groups := groupsOf(c, by)
		expect.Equal(fatal.T(t), len(groups.Of), c.Len(), by, "groups of n items")
		number := map[any]int32{}
		for slot, g := range groups.Of {
			v := value(want[c.ID(int32(slot))])
			if (v == nil) != (g == -1) {
				t.Fatalf("%v: an item with the value %v is in group %d", by, v, g)
			}
			if k, ok := number[v]; ok && k != g {
				t.Fatalf("%v: items of the value %v are in the groups %d and %d", by, v, k, g)
			}
			if number[v] = g; v == nil {
				continue
			}
			if name := groups.Name(g); int(g) >= groups.Len() || !strings.Contains(name, fmt.Sprint(v)) {
				t.Fatalf("%v: group %d of %d, of the value %v, is called %s", by, g, groups.Len(), v, name)
			}
			if k, ok := groups.Number(fmt.Sprint(v)); by.Category != "" && (!ok || k != g) {
				t.Fatalf("%v: the value %v has the number %d, want %d", by, v, k, g)
			}
		}
		if distinct := slices.Compact(slices.Sorted(maps.Values(number))); len(distinct) != len(number) {
			t.Fatalf("%v: different values are in one group: %v", by, number)
		}
	}
}

// selected returns what a request selects.
func selected(c *Catalogue, ids []string, filter string, now int64) (s Selection, err error) {
	p, err := c.Filter(context.Background(), filter)
	if err != nil {
		return s, err
	}
	c.RLock()
	defer c.RUnlock()
	if p != nil && !c.CatchUp(p) {
		return s, errors.New("the filter is behind")
	}
	return c.Select(nil, ids, p, nil, now), nil
}

func groupsOf(c *Catalogue, by GroupsBy) *Groups {
	g, err := c.Groups(context.Background(), by)
	if err != nil {
		panic(err)
	}
	return g
}

func checkSelection(t *rapid.T, c *Catalogue, want model, ids []string, filter string, now time.Time) {
	condition := conditions[filter]
	got, err := selected(c, ids, filter, now.UnixNano())
	if err != nil {
		if !strings.Contains(err.Error(), "no item has the attribute") {
			t.Fatal(err)
		}
		return
	}
	chosen, unknown, closed := map[string]bool{}, []string{}, []string{}
	candidates := ids
	if ids == nil {
		candidates = slices.Collect(maps.Keys(want))
	}
	for _, id := range candidates {
		switch item := want[id]; {
		case item == nil:
			unknown = append(unknown, id)
		case !isOpen(item, now):
			closed = append(closed, id)
		case condition == nil || condition(item):
			chosen[id] = true
		}
	}
	if got.All {
		for slot := range int32(c.Len()) {
			got.Slots = append(got.Slots, slot)
		}
	}
	shown := map[string]bool{}
	for k, slot := range got.Slots {
		if k > 0 && slot <= got.Slots[k-1] {
			t.Fatalf("the slots are %v", got.Slots)
		}
		shown[c.ID(slot)] = true
	}
	if !maps.Equal(shown, chosen) {
		t.Fatalf("filter %q at %v of %v: %v, want %v",
			filter, now, ids, slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(chosen)))
	}
	if ids != nil && (!slices.Equal(got.Unknown, unknown) && len(unknown) > 0 ||
		!slices.Equal(got.Unavailable, closed) && len(closed) > 0 || got.Missing != len(unknown)+len(closed)) {
		t.Fatalf("%v and %v are missing, %d in all; want %v and %v",
			got.Unknown, got.Unavailable, got.Missing, unknown, closed)
	}
}

// When the features change, all items stay. Those that lack a feature become unavailable, and one of them is named.
func TestOtherFeatures(t *testing.T) {
	s := schemaOf(t, shop)
	c := New(s)
	apply(t, c, 7, []string{
		record(t, &api.CatalogueItem{ID: "a", Features: api.Values{api.Number("price", 3), api.Text("brand", "x")}}, s),
		record(t, &api.CatalogueItem{ID: "b", Features: api.Values{api.Number("price", 4)}, Revenue: new(2.0)}, s),
	}, nil)
	other := schemaOf(t,
		`[{"name":"brand","kind":"category","values":["x"]},{"name":"price","kind":"number","scale":2}]`)
	moved, err, _ := c.WithSchema(context.Background(), other)
	expect.Message(err)(t, `item "b": /items/0/features/brand: is missing, and the feature has no default`,
		"b has no brand")
	if moved.Len() != 2 || moved.Version() != 7 || !slices.Equal(moved.Row(0), []float64{1, 1.5}) ||
		moved.Revenue(1) != 2 {
		t.Errorf("%d items of version %d: %v", moved.Len(), moved.Version(), moved.Rows())
	}
	got, err := selected(moved, nil, "", 0)
	if err != nil || got.All || !slices.Equal(got.Slots, []int32{0}) {
		t.Errorf("available are %v: %v", got.Slots, err)
	}
	// The last item moves to the deleted item's slot and stays unavailable.
	apply(t, moved, 8, nil, []string{"a"})
	if got, err := selected(moved, nil, "", 0); err != nil || len(got.Slots) > 0 || got.All {
		t.Errorf("available are %v: %v", got.Slots, err)
	}
	apply(t, moved, 9, []string{record(t,
		&api.CatalogueItem{ID: "b", Features: api.Values{api.Number("price", 4), api.Text("brand", "x")}}, other)}, nil)
	if got, err := selected(moved, nil, "", 0); err != nil || !got.All {
		t.Errorf("b with a brand is not available: %v", err)
	}
	back, err, _ := c.WithSchema(context.Background(), s)
	if err != nil || !slices.Equal(back.Rows(), c.Rows()) {
		t.Errorf("the same features: %v", err)
	}
}

// Learning values later gives the same rows as a schema that knew them from the start.
func TestLearn(t *testing.T) {
	s := schemaOf(t, `[{"name":"brand","kind":"category","default":"none","own_columns":4,"columns":9},{"name":"x","kind":"number"},{"name":"place","kind":"category","from":"shopper","own_columns":2,"columns":4},
		{"name":"c","kind":"cross","of":["brand","x"]}]`)
	c, rng := New(s), rand.New(rand.NewPCG(1, 1))
	var put []string
	for i := range 300 {
		item := api.CatalogueItem{ID: fmt.Sprint(i), Features: api.Values{api.Number("x", rng.Float64())}}
		if brand := rng.IntN(8); brand > 0 {
			item.Features = append(item.Features, api.Text("brand", fmt.Sprint("brand-", brand)))
		}
		record := fatal.Or(Encode(&item, s, ""))(t)
		put = append(put, record)
	}
	change := fatal.Or(c.NewChange(put, nil))(t)
	c.Apply(1, change)
	for _, seen := range []feature.Seen{
		{Feature: "place", Values: []string{"brand-1"}}, {Feature: "brand", Values: []string{"brand-3", "nowhere"}},
		{Feature: "brand", Values: []string{"none"}},
	} {
		learned := fatal.Or(s.Learn(seen))(t)
		since, ok := learned.Since(s)
		if diff := cmp.Diff([]feature.Seen{seen}, since); !ok || diff != "" {
			t.Fatalf("since: %v\n%s", ok, diff)
		}
		if _, ok := s.Since(learned); ok {
			t.Fatal("what was learned is forgotten")
		}
		before := slices.Clone(c.Rows())
		s = learned
		c.Learn(s, since)
		want, err := Restore(s, 1, c.Freeze().Records())
		if err != nil || c.Split().Schema() != s {
			t.Fatal(err)
		}
		expect.List(t, c.Rows(), want.Rows(), "after", seen, "the rows differ from a new catalogue's")
		expect.Equal(t, slices.Equal(c.Rows(), before), seen.Feature == "place", "after", seen, "the rows are the same")
	}
}
