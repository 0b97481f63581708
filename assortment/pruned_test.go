package assortment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
)

// Among many items a few suffice: the set earns as much as Dinkelbach's iteration over all of them finds.
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
		c := vitrine.Constraint(k)
		if seed%3 == 0 { // every set contains an item of low utility
			i := rng.IntN(n)
			u[i] = -30
			var err error
			if c, err = NewQuota(Rules{Items: n, Max: int(k) + 1, Include: []int{i}}); err != nil {
				t.Fatal(err)
			}
		}
		w := &workspace{c: c, u: u, r: r, shift: math.Inf(1)}
		want := vitrine.ExpectedRevenue(w.maximizeRevenue(), u, r)
		if w.prune() != nil {
			found++
		}
		s, have := Maximize(nil, c, u, r)
		if !(have >= want*(1-1e-12)) || have != vitrine.ExpectedRevenue(s, u, r) ||
			!c.Contains(s) || !slices.IsSorted(s) {
			t.Errorf("seed %d, N = %d, %v: %v earns %v, the best set %v", seed, n, c, s, have, want)
		}
	}
	if found < 50 {
		t.Errorf("a few suffice in %d of 60 problems", found)
	}
}

// Among restricts the search to the given items and the pinned ones. The smallest gain ignores pinned items, and is 0
// if the quota allows more.
func TestFewAmong(t *testing.T) {
	r, u := []float64{9, 2, 9, 1, 3, 0}, []float64{0, 0.5, 0, 0, -1, 0.25}
	for _, c := range []struct {
		q     Rules
		items []int
		want  vitrine.Assortment
		least int // item with the smallest gain, or -1 for 0
	}{
		{Rules{Max: 1}, []int{1, 3, 4}, vitrine.Assortment{1}, 1},
		{Rules{Max: 3}, []int{1, 3, 4}, vitrine.Assortment{1, 4}, -1},
		{Rules{Max: 2, Exclude: []int{1}}, []int{1, 3, 4}, vitrine.Assortment{3, 4}, 3},
		{Rules{Max: 2, Include: []int{5}}, []int{1, 3, 4}, vitrine.Assortment{1, 5}, 1},
		{Rules{Max: 3, Include: []int{5}, Limits: []Limit{{Group: []int32{0, 1, 0, 1, 1, -1}, Max: 1}}},
			[]int{1, 3, 4}, vitrine.Assortment{1, 5}, -1},
	} {
		utilities := func(items []int) (some []float64) {
			for _, i := range items {
				some = append(some, u[i])
			}
			return some
		}
		best, of, revenue, gain := new(Pruned).Among(nil, c.q, c.items, utilities, r)
		want := 0.0
		if c.least >= 0 {
			want = math.Exp(u[c.least]) * (r[c.least] - revenue)
		}
		if !slices.Equal(best, c.want) || !slices.Equal(of, utilities(best)) ||
			math.Abs(gain-want) > 1e-15 || revenue != vitrine.ExpectedRevenue(best, u, r) {
			t.Errorf("%+v: %v of %v earns %v with the gain %v, want %v and %v",
				c.q, best, of, revenue, gain, c.want, want)
		}
	}
}
