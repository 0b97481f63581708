//go:build !race

package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"vitrine/assortment"
	"vitrine/utility"
)

// The answer is the only allocation of a search by two workers.
func TestSearchAllocatesTheAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, m := range []utility.Model{utility.NewMLP(3, []int{4}, utility.Sigmoid), utility.NewLinear(3, true)} {
		o := hardPolicy(rng, m)
		x, s := hardItems(rng, 5*claimItems, 3), new(search)
		call := func() { s.top(o, m.(utility.Sketcher), x, assortment.Rules{Max: 10}, 2) }
		call()
		minimum := math.Inf(1) // the pool may be emptied at any time
		for range 5 {
			minimum = min(minimum, testing.AllocsPerRun(4, call))
		}
		if minimum > 1 {
			t.Errorf("%v: a search allocates %v times, want once", m, minimum)
		}
	}
}
