package assortmenttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// checkSample requires uniform draws from the m nonempty sets, the propensity 1/m up to a relative error of 1e-12, and
// equal results for equal states of rng.
//
// It tests the frequencies by Pearson's χ² with m − 1 degrees of freedom, transformed to a standard normal (Wilson and
// Hilferty 1931), and allows 4 standard deviations on either side.
func checkSample(c assortment.Sampler, n int) error {
	if n > 7 {
		return nil // too many sets to count
	}
	sets := slices.DeleteFunc(Sets(c, n), func(s vitrine.Assortment) bool { return len(s) == 0 })
	rng := rand.New(rand.NewPCG(uint64(n), 99))
	if len(sets) == 0 {
		if s, p := c.Sample(nil, n, rng), c.Propensity(n); len(s) != 0 || p != 1 {
			return fmt.Errorf("for N = %d: drew %v with propensity %v from a family without nonempty sets", n, s, p)
		}
		return nil
	}
	if got, want := c.Propensity(n), 1/float64(len(sets)); math.Abs(got-want) > 1e-12*want {
		return fmt.Errorf("for N = %d: propensity %v, the family has %d nonempty sets", n, got, len(sets))
	}
	index := map[string]int{}
	for k, s := range sets {
		index[fmt.Sprint(s)] = k
	}
	draws := max(4000, 30*len(sets))
	count := make([]float64, len(sets))
	dst := make(vitrine.Assortment, n)
	for range draws {
		s := c.Sample(dst, n, rng)
		k, ok := index[fmt.Sprint(s)]
		if !ok {
			return fmt.Errorf("for N = %d: drew %v, which is no nonempty set of the family", n, s)
		}
		if &s[0] != &dst[0] {
			return fmt.Errorf("for N = %d: Sample does not use a destination that suffices", n)
		}
		count[k]++
	}
	if sd := deviations(count, draws); math.Abs(sd) > 4 {
		return fmt.Errorf("for N = %d: the counts of %d draws of %d sets are %.1f standard deviations from uniform",
			n, draws, len(sets), sd)
	}
	a := slices.Clone(c.Sample(nil, n, rand.New(rand.NewPCG(3, 3))))
	b := c.Sample(nil, n, rand.New(rand.NewPCG(3, 3)))
	if !slices.Equal(a, b) {
		return fmt.Errorf("for N = %d: one state of rng gave %v and %v", n, a, b)
	}
	return nil
}

// deviations returns how many standard deviations the χ² of the counts differs from uniform draws.
func deviations(count []float64, draws int) float64 {
	if len(count) == 1 {
		return 0
	}
	chi2, expect := 0.0, float64(draws)/float64(len(count))
	for _, v := range count {
		chi2 += (v - expect) * (v - expect) / expect
	}
	free := float64(len(count) - 1)
	return (math.Cbrt(chi2/free) - (1 - 2/(9*free))) / math.Sqrt(2/(9*free))
}
