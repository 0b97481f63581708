package search

import (
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

const (
	fewItems   = 512 // the number of items of the largest utilities to begin with, or fewPerSlot for each item shown
	fewPerSlot = 32
	fewGrowth  = 16 // by which factor their number may grow
)

// sizeOfFew returns how many items [search.few] begins with.
func sizeOfFew(k int) int { return max(fewItems, fewPerSlot*k) }

// few finds the best set of at most k items for unequal revenues among a few items, C: at first those of the largest
// utilities. Let S be the best set of C, R = R(S), τ the smallest gain v_i (r_i − R) in S, 0 if S has fewer than k
// items, and v the largest weight outside C. S is the best set if no gain outside C is larger than τ, and that is so
// for revenues up to
//
//	ρ = R + τ/v
//
// Items with larger revenues join C, until there are none outside. ok is false if C grows beyond fewGrowth times the size
// at first. Another set of the same expected revenue, up to rounding, may be the best of all items.
func (s *search) few(o *Optimistic, sketcher utility.Sketcher, k, size int, x *vitrine.Context, workers int) (best vitrine.Assortment, ok bool) {
	items := s.largest(o, sketcher, x, size, workers)
	full, least := len(items) == size, math.Inf(-1)
	for {
		z := s.of(o, x, items)
		if full && math.IsInf(least, -1) {
			least = slices.Min(z)
		}
		s.revenue = scratch.Grow(s.revenue, len(items))
		for j, i := range items {
			s.revenue[j] = x.Revenue[i]
		}
		var revenue float64
		best, revenue = assortment.Maximize(best, assortment.AtMost(k), z, s.revenue)
		joined := len(items)
		if full {
			items = join(items, x.Revenue, s.worth(best, z, revenue, least, k), fewGrowth*size)
		}
		switch len(items) {
		case joined:
			for j, i := range best {
				best[j] = items[i]
			}
			return best, true
		case fewGrowth * size:
			return nil, false
		}
	}
}

// worth returns ρ, less what rounding may add to it, for the best set of C and the largest log v.
func (s *search) worth(best vitrine.Assortment, z []float64, revenue, least float64, k int) float64 {
	tau := 0.0 // τ/v
	if len(best) == k {
		tau = math.Inf(1)
		for _, j := range best {
			tau = min(tau, portable.Exp(z[j]-least)*(s.revenue[j]-revenue))
		}
	}
	const margin = 1e-9
	return revenue + tau*(1-margin) - margin*revenue
}

// join adds the other items whose revenue is above rho, or is not comparable with it, until there are most of them.
func join(items []int, revenue []float64, rho float64, most int) []int {
	had := items
	for i, r := range revenue {
		if !(r <= rho) && len(items) < most {
			if _, there := slices.BinarySearch(had, i); !there {
				items = append(items, i)
			}
		}
	}
	slices.Sort(items)
	return items
}

// largest returns the items of the largest optimistic utilities above −∞, in increasing order.
func (s *search) largest(o *Optimistic, sketcher utility.Sketcher, x *vitrine.Context, size, workers int) []int {
	if o.Radius != 0 {
		return s.top(o, sketcher, x.Features, size, workers)
	}
	s.z = o.utilities(s, s.z, x)
	s.best.reset(size)
	for i, z := range s.z {
		if !s.best.full() || z > s.best.z[0] {
			s.best.add(i, z)
		}
	}
	return slices.Sorted(slices.Values(s.best.items))
}

// of returns the optimistic utilities of some items.
func (s *search) of(o *Optimistic, x *vitrine.Context, items []int) []float64 {
	s.some = o.utilities(s, s.some, &vitrine.Context{Features: s.rows.Rows(x.Features, items)})
	return s.some
}
