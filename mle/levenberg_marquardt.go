package mle

import (
	"errors"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// LevenbergMarquardt minimises an [NLL] by damped Fisher scoring: with the
// Fisher information F(w), penalty included, and a damping μ,
//
//	(F(w) + μI) δ = −∇L(w),   w ← w + δ where that decreases L.
//
// After a step that is accepted μ shrinks with the gain ratio, the decrease of
// L over that of its quadratic model; after one that is not μ doubles, then
// quadruples, and so on (Nielsen 1999). The steps end where the model's
// decrease, ½ δᵀ(μδ − ∇L), falls below Tolerance.
type LevenbergMarquardt struct {
	Steps     int     // the most that it takes
	Tolerance float64 // in units of the log-likelihood
}

// ErrNotFinite reports a likelihood that is not a finite number at the
// starting point.
var ErrNotFinite = errors.New("mle: the likelihood is not finite at the starting point: scale the features")

// Minimize moves w, the starting point, in place and returns L(w). The
// objective should be penalised (Ridge or Prior): the unpenalised minimiser may lie
// at infinity.
func (o LevenbergMarquardt) Minimize(l *NLL, w []float64) (float64, error) {
	d := l.Dim()
	grad, next, nextGrad := make([]float64, d), make([]float64, d), make([]float64, d)
	step := mat.NewVecDense(d, nil)
	damped := mat.NewSymDense(d, nil)
	var chol mat.Cholesky

	value := l.Gradient(grad, w)
	if !finite(value) {
		return value, ErrNotFinite
	}
	fisher := l.Fisher(nil, w)
	mu, grow := 1e-3*(1+mat.Trace(fisher)/float64(d)), 2.0
	for range o.Steps {
		damped.CopySym(fisher)
		for i := range d {
			damped.SetSym(i, i, damped.At(i, i)+mu)
		}
		if !chol.Factorize(damped) {
			mu, grow = mu*grow, 2*grow
			continue
		}
		// A condition warning still leaves a usable descent direction.
		_ = chol.SolveVecTo(step, mat.NewVecDense(d, grad))
		delta := step.RawVector().Data
		for j := range w {
			next[j] = w[j] - delta[j]
		}
		model := 0.5 * (mu*kernel.Dot(delta, delta) + kernel.Dot(delta, grad))
		if model < o.Tolerance {
			break
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
		mu, grow = mu*max(1.0/3, 1-cube*cube*cube), 2
	}
	return value, nil
}

func finite(v float64) bool { return v-v == 0 }
