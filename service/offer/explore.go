package offer

import (
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// Explored is what chance makes of a policy's offer.
type Explored struct {
	Shown      vitrine.Assortment
	ByChance   bool    // whether the set was drawn, and is not the policy's own
	Propensity float64 // 0 if it is not known
	Law        *Draw   // nil if it is not known
}

// ExploreSets replaces the policy's set by one drawn uniformly, S ~ Unif(𝒮 \ {∅}), with
// probability ε. The propensity is that of the mixture,
//
//	π(S) = ε/|𝒮 \ {∅}| + (1 − ε) π_policy(S)
//
// where it is known: π_policy of the set drawn is, unless the policy is random
// and would have shown another one, and |𝒮| is, unless [assortment.Transversal.Uniform]
// is false. Then it is 0. The law is known of a set of at most K items.
func ExploreSets(own vitrine.Offer, x *vitrine.Context, share float64, rng *rand.Rand) (e Explored) {
	family, n := x.Feasible.(assortment.Sampler), x.NumItems()
	if size, ok := family.(assortment.AtMost); ok {
		e.Law = &Draw{Kind: DrawSets, Epsilon: share, Size: min(int(size), n), Page: positions(own.Assortment)}
	}
	e.ByChance = rng.Float64() < share
	drawn := family.Sample(nil, n, rng)
	if e.Shown = own.Assortment; e.ByChance {
		e.Shown = drawn
	}
	mine := 0.0
	slots, ok := family.(*assortment.Transversal)
	switch same := slices.Equal(e.Shown, own.Assortment); {
	case ok && !slots.Uniform():
		return e
	case share == 1: // and π_policy has no part in it
	case own.Propensity == 0, own.Propensity < 1 && !same:
		return e
	case same:
		mine = own.Propensity
	}
	uniform := 0.0
	if len(e.Shown) > 0 || len(drawn) == 0 {
		uniform = family.Propensity(n)
	}
	e.Propensity = min(float64(share*uniform)+float64((1-share)*mine), 1)
	return e
}

// ExploreSlots replaces one item of the policy's set by another, with probability ε: a swap drawn
// uniformly from the F swaps that the family allows. So the propensity is
//
//	π(S) = 1 − ε for the policy's set, and ε/F for another
//
// if the policy itself is certain, and not known otherwise. If there is no swap, the policy's set is
// shown.
func ExploreSlots(own vitrine.Offer, x *vitrine.Context, share float64, rng *rand.Rand) Explored {
	n, page := x.NumItems(), own.Assortment
	law := &Draw{Kind: DrawSlots, Epsilon: share, Size: len(page), Page: positions(page)}
	e := Explored{Shown: page, Law: law}
	inside := make([]bool, n)
	for _, i := range page {
		inside[i] = true
	}
	count := len(page) * (n - len(page))
	if _, free := x.Feasible.(assortment.AtMost); !free {
		law.Swaps, count = swaps(x, page, inside)
	}
	if count == 0 {
		e.Propensity = own.Propensity
		return e
	}
	var swap int
	e.ByChance, swap = rng.Float64() < share, rng.IntN(count)
	if own.Propensity == 1 && e.ByChance {
		e.Propensity = share / float64(count)
	} else if own.Propensity == 1 {
		e.Propensity = 1 - share
	}
	if !e.ByChance {
		return e
	}
	for k := range page {
		for j := range n {
			if inside[j] || !law.Allows(k, j, n) {
				continue
			}
			if swap == 0 {
				e.Shown = swapped(page, k, j)
				return e
			}
			swap--
		}
	}
	panic("offer: no such swap")
}

// swaps returns the swaps that the family of a context allows, and their number.
func swaps(x *vitrine.Context, page vitrine.Assortment, inside []bool) (may []byte, count int) {
	n := len(inside)
	may = make([]byte, (len(page)*n+7)/8)
	for k := range page {
		for j := range n {
			if !inside[j] && x.Feasible.Contains(swapped(page, k, j)) {
				may[(k*n+j)/8] |= 1 << ((k*n + j) % 8)
				count++
			}
		}
	}
	return may, count
}

// swapped returns the page with item j in the place of its k-th one.
func swapped(page vitrine.Assortment, k, j int) vitrine.Assortment {
	s := slices.Delete(slices.Clone(page), k, k+1)
	at, _ := slices.BinarySearch(s, j)
	return slices.Insert(s, at, j)
}

func positions(s vitrine.Assortment) []uint32 {
	list := make([]uint32, len(s))
	for k, i := range s {
		list[k] = uint32(i)
	}
	return list
}
