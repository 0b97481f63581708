package assortment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
)

// Sampler is implemented by families that can be sampled uniformly, S ~ Unif(𝒮 \ {∅}),
// as Phase I of Algorithm 1 does. Ask [SamplerOf] whether a family can.
type Sampler interface {
	vitrine.Constraint

	// Sample returns a set drawn uniformly from the nonempty sets of the family over n
	// items, in dst's storage if it suffices. It returns the empty set if there are no
	// others.
	Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment

	// Propensity returns the probability of each nonempty set, one over their number,
	// or 1 if there are none. It is 0 if their number is unknown, and underflows to 0 for
	// more than about 1e323 sets.
	Propensity(n int) float64
}

// SamplerOf returns the family if it can be sampled uniformly. A [Quota] cannot if it has a capacity that keeps sets out, or groups
// that cross.
func SamplerOf(c vitrine.Constraint) (s Sampler, ok bool) {
	if q, is := c.(*Quota); is && !q.byOrder() {
		return nil, false
	}
	s, ok = c.(Sampler)
	return s, ok
}

// Limiter is implemented by families that can be limited to their smaller sets.
type Limiter interface {
	vitrine.Constraint

	// Limit returns the family of the sets of at most the given number of items; a
	// negative number is 0. It returns this family if it has no larger sets, and an
	// error if every set has more items.
	Limit(maximum int) (vitrine.Constraint, error)
}

// Stabler is implemented by families that can promise to be stable: the answer of
// MaxGain does not change if the gains of items outside it fall. For gains g' ≤ g that
// equal g on S = MaxGain(g),
//
//	MaxGain(g') = S
//
// also among sets of equal gain. Oracles that compare single gains in a fixed order,
// such as greedy algorithms, are stable. So are those that build sums and keep the
// larger of two, the first of equals, such as dynamic programs: rounded addition is
// increasing, so a set that lost loses again.
type Stabler interface {
	vitrine.Constraint
	Stable() bool
}

// Stable reports whether a family promises to be stable.
func Stable(c vitrine.Constraint) bool {
	s, ok := c.(Stabler)
	return ok && s.Stable()
}

// Stable implements [Stabler].
func (AtMost) Stable() bool { return true }

// Hereditary reports whether a family says that each part of one of its sets is a set, too: nothing is demanded.
func Hereditary(c vitrine.Constraint) bool {
	h, ok := c.(interface{ hereditary() bool })
	return ok && h.hereditary()
}

func (AtMost) hereditary() bool { return true }

// Floor returns the family c without the items that earn less than minimum,
//
//	{S in c : r_i ≥ minimum for all i in S}
//
// Revenues belong to a request, so the family returned is for one request: set Feasible
// of its [vitrine.Context] to it. It is exact for [AtMost] and [Quota], and returns an error for others. It also
// returns an error if the floor leaves no set, because a demanded item is below it or
// too few items are above.
func Floor(c vitrine.Constraint, revenue []float64, minimum float64) (vitrine.Constraint, error) {
	var r Rules
	switch c := c.(type) {
	case AtMost:
		r = Rules{Items: len(revenue), Max: max(int(c), 0)}
	case *Quota:
		r = c.rules
	default:
		return nil, fmt.Errorf("a floor on the revenue needs rules of package assortment, not %T", c)
	}
	if r.Items != len(revenue) {
		return nil, fmt.Errorf("%d revenues for a family of %d items", len(revenue), r.Items)
	}
	r.Exclude = slices.Clip(r.Exclude)
	for i, v := range revenue {
		if !(v >= minimum) {
			r.Exclude = append(r.Exclude, i)
		}
	}
	q, err := NewQuota(r)
	if err != nil {
		return nil, fmt.Errorf("without the items of revenue below %v: %w", minimum, err)
	}
	return q, nil
}

// Smallest returns the smallest set of the family c over n items that contains item i:
// {i} if the family has it, and otherwise i with the fewest others. Of several sets of
// that size it is the one that c.MaxGain prefers among equal gains, the same in every
// call. It is empty if item i is in no set.
func Smallest(dst vitrine.Assortment, c vitrine.Constraint, i, n int) vitrine.Assortment {
	dst = append(dst[:0], i)
	if c.Contains(dst) {
		return dst
	}
	gain := gains.Get().(*[]float64)
	defer gains.Put(gain)
	*gain = slices.Grow((*gain)[:0], n)[:n]
	// Each companion costs 1, and all of them together less than item i brings.
	for j := range *gain {
		(*gain)[j] = -1
	}
	(*gain)[i] = float64(n) + 1
	dst = c.MaxGain(dst, *gain)
	if _, found := slices.BinarySearch(dst, i); !found {
		return dst[:0]
	}
	return dst
}

var gains = sync.Pool{New: func() any { return new([]float64) }}

// NeverShown returns which of n items are in no set of the family c; nil if none is.
// Families that declare their hidden items answer at once. Others are asked for the
// [Smallest] set of each item.
func NeverShown(c vitrine.Constraint, n int) []bool {
	if s, ok := c.(selective); ok {
		return s.hides()
	}
	if k, ok := c.(AtMost); ok && k >= 1 {
		return nil
	}
	var never []bool
	var s vitrine.Assortment
	for i := range n {
		if s = Smallest(s, c, i, n); len(s) == 0 {
			if never == nil {
				never = make([]bool, n)
			}
			never[i] = true
		}
	}
	return never
}
