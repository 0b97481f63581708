package assortment

import (
	"math/rand/v2"

	"vitrine"
)

// Sampler is implemented by families that can be sampled uniformly, S ~ Unif(𝒮 \ {∅}),
// as Phase I of Algorithm 1 does.
type Sampler interface {
	vitrine.Constraint

	// Sample returns a set drawn uniformly from the nonempty sets of the family over n
	// items, in dst's storage if it suffices. It returns the empty set if there are no
	// others.
	Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment

	// Propensity returns the probability of each nonempty set, one over their number,
	// or 1 if there are none. It is 0 if their number is unknown, and underflows to 0 for
	// more than about 1e323 sets.
	Propensity(n int) float64
}
