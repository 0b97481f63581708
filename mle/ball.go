package mle

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// ball projects on ‖v‖ ≤ B in the norm of a positive definite matrix H,
//
//	v = argmin_{‖v‖≤B} ‖v − w‖²_H = (H + μI)⁻¹ H w
//
// with μ = 0 if w is inside, and otherwise the μ > 0 for which ‖v‖ = B. Take the quadratic model with gradient ∇ and
// Hessian H at w: projecting the Newton point w − H⁻¹∇ gives the model's minimiser over the ball. Scaling w down is a
// projection only if H is a multiple of I.
//
// 1/‖v‖ is concave and increasing in μ, so Newton's method for 1/‖v‖ = 1/B, started at μ = 0, does not overshoot (Moré
// and Sorensen 1983). A ball only holds scratch; its zero value is ready to use.
type ball struct {
	h            *mat.SymDense
	l            []float64 // d×d, lower triangular factor of H + μI
	hw, v, along []float64 // d
}

// project moves w into the ball of the given radius in the norm of h, and reports whether w was outside.
func (b *ball) project(w []float64, radius float64, h *gram.Matrix) bool {
	if floats.Norm(w, 2) <= radius {
		return false
	}
	d := len(w)
	b.h = h.Sym(b.h)
	b.l, b.hw, b.v, b.along = scratch.Grow(b.l, d*d), scratch.Grow(b.hw, d),
		scratch.Grow(b.v, d), scratch.Grow(b.along, d)
	raw := b.h.RawSymmetric()
	for i := range d {
		sum := 0.0
		for j := range d {
			sum += float64(raw.Data[min(i, j)*raw.Stride+max(i, j)] * w[j])
		}
		b.hw[i] = sum
	}
	copy(b.v, w)
	const steps, precision = 100, 1e-12
	mu := 0.0
	for k := 0; k < steps && b.factor(mu); k++ {
		copy(b.v, b.hw)
		b.forward(b.v)
		b.backward(b.v)
		norm := floats.Norm(b.v, 2)
		if norm <= radius*(1+precision) {
			break
		}
		copy(b.along, b.v)
		b.forward(b.along)
		mu += norm * norm / kernel.Dot(b.along, b.along) * (norm - radius) / radius
	}
	floats.ScaleTo(w, radius/floats.Norm(b.v, 2), b.v)
	return true
}

// factor computes the Cholesky factor of H + μI, and reports whether H + μI is positive definite.
func (b *ball) factor(mu float64) bool {
	raw := b.h.RawSymmetric()
	d := raw.N
	for i := range d {
		row := b.l[i*d:][:i+1]
		for j := range row {
			other := b.l[j*d:][:j+1]
			sum := raw.Data[j*raw.Stride+i] - kernel.Dot(row[:j], other[:j])
			if j < i {
				row[j] = sum / other[j]
				continue
			}
			if sum += mu; !(sum > 0) {
				return false
			}
			row[i] = math.Sqrt(sum)
		}
	}
	return true
}

// forward replaces x by L⁻¹x, and backward by L⁻ᵀx.
func (b *ball) forward(x []float64) {
	d := len(x)
	for i := range x {
		x[i] = (x[i] - kernel.Dot(b.l[i*d:][:i], x[:i])) / b.l[i*d+i]
	}
}

func (b *ball) backward(x []float64) {
	d := len(x)
	for i := d - 1; i >= 0; i-- {
		x[i] /= b.l[i*d+i]
		kernel.Axpy(x[:i], -x[i], b.l[i*d:][:i])
	}
}
