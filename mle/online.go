package mle

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Online estimates the parameters of affine utilities u_k(w) = a_k + g_kᵀw with one step per round, by the online
// mirror descent of OFU-MNL+ (Lee and Oh 2024, Algorithm 1). With the loss ℓ_t of round t, G_t(w) = ∇²ℓ_t(w) and
// H_1 = λI,
//
//	H̃_t     = H_t + η G_t(w_t)
//	w_{t+1} = argmin_w ⟨∇ℓ_t(w_t), w⟩ + ‖w − w_t‖²_{H̃_t} / (2σ)
//	        = w_t − σ H̃_t⁻¹ ∇ℓ_t(w_t)
//	H_{t+1} = H_t + G_t(w_{t+1})
//
// The paper sets σ = η. A round costs O(K d²), independent of t.
//
// If choice probabilities are near 0 or 1, G_t does not determine how far to go, and a full step overshoots by far.
// Online therefore shortens any step that would move some utility of the round by more than 3.
type Online struct {
	// Eta is η > 0, Sigma is σ > 0.
	Eta, Sigma float64

	// Radius is the radius B of a ball ‖w‖ ≤ B that w stays in, w_1 included: each step is projected on it in the norm
	// of H̃_t. 0 means no ball.
	Radius float64

	w        []float64
	h, tilde *gram.Matrix

	u, p, flat, grad, step, mean, centered []float64 // scratch
	ball                                   ball
}

// NewOnline starts at w_1, of dimension d, with H_1 = λI.
func NewOnline(lambda float64, w1 []float64, eta, sigma float64) *Online {
	d := len(w1)
	return &Online{
		Eta: eta, Sigma: sigma,
		w: append([]float64(nil), w1...),
		h: gram.New(d, lambda), tilde: gram.New(d, lambda),
		grad: make([]float64, d), step: make([]float64, d),
		mean: make([]float64, d), centered: make([]float64, d),
	}
}

// Params returns the current estimate. The slice belongs to Online and changes; copy it to keep it.
func (o *Online) Params() []float64 { return o.w }

// Hessian returns H_t. It belongs to Online and must not be changed.
func (o *Online) Hessian() *gram.Matrix { return o.h }

// Update makes the step for a round with choice y, and any further takes, among items with utilities a_k + g_kᵀw; g is
// len(a)×d.
func (o *Online) Update(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	if len(a) == 0 {
		return
	}
	d := len(o.w)
	o.flat = o.flat[:0]
	for k := range a {
		o.flat = append(o.flat, g.RawRowView(k)...)
	}
	o.tilde.CopyFrom(o.h)
	o.addHessian(o.tilde, o.Eta, a, len(more))
	if y != vitrine.Outside {
		o.p[y]--
	}
	for _, y := range more {
		o.p[y]--
	}
	clear(o.grad)
	kernel.GemvTrans(o.grad, o.flat, o.p[1:], len(a), d)
	o.tilde.Solve(o.step, o.grad)
	sigma := o.Sigma * o.shortening(len(a))
	for j := range o.w {
		o.w[j] -= float64(sigma * o.step[j])
	}
	if o.Radius > 0 {
		o.ball.project(o.w, o.Radius, o.tilde)
	}
	o.addHessian(o.h, 1, a, len(more))
}

// maxMove is the largest move of a utility in one step: from even odds to 20 to 1.
const maxMove = 3

// shortening returns the factor in [0, 1] for a step over n items: 1, or less if needed to keep the largest move of
// their utilities at maxMove. It is 0 for a step that is not finite, or uphill by rounding.
func (o *Online) shortening(n int) float64 {
	d, maximum := len(o.w), 0.0
	for k := range n {
		maximum = max(maximum, math.Abs(o.Sigma*kernel.Dot(o.flat[k*d:(k+1)*d], o.step)))
	}
	switch {
	case !finite(maximum) || !(kernel.Dot(o.grad, o.step) >= 0):
		return 0
	case maximum > maxMove:
		return maxMove / maximum
	}
	return 1
}

// addHessian adds c G_t(w) of a round with further takes to h, and leaves the [ExpectedTakes] at w in o.p.
func (o *Online) addHessian(h *gram.Matrix, c float64, a []float64, further int) {
	o.u, o.p = scratch.Grow(o.u, len(a)), scratch.Grow(o.p, len(a)+1)
	kernel.Gemv(o.u, a, o.flat, o.w, len(a), len(o.w))
	ExpectedTakes(o.p, o.u, further)
	addRound(h, c, o.p[1:], o.p[0], further, o.flat, o.mean, o.centered)
}

// Fields encodes or decodes the estimate. When decoding, o must already be of the same dimension.
func (o *Online) Fields(f *fields.Fields) {
	f.Vector(&o.w)
	o.h.Fields(f)
}
