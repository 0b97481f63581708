package utility

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Linear is the family of linear utilities, with or without an intercept:
//
//	f_w(x) = θᵀx      w = [θ_1, …, θ_d]
//	f_w(x) = θᵀx + b  w = [θ_1, …, θ_d, b]
//
// The linear MNL bandits use it.
type Linear struct {
	d         int
	intercept bool
	scratch   scratch
}

// NewLinear returns the linear family of d features. It panics if d < 1.
func NewLinear(d int, intercept bool) *Linear {
	if d < 1 {
		panic(fmt.Sprintf("utility: linear utility of %d features, want at least 1", d))
	}
	return &Linear{d: d, intercept: intercept}
}

// String returns "linear" or "linear with intercept".
func (m *Linear) String() string {
	if m.intercept {
		return "linear with intercept"
	}
	return "linear"
}

// NumFeatures returns d.
func (m *Linear) NumFeatures() int { return m.d }

// NumParams returns d_w, which is d, or d+1 with an intercept.
func (m *Linear) NumParams() int {
	if m.intercept {
		return m.d + 1
	}
	return m.d
}

// LinearInParams implements [LinearInParams], with φ(x) = x, or [x, 1].
func (m *Linear) LinearInParams() {}

// Init draws the initial parameters of PyTorch's nn.Linear, in the order of w:
//
//	θ, b ~ U(-1/√d, 1/√d)
//
// It panics unless len(w) = d_w.
func (m *Linear) Init(w []float64, rng *rand.Rand) {
	checkParams(m, w)
	initUniform(w, m.d, rng)
}

// Precisions implements [Prior]: θ ~ N(0, 1/4) and b ~ N(0, 1).
func (m *Linear) Precisions(dst []float64) {
	checkParams(m, dst)
	linearPrecisions(dst, m.d)
}

// Utilities implements [Model].
func (m *Linear) Utilities(dst, w []float64, x *mat.Dense) {
	n := checkUtilities(m, dst, w, x)
	buf := m.scratch.get(m.d * min(n, tileRows))
	defer m.scratch.put(buf)
	for i := 0; i < n; i += tileRows {
		m.combine(dst[i:min(i+tileRows, n)], w, columns(*buf, x, i, min(i+tileRows, n)))
	}
}

// combine stores qᵀ∇_w f in dst for the items with the columns t. For q = w this is f_w.
func (m *Linear) combine(dst, q, t []float64) {
	c := 0.0
	if m.intercept {
		c = q[m.d]
	}
	kernel.Combine(dst, c, q, 1, t, m.d)
}

// ColumnLinearize implements [Columnar].
func (m *Linear) ColumnLinearize(u, g, w []float64, c *Columns) {
	checkColumnGradients(m, u, g, w, c)
	copy(g, c.Affine())
	m.combine(u, w, c.features())
}

// columns stores the rows from ≤ i < to of x as columns in t and returns that slice of t.
func columns(t []float64, x *mat.Dense, from, to int) []float64 {
	raw := x.RawMatrix()
	t = t[:(to-from)*raw.Cols]
	kernel.Columns(t, raw.Data[from*raw.Stride:], raw.Stride, to-from, raw.Cols)
	return t
}

// Gradients implements [Model]. The gradients do not depend on w.
func (m *Linear) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n := checkGradients(m, dst, w, x)
	for i := range n {
		g := dst.RawRowView(i)
		copy(g, x.RawRowView(i))
		if m.intercept {
			g[m.d] = 1
		}
	}
}

// Backpropagate implements [Backpropagator].
func (m *Linear) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	n := checkBackpropagate(m, dst, w, x)
	buf := m.scratch.get(2 * n)
	defer m.scratch.put(buf)
	u, cotangent := (*buf)[:n], (*buf)[n:]
	m.Utilities(u, w, x)
	l := loss(cotangent, u)
	clear(dst)
	for i, c := range cotangent {
		kernel.Axpy(dst, c, x.RawRowView(i))
	}
	if m.intercept {
		dst[m.d] = kernel.Sum(cotangent)
	}
	return l
}

// initUniform draws U(-1/√in, 1/√in) into w, the initial parameters of a linear map with in inputs.
func initUniform(w []float64, in int, rng *rand.Rand) {
	bound := 1 / math.Sqrt(float64(in))
	for i := range w {
		w[i] = bound * (2*rng.Float64() - 1)
	}
}
