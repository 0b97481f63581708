package choice

import (
	"errors"
	"math"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Individual describes a decision maker's varying coefficients, in the order of [Model.Random], by their mean and
// standard deviation given the choices.
type Individual struct {
	Panel    int // number of the decision maker; without panels, number of the choice
	Mean, SD []float64
}

// Individuals returns the conditional means of a mixed logit's coefficients, by decision maker,
//
//	E(β_n | choices) = Σ_r h_nr β_nr,  h_nr = L_nr / Σ_q L_nq
//
// where L_nr is the likelihood of the choices under the draw β_nr. The estimates are treated as known: the standard
// deviations do not include their errors. Individuals returns an error for other models and for data without observed
// choices. Sources: Revelt and Train (2000); Train (2009), Section 11.3.
func (r *Result) Individuals(d *Data) ([]Individual, error) {
	if d.Unobserved {
		return nil, errors.New("the data do not say what was chosen")
	}
	l, err := r.likelihood(d)
	if err != nil {
		return nil, err
	}
	m, ok := l.(*mixed)
	if !ok {
		return nil, errors.New("only a mixed logit has coefficients of decision makers")
	}
	w := m.worker().(*mixedWorker)
	var list []Individual
	var squares []float64
	for _, b := range d.blocks {
		x := w.begin(b, r.Coefficients)
		units(b, func(u unit) {
			w.draw(u.number, r.Coefficients)
			w.simulate(b, u, x)
			w.posteriors() // leaves h in logl
			one := Individual{Panel: u.number}
			for k := range w.random {
				beta := w.beta.row[k]
				mean := kernel.Dot(w.logl, beta)
				squares = scratch.Grow(squares, len(beta))
				for r, v := range beta {
					squares[r] = (v - mean) * (v - mean)
				}
				one.Mean, one.SD = append(one.Mean, mean), append(one.SD, math.Sqrt(kernel.Dot(w.logl, squares)))
			}
			list = append(list, one)
		})
	}
	return list, nil
}
