package assortment

import (
	"fmt"
	"math"
	"slices"

	"vitrine"
)

// Mixture is a population of several classes of customers, each choosing by the MNL model: the classes of a latent
// class model, or the draws of a mixed logit.
type Mixture struct {
	Utility [][]float64 // by class: the utilities of the N items
	Weight  []float64   // by class: its share; shares sum to 1
}

// Revenue returns the expected revenue of S, Σ_c w_c R_c(S). A nil r means 1 for all.
func (m Mixture) Revenue(s vitrine.Assortment, r []float64) float64 {
	sum := 0.0
	for c, u := range m.Utility {
		sum += float64(m.Weight[c] * vitrine.ExpectedRevenue(s, u, r))
	}
	return sum
}

// MaximizeMixture searches the family for a set of large expected revenue under a mixture. It returns the set, its
// revenue, and an upper bound on the revenue of every set in the family. Finding the best set is NP-hard even with two
// classes (Rusmevichientong, Shmoys, Tong and Topaloglu 2014).
//
// The search starts from the best of these sets: the optimum of each class, and the optimum for a customer with the
// average utilities. It then adds, drops or exchanges single items, always making the change that earns the most, until
// no change improves. The bound is Σ_c w_c max_S R_c(S): the shop's earnings if it knew each customer's class. A round
// costs O(|S| N) revenues of O(C) each.
//
// r ≥ 0; nil means 1 for all. MaximizeMixture panics unless each class contains a utility for each item, and a non-nil r a
// revenue. It returns an error if the weights are not shares, or if a utility is NaN or +∞ or a revenue is not a finite
// number, at least 0.
func MaximizeMixture(
	dst vitrine.Assortment, c vitrine.Constraint, m Mixture, r []float64,
) (s vitrine.Assortment, revenue, bound float64, err error) {
	total := 0.0
	for _, w := range m.Weight {
		if !(w >= 0) {
			return nil, 0, 0, fmt.Errorf("a class has weight %v: want a number, at least 0", w)
		}
		total += w
	}
	if len(m.Weight) != len(m.Utility) || math.Abs(total-1) > 1e-9 {
		return nil, 0, 0, fmt.Errorf("%d weights of %d classes sum to %v: want 1", len(m.Weight), len(m.Utility), total)
	}
	mean := make([]float64, len(m.Utility[0]))
	for k, u := range m.Utility {
		if err := checkItems(u, r); err != nil {
			return nil, 0, 0, fmt.Errorf("class %d: %w", k, err)
		}
		best, alone := Maximize(nil, c, u, r)
		bound += float64(m.Weight[k] * alone)
		if v := m.Revenue(best, r); s == nil || v > revenue {
			s, revenue = best, v
		}
		for i, v := range u {
			if m.Weight[k] > 0 { // 0 times −∞ is no number
				mean[i] += float64(m.Weight[k] * v)
			}
		}
	}
	best, _ := Maximize(nil, c, mean, r)
	if v := m.Revenue(best, r); v > revenue {
		s, revenue = best, v
	}
	for {
		next, v := m.neighbour(c, s, r)
		if !(v > revenue*(1+rounding(len(s)+len(m.Utility)))) {
			break
		}
		s, revenue = next, v
	}
	return append(dst[:0], s...), revenue, max(bound, revenue), nil
}

// neighbour returns the best set of the family that differs from s by one item added, dropped or exchanged.
func (m Mixture) neighbour(
	c vitrine.Constraint, s vitrine.Assortment, r []float64,
) (best vitrine.Assortment, revenue float64) {
	revenue = math.Inf(-1)
	drops := append([]int{-1}, s...)
	sums := make([]*mixtureSums, len(drops))
	for k, drop := range drops {
		sums[k] = m.sums(exchanged(s, drop, -1), r)
	}
	for add := -1; add < len(m.Utility[0]); add++ {
		if add >= 0 && slices.Contains(s, add) {
			continue
		}
		for k, drop := range drops {
			if v := sums[k].with(add); (drop >= 0 || add >= 0) && v > revenue {
				if t := exchanged(s, drop, add); c.Contains(t) {
					best, revenue = t, v
				}
			}
		}
	}
	if best != nil {
		revenue = m.Revenue(best, r)
	}
	return best, revenue
}

// exchanged returns s with item drop removed and item add inserted. −1 stands for no item.
func exchanged(s vitrine.Assortment, drop, add int) vitrine.Assortment {
	t := make(vitrine.Assortment, 0, len(s)+1)
	for _, i := range s {
		if i != drop {
			t = append(t, i)
		}
	}
	if add >= 0 {
		at, _ := slices.BinarySearch(t, add)
		t = slices.Insert(t, at, add)
	}
	return t
}

// mixtureSums holds Σ exp(u) and Σ r exp(u) of a set for each class, relative to the class's largest utility. The first
// sum includes the outside option.
type mixtureSums struct {
	m      Mixture
	r      []float64
	top    []float64
	weight []float64 // Σ exp(u − top)
	earned []float64 // Σ r exp(u − top)
}

func (m Mixture) sums(s vitrine.Assortment, r []float64) *mixtureSums {
	q := &mixtureSums{m: m, r: r}
	for _, u := range m.Utility {
		top := slices.Max(append([]float64{0}, u...))
		weight, earned := math.Exp(-top), 0.0
		for _, i := range s {
			v := math.Exp(u[i] - top)
			weight += v
			earned += float64(v * vitrine.RevenueOf(r, i))
		}
		q.top, q.weight, q.earned = append(q.top, top), append(q.weight, weight), append(q.earned, earned)
	}
	return q
}

// with returns the revenue of the set with item add, or of the set itself for −1.
func (q *mixtureSums) with(add int) float64 {
	revenue := 0.0
	for c, u := range q.m.Utility {
		weight, earned := q.weight[c], q.earned[c]
		if add >= 0 {
			v := math.Exp(u[add] - q.top[c])
			weight, earned = weight+v, earned+float64(v*vitrine.RevenueOf(q.r, add))
		}
		if weight > 0 {
			revenue += q.m.Weight[c] * earned / weight
		}
	}
	return revenue
}
