// Package env holds simulated worlds: where contexts come from, what customers
// truly like, and what items earn.
package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// Environment is a world in which learners are played. It is safe for
// concurrent use.
type Environment interface {
	// Context draws X_t and r_t. The context is the caller's to keep.
	Context(rng *rand.Rand) *vitrine.Context

	// Utilities stores the true utilities of the items of x in dst. Learners
	// never see them. It panics unless len(dst) = N and x has d features an
	// item; x may have no items. It does not allocate in steady state.
	Utilities(dst []float64, x *vitrine.Context)
}

// World is an environment made of independent parts.
type World struct {
	Items    int // N, at least 1
	Contexts Contexts
	Truth    Truth
	Revenues Revenues
}

// Contexts is a distribution of features. It is safe for concurrent use.
type Contexts interface {
	// Draw fills the N×d matrix x.
	Draw(x *mat.Dense, rng *rand.Rand)
}

// Truth is a true utility function, with its parameters. It is safe for
// concurrent use.
type Truth interface {
	// NumFeatures returns d.
	NumFeatures() int

	// Utilities stores the utility of row i of the N×d matrix x in dst[i]. It
	// panics unless len(dst) = N and x has d columns. It does not allocate in
	// steady state.
	Utilities(dst []float64, x *mat.Dense)

	// Params returns the parameters w*. The slice is the truth's own.
	Params() []float64
}

// Revenues is a distribution of revenues. It is safe for concurrent use.
type Revenues interface {
	// Draw returns the revenues of n items; nil means 1 for each.
	Draw(n int, rng *rand.Rand) []float64
}

// Context implements [Environment]. Features are drawn before revenues, so
// that worlds of other revenues have the same features under the same rng.
func (w *World) Context(rng *rand.Rand) *vitrine.Context {
	x := mat.NewDense(w.Items, w.Truth.NumFeatures(), nil)
	w.Contexts.Draw(x, rng)
	return &vitrine.Context{Features: x, Revenue: w.Revenues.Draw(w.Items, rng)}
}

// Utilities implements [Environment].
func (w *World) Utilities(dst []float64, x *vitrine.Context) {
	if len(dst) == 0 && x.NumItems() == 0 {
		return
	}
	w.Truth.Utilities(dst, x.Features)
}
