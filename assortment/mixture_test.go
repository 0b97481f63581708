package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Compared with exhaustive search, no set exceeds the bound, and the set found is the best in almost all instances and
// never far from it. A single class is solved exactly.
func TestMaximizeMixture(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, trials = 8, 300
	missed, worst := 0, 0.0
	for trial := range trials {
		classes := 1 + trial%4
		m := assortment.Mixture{}
		left := 1.0
		for c := range classes {
			u := make([]float64, n)
			for i := range u {
				u[i] = 2 * rng.NormFloat64()
			}
			w := left
			if c < classes-1 {
				w *= rng.Float64()
			}
			left -= w
			m.Utility, m.Weight = append(m.Utility, u), append(m.Weight, w)
		}
		r := make([]float64, n)
		for i := range r {
			r[i] = math.Exp(rng.NormFloat64())
		}
		var family vitrine.Constraint = assortment.AtMost(3)
		if trial%3 == 0 {
			family = crossing(t, []int{0, 0, 0, 1, 1, 1, 2, 2},
				[]int{0, 1, 2, 0, 1, 2, 0, 1}, []int{2, 2, 2}, []int{1, 1, 1}, n)
		}
		s, revenue, bound, err := assortment.MaximizeMixture(nil, family, m, r)
		fatal.If(t, err)
		if !family.Contains(s) || revenue != m.Revenue(s, r) {
			t.Fatalf("%v earns %v, not %v", s, m.Revenue(s, r), revenue)
		}
		best := 0.0
		for set := range 1 << n {
			var other vitrine.Assortment
			for i := range n {
				if set>>i&1 == 1 {
					other = append(other, i)
				}
			}
			if family.Contains(other) {
				best = max(best, m.Revenue(other, r))
			}
		}
		if best > bound*(1+1e-12) || revenue > best*(1+1e-12) {
			t.Fatalf("the best set earns %v, ours %v, the bound is %v", best, revenue, bound)
		}
		if gap := 1 - revenue/best; gap > 1e-12 {
			missed++
			worst = max(worst, gap)
			if classes == 1 {
				t.Errorf("one class: %v earns %v, the best %v", s, revenue, best)
			}
		}
	}
	if missed > trials/20 || worst > 0.05 {
		t.Errorf("%d of %d sets are not the best; the worst earns %.1f%% less", missed, trials, 100*worst)
	}
}

// By hand: two classes of equal weight, v = (1, 3) and (3, 1), r = (2, 2).
func TestMixtureRevenue(t *testing.T) {
	m := assortment.Mixture{Utility: [][]float64{{0, math.Log(3)}, {math.Log(3), 0}}, Weight: []float64{0.5, 0.5}}
	if got := m.Revenue([]int{0}, []float64{2, 2}); math.Abs(got-(0.5*1+0.5*1.5)) > 1e-15 {
		t.Errorf("revenue %v", got)
	}
	if got := m.Revenue([]int{0, 1}, nil); math.Abs(got-0.8) > 1e-15 {
		t.Errorf("revenue %v", got)
	}
	// The search moves on from the best set of a class, one item, to the best set of the mixture, two items.
	s, revenue, bound, err := assortment.MaximizeMixture(nil, assortment.AtMost(2), assortment.Mixture{
		Utility: [][]float64{{5, -5, -5}, {-5, 5, -5}}, Weight: []float64{0.5, 0.5}}, []float64{1, 1.01, 0.1})
	if err != nil || fmt.Sprint(s) != "[0 1]" || !(revenue > 0.98 && bound >= revenue && bound < 1.01) {
		t.Errorf("%v earns %v, bound %v, %v", s, revenue, bound, err)
	}
	// Next to an item that a class always takes, its other items seem worthless until that item is dropped.
	taken := assortment.Mixture{Utility: [][]float64{{1, 0, 40}, {-1, 0, 0}}, Weight: []float64{0.3, 0.7}}
	s, revenue, _, err = assortment.MaximizeMixture(nil, assortment.AtMost(3), taken, []float64{2, 1, 1})
	if best := taken.Revenue([]int{0, 1}, []float64{2, 1, 1}); err != nil || revenue < best {
		t.Errorf("%v earns %v, the best %v, %v", s, revenue, best, err)
	}
	// A class without customers may contain items of utility −∞.
	_, revenue, _, err = assortment.MaximizeMixture(nil, assortment.AtMost(1), assortment.Mixture{
		Utility: [][]float64{{0, math.Inf(-1)}, {0, 1}}, Weight: []float64{1, 0}}, nil)
	if err != nil || revenue != 0.5 {
		t.Errorf("revenue %v, %v", revenue, err)
	}
	for want, items := range map[string][2]float64{
		"class 1: item 1 has utility NaN":                                   {math.NaN(), 1},
		"class 1: item 1 has utility +Inf":                                  {math.Inf(1), 1},
		"class 0: item 1 has revenue NaN: want a finite number, at least 0": {0, math.NaN()},
	} {
		expect.Message(assortment.MaximizeMixture(nil, assortment.AtMost(1), assortment.Mixture{
			Utility: [][]float64{{0, 0}, {0, items[0]}}, Weight: []float64{0.5, 0.5}}, []float64{1, items[1]}))(t, want)
	}
	for _, w := range [][]float64{{0.5, 0.4}, {1}, {1.5, -0.5}, {math.NaN(), 1}} {
		expect.Refused(assortment.MaximizeMixture(nil, assortment.AtMost(2), assortment.Mixture{
			Utility: m.Utility, Weight: w,
		}, nil))(t, "weights", w)
	}
}
