package assortmenttest

import (
	"math"
	"slices"

	"vitrine"
)

// Sets returns the sets of the family over n items, by testing all 2ⁿ.
func Sets(c vitrine.Constraint, n int) []vitrine.Assortment {
	var sets []vitrine.Assortment
	for bits := range 1 << n {
		s := vitrine.Assortment{}
		for i := range n {
			if bits>>i&1 == 1 {
				s = append(s, i)
			}
		}
		if c.Contains(s) {
			sets = append(sets, s)
		}
	}
	return sets
}

// Best returns the largest expected revenue over the given sets.
func Best(sets []vitrine.Assortment, u, r []float64) float64 {
	best := math.Inf(-1)
	for _, s := range sets {
		best = max(best, vitrine.ExpectedRevenue(s, u, r))
	}
	return best
}

// Neighbours returns the sets of the family that differ from s by an addition, a removal or a swap.
func Neighbours(c vitrine.Constraint, s vitrine.Assortment, n int) []vitrine.Assortment {
	var sets []vitrine.Assortment
	visit := func(other vitrine.Assortment) {
		if c.Contains(other) {
			sets = append(sets, other)
		}
	}
	with := func(s vitrine.Assortment, i int) vitrine.Assortment {
		at, _ := slices.BinarySearch(s, i)
		return slices.Insert(slices.Clone(s), at, i)
	}
	for i := range n {
		if !slices.Contains(s, i) {
			visit(with(s, i))
		}
	}
	for at := range s {
		without := slices.Delete(slices.Clone(s), at, at+1)
		visit(without)
		for i := range n {
			if !slices.Contains(s, i) {
				visit(with(without, i))
			}
		}
	}
	return sets
}

// rivals returns the sets to compare an answer with: the whole family, or the answer's neighbours if there are too many
// items.
func rivals(c vitrine.Constraint, n int) func(s vitrine.Assortment) []vitrine.Assortment {
	if n > maxEnumerated {
		return func(s vitrine.Assortment) []vitrine.Assortment { return Neighbours(c, s, n) }
	}
	sets := Sets(c, n)
	return func(vitrine.Assortment) []vitrine.Assortment { return sets }
}
