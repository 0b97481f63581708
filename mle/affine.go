package mle

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Affine is the regularised negative log-likelihood of utilities that are affine in the parameters,
// u_si(w) = a_si + g_siᵀ w, around a centre c:
//
//	ℓ(w) = − Σ_s log p̂(i_s | S_s, w) + (λ/2) ‖w − c‖²
//	p̂(i | S_s, w) = exp(u_si(w)) / (1 + Σ_{j∈S_s} exp(u_sj(w)))
//
// i_s ranges over S_s ∪ {0}: the sum includes the rounds in which nobody buys. (The paper prints ℓ_t as a sum over
// i ∈ S_s, but the stationarity condition in its proof of the confidence set holds only with the outside option.)
//
// With a_si = f_ŵs(x_si) − ∇f_ŵs(x_si)ᵀŵ_s, g_si = ∇f_ŵs(x_si) and c = ŵ_0, this is Equation (2) of the paper; with
// a_si = 0, g_si = x_si and c = 0, it is linear MNL regression. The loss is convex, and strongly convex for λ > 0.
//
// An Affine is not safe for concurrent use, because evaluations share scratch memory.
type Affine struct {
	lambda float64
	center []float64 // d
	offset []float64 // n, a
	g      []float64 // n×d, row-major
	outcomes
	u, out, mean []float64
}

// NewAffine returns a loss without rounds, of dimension len(center). It panics unless λ > 0.
func NewAffine(lambda float64, center []float64) *Affine {
	if !(lambda > 0) {
		panic(fmt.Sprintf("mle: NewAffine needs λ > 0, not %v", lambda))
	}
	return &Affine{lambda: lambda, center: append([]float64(nil), center...), mean: make([]float64, len(center))}
}

// Dim returns the number of parameters d.
func (l *Affine) Dim() int { return len(l.center) }

// Append adds a round with choice y, and any further takes, among items with utilities a_k + g_kᵀw; g is len(a)×d. It
// panics as [Choices.Append] does.
func (l *Affine) Append(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	checkTakes(len(a), y, more)
	l.offset = append(l.offset, a...)
	for k := range a {
		l.g = append(l.g, g.RawRowView(k)...)
	}
	l.append(len(a), y, slices.Clone(more))
}

// Reach returns max ‖g_si‖ over all items, or 0 without items.
func (l *Affine) Reach() float64 {
	square := 0.0
	for g := range slices.Chunk(l.g, l.Dim()) {
		square = max(square, kernel.Dot(g, g))
	}
	return math.Sqrt(square)
}

// Value returns ℓ(w).
func (l *Affine) Value(w []float64) float64 {
	loss := l.ridge(nil, w)
	l.blocks(func(from, to int, a, g, u, _ []float64) {
		kernel.Gemv(u, a, g, w, len(u), l.Dim())
		loss += l.loss(u, from, to)
	})
	return loss
}

// Gradient stores in dst, of length d,
//
//	∇ℓ(w) = Σ_s Σ_{i∈S_s} (p̂_si(w) − y_si) g_si + λ(w − c)
//
// and returns ℓ(w).
func (l *Affine) Gradient(dst, w []float64) float64 { return l.gradient(dst, w, nil) }

// observer watches the utilities computed during an evaluation.
type observer interface {
	see(row int, u []float64)
}

// gradient is Gradient. Unless o is nil, it also passes the utilities to o.
func (l *Affine) gradient(dst, w []float64, o observer) float64 {
	loss := l.ridge(dst, w)
	l.blocks(func(from, to int, a, g, u, out []float64) {
		kernel.Gemv(u, a, g, w, len(u), l.Dim())
		if o != nil {
			o.see(l.start(from), u)
		}
		loss += l.residuals(u, out, from, to)
		kernel.GemvTrans(dst, g, u, len(u), l.Dim())
	})
	return loss
}

// Hessian stores in dst and returns the d×d matrix
//
//	∇²ℓ(w) = Σ_s (Σ_{i∈S_s} p̂_si g_si g_siᵀ − ḡ_s ḡ_sᵀ) + λI,  ḡ_s = Σ_{i∈S_s} p̂_si g_si
//
// It allocates if dst is nil.
func (l *Affine) Hessian(dst *mat.SymDense, w []float64) *mat.SymDense {
	p := make([]float64, kernel.PackedLen(l.Dim()))
	l.hessian(p, w)
	return gram.Unpack(dst, p, l.Dim())
}

// hessian stores the packed upper triangle of ∇²ℓ(w) in p.
func (l *Affine) hessian(p, w []float64) {
	clear(p)
	for i, k := 0, 0; i < l.Dim(); i++ {
		p[k] = l.lambda
		k += l.Dim() - i
	}
	l.blocks(func(from, to int, a, g, u, out []float64) {
		kernel.Gemv(u, a, g, w, len(u), l.Dim())
		l.probabilities(u, out, from, to)
		l.addFisher(p, u, g, l.mean, from, to)
	})
}

// ridge returns (λ/2)‖w − c‖². It stores the gradient in dst unless dst is nil.
func (l *Affine) ridge(dst, w []float64) float64 {
	sum := 0.0
	for j, c := range l.center {
		diff := w[j] - c
		sum += float64(diff * diff)
		if dst != nil {
			dst[j] = l.lambda * diff
		}
	}
	return 0.5 * l.lambda * sum
}

// blockRows ends a block of rounds once it covers this many rows. Each block of gradients is read twice and should stay
// in the L1 cache.
const blockRows = 192

// blocks calls f for consecutive blocks of rounds [from, to), with their rows of a and g, and scratch for their
// utilities and outside probabilities.
func (l *Affine) blocks(f func(from, to int, a, g, u, out []float64)) {
	d := l.Dim()
	for from := 0; from < l.Rounds(); {
		lo, to := l.start(from), from+1
		for to < l.Rounds() && l.end[to]-lo <= blockRows {
			to++
		}
		hi := l.end[to-1]
		l.u, l.out = scratch.Grow(l.u, hi-lo), scratch.Grow(l.out, to-from)
		f(from, to, l.offset[lo:hi], l.g[lo*d:hi*d], l.u, l.out)
		from = to
	}
}

// round calls f for the single round s.
func (l *Affine) round(s int, f func(from, to int, a, g, u, out []float64)) {
	d, lo, hi := l.Dim(), l.start(s), l.end[s]
	l.u, l.out = scratch.Grow(l.u, hi-lo), scratch.Grow(l.out, 1)
	f(s, s+1, l.offset[lo:hi], l.g[lo*d:hi*d], l.u, l.out)
}

// Fields encodes or decodes the rounds. When decoding, l must already be of the same dimension.
func (l *Affine) Fields(f *fields.Fields) {
	f.Vector(&l.center)
	f.Floats(&l.offset)
	f.Floats(&l.g)
	l.outcomes.fields(f, len(l.g), l.Dim())
	f.Check(len(l.offset) == l.Rows(), "%d offsets for %d rows", len(l.offset), l.Rows())
}
