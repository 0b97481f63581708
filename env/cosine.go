package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Cosine is the truth of the paper's misspecified setting,
//
//	f(x) = cos(2π xᵀw*) − ½ xᵀw*
type Cosine struct{ w []float64 }

// NewCosine draws w* from U[−1, 1]^d. A positive norm then multiplies it by
// norm/√d, so that ‖w*‖ ≤ norm: with norm = 1 it keeps Assumption 2 of the
// paper, which its experiments do not.
func NewCosine(d int, norm float64, rng *rand.Rand) *Cosine {
	c := &Cosine{direction(d, rng)}
	if norm > 0 {
		floats.Scale(norm/math.Sqrt(float64(d)), c.w)
	}
	return c
}

// direction draws w* from U[−1, 1]^d.
func direction(d int, rng *rand.Rand) []float64 {
	w := make([]float64, d)
	for j := range w {
		w[j] = uniform(-1, 1, rng)
	}
	return w
}

// NumFeatures implements [Truth].
func (c *Cosine) NumFeatures() int { return len(c.w) }

// Utilities implements [Truth].
func (c *Cosine) Utilities(dst []float64, x *mat.Dense) {
	checkShape("cosine", len(c.w), dst, x)
	for i := range dst {
		v := 0.0
		for j, xj := range x.RawRowView(i) {
			v += float64(xj * c.w[j])
		}
		dst[i] = math.Cos(2*math.Pi*v) - float64(v/2)
	}
}

// Params implements [Truth].
func (c *Cosine) Params() []float64 { return c.w }
