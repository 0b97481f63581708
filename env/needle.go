package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Needle is a truth with one narrow bump around w*, which few items of a context reach,
//
//	f(x) = 4 exp(−2 ‖x − w*‖²) − 3/2
type Needle struct{ w []float64 }

// NewNeedle draws w* from U[−1, 1]^d.
func NewNeedle(d int, rng *rand.Rand) *Needle { return &Needle{direction(d, rng)} }

// NumFeatures implements [Truth].
func (n *Needle) NumFeatures() int { return len(n.w) }

// Utilities implements [Truth].
func (n *Needle) Utilities(dst []float64, x *mat.Dense) {
	checkShape("needle", len(n.w), dst, x)
	for i := range dst {
		sum := 0.0
		for j, xj := range x.RawRowView(i) {
			sum += float64((xj - n.w[j]) * (xj - n.w[j]))
		}
		dst[i] = float64(4*math.Exp(-2*sum)) - 1.5
	}
}

// Params implements [Truth].
func (n *Needle) Params() []float64 { return n.w }
