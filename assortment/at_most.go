package assortment

import (
	"math"
	"math/rand/v2"

	"vitrine"
	"vitrine/internal/portable"
)

// AtMost is the family of all sets of at most K items, {S : |S| ≤ K}, the 𝒮 of the paper. If K ≤ 0, it contains only
// the empty set.
type AtMost int

// Contains implements vitrine.Constraint.
func (k AtMost) Contains(s vitrine.Assortment) bool { return len(s) <= max(int(k), 0) }

// MaxGain implements vitrine.Constraint. It returns the items with the K largest positive gains, in O(N log K), and
// prefers lower items among equal gains.
func (k AtMost) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	return k.best(dst, gain, 0)
}

// Limit implements [Limiter].
func (k AtMost) Limit(maximum int) (vitrine.Constraint, error) { return min(k, AtMost(maximum)), nil }

// top implements ranker.
func (k AtMost) top(dst vitrine.Assortment, u []float64) (vitrine.Assortment, bool) {
	return k.best(dst, u, negInf), true
}

func (k AtMost) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	return Rules{Max: min(max(int(k), 0), len(value))}.best(dst, value, minimum)
}

var negInf = math.Inf(-1)

// Sample implements [Sampler]. It draws a size l in proportion to C(n, l), then a set of that size. The second step
// costs O(l log l), or O(n) if l is much larger than √n.
func (k AtMost) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	return subset(dst, k.sampleSize(n, rng), n, rng)
}

// sampleSize draws l in [1, min(K, n)] in proportion to C(n, l).
func (k AtMost) sampleSize(n int, rng *rand.Rand) int {
	maximum := min(int(k), n)
	if maximum < 1 {
		return 0
	}
	logTotal := k.logCount(n)
	left, logC := rng.Float64(), 0.0
	for l := 1; l < maximum; l++ {
		logC += logRatio(n, l)
		if left -= portable.Exp(logC - logTotal); left < 0 {
			return l
		}
	}
	return maximum
}

// Propensity implements [Sampler]:
//
//	1 / Σ_{l=1}^{min(K, n)} C(n, l)
func (k AtMost) Propensity(n int) float64 { return portable.Exp(-k.logCount(n)) }

// logCount returns the log of the number of nonempty sets, or 0 if the family contains only the empty set.
func (k AtMost) logCount(n int) float64 {
	maximum := min(int(k), n)
	if maximum < 1 {
		return 0
	}
	sum, logC := portable.Log(float64(n)), portable.Log(float64(n))
	for l := 2; l <= maximum; l++ {
		logC += logRatio(n, l)
		sum = logAdd(sum, logC)
	}
	return sum
}

// logRatio returns log(C(n, l) / C(n, l−1)).
func logRatio(n, l int) float64 { return portable.Log(float64(n-l+1) / float64(l)) }
