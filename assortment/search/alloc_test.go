//go:build !race

package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/utility"
)

// The answer is the only allocation of a search by two workers.
func TestSearchAllocatesTheAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, m := range []utility.Model{utility.NewMLP(3, []int{4}, utility.Sigmoid), utility.NewLinear(3, true)} {
		o := hardPolicy(rng, m)
		x, r := hardItems(rng, 5*claimItems, 3), unequal(rng, 5*claimItems)
		s := new(search)
		context := &vitrine.Context{Features: x, Revenue: r}
		for name, call := range map[string]func(){
			"equal revenues":   func() { s.top(o, m.(utility.Sketcher), x, assortment.Rules{Max: 10}, 2) },
			"unequal revenues": func() { s.maximize(o, m.(utility.Sketcher), assortment.AtMost(10), context, 2) },
		} {
			call()
			minimum := math.Inf(1) // the pool may be emptied at any time
			for range 5 {
				minimum = min(minimum, testing.AllocsPerRun(4, call))
			}
			if minimum > 1 {
				t.Errorf("%v, %s: a search allocates %v times, want once", m, name, minimum)
			}
		}
	}
}
