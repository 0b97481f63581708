package choice

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Step describes a minimiser's step for observers.
type Step struct {
	Step          int     // from 1, over all samples
	Choices       int     // number of choices in the sample
	LogLikelihood float64 // on the sample, before the step
	Decrement     float64 // on the sample: half of it estimates the remaining gain
}

// minimum is the result of a minimiser.
type minimum struct {
	theta     []float64
	value     float64 // −log-likelihood
	hessian   *mat.SymDense
	moment    []float64
	steps     int
	decrement float64 // ∇ℓᵀH⁻¹∇ℓ before the last step
	converged bool

	origin curvature // curvature at the starting point, on the first sample
}

// curvature is the Hessian over some choices.
type curvature struct {
	hessian *mat.SymDense
	moment  []float64
	choices int
	weight  float64 // mean weight of a choice
}

// weights returns the sum of the choices' weights.
func (c curvature) weights() float64 { return float64(float64(c.choices) * c.weight) }

// minimiser holds the settings of a minimisation.
type minimiser struct {
	steps     int     // maximum number of steps
	tolerance float64 // for the decrement
	watch     func(Step)
	taken     int // steps so far, over all samples
	// of a model with several starts: the information if all classes are alike
	alike curvature
}

// newton minimises the negative log-likelihood from θ by Newton steps,
//
//	θ ← θ − H⁻¹∇ℓ(θ)   until   ∇ℓᵀH⁻¹∇ℓ < tolerance · min(1, mean weight)
//
// halving a step as long as it does not decrease ℓ. The decrement falls quadratically, so the last step is taken
// without evaluating ℓ again: it changes ℓ by less than the tolerance, and the remaining error is beyond rounding.
//
// On large data the first steps use a sample. Its estimate is cheap and so close that only a few steps on all data
// remain.
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
	weight := meanWeight(o.blocks)
	tolerance := m.tolerance * min(1, weight)
	for {
		r.value, r.hessian, r.moment = s.value, symmetric(s.hessian, o.dim), s.moment
		if r.origin.hessian == nil {
			r.origin = curvature{r.hessian, r.moment, choices(o.blocks), weight}
		}
		r.decrement = descent(step, r.hessian, s.gradient)
		r.steps++
		m.taken++
		if m.watch != nil {
			m.watch(Step{m.taken, choices(o.blocks), -r.value, r.decrement})
		}
		if j := slices.IndexFunc(r.moment, func(v float64) bool { return math.IsInf(v, 1) }); r.steps == 1 && j >= 0 {
			return nil, fmt.Errorf("the squares of the values behind coefficient %s are beyond 1e308: check the data "+
				"for values out of scale, or measure them in larger units", o.names()[j])
		}
		if r.decrement >= 0 && r.decrement < tolerance {
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
			// The first trial usually succeeds, so compute all its derivatives.
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

// meanWeight returns the mean weight of the choices.
func meanWeight(blocks []*block) (mean float64) {
	for _, b := range blocks {
		for s := range b.end {
			mean += b.weightOf(s)
		}
	}
	return mean / float64(choices(blocks))
}

func choices(blocks []*block) (n int) {
	for _, b := range blocks {
		n += b.choices()
	}
	return n
}
