package decision

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/stream"
	"vitrine/offpolicy"
	"vitrine/service/api"
	"vitrine/service/eventlog"
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
		d.estimates.law = nil
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
		d.estimates.law = &Draw{Kind: DrawSets, Epsilon: share, Size: min(int(size), n), Page: positions(own.Assortment)}
	}
	rng := d.coin.Numbered(c.Seed, d.estimates.number, stream.Exploration)
	byChance := rng.Float64() < share
	drawn := family.Sample(nil, n, rng)
	shown := own.Assortment
	if byChance {
		shown, o.Mode = drawn, ByChance
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
	law := &Draw{Kind: DrawSlots, Epsilon: share, Size: len(page), Page: positions(page)}
	d.estimates.law = law
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
	rng := d.coin.Numbered(c.Seed, d.estimates.number, stream.Exploration)
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
	o.Mode = ByChance
	for k := range page {
		for j := range n {
			if inside[j] || !law.allows(k, j, n) {
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

// Draw says how the set of an offer was drawn, given the policy's own one. In bytes:
//
//	kind     1 byte    1 sets, 2 slots, 3 pages
//	ε        8 bytes   a float, little endian, in [0, 1]
//	size     uvarint   of sets the largest size, of pages the size
//	page     uvarint   the number of items of the policy's own set, and where they are, as uvarints
//	                   that increase
//	swaps    bytes     of slots: a bit for each item of the page and each item of the request, which
//	                   may replace it; none if all may
type Draw struct {
	Kind    uint8
	Epsilon float64  // the probability that the set is drawn, and is not the policy's own
	Size    int      // K
	Page    []uint32 // the policy's own set: positions in Offered.ItemIDs, increasing
	Swaps   []byte   // nil if all swaps are allowed
}

// Kinds of a [Draw].
const (
	DrawSets  = 1 + iota // uniformly from the nonempty sets of at most Size items
	DrawSlots            // the page with one item replaced
	DrawPages            // uniformly from the sets of exactly Size items
)

// allows reports whether item j of n may replace the k-th item of the page.
func (l *Draw) allows(k, j, n int) bool {
	at := k*n + j
	return l.Swaps == nil || at/8 < len(l.Swaps) && l.Swaps[at/8]>>(at%8)&1 == 1
}

func (l *Draw) encode(dst []byte) []byte {
	dst = appendFloat(append(dst, l.Kind), l.Epsilon)
	dst = binary.AppendUvarint(dst, uint64(l.Size))
	dst = binary.AppendUvarint(dst, uint64(len(l.Page)))
	for _, i := range l.Page {
		dst = binary.AppendUvarint(dst, uint64(i))
	}
	return appendString(dst, string(l.Swaps))
}

// draw takes a law.
func (c *cutter) draw() *Draw {
	l := &Draw{Kind: c.byte(), Epsilon: c.float(), Size: int(c.uvarint(math.MaxInt32)), Page: make([]uint32, c.length())}
	for k := range l.Page {
		if l.Page[k] = uint32(c.uvarint(math.MaxInt32)); k > 0 && l.Page[k] <= l.Page[k-1] {
			c.fail()
		}
	}
	if swaps := c.string(); swaps != "" {
		l.Swaps = []byte(swaps)
	}
	if l.Kind < DrawSets || l.Kind > DrawPages || !(l.Epsilon >= 0 && l.Epsilon <= 1) || l.Swaps != nil && l.Kind != DrawSlots {
		c.fail()
	}
	return l
}

// DrawOf returns how the set of an offer was drawn. It returns nil if the log does not say it: for offers without
// the rows of all candidates, and for uniform sets under rules.
func DrawOf(o *eventlog.Offered) *Draw {
	e, err := decodeEstimates(o.Answer, len(o.Shown))
	if err != nil || e.law == nil || e.law.check(len(o.ItemIDs)) != nil {
		return nil
	}
	return e.law
}

// check reports what a law of a request of n items cannot have.
func (l *Draw) check(n int) error {
	for k, i := range l.Page {
		if int(i) >= n || k > 0 && i <= l.Page[k-1] {
			return fmt.Errorf("the policy's own set %v is not one of %d items", l.Page, n)
		}
	}
	switch {
	case l.Kind < DrawSets || l.Kind > DrawPages:
		return fmt.Errorf("sets of kind %d are not known", l.Kind)
	case !(l.Epsilon >= 0 && l.Epsilon <= 1):
		return fmt.Errorf("the share of drawn sets is %v: must be in [0, 1]", l.Epsilon)
	case l.Kind != DrawSlots && (l.Size < 1 || l.Size > n):
		return fmt.Errorf("sets of %d of %d items cannot be drawn", l.Size, n)
	case l.Swaps != nil && (l.Kind != DrawSlots || len(l.Swaps) != (len(l.Page)*n+7)/8):
		return fmt.Errorf("%d bytes of swaps for %d items of %d", len(l.Swaps), len(l.Page), n)
	}
	return nil
}

// Law returns the law of the set that is shown, of n items.
func (l *Draw) Law(n int) offpolicy.Law {
	page := make(vitrine.Assortment, len(l.Page))
	for k, i := range l.Page {
		page[k] = int(i)
	}
	switch {
	case l.Kind == DrawSlots && l.Swaps == nil:
		return offpolicy.Swaps(l.Epsilon, n, page, nil)
	case l.Kind == DrawSlots:
		may := make([][]bool, len(page))
		for k := range may {
			may[k] = make([]bool, n)
			for j := range n {
				may[k][j] = l.allows(k, j, n)
			}
		}
		return offpolicy.Swaps(l.Epsilon, n, page, may)
	case l.Kind == DrawPages:
		return offpolicy.EpsilonPages(l.Epsilon, n, l.Size, page)
	}
	return offpolicy.EpsilonSets(l.Epsilon, n, l.Size, page)
}

// LawOf returns the law by which the set of an offer was drawn, or nil if the log does not say it. A policy in the
// mode learn that showed its set with probability 1 has a law, too.
func LawOf(o *eventlog.Offered) offpolicy.Law {
	n := len(o.ItemIDs)
	if n < o.Candidates || n == 0 {
		return nil
	}
	l := DrawOf(o)
	if l == nil && o.Propensity == 1 && o.Mode == ByPolicy && len(o.Shown) > 0 {
		l = &Draw{Kind: DrawPages, Size: len(o.Shown)}
		for _, i := range o.Shown {
			l.Page = append(l.Page, uint32(i))
		}
		slices.Sort(l.Page)
	}
	if l == nil {
		return nil
	}
	return l.Law(n)
}
