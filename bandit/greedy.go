package bandit

import (
	"math/rand/v2"

	"vitrine/utility"
)

// GreedyOptions are the options of ONL-MNL without its bonus.
type GreedyOptions struct{ FitOptions }

// DefaultGreedyOptions returns the values of DefaultONLOptions.
func DefaultGreedyOptions() GreedyOptions { return GreedyOptions{DefaultFitOptions()} }

// Check returns an error if the options do not suit a learner of the problem with the
// given number of parameters.
func (o GreedyOptions) Check(p Problem, params int) error { return o.onl().Check(p, params) }

// onl returns the options of ONL-MNL without its bonus.
func (o GreedyOptions) onl() ONLOptions {
	return ONLOptions{FitOptions: o.FitOptions, Schedule: "configured"}
}

// NewGreedy returns ONL-MNL with β = 0 and C_h = 0: after the same warm-up it offers
// the best assortment under ŵ_t. The gain of ONL-MNL with the same λ is the value of
// the bonus.
func NewGreedy(p Problem, m utility.Model, o GreedyOptions, rng *rand.Rand) (*ONL, error) {
	if err := p.checkModel("NewGreedy", m); err != nil {
		return nil, err
	}
	return NewONL(p, m, o.onl(), rng)
}
