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

// The best set of given items is that of these items, and its smallest gain is 0 if the quota allows more.
func TestFewAmong(t *testing.T) {
	items, r := []int{1, 3, 4}, []float64{9, 2, 9, 1, 3}
	u := []float64{0.5, 0, -1}
	for k, want := range []struct {
		set  vitrine.Assortment
		gain float64
	}{1: {vitrine.Assortment{0}, math.Exp(0.5) * (2 - 2*math.Exp(0.5)/(1+math.Exp(0.5)))}, 3: {vitrine.Assortment{0, 2}, 0}} {
		if k%2 == 0 {
			continue
		}
		best, revenue, gain := new(Few).Among(nil, Quota{Size: k}, items, u, r)
		if !slices.Equal(best, want.set) || math.Abs(gain-want.gain) > 1e-15 || revenue != vitrine.ExpectedRevenue(best, u, []float64{2, 1, 3}) {
			t.Errorf("of %d items: %v earns %v with the gain %v, want %v and %v", k, best, revenue, gain, want.set, want.gain)
		}
	}
}
