package assortment

import (
	"math/rand/v2"

	"vitrine"
)

// Sampler is implemented by families from which Phase I of Algorithm 1 can
// draw: S ~ Unif(𝒮 \ {∅}).
type Sampler interface {
	vitrine.Constraint

	// Sample returns a set drawn uniformly from the nonempty sets of the
	// family over n items, in dst's storage where it suffices. It is empty
	// where there are none.
	Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment

	// Propensity returns the probability of each nonempty set, one over their
	// number; 1 where there are none. It is 0 where that underflows, of more
	// than about 1e323 sets.
	Propensity(n int) float64
}
