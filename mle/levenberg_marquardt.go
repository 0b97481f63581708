package mle

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// LevenbergMarquardt minimises a [Curved] objective, such as an [NLL], by damped Fisher scoring: with the
// Fisher information F(w), penalty included, and a damping μ,
//
//	(F(w) + μI) δ = −∇L(w),   w ← w + δ if that decreases L.
//
// After an accepted step μ shrinks with the gain ratio, the decrease of L over that of
// its quadratic model. After a rejected one μ doubles, then quadruples, and so on
// (Nielsen 1999). It has converged when the quadratic model without damping predicts a
// decrease below Tolerance,
//
//	½ ∇Lᵀ F⁻¹ ∇L < Tolerance
//
// The model with damping would stop too early: with features in units of 1e4 and 1e-3 a
// damped step moves only the coefficient of the former until μ has shrunk.
//
// Damping by μ diag(F) instead (Marquardt 1963) takes half as many steps in that case.
// But parameters with little information, such as those of a unit with a small
// amplitude, are then not damped, and BMA-MNL's regret was equal or higher.
type LevenbergMarquardt struct {
	Steps     int     // at most, rejected ones included
	Tolerance float64 // in units of the log-likelihood
}

// Minimize moves w, the starting point, in place. The objective should be
// penalised (Ridge or Prior): the unpenalised minimiser may lie at infinity.
func (o LevenbergMarquardt) Minimize(l Curved, w []float64) (Minimum, error) {
	d := l.Dim()
	grad, next, nextGrad := make([]float64, d), make([]float64, d), make([]float64, d)
	s := newDampedSystem(d)

	value := l.Gradient(grad, w)
	if !finite(value) {
		return Minimum{Value: value, Decrement: math.NaN()}, ErrNotFinite
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
				return Minimum{value, step, decrement, true}, nil
			}
			if !(model > 1e-14*(1+math.Abs(value))) {
				// Too little for the difference of two values to show: it is
				// the damping that holds the steps.
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
	return r, nil
}

// dampedSystem solves (F + μI) δ = g.
type dampedSystem struct {
	damped *mat.SymDense
	delta  *mat.VecDense
	chol   mat.Cholesky
}

func newDampedSystem(d int) *dampedSystem {
	return &dampedSystem{damped: mat.NewSymDense(d, nil), delta: mat.NewVecDense(d, nil)}
}

// solve returns δ, its own until the next call, and whether F + μI is positive
// definite.
func (s *dampedSystem) solve(f *mat.SymDense, mu float64, g []float64) ([]float64, bool) {
	s.damped.CopySym(f)
	for i := range g {
		s.damped.SetSym(i, i, f.At(i, i)+mu)
	}
	if !s.chol.Factorize(s.damped) {
		return nil, false
	}
	// A condition warning still leaves a usable descent direction.
	_ = s.chol.SolveVecTo(s.delta, mat.NewVecDense(len(g), g))
	return s.delta.RawVector().Data, true
}

func finite(v float64) bool { return v-v == 0 }
