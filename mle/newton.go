package mle

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
)

// Newton tracks the minimiser ŵ of an [Affine] loss that gains rounds, by warm-started Newton steps with a lagged
// Hessian H:
//
//	w ← w − H⁻¹∇ℓ(w)   until  ∇ℓ(w)ᵀ H⁻¹ ∇ℓ(w) < Tolerance
//
// The left side of the stopping rule is the decrement²; half of it estimates ℓ(w) − min ℓ. Newton keeps the gradient of
// the earlier rounds at ŵ, so a new round costs only its own rows plus one pass over the data per step.
//
// H is the sum of the rounds' Hessians, each computed at some earlier estimate, and its inverse is updated with each
// round. If no utility of a round has since moved by more than Δ, the round's Hessian is right within a factor exp(2Δ),
// because the probabilities are and it is a covariance. Newton recomputes H at the current w when some utility has
// moved by more than drift, after every third step, and when a step does not decrease ℓ. If a step fails even with the
// new H, Newton halves it.
//
// With a Radius, Newton finds the minimiser over the ball ‖w‖ ≤ Radius: each step goes to the projection v of
// w − H⁻¹∇ℓ(w) in the norm of H, which minimises the quadratic model over the ball. The decrement² is then
// ∇ℓ(w)ᵀ(w − v), which is 0 only at the minimiser.
//
// In the worst case, if gradients differ a lot in size, Minimize gives up after a thousand steps, including rejected
// ones, and keeps the best estimate so far.
type Newton struct {
	// Tolerance is the decrement² at which Minimize stops.
	Tolerance float64

	// Radius is the radius B of a ball that w stays in; 0 means no ball. The centre must lie inside.
	Radius float64

	loss  *Affine
	w     []float64 // d, the current estimate
	value float64   // ℓ(w)
	grad  []float64 // ∇ℓ(w)
	h     *gram.Matrix
	at    []float64 // n, the utilities at which H was computed
	// moved bounds how far the utilities at w are from at.
	moved float64

	step, next, nextGrad, centered, packed []float64 // scratch
	nextMoved                              float64
	ball                                   ball
}

// lagged is the number of steps after which Minimize recomputes the Hessian, and drift the move of a utility that makes
// it do so earlier. maxSteps bounds the total number of steps.
const (
	lagged   = 3
	drift    = 2
	maxSteps = 1000
)

// NewNewton starts with a loss without rounds. Its minimiser is the centre.
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

// Params returns the current estimate. The slice belongs to Newton and changes; copy it to keep it.
func (n *Newton) Params() []float64 { return n.w }

// Loss returns the loss. Add rounds only through [Newton.Append].
func (n *Newton) Loss() *Affine { return n.loss }

// Tighten recomputes H if some utility has since moved by more than within.
func (n *Newton) Tighten(within float64) {
	if n.moved > within {
		n.refresh()
	}
}

// Hessian returns H, and the largest move Δ of a utility since H was computed:
//
//	exp(−2Δ) H ≤ ∇²ℓ(w) ≤ exp(2Δ) H
//
// H belongs to Newton and changes.
func (n *Newton) Hessian() (h *gram.Matrix, moved float64) { return n.h, n.moved }

// Append adds a round to the loss as [Affine.Append] does, and updates the gradient and the Hessian at the current
// estimate.
func (n *Newton) Append(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	n.loss.Append(a, g, y, more...)
	l := n.loss
	l.round(l.Rounds()-1, func(from, to int, a, g, u, out []float64) {
		kernel.Gemv(u, a, g, n.w, len(u), l.Dim())
		n.at = append(n.at, u...)
		n.value += l.probabilities(u, out, from, to)
		addRound(n.h, 1, u, out[0], len(more), g, l.mean, n.centered)
		l.subtractChoices(u, from, to)
		kernel.GemvTrans(n.grad, g, u, len(u), l.Dim())
	})
}

// Minimize steps to the minimiser of the loss of all rounds so far. Each step is a pass over the data. The decrement in
// the result uses the lagged Hessian.
func (n *Newton) Minimize() Minimum {
	fresh, scale := false, 1.0
	r := Minimum{Decrement: math.NaN()}
	for steps := range maxSteps {
		if !fresh && (n.moved > drift || steps > 0 && steps%lagged == 0) {
			n.refresh()
			fresh = true
		}
		n.h.Solve(n.step, n.grad)
		decrement := n.constrain()
		r = Minimum{n.value, steps, decrement, decrement >= 0 && decrement < n.Tolerance}
		if r.Converged {
			return r
		}
		accepted := false
		if decrement >= 0 {
			for j := range n.w {
				n.next[j] = n.w[j] - float64(scale*n.step[j])
			}
			n.nextMoved = 0
			value := n.loss.gradient(n.nextGrad, n.next, n)
			rounding := float64(1e-12 * (1 + n.value))
			if accepted = value <= n.value-float64(1e-4*scale*decrement)+rounding; accepted {
				n.w, n.next = n.next, n.w
				n.grad, n.nextGrad = n.nextGrad, n.grad
				n.value, n.moved = value, n.nextMoved
			}
		}
		switch {
		case accepted:
			fresh, scale = false, min(1, 2*scale)
		case !fresh:
			n.refresh()
			fresh = true
		case decrement >= 0:
			scale /= 2
		default:
			return r // H⁻¹ exceeds the precision of a float64
		}
	}
	r.Value, r.Steps = n.value, maxSteps
	return r
}

// constrain shortens the step so that it stays in the ball, and returns the decrement².
func (n *Newton) constrain() float64 {
	if n.Radius > 0 {
		floats.SubTo(n.next, n.w, n.step)
		if n.ball.project(n.next, n.Radius, n.h) {
			floats.SubTo(n.step, n.w, n.next)
			if d := kernel.Dot(n.grad, n.step); d > 0 || d <= -n.Tolerance {
				return d
			}
			return 0 // at the minimiser, where rounding decides the sign
		}
	}
	return kernel.Dot(n.grad, n.step)
}

// see implements observer. It measures how far the utilities have moved.
func (n *Newton) see(row int, u []float64) {
	moved := n.nextMoved
	for k, at := range n.at[row : row+len(u)] {
		if d := math.Abs(u[k] - at); d > moved {
			moved = d
		}
	}
	n.nextMoved = moved
}

// refresh recomputes the Hessian at the current estimate. The fast sum over blocks of rounds takes differences. If the
// gradients are so large compared with λ that rounding makes the result indefinite, refresh falls back to a sum of
// positive terms.
func (n *Newton) refresh() {
	l := n.loss
	l.hessian(n.packed, n.w)
	l.blocks(func(from, to int, a, g, u, out []float64) {
		kernel.Gemv(n.at[l.start(from):][:len(u)], a, g, n.w, len(u), l.Dim())
	})
	n.moved = 0
	if n.h.Set(n.packed) == nil {
		return
	}
	n.h.Reset(l.lambda)
	for s := range l.Rounds() {
		l.round(s, func(from, to int, a, g, u, out []float64) {
			kernel.Gemv(u, a, g, n.w, len(u), l.Dim())
			l.probabilities(u, out, from, to)
			addRound(n.h, 1, u, out[0], len(l.further(s)), g, l.mean, n.centered)
		})
	}
}

// addRound adds c times the Hessian of one round to h. With ḡ = Σ_k p_k g_k, it is a sum of positive rank-one terms:
//
//	Σ_k p_k g_k g_kᵀ − ḡ ḡᵀ = Σ_k p_k (g_k − ḡ)(g_k − ḡ)ᵀ + p_0 ḡ ḡᵀ
//
// With n further takes, p holds the expected takes (see [kernel.Takes]), μ = ḡ / Σ_k p_k is the mean of a take, and the
// Hessian
//
//	Σ_k p_k (g_k − μ)(g_k − μ)ᵀ + p_0 (1 − p_0) μ μᵀ
//
// g is row-major with a row for each entry of p; mean and centered are scratch of length d.
func addRound(h *gram.Matrix, c float64, p []float64, p0 float64, n int, g, mean, centered []float64) {
	d := len(mean)
	clear(mean)
	kernel.GemvTrans(mean, g, p, len(p), d)
	p0 = kernel.MeanTake(mean, p0, n)
	for k, pk := range p {
		for j, m := range mean {
			centered[j] = g[k*d+j] - m
		}
		h.Add(c*pk, centered)
	}
	h.Add(c*p0, mean)
}

// Fields encodes or decodes the estimate and its loss. When decoding, n must already be of the same dimension.
func (n *Newton) Fields(f *fields.Fields) {
	n.loss.Fields(f)
	f.Vector(&n.w, &n.grad)
	f.Float(&n.value, &n.moved)
	n.h.Fields(f)
	if f.Reads() {
		n.at = make([]float64, n.loss.Rows())
	}
	f.Vector(&n.at)
}
