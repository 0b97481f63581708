package env

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Product is a truth with an interaction of two features,
//
//	f(x) = (xᵀq_1)(xᵀq_2) − ½ xᵀq_3
//
// with orthonormal q_1, q_2, q_3: x_1 x_2 − ½ x_3 in other coordinates. No function of
// one direction of x approximates it.
type Product struct{ q [][]float64 }

// NewProduct draws the frame q_1, q_2, q_3 uniformly. It panics unless d ≥ 3.
func NewProduct(d int, rng *rand.Rand) *Product {
	if d < 3 {
		panic("env: a product needs at least 3 features")
	}
	return &Product{frame(3, d, rng)}
}

// NumFeatures implements [Truth].
func (p *Product) NumFeatures() int { return len(p.q[0]) }

// Utilities implements [Truth].
func (p *Product) Utilities(dst []float64, x *mat.Dense) {
	checkShape("product", p.NumFeatures(), dst, x)
	for i := range dst {
		row := x.RawRowView(i)
		dst[i] = float64(floats.Dot(row, p.q[0])*floats.Dot(row, p.q[1])) - float64(floats.Dot(row, p.q[2])/2)
	}
}

// Params implements [Truth]: q_1, q_2 and q_3, one after the other.
func (p *Product) Params() []float64 { return slices.Concat(p.q...) }
