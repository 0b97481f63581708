package bandit

import (
	"math/rand/v2"

	"vitrine/utility"
)

// GreedyOptions are those of ONL-MNL without its bonus.
type GreedyOptions struct{ FitOptions }

// DefaultGreedyOptions returns those of ONL-MNL.
func DefaultGreedyOptions() GreedyOptions { return GreedyOptions{DefaultFitOptions()} }

// NewGreedy returns ONL-MNL with β = 0 and C_h = 0: after the same warm-up it
// offers what is best under ŵ_t. What ONL-MNL of the same λ gains over it is what
// the bonus is worth.
func NewGreedy(p Problem, m utility.Model, o GreedyOptions, rng *rand.Rand) (*ONL, error) {
	if err := p.checkModel("NewGreedy", m); err != nil {
		return nil, err
	}
	return NewONL(p, m, ONLOptions{FitOptions: o.FitOptions, Schedule: "configured"}, rng)
}
