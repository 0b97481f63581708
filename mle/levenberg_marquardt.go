package mle

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// LevenbergMarquardt minimises a [Curved] objective, such as an [NLL], by damped Fisher scoring: with the Fisher
// information F(w), penalty included, and a damping μ,
//
//	(F(w) + μI) δ = −∇L(w),   w ← w + δ if that decreases L.
//
// After an accepted step μ shrinks with the gain ratio, the actual decrease of L over the decrease predicted by its
// quadratic model. After a rejected step μ doubles, then quadruples, and so on (Nielsen 1999). The iteration has
// converged when the quadratic model without damping predicts a decrease below Tolerance,
//
//	½ ∇Lᵀ F⁻¹ ∇L < Tolerance
//
// The model with damping would stop too early. If one feature is in units of 1e4 and another in units of 1e-3, for
// example, a damped step moves only the first one's coefficient until μ has shrunk.
//
// Damping by μ diag(F) instead (Marquardt 1963) halves the number of steps in that example. But it does not damp
// parameters with little information, such as the parameters of a unit with a small amplitude, and BMA-MNL's regret was
// equal or higher.
type LevenbergMarquardt struct {
	Steps     int     // at most, including rejected ones
	Tolerance float64 // in units of the log-likelihood
}

// Minimize moves w, the starting point, in place. The objective should be penalised (Ridge or Prior), because the
// unpenalised minimiser may lie at infinity.
func (o LevenbergMarquardt) Minimize(l Curved, w []float64) (Minimum, error) {
	m, _, err := o.minimize(l, w)
	return m, err
}

// Laplace minimises l and returns [NewLaplace] at the minimum, with the errors of both. It computes the information
// there only once.
func (o LevenbergMarquardt) Laplace(l *NLL, w []float64) (*Laplace, error) {
	if err := l.checkPrior(); err != nil {
		return nil, err
	}
	l.keep(true)
	defer l.keep(false)
	m, fisher, err := o.minimize(l, w)
	if err != nil {
		return nil, err
	}
	return l.laplace(w, m.Value, fisher)
}

// minimize also returns the Fisher information at the final w.
func (o LevenbergMarquardt) minimize(l Curved, w []float64) (Minimum, *mat.SymDense, error) {
	d := l.Dim()
	grad, next, nextGrad := make([]float64, d), make([]float64, d), make([]float64, d)
	s := newDampedSystem(d)

	value := l.Gradient(grad, w)
	if !finite(value) {
		return Minimum{Value: value, Decrement: math.NaN()}, nil, ErrNotFinite
	}
	fisher := l.Fisher(nil, w)
	mu, grow := 1e-3*(1+mat.Trace(fisher)/float64(d)), 2.0
	for step := range o.Steps {
		delta, ok := s.solve(fisher, mu, grad)
		if !ok {
			mu, grow = mu*grow, 2*grow
			continue
		}
		model := 0.5 * (float64(mu*kernel.Dot(delta, delta)) + kernel.Dot(delta, grad))
		if model < o.Tolerance {
			full, ok := s.solve(fisher, 0, grad)
			if decrement := kernel.Dot(full, grad); ok && 0.5*decrement < o.Tolerance {
				return Minimum{value, step, decrement, true}, fisher, nil
			}
			if !(model > 1e-14*(1+math.Abs(value))) {
				// The decrease is too small to show in the difference of two values, so the damping must be limiting
				// the steps.
				mu, grow = mu/10, 2
				continue
			}
			delta, _ = s.solve(fisher, mu, grad)
		}
		for j := range w {
			next[j] = w[j] - delta[j]
		}
		nextValue := l.Gradient(nextGrad, next)
		gain := (value - nextValue) / model
		if !(gain > 0) {
			mu, grow = mu*grow, 2*grow
			continue
		}
		copy(w, next)
		grad, nextGrad = nextGrad, grad
		value = nextValue
		fisher = l.Fisher(fisher, w)
		cube := 2*gain - 1
		mu, grow = mu*max(1.0/3, 1-float64(cube*cube*cube)), 2
	}
	r := Minimum{Value: value, Steps: o.Steps, Decrement: math.NaN()}
	if full, ok := s.solve(fisher, 0, grad); ok {
		r.Decrement = kernel.Dot(full, grad)
	}
	return r, fisher, nil
}

// dampedSystem solves (F + μI) δ = g.
type dampedSystem struct {
	root  *mat.TriDense // U with UᵀU = F + μI
	delta []float64
}

func newDampedSystem(d int) *dampedSystem {
	return &dampedSystem{root: mat.NewTriDense(d, mat.Upper, nil), delta: make([]float64, d)}
}

// solve returns δ, valid until the next call, and whether F + μI is positive definite. Even if F + μI is nearly
// singular, δ is a usable descent direction.
func (s *dampedSystem) solve(f *mat.SymDense, mu float64, g []float64) ([]float64, bool) {
	root, ok := factorize(s.root, f, mu)
	if !ok {
		return nil, false
	}
	copy(s.delta, g)
	lapack64.Potrs(root, blas64.General{Rows: len(g), Cols: 1, Stride: 1, Data: s.delta})
	return s.delta, true
}

func finite(v float64) bool { return v-v == 0 }
