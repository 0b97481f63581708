package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// stand is a request of n items, each of a brand and a category.
func stand(id string, n int) *api.Request {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	r := &api.Request{Decision: id}
	for i := range n {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Revenue: new(1 + rng.Float64()), Features: api.Values{
			api.Number("x", rng.Float64()), api.Text("brand", fmt.Sprint("b", rng.IntN(5))),
			api.Text("kind", fmt.Sprint("k", rng.IntN(4))),
		}})
	}
	return r
}

// value returns the category of an item of a request.
func value(r *api.Request, id, name string) string {
	for _, i := range r.Items {
		for _, v := range i.Features {
			if i.ID == id && v.Name == name {
				return v.Text
			}
		}
	}
	return ""
}

const stalls = `{"max_size":6,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],
	"limits":[{"feature":"brand","max":1},{"feature":"kind","max":2}],"policy":{"name":%q},"mode":"explore","explore":%q,"explore_share":0.5}`

// Limits by brand and by category hold together: in the policy's pages, in drawn ones, and with other rules.
func TestBrandAndCategory(t *testing.T) {
	for _, policy := range []string{"ucb-mnl", "ts-mnl", "auto", "eps-greedy-mnl", "uniform"} {
		for _, mode := range []string{"sets", "swaps"} {
			e := opened(t, engine.Options{Store: new(memlog.Store)})
			put(t, e, "home", fmt.Sprintf(stalls, policy, mode))
			for k := range 60 {
				r := stand(fmt.Sprint(k), 40)
				switch k % 3 {
				case 1:
					r.Exclude, r.Include = []string{"sku1", "sku2"}, []string{"sku3"}
				case 2:
					r.MaxSize = 3
				}
				a, err := e.Decide(t.Context(), "home", r, 0)
				fatal.If(t, err, policy, mode)
				brands, kinds := map[string]int{}, map[string]int{}
				for _, id := range a.IDs() {
					brands[value(r, id, "brand")]++
					kinds[value(r, id, "kind")]++
				}
				for name, n := range brands {
					if n > 1 {
						t.Errorf("%s, %s: shows %d items of the brand %s: %v", policy, mode, n, name, a.IDs())
					}
				}
				for name, n := range kinds {
					if n > 2 {
						t.Errorf("%s, %s: shows %d items of the kind %s: %v", policy, mode, n, name, a.IDs())
					}
				}
				if k%3 == 1 && (!slices.Contains(a.IDs(), "sku3") || slices.Contains(a.IDs(), "sku1")) ||
					k%3 == 2 && len(a.IDs()) > 3 || len(a.IDs()) == 0 {
					t.Errorf("%s, %s: request %d shows %v", policy, mode, k, a.IDs())
				}
			}
		}
	}
}

// In the mode explore, pages have propensities under limits that cross. Exploration by sets could not draw uniformly,
// so one item is replaced.
func TestPropensitiesUnderCrossingLimits(t *testing.T) {
	for _, mode := range []string{"sets", "swaps"} {
		e := opened(t, engine.Options{Store: new(memlog.Store)})
		put(t, e, "home", fmt.Sprintf(stalls, "ucb-mnl", mode))
		drawn := map[bool]int{}
		for k := range 40 {
			a := decide(t, e, "home", stand(fmt.Sprint(k), 60), 0)
			if a.Propensity == 0 {
				t.Errorf("%s: the propensity of %v is not known", mode, a.IDs())
			}
			drawn[a.Mode == offer.ByChance]++
		}
		if drawn[true] == 0 || drawn[false] == 0 {
			t.Errorf("%s: %v", mode, drawn)
		}
	}
}
