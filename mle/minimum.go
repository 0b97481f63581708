package mle

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// Objective is a function to minimise that can compute its gradient.
type Objective interface {
	Dim() int
	// Gradient stores the gradient at w in dst and returns the value.
	Gradient(dst, w []float64) float64
}

// Curved is an objective with a positive semi-definite stand-in for its Hessian.
type Curved interface {
	Objective
	// Fisher stores the matrix at w in dst and returns it. It allocates if dst is nil.
	Fisher(dst *mat.SymDense, w []float64) *mat.SymDense
}

// Minimum is the result of the minimisers. [Adam] and [LevenbergMarquardt] provide
//
//	Minimize(f, w) (Minimum, error)
//
// and move w, the starting point, in place. [Newton] minimises a loss of its own, to which you append rounds.
type Minimum struct {
	Value float64 // f(w)
	Steps int     // taken, including rejected ones
	// Decrement is ∇fᵀH⁻¹∇f at w, about twice the decrease still possible, or NaN if unknown.
	Decrement float64
	Converged bool // whether the tolerance was met; always false for Adam
}

// ErrNotFinite reports a likelihood that is not finite at the starting point.
var ErrNotFinite = errors.New("mle: the likelihood is not finite at the starting point: scale the features")
