package assortment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
)

// Sampler is implemented by families that support uniform sampling, S ~ Unif(𝒮 \ {∅}), as Phase I of Algorithm 1
// requires. Use [SamplerOf] to find out whether a family supports it.
type Sampler interface {
	vitrine.Constraint

	// Sample draws uniformly from the family's nonempty sets over n items, using dst's storage if it suffices. If the
	// family contains only the empty set, Sample returns that.
	Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment

	// Propensity returns the probability of each nonempty set, one over their number, or 1 if only the empty set
	// exists. It is 0 if their number is unknown, and underflows to 0 beyond about 1e323 sets.
	Propensity(n int) float64
}

// SamplerOf returns c as a Sampler if it supports uniform sampling. A [Quota] does not if a capacity excludes sets or
// if groups cross.
func SamplerOf(c vitrine.Constraint) (s Sampler, ok bool) {
	if q, is := c.(*Quota); is && !q.byOrder() {
		return nil, false
	}
	s, ok = c.(Sampler)
	return s, ok
}

// Limiter is implemented by families that can be restricted to smaller sets.
type Limiter interface {
	vitrine.Constraint

	// Limit returns the family of the sets with at most maximum items; a negative number counts as 0. If no set is
	// larger, Limit returns the family itself. If every set is larger, it returns an error.
	Limit(maximum int) (vitrine.Constraint, error)
}

// Hereditary reports whether a family declares that every subset of a feasible set is feasible, so that no item is
// required.
func Hereditary(c vitrine.Constraint) bool {
	h, ok := c.(interface{ hereditary() bool })
	return ok && h.hereditary()
}

func (AtMost) hereditary() bool { return true }

// Floor returns the family c without the items that earn less than minimum,
//
//	{S in c : r_i ≥ minimum for all i in S}
//
// where a nil revenue means 1 for all. Revenues belong to a request, so use the result for that request only, as
// Feasible in its [vitrine.Context]. Floor supports [AtMost] and [Quota], and returns an error for other families. It
// also returns an error if no set remains because a required item falls below the floor or too few items reach it.
func Floor(c vitrine.Constraint, revenue []float64, minimum float64) (vitrine.Constraint, error) {
	var r Rules
	switch c := c.(type) {
	case AtMost:
		if revenue == nil {
			if !(minimum <= 1) {
				c = 0
			}
			return c, nil
		}
		r = Rules{Items: len(revenue), Max: max(int(c), 0)}
	case *Quota:
		if r = c.rules; revenue == nil {
			revenue = slices.Repeat([]float64{1}, r.Items)
		}
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

// Smallest returns the smallest set of family c over n items that contains item i < n: {i} if possible, and otherwise i
// with as few companions as possible. Among sets of equal size it picks the one that c.MaxGain prefers, so every call
// gives the same answer. If no set contains item i, the result is empty.
func Smallest(dst vitrine.Assortment, c vitrine.Constraint, i, n int) vitrine.Assortment {
	dst = append(dst[:0], i)
	if c.Contains(dst) {
		return dst
	}
	gain := gains.Get().(*[]float64)
	defer gains.Put(gain)
	*gain = slices.Grow((*gain)[:0], n)[:n]
	// Each companion costs 1, and all together cost less than item i gains.
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

// NeverShown reports, for each of n items, whether it appears in no set of family c. It returns nil if every item
// appears in one. Families that declare their hidden items answer at once; for others, NeverShown finds the [Smallest]
// set of each item.
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
