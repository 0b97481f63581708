package decision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A page that must be full shows as many items as size and the rules allow. The family of its sets is that of the same rules
// without fill, by exhaustive search, less all smaller sets.
func TestFilledPages(t *testing.T) {
	const n = 7
	rng := rand.New(rand.NewPCG(8, 1))
	u, revenue := make([]float64, n), make([]float64, n)
	for trial := range 60 {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":4,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],"policy":{"name":"uniform"}}`)))(t)
		r := stand("a", n)
		if rng.IntN(2) == 0 {
			c.AtMost = append(c.AtMost, api.Limit{Feature: "brand", Most: 1})
		}
		if rng.IntN(2) == 0 {
			r.AtMost = []api.Limit{{Feature: "kind", Most: 1}}
		}
		if rng.IntN(2) == 0 {
			r.Exclude = []string{"sku1", "sku4"}
		}
		if rng.IntN(2) == 0 {
			r.Include = []string{"sku2"}
		}
		r.Size = rng.IntN(5)
		sets := func() (all []vitrine.Assortment) {
			_, _, _, _, family := decision.Rivals(c, r, nil, u, revenue)
			for bits := range 1 << n {
				var s vitrine.Assortment
				for i := range n {
					if bits>>i&1 == 1 {
						s = append(s, i)
					}
				}
				if family.Contains(s) {
					all = append(all, s)
				}
			}
			return all
		}
		loose := sets()
		largest := 0
		for _, s := range loose {
			largest = max(largest, len(s))
		}
		want := slices.DeleteFunc(loose, func(s vitrine.Assortment) bool { return len(s) < largest })
		if trial%2 == 0 {
			r.Fill = true
		} else {
			c.Fill = true
		}
		if have := sets(); !slices.EqualFunc(have, want, slices.Equal) {
			t.Fatalf("%+v of the rules %+v: %v, want %v", r, c.AtMost, have, want)
		}
	}
}

// Every policy fills its pages, also those that are drawn, and a page that cannot be full has what there is.
func TestPoliciesFillPages(t *testing.T) {
	for _, policy := range []string{"ucb-mnl", "ts-mnl", "auto", "eps-greedy-mnl", "uniform"} {
		for _, mode := range []string{"sets", "slots"} {
			e := opened(t, decision.Options{Store: new(memlog.Store)})
			put(t, e, "home", strings.Replace(fmt.Sprintf(stalls, policy, mode), `"max_size":6`, `"max_size":6,"fill":true`, 1))
			for k := range 40 {
				r := stand(fmt.Sprint(k), 12)
				for i := range r.Items {
					r.Items[i].Features[1], r.Items[i].Features[2] = api.Text("brand", fmt.Sprint("b", i%5)), api.Text("kind", fmt.Sprint("k", i%4))
					r.Items[i].Revenue = new([]float64{0.01, 10}[i%2]) // the cheap ones lower the revenue of a page
				}
				want := 5 // there are five brands
				if k%2 == 1 {
					r.Items, want = r.Items[:2], 2
				}
				a, err := e.Decide(t.Context(), "home", r, 0)
				if err != nil || len(a.Shown) != want {
					t.Fatalf("%s, explore %s: %v, %v, want %d items", policy, mode, a.Shown, err, want)
				}
				is(t, "outcome", e.Outcome(t.Context(), "home", a.Decision, a.Shown[0], 0), nil)
			}
		}
	}
	e := opened(t, decision.Options{Store: new(memlog.Store)})
	put(t, e, "home", fmt.Sprintf(stalls, "ucb-mnl", "sets"))
	r := stand("a", 5)
	r.Fill, r.Capacity = true, new(3.0)
	if _, err := e.Decide(t.Context(), "home", r, 0); err == nil || !strings.Contains(err.Error(), "cannot be combined with a capacity") {
		t.Errorf("fill with a capacity: %v", err)
	}
}
