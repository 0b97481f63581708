package assortment_test

import (
	"fmt"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
)

// listed is a family given as a list of sets. Among equal gains MaxGain prefers the later set.
type listed []vitrine.Assortment

func (l listed) Contains(s vitrine.Assortment) bool {
	return slices.ContainsFunc(l, func(t vitrine.Assortment) bool { return slices.Equal(s, t) })
}

func (l listed) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	best, at := 0.0, -1
	for k, s := range l {
		total := 0.0
		for _, i := range s {
			total += gain[i]
		}
		if at < 0 || total >= best {
			best, at = total, k
		}
	}
	return append(dst[:0], l[at]...)
}

// In a family of bundles, Smallest finds the set with the fewest companions, however many these are. For an item in no
// set, the result is empty.
func TestSmallestSetOfABundle(t *testing.T) {
	family := listed{{}, {0}, {1, 2, 3}, {0, 1, 2, 3}}
	for i, want := range []vitrine.Assortment{{0}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {}} {
		expect.List(t, assortment.Smallest(nil, family, i, 5), want, "item", i, "the smallest set is")
	}
	expect.List(t, assortment.NeverShown(family, 5), []bool{4: true}, "never shown are")
	expect.Equal(t, fmt.Sprint(assortment.NeverShown(family, 4)), "[]", "never shown of the first four items are")
}
