package decision

import (
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// explore returns what is shown in the mode "explore", and stores its propensity in o and its law
// in d.estimates.
func (d *decider) explore(o *eventlog.Offered, own vitrine.Offer, x *vitrine.Context, c *Config, share float64) vitrine.Assortment {
	draw := d.exploreSets
	if c.Explore == api.BySlots {
		draw = d.exploreSlots
	}
	shown := draw(o, own, x, c, share)
	if c.Record != "all" { // the law is that of positions among all items
		d.estimates.Law = nil
	}
	return shown
}

// exploreSets replaces the policy's set by one drawn uniformly, S ~ Unif(𝒮 \ {∅}), with
// probability ε. The propensity is that of the mixture,
//
//	π(S) = ε/|𝒮 \ {∅}| + (1 − ε) π_policy(S)
//
// where it is known: π_policy of the set drawn is, unless the policy is random
// and would have shown another one, and |𝒮| is, unless [assortment.Transversal.Uniform]
// is false. Then it is 0. The log has the law of a set of at most K items.
func (d *decider) exploreSets(o *eventlog.Offered, own vitrine.Offer, x *vitrine.Context, c *Config, share float64) vitrine.Assortment {
	family, n := x.Feasible.(assortment.Sampler), x.NumItems()
	if size, ok := family.(assortment.AtMost); ok {
		d.estimates.Law = &offer.Draw{Kind: offer.DrawSets, Epsilon: share, Size: min(int(size), n), Page: positions(own.Assortment)}
	}
	rng := d.coin.Numbered(c.Seed, d.estimates.Number, stream.Exploration)
	byChance := rng.Float64() < share
	drawn := family.Sample(nil, n, rng)
	shown := own.Assortment
	if byChance {
		shown, o.Mode = drawn, offer.ByChance
	}
	mine := 0.0
	slots, ok := family.(*assortment.Transversal)
	switch same := slices.Equal(shown, own.Assortment); {
	case ok && !slots.Uniform():
		o.Propensity = 0
		return shown
	case share == 1: // and π_policy has no part in it
	case own.Propensity == 0, own.Propensity < 1 && !same:
		o.Propensity = 0
		return shown
	case same:
		mine = own.Propensity
	}
	uniform := 0.0
	if len(shown) > 0 || len(drawn) == 0 {
		uniform = family.Propensity(n)
	}
	o.Propensity = min(float64(share*uniform)+float64((1-share)*mine), 1)
	return shown
}

// exploreSlots replaces one item of the policy's set by another, with probability ε: a swap drawn
// uniformly from the F swaps that the family allows. So the propensity is
//
//	π(S) = 1 − ε for the policy's set, and ε/F for another
//
// if the policy itself is certain, and not known otherwise. If there is no swap, the policy's set is
// shown.
func (d *decider) exploreSlots(o *eventlog.Offered, own vitrine.Offer, x *vitrine.Context, c *Config, share float64) vitrine.Assortment {
	n, page := x.NumItems(), own.Assortment
	law := &offer.Draw{Kind: offer.DrawSlots, Epsilon: share, Size: len(page), Page: positions(page)}
	d.estimates.Law = law
	inside := make([]bool, n)
	for _, i := range page {
		inside[i] = true
	}
	count := len(page) * (n - len(page))
	if _, free := x.Feasible.(assortment.AtMost); !free {
		law.Swaps, count = d.swaps(x, page, inside)
	}
	if count == 0 {
		o.Propensity = own.Propensity
		return page
	}
	rng := d.coin.Numbered(c.Seed, d.estimates.Number, stream.Exploration)
	byChance, swap := rng.Float64() < share, rng.IntN(count)
	o.Propensity = 0
	if own.Propensity == 1 && byChance {
		o.Propensity = share / float64(count)
	} else if own.Propensity == 1 {
		o.Propensity = 1 - share
	}
	if !byChance {
		return page
	}
	o.Mode = offer.ByChance
	for k := range page {
		for j := range n {
			if inside[j] || !law.Allows(k, j, n) {
				continue
			}
			if swap == 0 {
				return swapped(page, k, j)
			}
			swap--
		}
	}
	panic("decision: no such swap")
}

// swaps returns the swaps that the family of a context allows, and their number.
func (d *decider) swaps(x *vitrine.Context, page vitrine.Assortment, inside []bool) (may []byte, count int) {
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
