package mle

import (
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/state"
)

// Newton follows the minimiser ŵ of an [Affine] loss while rounds are added
// to it, by warm-started Newton steps with a lagged Hessian H:
//
//	w ← w − H⁻¹∇ℓ(w)   until  ∇ℓ(w)ᵀ H⁻¹ ∇ℓ(w) < Tolerance
//
// The left side of the stopping rule is the decrement²; half of it estimates
// ℓ(w) − min ℓ. The gradient of the old rounds at ŵ is kept, so a new round
// costs its own rows and one pass over the data a step. H is the sum of the
// rounds' Hessians, each at the estimate of its time, and its inverse is
// updated with each round. H is computed afresh at the current w after three
// steps, and where a step does not decrease ℓ; a step that does not decrease ℓ
// with H fresh is halved. Rejected steps count: after 100 of both kinds
// Minimize gives up, with an estimate that is still the best that it met.
type Newton struct {
	// Tolerance is the decrement² at which Minimize stops.
	Tolerance float64

	loss  *Affine
	w     []float64 // d, the current estimate
	value float64   // ℓ(w)
	grad  []float64 // ∇ℓ(w)
	h     *gram.Matrix

	step, next, nextGrad, centered, packed []float64 // scratch
}

// lagged is the number of steps that Minimize takes before it computes the
// Hessian afresh; maxSteps bounds what it takes in all.
const (
	lagged   = 3
	maxSteps = 100
)

// NewNewton follows the minimiser of the loss of no rounds, which is its
// centre.
func NewNewton(lambda float64, center []float64, tolerance float64) *Newton {
	d := len(center)
	return &Newton{
		Tolerance: tolerance,
		loss:      NewAffine(lambda, center),
		w:         append([]float64(nil), center...),
		grad:      make([]float64, d),
		h:         gram.New(d, lambda),
		step:      make([]float64, d),
		next:      make([]float64, d),
		nextGrad:  make([]float64, d),
		centered:  make([]float64, d),
		packed:    make([]float64, kernel.PackedLen(d)),
	}
}

// Params returns the current estimate. The slice is Newton's own: read it, or
// copy it to keep it.
func (n *Newton) Params() []float64 { return n.w }

// Loss returns the loss that is followed. Rounds are added by Append alone.
func (n *Newton) Loss() *Affine { return n.loss }

// Append adds a round to the loss, as [Affine.Append] does, and its part to
// the gradient and to the Hessian at the current estimate.
func (n *Newton) Append(a []float64, g *mat.Dense, y vitrine.Choice) {
	n.loss.Append(a, g, y)
	l, d := n.loss, n.loss.Dim()
	l.round(l.Rounds()-1, func(from, to int, a, g, u, out []float64) {
		kernel.Gemv(u, a, g, n.w, len(u), d)
		n.value += l.probabilities(u, out, from, to)
		addRound(n.h, 1, u, out[0], g, l.mean, n.centered)
		if y != vitrine.Outside {
			u[y-1]--
		}
		kernel.GemvTrans(n.grad, g, u, len(u), d)
	})
}

// Minimize steps to the minimiser of the loss of all rounds so far, and
// returns the number of steps, each a pass over the data, that it took.
func (n *Newton) Minimize() int {
	fresh, scale := false, 1.0
	for steps := range maxSteps {
		if steps > 0 && steps%lagged == 0 && !fresh {
			n.refresh()
			fresh = true
		}
		n.h.Solve(n.step, n.grad)
		decrement := kernel.Dot(n.grad, n.step)
		if !(decrement >= n.Tolerance) {
			return steps
		}
		for j := range n.w {
			n.next[j] = n.w[j] - scale*n.step[j]
		}
		value := n.loss.Gradient(n.nextGrad, n.next)
		rounding := 1e-12 * (1 + n.value)
		if !(value <= n.value-1e-4*scale*decrement+rounding) {
			if fresh {
				scale /= 2
			} else {
				n.refresh()
				fresh = true
			}
			continue
		}
		n.w, n.next = n.next, n.w
		n.grad, n.nextGrad = n.nextGrad, n.grad
		n.value = value
		fresh, scale = false, min(1, 2*scale)
	}
	return maxSteps
}

// refresh computes the Hessian afresh at the current estimate. The fast sum
// over blocks of rounds takes differences, and where gradients are so large
// beside λ that rounding leaves it indefinite, the sum of positive terms is
// taken.
func (n *Newton) refresh() {
	n.loss.hessian(n.packed, n.w)
	if n.h.Set(n.packed) == nil {
		return
	}
	l := n.loss
	n.h.Reset(l.lambda)
	for s := range l.Rounds() {
		l.round(s, func(from, to int, a, g, u, out []float64) {
			kernel.Gemv(u, a, g, n.w, len(u), l.Dim())
			l.probabilities(u, out, from, to)
			addRound(n.h, 1, u, out[0], g, l.mean, n.centered)
		})
	}
}

// addRound adds c times the Hessian of one round to h, as a sum of positive
// rank-one terms: with ḡ = Σ_k p_k g_k,
//
//	Σ_k p_k g_k g_kᵀ − ḡ ḡᵀ = Σ_k p_k (g_k − ḡ)(g_k − ḡ)ᵀ + p_0 ḡ ḡᵀ
//
// g is row-major with a row for each entry of p; mean and centered are scratch
// of length d.
func addRound(h *gram.Matrix, c float64, p []float64, p0 float64, g, mean, centered []float64) {
	d := len(mean)
	clear(mean)
	kernel.GemvTrans(mean, g, p, len(p), d)
	for k, pk := range p {
		for j, m := range mean {
			centered[j] = g[k*d+j] - m
		}
		h.Add(c*pk, centered)
	}
	h.Add(c*p0, mean)
}

// Encode appends the estimate and its loss to a snapshot.
func (n *Newton) Encode(e *state.Encoder) {
	n.loss.Encode(e)
	e.Floats(n.w)
	e.Float(n.value)
	e.Floats(n.grad)
	n.h.Encode(e)
}

// Decode reads what Encode wrote for a Newton of the same dimension. Errors
// are the decoder's.
func (n *Newton) Decode(d *state.Decoder) {
	n.loss.Decode(d)
	d.Floats(n.w)
	n.value = d.Float()
	d.Floats(n.grad)
	n.h.Decode(d)
}
