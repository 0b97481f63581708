package utility

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Quadratic is the family of quadratic utilities, linear in their parameters:
//
//	f_w(x) = aᵀx + b + Σ_{j≤k} q_jk x_j x_k
//
// with w = [a, b, q_11, q_12, …, q_1d, q_22, …, q_dd]. Its prior has
// q ~ N(0, 1/(2(d+1))), so that the products have the variance of aᵀx.
type Quadratic struct {
	d       int
	scratch scratch
}

// NewQuadratic returns the quadratic family of d features. It panics if
// d < 1.
func NewQuadratic(d int) *Quadratic {
	if d < 1 {
		panic(fmt.Sprintf("utility: quadratic utility of %d features, want at least 1", d))
	}
	return &Quadratic{d: d}
}

// String returns "quadratic".
func (m *Quadratic) String() string { return "quadratic" }

// NumFeatures returns d.
func (m *Quadratic) NumFeatures() int { return m.d }

// NumParams returns d_w = (d+1)(d+2)/2.
func (m *Quadratic) NumParams() int { return (m.d + 1) * (m.d + 2) / 2 }

// LinearInParams implements [LinearInParams]: φ(x) are the monomials of x up to
// degree 2.
func (m *Quadratic) LinearInParams() {}

// Precisions implements [Prior].
func (m *Quadratic) Precisions(dst []float64) {
	checkParams(m, dst)
	linearPrecisions(dst[:m.d+1], m.d)
	for j := m.d + 1; j < len(dst); j++ {
		dst[j] = precision(slopeSD) * float64(m.d+1) / 2
	}
}

// Init draws the initial parameters as [Linear] does. It panics unless
// len(w) = d_w.
func (m *Quadratic) Init(w []float64, rng *rand.Rand) {
	checkParams(m, w)
	initUniform(w, m.d, rng)
}

// monomials stores ∇f_w(x), which does not depend on w, in g.
func (m *Quadratic) monomials(g, x []float64) {
	copy(g, x)
	g[m.d] = 1
	k := m.d + 1
	for i, v := range x {
		for _, u := range x[i:] {
			g[k] = v * u
			k++
		}
	}
}

// Utilities implements [Model].
func (m *Quadratic) Utilities(dst, w []float64, x *mat.Dense) {
	checkUtilities(m, dst, w, x)
	buf := m.scratch.get(len(w))
	defer m.scratch.put(buf)
	for i := range dst {
		m.monomials(*buf, x.RawRowView(i))
		dst[i] = kernel.Dot(w, *buf)
	}
}

// Gradients implements [Model].
func (m *Quadratic) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n := checkGradients(m, dst, w, x)
	for i := range n {
		m.monomials(dst.RawRowView(i), x.RawRowView(i))
	}
}

// Linearize implements [Linearizer].
func (m *Quadratic) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	checkUtilities(m, u, w, x)
	m.Gradients(g, w, x)
	for i := range u {
		u[i] = kernel.Dot(w, g.RawRowView(i))
	}
}

// ColumnLinearize implements [Columnar].
func (m *Quadratic) ColumnLinearize(u, g, w []float64, c *Columns) {
	checkColumnGradients(m, u, g, w, c)
	copy(g, c.Affine())
	products := g[(m.d+1)*c.n:]
	for i := range m.d {
		for j := i; j < m.d; j++ {
			copy(products[:c.n], c.Feature(i))
			kernel.Mul(products[:c.n], c.Feature(j))
			products = products[c.n:]
		}
	}
	kernel.Combine(u, 0, w, 1, g, len(w))
}
