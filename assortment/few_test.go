package assortment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
)

// Among many items a few suffice: the set earns what Dinkelbach's iteration over all of them finds.
func TestFewOfMany(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n, k := 9000+rng.IntN(3000), AtMost(1+rng.IntN(15))
		u, r := make([]float64, n), make([]float64, n)
		spread, tail := []float64{0, 0.3, 1, 4}[rng.IntN(4)], []float64{0.01, 0.3, 2}[rng.IntN(3)]
		for i := range u {
			u[i], r[i] = spread*rng.NormFloat64()-2, math.Exp(tail*rng.NormFloat64())
			if rng.IntN(100) == 0 {
				u[i] = math.Inf(-1)
			}
		}
		w := &workspace{c: k, b: &Bounds{Lower: u, Upper: u}, r: r, shift: math.Inf(1)}
		want := vitrine.ExpectedRevenue(w.maximizeRevenue(), u, r)
		if w.maximizeFew() != nil {
			found++
		}
		s, have := Maximize(nil, k, u, r)
		if !(have >= want*(1-1e-12)) || have != vitrine.ExpectedRevenue(s, u, r) || !k.Contains(s) || !slices.IsSorted(s) {
			t.Errorf("seed %d, N = %d, %v: %v earns %v, the best set %v", seed, n, k, s, have, want)
		}
	}
	if found < 50 {
		t.Errorf("a few suffice in %d of 60 problems", found)
	}
}
