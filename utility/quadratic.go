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

// ColumnUtilities implements [Columnar].
func (m *Quadratic) ColumnUtilities(dst, w []float64, c *Columns) {
	checkColumns(m, dst, w, c)
	// b + Σ_j x_j (a_j + Σ_k q_jk x_k), where q_jk = 0 for k < j
	form := m.scratch.get(m.d*m.d + m.d)
	defer m.scratch.put(form)
	q := w[m.d+1:]
	for j := range m.d {
		row := (*form)[j*m.d:][:m.d]
		clear(row[:j])
		q = q[copy(row[j:], q):]
	}
	copy((*form)[m.d*m.d:], w[:m.d])
	for i := range dst {
		dst[i] = w[m.d]
	}
	kernel.Bilinear(dst, c.n, c.features(), m.d, c.features(), m.d, *form, m.d*m.d, len(*form))
}

// ColumnTangent implements [Columnar].
func (m *Quadratic) ColumnTangent(dst, w, delta []float64, c *Columns) {
	m.ColumnUtilities(dst, c.moved(w, delta), c)
}
