// Package env holds simulated worlds: where contexts come from, what customers
// truly like, and what items earn.
package env

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// Environment is a world in which learners are played. It is safe for
// concurrent use.
type Environment interface {
	// Context draws X_t and r_t.
	Context(rng *rand.Rand) *vitrine.Context

	// Utilities stores the true utilities of the items of x in dst, of length
	// N. Learners never see them.
	Utilities(dst []float64, x *vitrine.Context)
}

// World is an environment made of independent parts: N items a round.
type World struct {
	Items    int // N
	Contexts Contexts
	Truth    Truth
	Revenues Revenues
}

// Contexts is a distribution of features.
type Contexts interface {
	// Draw fills the N×d matrix x.
	Draw(x *mat.Dense, rng *rand.Rand)
}

// Truth is a true utility function, with its parameters.
type Truth interface {
	// NumFeatures returns d.
	NumFeatures() int
	// Utilities stores the utility of row i of the N×d matrix x in dst[i].
	Utilities(dst []float64, x *mat.Dense)
	// Params returns the parameters w*. The slice is the truth's own.
	Params() []float64
}

// Revenues is a distribution of revenues.
type Revenues interface {
	// Draw returns the revenues of n items; nil means 1 for each.
	Draw(n int, rng *rand.Rand) []float64
}

// Context implements Environment.
func (w *World) Context(rng *rand.Rand) *vitrine.Context {
	x := mat.NewDense(w.Items, w.Truth.NumFeatures(), nil)
	w.Contexts.Draw(x, rng)
	return &vitrine.Context{Features: x, Revenue: w.Revenues.Draw(w.Items, rng)}
}

// Utilities implements Environment.
func (w *World) Utilities(dst []float64, x *vitrine.Context) { w.Truth.Utilities(dst, x.Features) }

// uniform draws from [low, high).
func uniform(low, high float64, rng *rand.Rand) float64 { return low + (high-low)*rng.Float64() }

// CheckInterval reports bounds that are not finite or not in order.
func CheckInterval(low, high float64) error {
	for key, v := range map[string]float64{"low": low, "high": high} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s = %v: must be finite", key, v)
		}
	}
	if low > high {
		return fmt.Errorf("low = %v: must not exceed high = %v", low, high)
	}
	return nil
}
