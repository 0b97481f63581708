package bandit

import (
	"math"
	"slices"
	"testing"

	"vitrine"
)

// A page is in the order that earns most under the means of the slots' samples.
func TestPagesAreInTheBestOrder(t *testing.T) {
	rng := newRand()
	for range 200 {
		const n, slots = 6, 4
		o := &mixture{places: slots - 1, effects: []float64{0, rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}}
		w := &mixtureScratch{n: n, z: make([]float64, n*slots), expert: make([]int, slots)}
		for i := range w.z {
			w.z[i] = rng.NormFloat64() - 2
		}
		revenue, mean := make([]float64, n), make([]float64, n)
		for i := range n {
			revenue[i] = 1 + rng.Float64()/4
			for k := range slots {
				mean[i] += w.z[k*n+i] / slots
			}
		}
		s := vitrine.Assortment(slices.Sorted(slices.Values(rng.Perm(n)[:slots])))
		got := o.order(w, s, revenue)
		if !slices.Equal(slices.Sorted(slices.Values(got)), s) {
			t.Fatalf("the order %v is not one of %v", got, s)
		}
		best := math.Inf(-1)
		var try func(order []int)
		try = func(order []int) {
			if len(order) == slots {
				best = max(best, vitrine.OrderedRevenue(order, mean, o.effects, revenue))
			}
			for _, i := range s {
				if !slices.Contains(order, i) {
					try(append(slices.Clone(order), i))
				}
			}
		}
		try(nil)
		wantNear(t, "the revenue of the order", vitrine.OrderedRevenue(got, mean, o.effects, revenue), best, 1e-12)
	}
	if got := (&mixture{}).order(nil, vitrine.Assortment{1}, nil); got != nil {
		t.Errorf("without position effects the order is %v", got)
	}
}
