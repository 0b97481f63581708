package assortment

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Enumerate lists each set of the family exactly once, out of all 2ⁿ sets, except the empty set and sets larger than k.
func TestEnumerateIsExhaustive(t *testing.T) {
	laminar := fatal.Or(NewQuota(Rules{Items: 7, Min: 1, Max: 3, Groups: []Group{{Items: []int{1, 2, 4}, Max: 1}}}))(t)
	var sets *Sets
	for _, c := range []vitrine.Constraint{AtMost(0), AtMost(1), AtMost(3), AtMost(9), laminar} {
		for k := range 9 {
			const n = 7
			sets = fatal.Or(Enumerate(sets, c, k, n, 200))(t)
			want := map[string]bool{}
			for mask := uint(1); mask < 1<<n; mask++ {
				var s vitrine.Assortment
				for i := range n {
					if mask>>i&1 == 1 {
						s = append(s, i)
					}
				}
				if bits.OnesCount(mask) <= k && c.Contains(s) {
					want[key(s)] = true
				}
			}
			expect.Equal(fatal.T(t), sets.Len(), len(want), c, "k", k, "sets")
			for m := range sets.Len() {
				if s := sets.At(m); !want[key(s)] || s.Check(n) != nil {
					t.Fatalf("%T, k = %d: set %v is not in the family, or is a duplicate", c, k, s)
				} else {
					delete(want, key(s))
				}
			}
		}
	}
}

func key(s vitrine.Assortment) string {
	var b strings.Builder
	for _, i := range s {
		b.WriteByte(byte('a' + i))
	}
	return b.String()
}

func TestEnumerateCountsWhatItRefuses(t *testing.T) {
	for _, c := range []struct {
		k, n, limit int
		want        string
	}{
		{3, 10, 175, ""},
		{3, 10, 174, "there are 175 assortments of at most 3 of 10 items, more than limit = 174"},
		{5, 100, 100_000, "there are 79375495 assortments of at most 5 of 100 items, more than limit = 100000"},
		// Σ_{l≤15} C(100, l) in integers, computed by another program.
		{15, 100, 1, "there are 305847423291009575 assortments of"},
		{40, 40, 1, "there are 1099511627775 assortments of at most 40 of 40 items"},
		{500, 1000, 1, "there are about 5.493e+300 assortments of at most 500 of 1000 items"},
		{5000, 10_000, 1, "there are about 1.005e+3010 assortments of"},
		{0, 10, 0, ""},
		{-2, 10, 0, ""},
		{3, 0, 0, ""},
	} {
		sets, err := Enumerate(&Sets{end: []int{1}}, AtMost(c.k), c.k, c.n, c.limit)
		if c.want == "" {
			expect.Error(t, err, nil, c.k, "of", c.n)
			continue
		}
		expect.Prefix(err)(t, c.want, c.k, c.n)
		expect.Equal(t, len(sets.end), 1, "a refused enumeration changed its destination")
	}
}

func TestEnumerateReusesItsDestination(t *testing.T) {
	sets := fatal.Or(Enumerate(nil, AtMost(3), 3, 12, 1000))(t)
	first := slices.Clone(sets.At(200))
	if n := testing.AllocsPerRun(10, func() { _, _ = Enumerate(sets, AtMost(3), 3, 12, 1000) }); n > 20 {
		t.Errorf("%v allocations", n) // for the exact count and one set
	}
	expect.List(t, first, sets.At(200), "the second enumeration differs")
}
