package env

import (
	"math/rand/v2"

	"vitrine/utility"
)

// NewSparse returns a linear truth xᵀw*. w* is ±1 for the given number of features, drawn at random, and 0 for the
// others. It panics unless 1 ≤ relevant ≤ d.
func NewSparse(d, relevant int, rng *rand.Rand) *Family {
	if relevant < 1 || relevant > d {
		panic("env: NewSparse: relevant must be between 1 and the number of features")
	}
	f := &Family{model: utility.NewLinear(d, false), w: make([]float64, d)}
	for _, j := range rng.Perm(d)[:relevant] {
		f.w[j] = float64(2*rng.IntN(2) - 1)
	}
	return f
}
