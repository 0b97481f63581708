package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
)

// Propensity estimates the probability with which a policy offers s in the
// context x, for policies that have no closed form of it, by the share p̂ of n
// draws that are s. The standard error is √(p̂(1−p̂)/n). A share of 0 says only
// that the probability is not much above 1/n. No draws, n < 1, say nothing: the
// share is 0 and the standard error +Inf.
func Propensity(pi vitrine.Policy, x *vitrine.Context, s vitrine.Assortment, n int, rng *rand.Rand) (p, standardError float64) {
	if n < 1 {
		return 0, math.Inf(1)
	}
	hits := 0
	for range n {
		if slices.Equal(pi.Offer(x, rng).Assortment, s) {
			hits++
		}
	}
	p = float64(hits) / float64(n)
	return p, math.Sqrt(p * (1 - p) / float64(n))
}
