package mle

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
)

// Laplace is Laplace's approximation of the posterior of a utility family's parameters. The penalties of an [NLL] act
// as the prior:
//
//	w ~ N(ŵ, H⁻¹),  H the Fisher information at ŵ, penalty included
//	log ∫ exp(−NLL(w)) dN(w; 0, P⁻¹) ≈ −L(ŵ) + ½ log det P − ½ log det H
//
// A Laplace is immutable.
type Laplace struct {
	Mode        []float64 // ŵ
	LogEvidence float64

	h    *mat.SymDense
	root *mat.TriDense // U with UᵀU = H
}

// ErrSingular reports an information matrix that is not positive definite to the precision of a float64.
var ErrSingular = errors.New("mle: the Fisher information is singular: scale the features")

// NewLaplace returns the approximation at ŵ = w, which should minimise l. It copies w. If l has an anchor, the evidence
// covers the anchor's rounds as well. Otherwise every parameter needs a positive penalty, and the error names the first
// parameter without one. Other errors are ErrSingular and ErrNotFinite.
func NewLaplace(l *NLL, w []float64) (*Laplace, error) {
	if err := l.checkPrior(); err != nil {
		return nil, err
	}
	value := l.Value(w)
	if !finite(value) {
		return nil, ErrNotFinite
	}
	return l.laplace(w, value, l.Fisher(nil, w))
}

// checkPrior returns an error unless l uses an anchor or penalises every parameter.
func (l *NLL) checkPrior() error {
	for j := range l.Dim() {
		if p := l.precision(j); l.Anchor == nil && !(p > 0) {
			return fmt.Errorf("mle: parameter %d has a prior of precision %v: must be positive: "+
				"set Ridge, or Prior for every parameter", j, p)
		}
	}
	return nil
}

// laplace is NewLaplace given the finite value and Fisher information at w. Call checkPrior first.
func (l *NLL) laplace(w []float64, value float64, fisher *mat.SymDense) (*Laplace, error) {
	p, err := newLaplace(append([]float64(nil), w...), fisher)
	if err != nil {
		return nil, err
	}
	p.LogEvidence = -value - p.logDetRoot()
	if l.Anchor != nil {
		p.LogEvidence += l.Anchor.LogEvidence + l.Anchor.logDetRoot()
	} else {
		for j := range w {
			p.LogEvidence += float64(portable.Log(l.precision(j)) / 2)
		}
	}
	if !finite(p.LogEvidence) {
		return nil, ErrNotFinite
	}
	return p, nil
}

// NewGaussian returns N(mean, H⁻¹) as a posterior without rounds, and evidence 1. It copies mean, and h must have
// a row for each of its elements. The error is ErrSingular.
func NewGaussian(mean []float64, h *mat.SymDense) (*Laplace, error) {
	return newLaplace(slices.Clone(mean), h)
}

func newLaplace(w []float64, h *mat.SymDense) (*Laplace, error) {
	root := mat.NewTriDense(len(w), mat.Upper, nil)
	if _, ok := factorize(root, h, 0); !ok {
		return nil, ErrSingular
	}
	return &Laplace{Mode: w, h: h, root: root}, nil
}

// factorize stores in root the U with UᵀU = H + μI. ok is false if H + μI is not positive definite. mat.Cholesky would
// also estimate the condition number, which takes longer.
func factorize(root *mat.TriDense, h *mat.SymDense, mu float64) (u blas64.Triangular, ok bool) {
	to, from := root.RawTriangular(), h.RawSymmetric()
	for i := range to.N {
		row := to.Data[i*to.Stride+i : i*to.Stride+to.N]
		copy(row, from.Data[i*from.Stride+i:])
		row[0] += mu
	}
	return lapack64.Potrf(blas64.Symmetric{N: to.N, Stride: to.Stride, Data: to.Data, Uplo: blas.Upper})
}

// logDetRoot returns ½ log det H.
func (p *Laplace) logDetRoot() float64 {
	sum := 0.0
	for j := range p.Mode {
		sum += portable.Log(p.root.At(j, j))
	}
	return sum
}

// Deviation stores in dst a draw from scale · N(0, H⁻¹).
func (p *Laplace) Deviation(dst []float64, scale float64, rng *rand.Rand) {
	for j := range dst {
		dst[j] = scale * rng.NormFloat64()
	}
	p.Colour(dst)
}

// Colour replaces v by U⁻¹v. If v's covariance is the identity, the result's is H⁻¹.
func (p *Laplace) Colour(v []float64) {
	blas64.Trsv(blas.NoTrans, p.root.RawTriangular(), blas64.Vector{N: len(v), Data: v, Inc: 1})
}

// deviationTile is the number of items with coordinates that fit in the L1 cache.
const deviationTile = 128

// Deviations stores in dst the standard deviations of g_iᵀw, √(g_iᵀH⁻¹g_i) = ‖U⁻ᵀg_i‖. g holds the coordinates of the
// g_i column by column, len(dst) numbers each. Missing trailing coordinates count as 0. Deviations uses buffer as
// scratch and returns it, grown if it was too small; buffer must not overlap dst or g.
func (p *Laplace) Deviations(dst, buffer, g []float64) []float64 {
	n, d := len(dst), len(p.Mode)
	buffer = scratch.Grow(buffer, d*(deviationTile+d))
	u, v, over := p.root.RawTriangular(), buffer[:d*deviationTile], buffer[d*deviationTile:]
	for j := range d {
		for i := range j {
			over[j*d+i] = -u.Data[i*u.Stride+j] / u.Data[j*u.Stride+j]
		}
	}
	for from := 0; from < n; from += deviationTile {
		to := min(from+deviationTile, n)
		m := to - from
		for j := range d {
			kernel.Combine(v[j*m:][:m], 0, over[j*d:], 1, v, j)
			if len(g) > j*n {
				kernel.Axpy(v[j*m:][:m], 1/u.Data[j*u.Stride+j], g[j*n+from:][:m])
			}
		}
		squares := dst[from:to]
		clear(squares)
		kernel.AddSquares(squares, v, d)
	}
	for i, square := range dst {
		dst[i] = math.Sqrt(square)
	}
	return buffer
}

// Variance returns gᵀH⁻¹g, the variance of gᵀw.
func (p *Laplace) Variance(g []float64) float64 {
	v := append([]float64(nil), g...)
	blas64.Trsv(blas.Trans, p.root.RawTriangular(), blas64.Vector{N: len(v), Data: v, Inc: 1})
	return floats.Dot(v, v)
}

// Step returns the approximation after one more round, by one step of the extended Kalman filter. Its cost does not
// grow with the number of earlier rounds.
//
//	H' = H + G(ŵ),  ŵ' = ŵ − H'⁻¹ ∇ℓ(ŵ)
//	log evidence' = log evidence − ℓ(ŵ') − ½ ‖ŵ' − ŵ‖²_H − ½ log det H' + ½ log det H
//
// where ℓ is the loss of the round, without penalties, and G its information. If choice probabilities are near 0 or 1,
// G does not determine how far to go, so the step is halved as long as ℓ(ŵ') + ½ ‖ŵ' − ŵ‖²_H exceeds ℓ(ŵ) by more than
// 1. round is the loss of that round only. Errors are the same as for NewLaplace.
func (p *Laplace) Step(round *NLL) (*Laplace, error) {
	w := append([]float64(nil), p.Mode...)
	step := make([]float64, len(w))
	before := round.Gradient(step, w)
	if !finite(before) {
		return nil, ErrNotFinite
	}
	h := round.Fisher(nil, w)
	h.AddSym(h, p.h)
	next, err := newLaplace(w, h)
	if err != nil {
		return nil, err
	}
	next.solve(step)
	moved := mat.NewVecDense(len(step), step)
	var after, strain float64
	for range 50 {
		floats.SubTo(w, p.Mode, step)
		after, strain = round.Value(w), float64(mat.Inner(moved, p.h, moved)/2)
		if after+strain <= before+1 {
			break
		}
		floats.Scale(0.5, step)
	}
	next.LogEvidence = p.LogEvidence - after - strain - next.logDetRoot() + p.logDetRoot()
	if !finite(next.LogEvidence) {
		return nil, ErrNotFinite
	}
	return next, nil
}

// Forget replaces the fraction 1−λ of the information by the information of the prior, N(0, P⁻¹) with P = diag(prior):
//
//	H' = λH + (1−λ)P,  ŵ' = H'⁻¹ λHŵ
//
// This is the posterior to the power λ times the prior to the power 1−λ. The evidence does not change. If H' is
// singular, Forget returns ErrSingular.
func (p *Laplace) Forget(lambda float64, prior []float64) (*Laplace, error) {
	d := len(p.Mode)
	w := make([]float64, d)
	var pull mat.VecDense
	pull.MulVec(p.h, mat.NewVecDense(d, p.Mode))
	h := mat.NewSymDense(d, nil)
	h.ScaleSym(lambda, p.h)
	for j, rho := range prior {
		h.SetSym(j, j, h.At(j, j)+float64((1-lambda)*rho))
		w[j] = lambda * pull.AtVec(j)
	}
	next, err := newLaplace(w, h)
	if err != nil {
		return nil, err
	}
	next.solve(w)
	next.LogEvidence = p.LogEvidence
	return next, nil
}

// Extended returns the approximation for w with more parameters inserted at index at. Their prior is N(0, P⁻¹) with
// P = diag(prior), independent of w. The evidence does not change.
func (p *Laplace) Extended(at int, prior []float64) (*Laplace, error) {
	w := slices.Insert(slices.Clone(p.Mode), at, make([]float64, len(prior))...)
	h := mat.NewSymDense(len(w), nil)
	to := func(i int) int {
		if i < at {
			return i
		}
		return i + len(prior)
	}
	for i := range p.Mode {
		for j := i; j < len(p.Mode); j++ {
			h.SetSym(to(i), to(j), p.h.At(i, j))
		}
	}
	for j, rho := range prior {
		h.SetSym(at+j, at+j, rho)
	}
	next, err := newLaplace(w, h)
	if err != nil {
		return nil, err
	}
	next.LogEvidence = p.LogEvidence
	return next, nil
}

// strain returns ½ (w − ŵ)ᵀH(w − ŵ). It stores the gradient in dst unless dst is nil.
func (p *Laplace) strain(dst, w []float64) float64 {
	d := len(w)
	step, pull := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	floats.SubTo(step.RawVector().Data, w, p.Mode)
	pull.MulVec(p.h, step)
	if dst != nil {
		copy(dst, pull.RawVector().Data)
	}
	return kernel.Dot(step.RawVector().Data, pull.RawVector().Data) / 2
}

// solve replaces v by H⁻¹v.
func (p *Laplace) solve(v []float64) {
	x := blas64.Vector{N: len(v), Data: v, Inc: 1}
	blas64.Trsv(blas.Trans, p.root.RawTriangular(), x)
	blas64.Trsv(blas.NoTrans, p.root.RawTriangular(), x)
}

// LaplaceFields encodes or decodes an approximation for d parameters.
func LaplaceFields(f *fields.Fields, p **Laplace, d int) {
	mode, h, evidence := make([]float64, d), make([]float64, d*d), 0.0
	if !f.Reads() {
		mode, h, evidence = (*p).Mode, (*p).h.RawSymmetric().Data, (*p).LogEvidence
	}
	f.Vector(&mode, &h)
	if f.Float(&evidence); !f.Reads() || f.Err() != nil {
		return
	}
	read, err := newLaplace(mode, mat.NewSymDense(d, h))
	if err != nil {
		f.Fail(err)
		return
	}
	read.LogEvidence = evidence
	*p = read
}
