package choice

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Step is a step of a minimiser, for those who watch it.
type Step struct {
	Step          int     // counted from 1, over all samples
	Choices       int     // of the sample
	LogLikelihood float64 // of the sample, before the step
	Decrement     float64 // of the sample: half of it estimates what is to be gained
}

// minimum is what a minimiser reports.
type minimum struct {
	theta     []float64
	value     float64 // −log-likelihood
	hessian   *mat.SymDense
	moment    []float64
	steps     int
	decrement float64 // ∇ℓᵀH⁻¹∇ℓ before the last step
	converged bool

	origin curvature // where the minimiser started, on the first sample
}

// curvature is the Hessian of some choices.
type curvature struct {
	hessian *mat.SymDense
	moment  []float64
	choices int
}

// minimiser holds the settings of a minimisation.
type minimiser struct {
	steps     int     // the most
	tolerance float64 // of the decrement
	watch     func(Step)
	taken     int // in all samples
}

// newton minimises the negative log-likelihood from θ by Newton steps,
//
//	θ ← θ − H⁻¹∇ℓ(θ)   until   ∇ℓᵀH⁻¹∇ℓ < tolerance
//
// halved while they do not decrease ℓ. The decrement falls quadratically, so the step that belongs
// to the last one is taken without another look: it changes ℓ by less than the tolerance, and what
// it leaves is beyond rounding.
//
// Large data are begun with a sample: its estimate costs little, and is so near that few steps on
// all data remain.
func (m *minimiser) newton(ctx context.Context, o *objective, theta []float64) (*minimum, error) {
	const sampling, enough = 8, 16
	r := &minimum{}
	if len(o.blocks) >= sampling*enough {
		if start, err := m.newton(ctx, o.thin(sampling), theta); err != nil {
			return nil, err
		} else if start.converged && len(flatDirections(start.hessian, start.moment)) == 0 {
			theta, r.origin = start.theta, start.origin
		}
	}
	r.theta = append([]float64(nil), theta...)
	s, err := o.at(ctx, r.theta, second)
	if err != nil {
		return nil, err
	}
	step, next := make([]float64, o.dim), make([]float64, o.dim)
	for {
		r.value, r.hessian, r.moment = s.value, symmetric(s.hessian, o.dim), s.moment
		if r.origin.hessian == nil {
			r.origin = curvature{r.hessian, r.moment, choices(o.blocks)}
		}
		r.decrement = descent(step, r.hessian, s.gradient)
		r.steps++
		m.taken++
		if m.watch != nil {
			m.watch(Step{m.taken, choices(o.blocks), -r.value, r.decrement})
		}
		if r.decrement >= 0 && r.decrement < m.tolerance {
			r.converged = true
			kernel.Axpy(r.theta, -1, step)
			r.value -= r.decrement / 2
			return r, nil
		}
		if r.steps > m.steps || math.IsNaN(r.decrement) {
			return r, nil
		}
		improved := false
		for scale := 1.0; scale > 1e-10 && !improved; scale /= 2 {
			copy(next, r.theta)
			kernel.Axpy(next, -scale, step)
			// The first trial usually succeeds, and has all derivatives.
			if s, err = o.at(ctx, next, second); err != nil {
				return nil, err
			}
			improved = s.value <= r.value-1e-4*scale*r.decrement+1e-13*math.Abs(r.value)
		}
		if !improved {
			return r, nil
		}
		copy(r.theta, next)
	}
}

// choices returns the number of choices in blocks.
func choices(blocks []*block) (n int) {
	for _, b := range blocks {
		n += b.choices()
	}
	return n
}
