// Package utility holds the parametric families F = {f_w} of utility functions, batched over items, with their
// gradients in w.
//
// A [Model] holds no parameters: w is always an argument, because Algorithm 1 evaluates one family at the pilot ŵ_0, at
// past estimates ŵ_s and at ŵ_t. Functions panic if a slice or a matrix has the wrong size.
//
// [NewLinear], [NewQuadratic], [NewProducts], [NewSquares], [NewSteps], [NewMLP], [NewWide], [NewSpectral] and [NewRadial]
// make families, and [NewSum] adds two. To add your own family, implement Model and check it with package utilitytest. The
// other interfaces, Linearizer, Columnar, Backpropagator, Sketcher, Glancer, Prior and LinearInParams, are optional: they make
// learners faster or tell them more about the family.
package utility

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Model is a family of utility functions f_w : R^d → R, differentiable in w ∈ R^{d_w}. A model is safe for concurrent
// use.
type Model interface {
	// NumFeatures returns d.
	NumFeatures() int

	// NumParams returns d_w.
	NumParams() int

	// Init draws initial parameters into w. It panics unless len(w) = d_w.
	Init(w []float64, rng *rand.Rand)

	// Utilities stores f_w(x_i) in dst[i] for every row i of the N×d matrix x. It panics unless len(dst) = N,
	// len(w) = d_w and x has d columns. It does not allocate in steady state.
	Utilities(dst, w []float64, x *mat.Dense)

	// Gradients stores ∇_w f_w(x_i) in row i of the N×d_w matrix dst. It panics under the same conditions as Utilities.
	// dst must not be a view of x.
	Gradients(dst *mat.Dense, w []float64, x *mat.Dense)
}

// Linearizer is implemented by models that compute utilities and gradients together more cheaply than separately.
type Linearizer interface {
	// Linearize stores f_w(x_i) in u[i] and ∇_w f_w(x_i) in row i of g.
	Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense)
}

// Linearize stores f_w(x_i) in u[i] and ∇_w f_w(x_i) in row i of g. It uses the model's [Linearizer] if implemented.
func Linearize(m Model, u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	if l, ok := m.(Linearizer); ok {
		l.Linearize(u, g, w, x)
		return
	}
	m.Utilities(u, w, x)
	m.Gradients(g, w, x)
}

// LinearInParams marks the families that are linear in their parameters,
//
//	f_w(x) = wᵀφ(x)    φ(x) = ∇_w f_w(x), the same for every w
//
// Learners of linear utilities can use φ as a basis, replacing xᵀθ by wᵀφ(x). A family with f_0 ≠ 0 does not qualify.
type LinearInParams interface {
	Model

	// LinearInParams is a marker and does nothing.
	LinearInParams()
}

// Offsets stores a_k = u_k − g_kᵀw in dst[k], given the utilities u and the gradients g_k at w. The affine utilities
// a + Gw are the tangent of f_w there. dst may be u.
func Offsets(dst, u []float64, g *mat.Dense, w []float64) {
	for k, v := range u {
		dst[k] = v - kernel.Dot(g.RawRowView(k), w)
	}
}

// Backpropagator is implemented by models that compute the gradient of a loss in the utilities without forming the
// N×d_w Jacobian.
type Backpropagator interface {
	// Backpropagate evaluates L(w) = loss(u), u_i = f_w(x_i), and stores
	//
	//	∇_w L = Σ_i (∂L/∂u_i) ∇_w f_w(x_i)
	//
	// in dst, of length d_w. It calls loss once. The loss must store ∂L/∂u_i in cotangent[i] and must not retain either
	// slice.
	Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64
}
