package assortment_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// At the ends of the range that Maximize promises, utilities of ±700 and revenues from 1e-100 to 1e100, no set earns
// more than the answer. An item that hardly anybody takes must not get lost next to a worthless one.
func TestMaximizeAtTheEndsOfItsRange(t *testing.T) {
	check := func(t interface {
		Fatalf(format string, args ...any)
	}, u, r []float64, k int) {
		c := assortment.AtMost(k)
		best := assortmenttest.Best(assortmenttest.Sets(c, len(u)), u, r)
		s, value := assortment.Maximize(nil, c, u, r)
		if value < best*(1-1e-13) {
			t.Fatalf("u = %v, r = %v: %v earns %v, the best set %v", u, r, s, value, best)
		}
	}
	check(t, []float64{600, -50}, []float64{1e-90, 1e-60}, 2)
	check(t, []float64{-50, 600, 3}, []float64{1e-60, 1e-90, 1e-95}, 2)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "N")
		u := rapid.SliceOfN(
			rapid.OneOf(rapid.SampledFrom([]float64{-700, -400, 0, 400, 700}), rapid.Float64Range(-700, 700)), n, n,
		).Draw(t, "u")
		exponent := rapid.SliceOfN(rapid.Float64Range(-100, 100), n, n).Draw(t, "log r")
		r := make([]float64, n)
		for i, e := range exponent {
			r[i] = math.Pow(10, e)
		}
		check(t, u, r, rapid.IntRange(1, n).Draw(t, "K"))
	})
}

// Among equal gains, every family prefers lower items, whatever its algorithm. So families with the same sets give the
// same answer.
func TestTiesGoToTheLowerItem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "N")
		k := rapid.IntRange(1, n).Draw(t, "K")
		gain := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 1, 1, 2}), n, n).Draw(t, "gains")
		want := byHand(gain, k)
		l := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: k}))(t)
		demanding := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Min: min(k, len(want)), Max: k}))(t)
		slots := fatal.Or(assortment.NewSlots(n, make([]assortment.Slot, k), 0))(t)
		for name, c := range map[string]vitrine.Constraint{
			"AtMost": assortment.AtMost(k), "Laminar": l, "Laminar, at least": demanding, "Slots": slots,
		} {
			expect.List(fatal.T(t), c.MaxGain(nil, gain), want, name, "of", k, "gains", gain)
		}
	})
}

// byHand returns the items with the k largest positive gains, the first among equals.
func byHand(gain []float64, k int) vitrine.Assortment {
	s := vitrine.Assortment{}
	for range k {
		best := -1
		for i, g := range gain {
			if g > 0 && !slices.Contains(s, i) && (best < 0 || g > gain[best]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		s = append(s, best)
	}
	slices.Sort(s)
	return s
}
