package assortment

import (
	"slices"
	"sync"

	"vitrine"
)

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
