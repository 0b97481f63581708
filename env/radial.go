package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Radial is a truth with one ideal item, a bump around w*,
//
//	f(x) = 2 exp(−‖x − w*‖²) − ½
type Radial struct{ w []float64 }

// NewRadial draws w* from U[−1, 1]^d.
func NewRadial(d int, rng *rand.Rand) *Radial { return &Radial{direction(d, rng)} }

// NumFeatures implements [Truth].
func (r *Radial) NumFeatures() int { return len(r.w) }

// Utilities implements [Truth].
func (r *Radial) Utilities(dst []float64, x *mat.Dense) {
	checkShape("radial", len(r.w), dst, x)
	for i := range dst {
		sum := 0.0
		for j, xj := range x.RawRowView(i) {
			sum += float64((xj - r.w[j]) * (xj - r.w[j]))
		}
		dst[i] = 2*math.Exp(-sum) - 0.5
	}
}

// Params implements [Truth].
func (r *Radial) Params() []float64 { return r.w }
