package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Threshold is a truth with one interval that customers like, and no difference outside
// it,
//
//	f(x) = 2·1{0.5 < xᵀw* < 1.2} − ½
type Threshold struct{ w []float64 }

// NewThreshold draws w* from U[−1, 1]^d.
func NewThreshold(d int, rng *rand.Rand) *Threshold { return &Threshold{direction(d, rng)} }

// NumFeatures implements [Truth].
func (h *Threshold) NumFeatures() int { return len(h.w) }

// Utilities implements [Truth].
func (h *Threshold) Utilities(dst []float64, x *mat.Dense) {
	checkShape("threshold", len(h.w), dst, x)
	for i := range dst {
		dst[i] = -0.5
		if v := floats.Dot(x.RawRowView(i), h.w); 0.5 < v && v < 1.2 {
			dst[i] = 1.5
		}
	}
}

// Params implements [Truth].
func (h *Threshold) Params() []float64 { return h.w }
