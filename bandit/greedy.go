package bandit

import (
	"math/rand/v2"

	"vitrine/utility"
)

// GreedyOptions are ONLOptions without the bonus.
type GreedyOptions struct {
	Warmup     int     `toml:"warmup"`
	Lambda     float64 `toml:"lambda"`
	Pilot      string  `toml:"pilot"`
	PilotRate  float64 `toml:"pilot_rate"`
	PilotSteps int     `toml:"pilot_steps"`
	PilotRidge float64 `toml:"pilot_ridge"`
	Update     string  `toml:"update"`
	Step       float64 `toml:"step"`
	Tolerance  float64 `toml:"tolerance"`
}

// DefaultGreedyOptions returns those of ONL-MNL.
func DefaultGreedyOptions() GreedyOptions {
	o := DefaultONLOptions()
	return GreedyOptions{
		Warmup: o.Warmup, Lambda: o.Lambda,
		Pilot: o.Pilot, PilotRate: o.PilotRate, PilotSteps: o.PilotSteps, PilotRidge: o.PilotRidge,
		Update: o.Update, Step: o.Step, Tolerance: o.Tolerance,
	}
}

// NewGreedy returns ONL-MNL with β = 0 and C_h = 0: after the same warm-up it
// offers what is best under ŵ_t. What ONL-MNL gains over it is what the bonus
// is worth.
func NewGreedy(p Problem, m utility.Model, o GreedyOptions, rng *rand.Rand) (*ONL, error) {
	return NewONL(p, m, ONLOptions{
		Warmup: o.Warmup, Lambda: o.Lambda,
		Pilot: o.Pilot, PilotRate: o.PilotRate, PilotSteps: o.PilotSteps, PilotRidge: o.PilotRidge,
		Update: o.Update, Step: o.Step, Tolerance: o.Tolerance,
	}, rng)
}
