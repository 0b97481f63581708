package offer

import (
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// Explored is a policy's offer after exploration.
type Explored struct {
	Shown      vitrine.Assortment
	ByChance   bool         // whether the set was drawn, and is not the policy's own
	Propensity float64      // 0 if it is not known
	Law        *SamplingLaw // nil if it is not known
}

// lawful is a random policy that can evaluate its own law.
type lawful interface {
	// Propensity returns the probability that the policy offers s, or 0 if it cannot compute one for x.
	Propensity(x *vitrine.Context, s vitrine.Assortment) float64
}

// probability returns π_policy(s), given the policy's own offer. Whether it is known depends on the policy and the
// request, never on s: otherwise the decisions with a propensity would be a biased sample.
func probability(pi vitrine.Policy, own vitrine.Offer, x *vitrine.Context,
	s vitrine.Assortment) (p float64, known bool) {
	same := slices.Equal(s, own.Assortment)
	l, ok := pi.(lawful)
	switch {
	case own.Propensity == 1 && same:
		return 1, true
	case own.Propensity == 1:
		return 0, true
	case own.Propensity == 0 || !ok:
		return 0, false
	case same:
		return own.Propensity, true
	}
	return l.Propensity(x, s), true
}

// ExploreSets replaces the policy's set by one drawn uniformly, S ~ Unif(𝒮 \ {∅}), with probability ε. The propensity
// is the mixture's,
//
//	π(S) = ε/|𝒮 \ {∅}| + (1 − ε) π_policy(S)
//
// It is 0 for all sets if |𝒮| is too large for a float64, or if the policy is random and cannot evaluate π_policy. The
// law, given the policy's own set, is known for families of all sets of at most K items or of exactly K, and for a
// single slot, which may exclude items, unless the policy is random and evaluates π_policy.
//
// Families that cannot be sampled uniformly, such as those under a capacity or of groups that cross, are explored by
// [ExploreSlots].
func ExploreSets(pi vitrine.Policy, own vitrine.Offer, x *vitrine.Context, share float64, rng *rand.Rand) (e Explored) {
	family, ok := assortment.SamplerOf(x.Feasible)
	if !ok {
		return ExploreSlots(own, x, share, rng)
	}
	n := x.NumItems()
	switch f := family.(type) {
	case assortment.AtMost:
		e.Law = &SamplingLaw{Kind: DrawSets, Epsilon: share, Size: min(int(f), n), Page: positions(own.Assortment)}
	case interface{ Full() (size int, ok bool) }:
		size, ok := f.Full()
		_, slots := f.(*assortment.Slots)
		switch {
		case ok:
			e.Law = &SamplingLaw{Kind: DrawPages, Epsilon: share, Size: size, Page: positions(own.Assortment)}
		case slots && size == 1 && len(own.Assortment) == 1 && n <= maxSwaps && (own.Propensity == 1 || own.Propensity == 0):
			e.Law = oneSlot(own.Assortment, x, share)
		}
	}
	e.ByChance = rng.Float64() < share
	drawn := family.Sample(nil, n, rng)
	if e.Shown = own.Assortment; e.ByChance {
		e.Shown = drawn
	}
	uniform, mine, known := family.Propensity(n), 0.0, true
	if share < 1 { // otherwise π_policy does not matter
		mine, known = probability(pi, own, x, e.Shown)
	}
	if !known || uniform == 0 {
		return e
	}
	if len(e.Shown) == 0 && len(drawn) > 0 {
		uniform = 0
	}
	e.Propensity = min(float64(share*uniform)+float64((1-share)*mine), 1)
	return e
}

// oneSlot returns the law of a single slot's item: drawing uniformly among F + 1 items shows one of the F others with
// probability ε F/(F + 1).
func oneSlot(page vitrine.Assortment, x *vitrine.Context, share float64) *SamplingLaw {
	inside := make([]bool, x.NumItems())
	inside[page[0]] = true
	may, count := swaps(x, page, inside)
	return &SamplingLaw{Kind: DrawSwaps, Epsilon: share * float64(count) / float64(count+1), Size: 1,
		Page: positions(page), Swaps: may}
}

// DrawSet draws a set without the policy: uniformly, as [ExploreSets] does, or, if the family cannot be sampled
// uniformly, the best set of random gains, as the policy "uniform" does, with propensity 0.
func DrawSet(pi vitrine.Policy, own vitrine.Offer, x *vitrine.Context, rng *rand.Rand) Explored {
	if _, ok := assortment.SamplerOf(x.Feasible); ok {
		return ExploreSets(pi, own, x, 1, rng)
	}
	gain := make([]float64, x.NumItems())
	for i := range gain {
		gain[i] = 1 - rng.Float64()
	}
	return Explored{Shown: slices.Clone(x.Feasible.MaxGain(nil, gain)), ByChance: true}
}

// ExploreSlots replaces one item of the policy's set by another, with probability ε: a swap drawn
// uniformly from the F swaps that the family allows. So the propensity is
//
//	π(S) = 1 − ε for the policy's set, and ε/F for another
//
// if the policy itself is certain. If the policy is random, the propensity is 0 for all sets: a set can be
// reached from too many others. If there is no swap, the policy's set is shown.
//
// If the family has to test more than maxSwaps swaps, F stays unknown: the propensity is 0, and there is no law.
func ExploreSlots(own vitrine.Offer, x *vitrine.Context, share float64, rng *rand.Rand) Explored {
	n, page := x.NumItems(), own.Assortment
	law := &SamplingLaw{Kind: DrawSwaps, Epsilon: share, Size: len(page), Page: positions(page)}
	e := Explored{Shown: page, Law: law}
	inside := make([]bool, n)
	for _, i := range page {
		inside[i] = true
	}
	count := len(page) * (n - len(page))
	if _, free := x.Feasible.(assortment.AtMost); !free {
		if count > maxSwaps {
			return drawSwap(page, x, share, inside, rng)
		}
		law.Swaps, count = swaps(x, page, inside)
	}
	certain := own.Propensity == 1
	if count == 0 {
		if certain {
			e.Propensity = 1
		}
		return e
	}
	var swap int
	e.ByChance, swap = rng.Float64() < share, rng.IntN(count)
	switch {
	case !certain:
	case e.ByChance:
		e.Propensity = share / float64(count)
	default:
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

// A family tests one swap in microseconds: one decision may not test all among a million items.
const (
	maxSwaps = 1 << 16
	maxDraws = 1 << 12
)

// drawSwap draws swaps until the family allows one. If the family allows none of maxDraws, the policy's set is shown.
func drawSwap(page vitrine.Assortment, x *vitrine.Context, share float64, inside []bool, rng *rand.Rand) Explored {
	if rng.Float64() < share {
		for range maxDraws {
			k, j := rng.IntN(len(page)), rng.IntN(len(inside))
			if inside[j] {
				continue
			}
			if s := swapped(page, k, j); x.Feasible.Contains(s) {
				return Explored{Shown: s, ByChance: true}
			}
		}
	}
	return Explored{Shown: page}
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
