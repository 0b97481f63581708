package catalogue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// shortSlices shortens slices to a few items for one test.
func shortSlices(t testing.TB, items int) {
	before := sliceItems
	sliceItems = items
	t.Cleanup(func() { sliceItems = before })
}

// stopped is a context that ends at the n-th call of Err.
type stopped struct {
	context.Context
	n int
}

func (s *stopped) Err() error {
	if s.n--; s.n <= 0 {
		return context.Canceled
	}
	return nil
}

// meaning evaluates a filter on an item in the callers' form.
type meaning func(item *api.CatalogueItem) bool

// valueOf returns the value for a name, or nil.
func valueOf(item *api.CatalogueItem, name string) any {
	switch name {
	case "id":
		return item.ID
	case "revenue":
		if item.Revenue == nil {
			return 1.0
		}
		return *item.Revenue
	}
	for _, v := range item.Features {
		switch {
		case v.Name != name || v.Kind == api.Missing:
		case v.Kind == api.IsNumber:
			return v.Number
		default:
			return v.Text
		}
	}
	if name == "brand" {
		return "none" // the default
	}
	return item.Attributes[name]
}

// drawFilter returns a random filter and its meaning.
func drawFilter(rng *rand.Rand, depth int) (string, meaning) {
	values := map[string][]any{
		"season": {"summer", "winter", "spring"}, "rating": {0.0, 1.0, 2.0, 3.0, 4.0}, "fragile": {true, false},
		"price": {0.0, 1.0, 2.5, 4.0}, "brand": {"a", "b", "none"}, "id": {"sku1", "sku2", "sku39"},
		"revenue": {0.5, 1.0},
	}
	names := []string{"season", "rating", "fragile", "price", "brand", "id", "revenue"}
	text := func(v any) string {
		if s, ok := v.(string); ok {
			return fmt.Sprintf("%q", s)
		}
		return fmt.Sprint(v)
	}
	if depth > 0 && rng.IntN(4) > 0 {
		n := 1 + rng.IntN(4)
		texts, of := make([]string, n), make([]meaning, n)
		for i := range n {
			texts[i], of[i] = drawFilter(rng, depth-1)
			texts[i] = "(" + texts[i] + ")"
		}
		switch rng.IntN(3) {
		case 0:
			return "not " + texts[0], func(i *api.CatalogueItem) bool { return !of[0](i) }
		case 1:
			return strings.Join(texts, []string{" and ", " && "}[rng.IntN(2)]), func(i *api.CatalogueItem) bool {
				return !slices.ContainsFunc(of, func(m meaning) bool { return !m(i) })
			}
		}
		return strings.Join(texts, []string{" or ", " || "}[rng.IntN(2)]), func(i *api.CatalogueItem) bool {
			return slices.ContainsFunc(of, func(m meaning) bool { return m(i) })
		}
	}
	name := names[rng.IntN(len(names))]
	pick := func() any { return values[name][rng.IntN(len(values[name]))] }
	v := pick()
	switch rng.IntN(6) {
	case 0, 1:
		return name + " == " + text(v), func(i *api.CatalogueItem) bool { return valueOf(i, name) == v }
	case 2:
		return text(v) + " != " + name, func(i *api.CatalogueItem) bool { return valueOf(i, name) != v }
	case 3:
		w := pick()
		return name + " in [" + text(v) + ", " + text(w) +
			"]", func(i *api.CatalogueItem) bool { have := valueOf(i, name); return have == v || have == w }
	case 4:
		return `"sale" in groups`, func(i *api.CatalogueItem) bool { return slices.Contains(i.Groups, "sale") }
	}
	limit := float64(rng.IntN(5))
	return fmt.Sprintf("%v <= rating", limit), func(i *api.CatalogueItem) bool {
		have, ok := valueOf(i, "rating").(float64)
		return ok && limit <= have
	}
}

// A filter selects exactly the right items, even if items are put and deleted between its slices.
func TestFiltersDuringChanges(t *testing.T) {
	shortSlices(t, 7)
	s := schemaOf(t, shop)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		c, want, version := New(s), model{}, uint64(0)
		change := func(most int) {
			var put, deleted []string
			for _, id := range rng.Perm(40)[:rng.IntN(most)] {
				name := fmt.Sprint("sku", id)
				if rng.IntN(3) == 0 {
					deleted = append(deleted, name)
					delete(want, name)
					continue
				}
				item := draw(rng, name)
				r := fatal.Or(Encode(item, s, ""))(t)
				put, want[name] = append(put, r), item
			}
			change := fatal.Or(c.NewChange(put, deleted))(t)
			version++
			c.Apply(version, change)
		}
		change(41)
		// The filters need names that occur in at least one item.
		all := draw(rng, "sku40")
		all.Attributes = map[string]any{"season": "summer", "rating": 3.0, "fragile": true}
		record := fatal.Or(Encode(all, s, ""))(t)
		first := fatal.Or(c.NewChange([]string{record}, nil))(t)
		want["sku40"] = all
		c.Apply(version, first)
		for range 4 {
			text, means := drawFilter(rng, 3)
			p, err := c.compile(text)
			fatal.If(t, err, text)
			g := &Groups{by: GroupsBy{Attribute: "season"}}
			for done := false; !done; {
				_, of := c.slice(p)
				_, by := c.slice(g)
				if done = of && by; rng.IntN(3) > 0 {
					change(6)
					done = false
				}
			}
			for slot := range int32(c.Len()) {
				item := want[c.ID(slot)]
				expect.Equal(fatal.T(t), p.has(slot), means(item), text, "item", *item, "is in the filter")
				season, has := item.Attributes["season"].(string)
				if number := g.Of[slot]; has != (number >= 0) ||
					has && g.Name(number) != fmt.Sprintf("season %q", season) {
					t.Fatalf("the season %q has group %d", season, number)
				}
			}
		}
	})
}

// A comparison with the value on the left equals its mirror image, including at the value itself.
func TestMirroredComparisons(t *testing.T) {
	c := New(schemaOf(t, shop))
	apply(t, c, 1, []string{record(t, &api.CatalogueItem{ID: "a", Features: api.Values{api.Number("price", 20)}},
		c.Split().Schema())}, nil)
	for _, value := range []int{19, 20, 21} {
		for operator, want := range map[string]bool{
			"==": value == 20, "!=": value != 20, "<": value < 20, "<=": value <= 20, ">": value > 20,
			">=": value >= 20,
		} {
			text := fmt.Sprint(value, " ", operator, " price")
			if got, err := selected(c, nil, text, 0); err != nil || (len(got.Slots) == 1) != want {
				t.Errorf("%s is satisfied by a price of 20: %v, %v", text, !want, err)
			}
		}
	}
}

// A list costs one comparison, however long it is.
func TestComparisons(t *testing.T) {
	c := New(schemaOf(t, shop))
	apply(t, c, 1, []string{record(t, &api.CatalogueItem{ID: "a",
		Features: api.Values{api.Number("price", 20), api.Text("brand", "x299")}}, c.Split().Schema())}, nil)
	list := `["x0"` + strings.Repeat(`, "x1"`, 200)
	for _, test := range []struct {
		text        string
		comparisons int
		want        bool
	}{
		{"brand in " + list + "]", 1, false},
		{"brand in " + list + `, "x299"]`, 1, true},
		{"not (brand in " + list + "]) and price >= 20", 2, true},
		{strings.Repeat(`brand == "x1" or `, 99) + `"x299" == brand`, 100, true},
		{strings.Repeat(`brand != "x1" && `, 99) + `brand != "x299"`, 100, false},
	} {
		p, err := c.compile(test.text)
		if err != nil || p.comparisons != test.comparisons {
			t.Fatalf("%.60s: %d comparisons, want %d: %v", test.text, p.comparisons, test.comparisons, err)
		}
		if got, err := selected(c, nil, test.text, 0); err != nil || (len(got.Slots) == 1) != test.want {
			t.Errorf("%.60s: %v, %v", test.text, got, err)
		}
	}
}

// A filter and groups stay correct after missing a very large number of changes.
func TestListsAfterManyChanges(t *testing.T) {
	s := schemaOf(t, shop)
	c := New(s)
	season := func(of string) []string {
		var put []string
		for i := range 50 {
			put = append(put, record(t, &api.CatalogueItem{ID: fmt.Sprint(i),
				Features: api.Values{api.Number("price", 1)}, Attributes: map[string]any{"season": of}}, s))
		}
		return put
	}
	check := func(want string) {
		t.Helper()
		got, err := selected(c, nil, `season == "summer"`, 0)
		if n := map[string]int{"summer": 50}[want]; err != nil || len(got.Slots) != n {
			t.Errorf("%d items are in summer, want %d: %v", len(got.Slots), n, err)
		}
		g := groupsOf(c, GroupsBy{Attribute: "season"})
		if name := g.Name(g.Of[49]); name != fmt.Sprintf("season %q", want) || len(g.Of) != 50 {
			t.Errorf("an item is in %s, want %s", name, want)
		}
	}
	apply(t, c, 1, season("summer"), nil)
	check("summer")
	winter := season("winter")
	for version := range uint64(1 << 17 / 50) {
		apply(t, c, version+2, winter, nil)
	}
	apply(t, c, 1<<20, winter[:30], nil)
	if c.changes.end() <= 1<<17 || len(c.changes.slots) > maxChanges {
		t.Fatalf("%d changes, %d are remembered", c.changes.end(), len(c.changes.slots))
	}
	check("winter")
	apply(t, c, 1<<21, season("summer"), nil)
	check("summer")
}

// Between slices the catalogue is unlocked: it changes, learns and answers.
func TestSlicesLetChangesThrough(t *testing.T) {
	shortSlices(t, 10)
	c := attributed(t, 100, 5, 1)
	p, err := c.compile(`a0 == "value 00000000"`)
	fatal.If(t, err)
	slices := 0
	for done := false; !done; slices++ {
		if _, done = c.slice(p); slices < 5 {
			putAttributed(t, c, 0, 1, 5, 1) // would block forever under the lock
			c.Learn(c.Split().Schema(), []feature.Seen{{Feature: "x", Values: []string{"y"}}})
		}
	}
	if want := 100/10 + 1; slices != want { // the last slice looks again at the changed item
		t.Errorf("%d slices, want %d", slices, want)
	}
	if p, err = c.compile(strings.Repeat("x < 1 or ", 200) + "x > 2"); err != nil {
		t.Fatal(err)
	}
	sliceItems = 4096
	if looked, done := c.slice(p); looked != 100 || !done {
		t.Errorf("%d items", looked)
	}
	if p.cost() != 202 || min(sliceItems, sliceComparisons/p.cost()) != 324 {
		t.Errorf("a slice of a filter of cost %d", p.cost())
	}
}

// When the caller leaves, its filter and groups stop within a slice; the next caller continues from there.
func TestListsStopWithTheirCaller(t *testing.T) {
	shortSlices(t, 10)
	c := attributed(t, 100, 5, 1)
	const text = `a0 == "value 00000000"`
	expect.Fails(c.Filter(&stopped{t.Context(), 4}, text))(fatal.T(t), context.Canceled)
	expect.Equal(t, c.lists.filters[text].next, 30, "it looked at n items")
	if got, err := selected(c, nil, text, 0); err != nil || len(got.Slots) != 20 {
		t.Errorf("%d items: %v", len(got.Slots), err)
	}
	by := GroupsBy{Attribute: "a0"}
	expect.Fails(c.Groups(&stopped{t.Context(), 2}, by))(fatal.T(t), context.Canceled)
	expect.Equal(t, c.lists.groups[by].next, 10, "it looked at n items")
	if _, _, err := c.WithSchema(&stopped{t.Context(), 5},
		schemaOf(t, `[{"name":"x","kind":"number","scale":2}]`)); !errors.Is(err, context.Canceled) {
		t.Errorf("other features: %v", err)
	}
}

// A caller's filters are charged for their work. A caller in debt learns when to come back, without affecting others.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := attributed(t, 1000, 5, 1)
		mine, other := NewWork(), NewWork()
		ctx := WithWork(t.Context(), mine)
		filter := func(ctx context.Context, k int) error {
			_, err := c.Filter(ctx, fmt.Sprintf(`a0 == "v%d" or x > 3`, k))
			return err
		}
		before := mine.left
		if err := filter(ctx, 1); err != nil || before-mine.left != 3*1000 {
			t.Fatalf("a filter of 2 comparisons among 1000 items is charged %v: %v", before-mine.left, err)
		}
		if err := filter(ctx, 1); err != nil || before-mine.left != 3*1000 {
			t.Errorf("the same filter is charged again: %v", err)
		}
		mine.Charge(comparisonsPerSecond * (savedSeconds + 2))
		var busy *BusyError
		if err := filter(ctx, 2); !errors.As(err, &busy) || busy.After != 3*time.Second {
			t.Fatalf("in debt: %v", err)
		}
		expect.Error(t, filter(ctx, 1), nil, "a filter that is there")
		putAttributed(t, c, 0, 10, 5, 1)
		expect.Error(t, filter(ctx, 1), nil, "a filter that is there, after a change")
		expect.Error(t, filter(WithWork(t.Context(), other), 3), nil, "another caller")
		time.Sleep(busy.After)
		expect.Error(t, filter(ctx, 2), nil, "after the debt is paid")
		time.Sleep(time.Hour)
		expect.Equal(t, mine.spend(0), comparisonsPerSecond*savedSeconds, "are saved up")

		var leave []func()
		for range filtersAtOnce {
			l := fatal.Or(mine.enter(ctx))(t)
			leave = append(leave, l)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := filter(short, 4); !errors.As(err, &busy) || busy.After != time.Second {
			t.Errorf("a third filter at once: %v", err)
		}
		gone, leaves := context.WithCancel(ctx)
		leaves()
		expect.Error(t, filter(gone, 4), context.Canceled)
		expect.Error(t, filter(WithWork(t.Context(), other), 5), nil, "another caller")
		done := make(chan error)
		go func() { done <- filter(ctx, 6) }()
		synctest.Wait()
		leave[0]()
		expect.Error(t, <-done, nil)
	})
}

// An item gets its column when its value is learned, even after moving to another slot.
func TestMovedItemsLearn(t *testing.T) {
	s := schemaOf(t, `[{"name":"brand","kind":"category","own_columns":4,"columns":9}]`)
	c := New(s)
	var put []string
	for i := range 3 {
		put = append(put, record(t, &api.CatalogueItem{ID: fmt.Sprint(i),
			Features: api.Values{api.Text("brand", fmt.Sprint("brand-", i))}}, s))
	}
	apply(t, c, 1, put, nil)
	apply(t, c, 2, nil, []string{"0"})
	seen := feature.Seen{Feature: "brand", Values: []string{"brand-2"}}
	learned := fatal.Or(s.Learn(seen))(t)
	c.Learn(learned, []feature.Seen{seen})
	want, err := Restore(learned, 2, c.Freeze().Records())
	if err != nil || !slices.Equal(c.Rows(), want.Rows()) {
		t.Errorf("rows %v, want %v: %v", c.Rows(), want.Rows(), err)
	}
}
