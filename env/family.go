package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

// Family is a truth f_w* taken from a utility family. If the learner uses the same family, this is the realizable
// setting.
type Family struct {
	model utility.Model
	w     []float64
}

// NewFamily draws each entry of w* from U[low, high]; the paper uses [−1, 1]. The bounds must pass [CheckInterval].
// NewFamily panics if m is nil.
func NewFamily(m utility.Model, low, high float64, rng *rand.Rand) *Family {
	if m == nil {
		panic("env: NewFamily: the utility model is nil")
	}
	f := &Family{model: m, w: make([]float64, m.NumParams())}
	for j := range f.w {
		f.w[j] = uniform(low, high, rng)
	}
	return f
}

// Within scales w* back to the ball ‖w*‖ ≤ radius if it lies outside, and returns the truth. Call it before using the
// truth. Assumption 2 of the paper sets the radius to 1, which the paper's experiments do not respect.
func (f *Family) Within(radius float64) *Family {
	if norm := floats.Norm(f.w, 2); norm > radius {
		floats.Scale(radius/norm, f.w)
	}
	return f
}

// NumFeatures implements [Truth].
func (f *Family) NumFeatures() int { return f.model.NumFeatures() }

// Utilities implements [Truth].
func (f *Family) Utilities(dst []float64, x *mat.Dense) { f.model.Utilities(dst, f.w, x) }

// Params implements [Truth].
func (f *Family) Params() []float64 { return f.w }
