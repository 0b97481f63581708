package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
)

// Propensity estimates the probability that a policy offers s in the context x, for policies without a closed form. The
// estimate is the fraction p̂ of n draws that equal s. The standard error is √(p̂(1−p̂)/n). If p̂ is 0, the probability
// is unlikely to be much above 1/n. For n < 1 it returns 0 and +Inf.
func Propensity(pi vitrine.Policy, x *vitrine.Context, s vitrine.Assortment, n int,
	rng *rand.Rand) (p, standardError float64) {
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
