package assortment_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
)

// permutations calls f with every order of s.
func permutations(s []int, k int, f func([]int)) {
	if k == len(s) {
		f(s)
		return
	}
	for i := k; i < len(s); i++ {
		s[k], s[i] = s[i], s[k]
		permutations(s, k+1, f)
		s[k], s[i] = s[i], s[k]
	}
}

// bestOrder returns the largest revenue over all orders of all sets, by the formula.
func bestOrder(c vitrine.Constraint, u, gamma, r []float64) float64 {
	best := math.Inf(-1)
	for _, s := range assortmenttest.Sets(c, len(u)) {
		permutations(slices.Clone([]int(s)), 0, func(order []int) {
			earned, sum := 0.0, 1.0
			for p, i := range order {
				effect := 0.0
				if len(gamma) > 0 {
					effect = gamma[min(p, len(gamma)-1)]
				}
				v := math.Exp(u[i] + effect)
				sum += v
				if r == nil {
					earned += v
				} else {
					earned += v * r[i]
				}
			}
			best = max(best, earned/sum)
		})
	}
	return best
}

func mustLaminar(t *testing.T, r assortment.Rules) *assortment.Quota {
	t.Helper()
	return fatal.Or(assortment.NewQuota(r))(t)
}

// instance draws utilities, place effects and revenues. The effects decrease or are arbitrary.
func instance(rng *rand.Rand, n int) (u, gamma, r []float64) {
	for range n {
		u = append(u, 2*rng.NormFloat64())
		r = append(r, rng.Float64()*float64(rng.IntN(4)))
	}
	for p := range rng.IntN(n + 2) {
		if rng.IntN(2) == 0 {
			gamma = append(gamma, -0.5*float64(p))
		} else {
			gamma = append(gamma, 1.5*rng.NormFloat64())
		}
	}
	if rng.IntN(4) == 0 {
		r = nil
	}
	return u, gamma, r
}

// For matroids, no order of any set earns more, by exhaustive search.
func TestMaximizeOrderedIsExactForMatroids(t *testing.T) {
	slots := fatal.Or(assortment.NewSlots(6, []assortment.Slot{
		{Name: "a", Exclude: []int{0, 1, 2}}, {Name: "b", Exclude: []int{3}}, {Name: "c", Exclude: []int{0, 4, 5}},
	}, 0))(t)
	demanding := fatal.Or(assortment.NewSlots(
		5, []assortment.Slot{{Name: "a"}, {Name: "b", Exclude: []int{0, 1}}, {Name: "c", Exclude: []int{2, 3, 4}}}, 2,
	))(t)
	for name, c := range map[string]struct {
		family vitrine.Constraint
		n      int
	}{
		"at most 3 of 6": {assortment.AtMost(3), 6},
		"at most 7 of 7": {assortment.AtMost(7), 7},
		"groups": {
			mustLaminar(t, assortment.Rules{Items: 6, Max: 4, Groups: []assortment.Group{
				{Name: "a", Items: []int{0, 1, 2, 3}, Max: 2}, {Name: "b", Items: []int{1, 2}, Max: 1},
			}}), 6,
		},
		"excluded": {mustLaminar(t, assortment.Rules{Items: 5, Max: 3, Exclude: []int{1, 4}}), 5},
		"at least 2 of 5": {
			mustLaminar(t, assortment.Rules{
				Items: 5, Min: 2, Max: 4, Groups: []assortment.Group{{Name: "a", Items: []int{0, 1, 2}, Max: 2}},
			}), 5,
		},
		"slots":         {slots, 6},
		"slots to fill": {demanding, 5},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(len(name))))
			trials := 60
			if c.n == 7 {
				trials = 12
			}
			for range trials {
				u, gamma, r := instance(rng, c.n)
				order, revenue := assortment.MaximizeOrdered(nil, c.family, u, gamma, r)
				want := bestOrder(c.family, u, gamma, r)
				if math.Abs(revenue-want) > 1e-12*(1+want) ||
					vitrine.OrderedRevenue(order, u, gamma, r) != revenue {
					t.Fatalf("u = %v, γ = %v, r = %v: order %v earns %v, the best %v", u, gamma, r, order, revenue, want)
				}
				if s := vitrine.Assortment(slices.Sorted(slices.Values(order))); s.Check(c.n) != nil ||
					!c.family.Contains(s) {
					t.Fatalf("order %v is not in the family", order)
				}
			}
		})
	}
}

// For other families, the answer earns nearly as much as the best order.
func TestMaximizeOrderedInOtherFamilies(t *testing.T) {
	pinned := mustLaminar(t, assortment.Rules{Items: 6, Max: 3, Include: []int{2}})
	demanded := mustLaminar(t, assortment.Rules{
		Items: 6, Max: 4, Groups: []assortment.Group{{Name: "a", Items: []int{0, 1, 2}, Min: 1, Max: 2}},
	})
	knapsack := quota(t, weighed(assortment.Rules{Max: 4}, []int{3, 2, 4, 1, 2, 3}, 6))
	crossing := crossing(t, []int{0, 0, 1, 1, 2, 2}, []int{0, 1, 0, 1, 0, 1}, []int{1, 1, 1}, []int{2, 1}, 3)
	for name, family := range map[string]vitrine.Constraint{
		"pinned": pinned, "demanded": demanded, "knapsack": knapsack, "crossing": crossing,
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, uint64(len(name))))
			const trials = 80
			lost := 0.0
			for range trials {
				u, gamma, r := instance(rng, 6)
				order, revenue := assortment.MaximizeOrdered(nil, family, u, gamma, r)
				want := bestOrder(family, u, gamma, r)
				if s := vitrine.Assortment(slices.Sorted(slices.Values(order))); !family.Contains(s) {
					t.Fatalf("order %v is not in the family", order)
				}
				if revenue > want*(1+1e-12) {
					t.Fatalf("u = %v, γ = %v, r = %v: %v earns %v, the best %v", u, gamma, r, order, revenue, want)
				}
				lost += (want - revenue) / trials
			}
			if lost > 0.02 {
				t.Errorf("mean loss %v", lost)
			}
		})
	}
}

// Without place effects the result equals Maximize's.
func TestMaximizeOrderedWithoutEffects(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		u, _, r := instance(rng, 30)
		for _, gamma := range [][]float64{nil, {0}, {0, 0, 0}} {
			_, revenue := assortment.MaximizeOrdered(nil, assortment.AtMost(4), u, gamma, r)
			_, want := assortment.Maximize(nil, assortment.AtMost(4), u, r)
			if math.Abs(revenue-want) > 1e-12*want {
				t.Fatalf("revenue %v, want %v", revenue, want)
			}
		}
	}
	if order, revenue := assortment.MaximizeOrdered(
		nil, assortment.AtMost(4), nil, []float64{0, -1}, nil,
	); len(order) != 0 || revenue != 0 {
		t.Errorf("of no items %v earns %v", order, revenue)
	}
	// An item that always sells earns as much as the set, so that its gain is 0 up to rounding. The best order leaves
	// it out, and fills the first place to show item 0 in the second.
	if order, revenue := assortment.MaximizeOrdered(nil, assortment.AtMost(3), []float64{0, -30, 300},
		[]float64{0, 1}, []float64{1, 0, 0.5}); !slices.Equal(order, []int{1, 0}) {
		t.Errorf("order %v earns %v", order, revenue)
	}
	u := []float64{700, 699, math.Inf(-1)}
	if order, revenue := assortment.MaximizeOrdered(
		nil, assortment.AtMost(2), u, []float64{0, -700}, []float64{1, 2, 5},
	); !slices.Equal(order, []int{1}) || revenue != 2 {
		t.Errorf("of huge utilities %v earns %v", order, revenue)
	}
}
