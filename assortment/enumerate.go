package assortment

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
)

// Sets is a list of the nonempty sets of a family.
type Sets struct {
	items []int
	end   []int // end[m] is one past the last item of set m
	next  vitrine.Assortment
}

// Len returns the number of sets.
func (s *Sets) Len() int { return len(s.end) }

// At returns set m. It shares memory with s.
func (s *Sets) At(m int) vitrine.Assortment {
	start := 0
	if m > 0 {
		start = s.end[m-1]
	}
	return s.items[start:s.end[m]:s.end[m]]
}

// Enumerate stores in dst the nonempty sets of family c with at most k of n items, smallest sets first. It allocates if
// dst is nil. It goes through all sets of at most k items. If there are more than limit, it returns the error of
// [AtMost.CheckCount].
func Enumerate(dst *Sets, c vitrine.Constraint, k, n, limit int) (*Sets, error) {
	if err := AtMost(k).CheckCount(n, limit); err != nil {
		return dst, err
	}
	if dst == nil {
		dst = new(Sets)
	}
	dst.items, dst.end = dst.items[:0], dst.end[:0]
	dst.next = slices.Grow(dst.next[:0], max(min(k, n), 0))
	for size := 1; size <= min(k, n); size++ {
		s := dst.next[:size]
		for j := range s {
			s[j] = j
		}
		for more := true; more; more = next(s, n) {
			if c.Contains(s) {
				dst.items = append(dst.items, s...)
				dst.end = append(dst.end, len(dst.items))
			}
		}
	}
	return dst, nil
}

// next advances s to the next set of the same size in lexicographic order, and reports whether there is one.
func next(s vitrine.Assortment, n int) bool {
	for j := len(s) - 1; j >= 0; j-- {
		if s[j] == n-len(s)+j {
			continue
		}
		s[j]++
		for i := j + 1; i < len(s); i++ {
			s[i] = s[i-1] + 1
		}
		return true
	}
	return false
}

// CheckCount returns a [*TooManyError] if the family contains more than limit nonempty sets of n items.
func (k AtMost) CheckCount(n, limit int) error {
	const doubt = 1e-6 // error of a sum of rounded logarithms
	if log := k.logCount(n); log < portable.Log(float64(limit))-doubt {
		return nil
	} else if log <= maxExact && k.count(n).Cmp(big.NewInt(int64(limit))) <= 0 {
		return nil
	}
	return &TooManyError{Count: k.Count(n), Size: int(k), Items: n, Limit: limit}
}

// TooManyError reports a family with too many sets to enumerate.
type TooManyError struct {
	Count string // as returned by [AtMost.Count]
	// The sets consist of at most Size of Items items.
	Size, Items int
	Limit       int
}

// Error implements error.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("there are %s assortments of at most %d of %d items, more than limit = %d",
		e.Count, e.Size, e.Items, e.Limit)
}

// maxExact is the logarithm up to which sets are counted exactly.
const maxExact = 60

// Count returns the number of nonempty sets of n items in decimal: exact up to e⁶⁰, and to four digits above.
func (k AtMost) Count(n int) string {
	if log := k.logCount(n); log > maxExact {
		return "about " + power(log)
	}
	return k.count(n).String()
}

// count returns the number of nonempty sets, Σ_{l=1}^{min(K, n)} C(n, l).
func (k AtMost) count(n int) *big.Int {
	sum, term := new(big.Int), new(big.Int)
	for l := 1; l <= min(int(k), n); l++ {
		sum.Add(sum, term.Binomial(int64(n), int64(l)))
	}
	return sum
}

// power formats exp(log) to four digits, however large it is.
func power(log float64) string {
	exponent := math.Floor(log / math.Ln2)
	mantissa := big.NewFloat(portable.Exp(log - float64(exponent*math.Ln2)))
	return mantissa.SetMantExp(mantissa, int(exponent)).Text('g', 4)
}
