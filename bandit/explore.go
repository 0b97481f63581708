package bandit

import (
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
	"vitrine/assortment"
)

// explorer draws the set of an exploring round.
type explorer interface {
	// draw returns a set of the context's family, in dst's storage if it suffices.
	draw(dst vitrine.Assortment, x *vitrine.Context, rng *rand.Rand) vitrine.Assortment

	// probability returns the probability with which draw returns s. It is false if there is no closed form, or if it
	// underflows.
	probability(x *vitrine.Context, s vitrine.Assortment) (float64, bool)
}

// items explores item by item (Zhang and Luo 2024, Equation 4): it draws one of the n items that occur in some set of
// the family uniformly, and shows its smallest set S_i,
//
//	q(S) = (1/n) Σ_i 1{S = S_i},   S_i = {i} where that is feasible
//
// If the family forbids {i}, because it demands more items or pins some, S_i is [assortment.Smallest]: item i next to
// the fewest others. So each item is shown with probability 1/n at least, as the analysis of Equation 4 needs. If the
// empty set is the family's only set, it is drawn.
type items struct{ p Problem }

func (e items) draw(dst vitrine.Assortment, x *vitrine.Context, rng *rand.Rand) vitrine.Assortment {
	family, n := e.p.Family(x), x.NumItems()
	never := assortment.NeverShown(family, n)
	shown := numShown(never, n)
	if shown == 0 {
		return dst[:0]
	}
	i := rng.IntN(shown)
	if never != nil {
		i = nth(never, i)
	}
	return assortment.Smallest(dst, family, i, n)
}

func (e items) probability(x *vitrine.Context, s vitrine.Assortment) (float64, bool) {
	family, n := e.p.Family(x), x.NumItems()
	hits := 0
	smallest := assortments.Get().(*vitrine.Assortment)
	defer assortments.Put(smallest)
	for _, i := range s {
		*smallest = assortment.Smallest(*smallest, family, i, n)
		if slices.Equal(*smallest, s) {
			hits++
		}
	}
	if hits == 0 && len(s) > 0 {
		return 0, true
	}
	shown := numShown(assortment.NeverShown(family, n), n)
	if shown == 0 { // and s is ∅, which is then drawn for certain
		return 1, true
	}
	return float64(hits) / float64(shown), true
}

// assortments are scratch.
var assortments = sync.Pool{New: func() any { return new(vitrine.Assortment) }}

// numShown returns how many of n items are not marked.
func numShown(never []bool, n int) int {
	for _, marked := range never {
		if marked {
			n--
		}
	}
	return n
}

// nth returns the k-th item that is not marked, from 0.
func nth(never []bool, k int) int {
	for i, marked := range never {
		if marked {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	panic("bandit: no such item")
}

// sets explores by assortments, S ~ Unif(𝒮 \ {∅}), as Phase I of ONL-MNL does.
type sets struct{ uniform }

// probability is 1/|𝒮 \ {∅}| if the family can be sampled uniformly. ∅ is drawn only if it is the
// family's only set.
func (e sets) probability(x *vitrine.Context, s vitrine.Assortment) (float64, bool) {
	family, ok := assortment.SamplerOf(e.p.Family(x))
	if !ok {
		return 0, false
	}
	n := x.NumItems()
	p := family.Propensity(n)
	if len(s) == 0 && numShown(assortment.NeverShown(family, n), n) > 0 {
		return 0, p > 0
	}
	return p, p > 0
}
