package catalogue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// A filter by a shopper's past selects the same items as a look at each item. Filters by other names do not change.
func TestFiltersByThePast(t *testing.T) {
	s := schemaOf(t, `[{"name":"price","kind":"number"},{"name":"owned","kind":"number","history":"bought"}]`)
	c, rng := New(s), rand.New(rand.NewPCG(1, 2))
	const n = 100
	var put, all []string
	price := map[string]float64{}
	for i := range n {
		id := fmt.Sprint("sku", i)
		price[id] = float64(rng.IntN(9))
		put = append(put, fatal.Or(Encode(
			&api.CatalogueItem{ID: id, Features: api.Values{api.Number("price", price[id])}}, s, ""))(t))
		all = append(all, id)
	}
	apply(t, c, 1, put, nil)
	for filter, want := range map[string]func(id string, p feature.Past) bool{
		"bought == 0":      func(_ string, p feature.Past) bool { return p.Bought == 0 },
		"not (bought > 0)": func(_ string, p feature.Past) bool { return p.Bought == 0 },
		"owned >= 1":       func(_ string, p feature.Past) bool { return p.Bought >= 1 },
		"seen < 3 and bought in [0,2]": func(_ string, p feature.Past) bool {
			return p.Seen < 3 && (p.Bought == 0 || p.Bought == 2)
		},
		"price > 4 or 2 <= seen": func(id string, p feature.Past) bool { return price[id] > 4 || p.Seen >= 2 },
		"price > 4":              func(id string, _ feature.Past) bool { return price[id] > 4 },
	} {
		f := fatal.Or(c.Filter(t.Context(), filter))(t)
		expect.Equal(t, f.AsksPast(), filter != "price > 4", filter, "it asks for the past")
		for round := range 20 {
			past := []feature.Past{{ID: "gone", Seen: 9, Bought: 9}}
			of := map[string]feature.Past{}
			for _, i := range rng.Perm(n)[:round] {
				p := feature.Past{ID: all[i], Seen: uint32(rng.IntN(5)), Bought: uint32(rng.IntN(4))}
				past, of[p.ID] = append(past, p), p
			}
			for _, ids := range [][]string{nil, all[:n/2]} {
				c.RLock()
				got := c.Select(nil, ids, f, past, 0)
				c.RUnlock()
				var have []string
				for _, slot := range got.Slots {
					have = append(have, c.ID(slot))
				}
				among := ids
				if among == nil {
					among = all
				}
				var expected []string
				for _, id := range among {
					if want(id, of[id]) {
						expected = append(expected, id)
					}
				}
				if slices.Sort(expected); !slices.IsSorted(got.Slots) ||
					!slices.Equal(slices.Sorted(slices.Values(have)), expected) {
					t.Fatalf("%s among %d items: %v, want %v", filter, len(among), have, expected)
				}
			}
		}
	}
	for _, name := range []string{"seen", "bought"} {
		expect.Refused(Encode(&api.CatalogueItem{ID: "a", Features: api.Values{api.Number("price", 1)},
			Attributes: map[string]any{name: 1.0}}, s, ""))(t, "an attribute is called", name)
	}
}
