// Package env simulates worlds: the distribution of contexts, the true utilities of customers, and the revenues of
// items.
package env

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// Environment is a world in which learners play. It is safe for concurrent use.
type Environment interface {
	// Context draws X_t and r_t. The caller owns the result.
	Context(rng *rand.Rand) *vitrine.Context

	// Utilities stores the true utilities of the items of x in dst. Learners never see them. It panics unless
	// len(dst) = N and each item consists of d features; a context without items is fine. It does not allocate in
	// steady state.
	Utilities(dst []float64, x *vitrine.Context)
}

// Moving is an environment with utilities or contexts that change from round to round. Used directly, it is the
// environment before the first round.
type Moving interface {
	Environment

	// At returns the environment of round t ≥ 1, a function of t only.
	At(t int) Environment
}

// Displayed is an environment in which an item's place in the display affects its sales.
type Displayed interface {
	Environment

	// PlaceEffects returns the effects γ of the places of a display from the first on (see [vitrine.PlaceEffect]), or
	// nil if places do not matter.
	PlaceEffects() []float64
}

// PlaceEffects returns the effects of the places in e, or nil unless e is [Displayed].
func PlaceEffects(e Environment) []float64 {
	if d, ok := e.(Displayed); ok {
		return d.PlaceEffects()
	}
	return nil
}

// At returns the environment of round t ≥ 1. This is e itself unless e is [Moving].
func At(e Environment, t int) Environment {
	if m, ok := e.(Moving); ok {
		return m.At(t)
	}
	return e
}

// World is an environment made of independent parts. It implements [Displayed] and [Crowded], and also [Moving]: a
// world moves if its contexts or its truth do. If your own type embeds a World and changes another method, it must also
// define At: the World's returns the World.
type World struct {
	Items    int // N, at least 1
	Contexts Contexts
	Truth    Truth
	Revenues Revenues  // nil means 1 for every item
	Places   []float64 // effects of the places of a display; nil if places do not matter
	Takers   Baskets   // how visitors take several items; nil if they take at most one
}

// Contexts is a distribution of features. It is safe for concurrent use.
type Contexts interface {
	// Draw fills the N×d matrix x.
	Draw(x *mat.Dense, rng *rand.Rand)
}

// MovingContexts is a distribution that changes from round to round. Its own Draw uses the distribution before the
// first round.
type MovingContexts interface {
	Contexts

	// At returns the distribution of round t ≥ 1, a function of t only.
	At(t int) Contexts
}

// Truth is a true utility function together with its parameters. It is safe for concurrent use.
type Truth interface {
	// NumFeatures returns d.
	NumFeatures() int

	// Utilities stores the utility of row i of the N×d matrix x in dst[i]. It panics unless len(dst) = N and x has d
	// columns. It does not allocate in steady state.
	Utilities(dst []float64, x *mat.Dense)

	// Params returns the parameters w*. The slice belongs to the truth.
	Params() []float64
}

// MovingTruth is a truth that changes from round to round. Its own Utilities apply before the first round.
type MovingTruth interface {
	Truth

	// At returns the truth of round t ≥ 1, a function of t only.
	At(t int) Truth
}

// Revenues is a distribution of revenues. It is safe for concurrent use.
type Revenues interface {
	// Draw returns the revenues of n items; nil means 1 for each.
	Draw(n int, rng *rand.Rand) []float64
}

// Context implements [Environment]. It draws features before revenues, so worlds that differ only in revenues draw the
// same features under the same rng.
func (w *World) Context(rng *rand.Rand) *vitrine.Context {
	x := mat.NewDense(w.Items, w.Truth.NumFeatures(), nil)
	w.Contexts.Draw(x, rng)
	if w.Revenues == nil {
		return &vitrine.Context{Features: x}
	}
	return &vitrine.Context{Features: x, Revenue: w.Revenues.Draw(w.Items, rng)}
}

// Utilities implements [Environment].
func (w *World) Utilities(dst []float64, x *vitrine.Context) {
	if len(dst) == 0 && x.NumItems() == 0 {
		return
	}
	w.Truth.Utilities(dst, x.Features)
}

// PlaceEffects implements [Displayed].
func (w *World) PlaceEffects() []float64 { return w.Places }

// Baskets implements [Crowded].
func (w *World) Baskets() Baskets { return w.Takers }

// At implements [Moving]. If neither contexts nor truth move, the world is the same in every round.
func (w *World) At(t int) Environment {
	truth, moves := w.Truth.(MovingTruth)
	contexts, shifts := w.Contexts.(MovingContexts)
	if !moves && !shifts {
		return w
	}
	now := *w
	if moves {
		now.Truth = truth.At(t)
	}
	if shifts {
		now.Contexts = contexts.At(t)
	}
	return &now
}

// checkShape panics unless x has d columns and a row for each utility.
func checkShape(truth string, d int, dst []float64, x *mat.Dense) {
	if n, c := x.Dims(); len(dst) != n || c != d {
		panic(fmt.Sprintf("env: %s of %d features and %d utilities of %d×%d features", truth, d, len(dst), n, c))
	}
}
