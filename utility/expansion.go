package utility

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Expansion is a family of linear utilities with further terms of the features. The terms are products of two features,
// for quadratic utilities, or steps of each; either way the family is linear in its parameters. With products
//
//	f_w(x) = aᵀx + b + Σ_{j≤k} q_jk x_j x_k
//
// with w = [a, b, q_11, q_12, …, q_1d, q_22, …, q_dd], or with a subset of the products in the same order. With P
// products the prior is q ~ N(0, d/(4P)), which gives them the variance of aᵀx; with all products that is 1/(2(d+1))
// each. With squares only the prior is q ~ N(0, 5/(4P)): some five features may bend.
//
// Steps are additive trees of one split:
//
//	f_w(x) = aᵀx + b + Σ_j Σ_{k=1}^7 q_jk 1{x_j > c_k},  Φ(c_k) = k/8,  q ~ N(0, ¼)
//
// with w = [a, b, q_11, q_12, …, q_17, q_21, …].
type Expansion struct {
	d       int
	pairs   [][2]int // j ≤ k
	steps   bool     // of each feature, instead of products
	share   float64  // prior variance of a product's or a step's parameter, relative to a slope's
	name    string
	scratch scratch
}

// NewQuadratic returns the quadratic family of d features. It panics if d < 1.
func NewQuadratic(d int) *Expansion {
	if d < 1 {
		panic(fmt.Sprintf("utility: quadratic utility of %d features, want at least 1", d))
	}
	return newProducts(d, "quadratic", func(j, k int) bool { return true })
}

// NewProducts returns the quadratic family of d features with only the products among the features in of, or, if all is
// true, between those and every feature. It panics if d < 1, or if of is empty or not strictly increasing.
func NewProducts(d int, of []int, all bool) *Expansion {
	has := chosen(d, of)
	name := fmt.Sprintf("quadratic in %v", of)
	if all {
		name += " with all"
	}
	return newProducts(d, name, func(j, k int) bool { return has[j] && has[k] || all && (has[j] || has[k]) })
}

// NewCrossed returns the quadratic family of d features with the products of the customer's features with
// each of the others, the items'. It panics as [NewProducts] does.
func NewCrossed(d int, customer []int) *Expansion {
	has := chosen(d, customer)
	return newProducts(d, fmt.Sprintf("products of %v and the others", customer),
		func(j, k int) bool { return has[j] != has[k] })
}

// NewSquares returns the quadratic family of d features with the squares of some of them only. It panics as
// [NewProducts] does.
func NewSquares(d int, of []int) *Expansion {
	has := chosen(d, of)
	name := fmt.Sprintf("squares of %v", of)
	if n := len(of); of[n-1] == n-1 {
		name = fmt.Sprintf("squares of the first %d", n)
	}
	m := newProducts(d, name, func(j, k int) bool { return j == k && has[j] })
	m.share = 5 / float64(len(of))
	return m
}

// cuts are the quantiles k/8 of the standard normal distribution.
var cuts = [...]float64{
	-1.1503493803760079, -0.6744897501960817, -0.31863936396437514, 0,
	0.31863936396437514, 0.6744897501960817, 1.1503493803760079,
}

// NewSteps returns the linear family of d features with steps of each. It panics if d < 1.
func NewSteps(d int) *Expansion {
	if d < 1 {
		panic(fmt.Sprintf("utility: steps of %d features, want at least 1", d))
	}
	return &Expansion{d: d, steps: true, share: 1, name: "steps"}
}

// chosen reports, for each of d features, whether it is in of.
func chosen(d int, of []int) []bool {
	has := make([]bool, max(d, 1))
	for i, j := range of {
		if j < 0 || j >= d || i > 0 && j <= of[i-1] {
			panic(fmt.Sprintf("utility: products or squares of the features %v of %d, want distinct ones in order",
				of, d))
		}
		has[j] = true
	}
	if len(of) == 0 {
		panic("utility: products or squares of no features")
	}
	return has
}

// newProducts returns the family with the products accepted by has.
func newProducts(d int, name string, has func(j, k int) bool) *Expansion {
	m := &Expansion{d: d, name: name}
	for j := range d {
		for k := j; k < d; k++ {
			if has(j, k) {
				m.pairs = append(m.pairs, [2]int{j, k})
			}
		}
	}
	m.share = float64(d) / float64(len(m.pairs))
	return m
}

// String returns "quadratic" or "steps", followed by the features in products unless these are all.
func (m *Expansion) String() string { return m.name }

// NumFeatures returns d.
func (m *Expansion) NumFeatures() int { return m.d }

// NumParams returns d_w = d + 1 + P, which is (d+1)(d+2)/2 with all products; P = 7d with steps.
func (m *Expansion) NumParams() int {
	if m.steps {
		return m.d + 1 + len(cuts)*m.d
	}
	return m.d + 1 + len(m.pairs)
}

// LinearInParams implements [LinearInParams]. φ(x) consists of the features, 1 and the products or steps.
func (m *Expansion) LinearInParams() {}

// Precisions implements [Prior].
func (m *Expansion) Precisions(dst []float64) {
	checkParams(m, dst)
	linearPrecisions(dst[:m.d+1], m.d)
	for j := m.d + 1; j < len(dst); j++ {
		dst[j] = precision(slopeSD) / m.share
	}
}

// Init draws the initial parameters as [Linear] does. It panics unless len(w) = d_w.
func (m *Expansion) Init(w []float64, rng *rand.Rand) {
	checkParams(m, w)
	initUniform(w, m.d, rng)
}

// monomials stores ∇f_w(x) in g. It does not depend on w.
func (m *Expansion) monomials(g, x []float64) {
	copy(g, x)
	g[m.d] = 1
	products := g[m.d+1:]
	for i, p := range m.pairs {
		products[i] = x[p[0]] * x[p[1]]
	}
	for i := 0; m.steps && i < m.d; i++ {
		steps(products[i*len(cuts):], x[i:i+1])
	}
}

// steps stores 1{x_i > c_k} in g[k n + i] for the n features x.
func steps(g, x []float64) {
	for k, c := range cuts {
		for i, v := range x {
			g[k*len(x)+i] = 0
			if v > c {
				g[k*len(x)+i] = 1
			}
		}
	}
}

// Utilities implements [Model].
func (m *Expansion) Utilities(dst, w []float64, x *mat.Dense) {
	checkUtilities(m, dst, w, x)
	buf := m.scratch.get(len(w))
	defer m.scratch.put(buf)
	for i := range dst {
		m.monomials(*buf, x.RawRowView(i))
		dst[i] = kernel.Dot(w, *buf)
	}
}

// Gradients implements [Model].
func (m *Expansion) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n := checkGradients(m, dst, w, x)
	for i := range n {
		m.monomials(dst.RawRowView(i), x.RawRowView(i))
	}
}

// Linearize implements [Linearizer].
func (m *Expansion) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	checkUtilities(m, u, w, x)
	m.Gradients(g, w, x)
	for i := range u {
		u[i] = kernel.Dot(w, g.RawRowView(i))
	}
}

// ColumnLinearize implements [Columnar].
func (m *Expansion) ColumnLinearize(u, g, w []float64, c *Columns) {
	checkColumnGradients(m, u, g, w, c)
	copy(g, c.Affine())
	products := g[(m.d+1)*c.n:]
	for _, p := range m.pairs {
		copy(products[:c.n], c.Feature(p[0]))
		kernel.Mul(products[:c.n], c.Feature(p[1]))
		products = products[c.n:]
	}
	for j := 0; m.steps && j < m.d; j++ {
		steps(products[j*len(cuts)*c.n:], c.Feature(j))
	}
	kernel.Combine(u, 0, w, 1, g, len(w))
}
