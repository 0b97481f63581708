package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Every policy fills its pages, drawn ones too, and a page that cannot be full shows all it can.
func TestPoliciesFillPages(t *testing.T) {
	for _, policy := range []string{"ucb-mnl", "ts-mnl", "auto", "eps-greedy-mnl", "uniform"} {
		for _, mode := range []string{"sets", "swaps"} {
			e := opened(t, engine.Options{Store: new(memlog.Store)})
			put(t, e, "home", strings.Replace(fmt.Sprintf(stalls, policy, mode), `"max_size":6`,
				`"max_size":6,"min_size":6`, 1))
			for k := range 40 {
				r := stand(fmt.Sprint(k), 12)
				for i := range r.Items {
					r.Items[i].Features[1], r.Items[i].Features[2] = api.Text("brand", fmt.Sprint("b", i%5)),
						api.Text("kind", fmt.Sprint("k", i%4))
					r.Items[i].Revenue = new([]float64{0.01, 10}[i%2]) // the cheap ones lower the revenue of a page
				}
				want := 5 // there are five brands
				if k%2 == 1 {
					r.Items, want = r.Items[:2], 2
				}
				a, err := e.Decide(t.Context(), "home", r, 0)
				if err != nil || len(a.IDs()) != want {
					t.Fatalf("%s, explore %s: %v, %v, want %d items", policy, mode, a.IDs(), err, want)
				}
				is(t, "outcome", e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 0), nil)
			}
		}
	}
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", fmt.Sprintf(stalls, "ucb-mnl", "sets"))
	r := stand("a", 5)
	r.MinSize, r.Capacity = 5, new(3.0)
	expect.Part(e.Decide(t.Context(), "home", r, 0))(t, "cannot be combined with min_size", "min_size with a capacity")
}
