package mle

import (
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// NLL is the negative log-likelihood of choices under a utility family, with two penalties: a ridge with precision
// ρ ≥ 0, and a Gaussian prior with precision ρ_j ≥ 0 for each parameter.
//
//	L(w) = − Σ_s log p(i_s | S_s, w) + ½ Σ_j (ρ + ρ_j) w_j²
//	p(i | S_s, w) = exp(f_w(x_si)) / (1 + Σ_{j∈S_s} exp(f_w(x_sj)))
//
// With ρ = 0 it is the loss of line 5 of Algorithm 1. L is not convex unless f is affine in w. Its unpenalised
// minimiser is a poor pilot: networks then give utilities of 10² to 10⁴ on new contexts.
//
// The choices may grow between evaluations. An NLL is not safe for concurrent use, because evaluations share scratch
// memory.
type NLL struct {
	Model   utility.Model
	Choices *Choices
	Ridge   float64   // ρ
	Prior   []float64 // ρ_j; nil means 0 for all
	// Anchor, unless nil, replaces the penalties by the posterior N(m, P⁻¹) of rounds outside Choices: it adds ½
	// (w − m)ᵀP(w − m).
	Anchor *Laplace

	u, r, out, mean, packed []float64
	g                       *mat.Dense
	gradients               scratch.Matrix

	keeps bool // see keep
	ready bool // whether u holds the probabilities and g the gradients for Fisher
}

// Dim returns the number of parameters d_w.
func (l *NLL) Dim() int { return l.Model.NumParams() }

// Value returns L(w).
func (l *NLL) Value(w []float64) float64 {
	loss := l.penalty(nil, w)
	for from, to := range l.Choices.blocks() {
		x := l.Choices.rows(from, to)
		n, _ := x.Dims()
		l.u = scratch.Grow(l.u, n)
		l.Model.Utilities(l.u, w, x)
		loss += l.Choices.loss(l.u, from, to)
	}
	return loss
}

// Gradient stores in dst, of length d_w,
//
//	∇L(w) = Σ_s Σ_{i∈S_s} (p_si(w) − y_si) ∇f_w(x_si) + Pw,  P = ρI + diag(ρ_j)
//
// and returns L(w).
func (l *NLL) Gradient(dst, w []float64) float64 {
	loss := l.penalty(dst, w)
	for from, to := range l.Choices.blocks() {
		loss += l.addGradient(dst, w, from, to)
	}
	return loss
}

// addGradient adds the gradient of the rounds [from, to) to dst and returns their loss.
func (l *NLL) addGradient(dst, w []float64, from, to int) float64 {
	l.out, l.mean = scratch.Grow(l.out, to-from), scratch.Grow(l.mean, l.Dim())
	if l.keeps && to-from == l.Choices.Rounds() {
		loss := l.probabilities(w, from, to)
		l.ready = true
		l.r = append(l.r[:0], l.u...)
		l.Choices.subtractChoices(l.r, from, to)
		kernel.GemvTrans(dst, l.g.RawMatrix().Data, l.r, len(l.u), l.Dim())
		return loss
	}
	x := l.Choices.rows(from, to)
	residuals := func(cotangent, u []float64) float64 {
		copy(cotangent, u)
		return l.Choices.residuals(cotangent, l.out, from, to)
	}
	var loss float64
	if m, ok := l.Model.(utility.Backpropagator); ok {
		loss = m.Backpropagate(l.mean, w, x, residuals)
	} else {
		l.linearize(w, x)
		loss = residuals(l.u, l.u)
		clear(l.mean)
		kernel.GemvTrans(l.mean, l.g.RawMatrix().Data, l.u, len(l.u), l.Dim())
	}
	for j, v := range l.mean {
		dst[j] += v
	}
	return loss
}

// Fisher stores in dst and returns the Fisher information of the choices at w plus the penalty's,
//
//	Σ_s (Σ_{i∈S_s} p_si ∇f_si ∇f_siᵀ − ḡ_s ḡ_sᵀ) + P,  ḡ_s = Σ_{i∈S_s} p_si ∇f_si
//
// It allocates if dst is nil. The matrix is the Hessian of L without the curvature of f, and positive semi-definite.
func (l *NLL) Fisher(dst *mat.SymDense, w []float64) *mat.SymDense {
	d := l.Dim()
	l.packed = scratch.Grow(l.packed, kernel.PackedLen(d))
	clear(l.packed)
	for from, to := range l.Choices.blocks() {
		if !l.ready {
			l.probabilities(w, from, to)
		}
		l.mean = scratch.Grow(l.mean, d)
		l.Choices.addFisher(l.packed, l.u, l.g.RawMatrix().Data, l.mean, from, to)
	}
	dst = gram.Unpack(dst, l.packed, d)
	if l.Anchor != nil {
		dst.AddSym(dst, l.Anchor.h)
		return dst
	}
	for i := range d {
		dst.SetSym(i, i, dst.At(i, i)+l.precision(i))
	}
	return dst
}

// keep makes Gradient keep its results for Fisher, if all rounds fit in one block. While it is on, call only Gradient
// and Fisher, and Fisher only with the w of the last Gradient.
func (l *NLL) keep(on bool) { l.keeps, l.ready = on, false }

// probabilities computes the choice probabilities of the rounds [from, to) in l.u and l.out, and ∇f_w in l.g. It
// returns the rounds' loss.
func (l *NLL) probabilities(w []float64, from, to int) float64 {
	l.linearize(w, l.Choices.rows(from, to))
	l.out = scratch.Grow(l.out, to-from)
	return l.Choices.probabilities(l.u, l.out, from, to)
}

// linearize computes f_w and ∇f_w of the rows x in l.u and l.g.
func (l *NLL) linearize(w []float64, x *mat.Dense) {
	n, _ := x.Dims()
	l.u = scratch.Grow(l.u, n)
	l.g = l.gradients.Reshape(n, l.Dim())
	utility.Linearize(l.Model, l.u, l.g, w, x)
}

// precision returns ρ + ρ_j.
func (l *NLL) precision(j int) float64 {
	if l.Prior == nil {
		return l.Ridge
	}
	return l.Ridge + l.Prior[j]
}

// penalty returns ½ wᵀPw, or the anchor's strain. It stores the gradient in dst unless dst is nil.
func (l *NLL) penalty(dst, w []float64) float64 {
	if l.Anchor != nil {
		return l.Anchor.strain(dst, w)
	}
	sum := 0.0
	for j, v := range w {
		p := l.precision(j)
		sum += float64(p * v * v)
		if dst != nil {
			dst[j] = p * v
		}
	}
	return float64(sum / 2)
}
