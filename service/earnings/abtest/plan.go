package abtest

import (
	"math"

	"vitrine/internal/confseq"
	"vitrine/service/api"
)

// planPower is the probability with which an experiment of the planned length shows the gain.
const planPower = 0.8

// Basis describes a placement's revenue before an experiment.
type Basis struct {
	Totals  api.Totals // closed decisions
	Bound   float64    // largest revenue of a shown item
	Rate    float64    // decisions per second
	Seconds float64    // that the rate is from

	Dispersion float64 // the factor by which returning units add to the variance: see [Experiment.Dispersion]
}

// Plan returns the number of decisions after which an experiment most likely shows that a variant
// earns gain more per decision than the control; +Inf if that takes more than 10¹². shares are the variants' shares,
// the control's first; the answer is for the smallest of the others. The contrast D of the pair has the mean square
//
//	E[D²] = (1/p + 1/q) E[(x − m)²]
//
// for the shares p and q, and revenues x with the mean m. docs/experiments.md compares it with simulations.
func (b *Basis) Plan(shares []float64, gain float64) float64 {
	p, q := shares[0], shares[1]
	for _, share := range shares[2:] {
		q = min(q, share)
	}
	if b.Totals.Rounds < 2 || !(min(p, q, gain) > 0) {
		return math.Inf(1)
	}
	mean := b.Totals.Revenue / float64(b.Totals.Rounds)
	variance := b.Totals.Squares/float64(b.Totals.Rounds) - float64(mean*mean)
	alpha := experimentError / float64(PairCount(len(shares)))
	return confseq.Plan(alpha, planPower, gain, variance*(1/p+1/q)*max(b.Dispersion, 1), max(b.Bound, mean)/min(p, q))
}

// plannedGains are the usual gains of a plan, as shares of the mean revenue.
var plannedGains = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5}

// Report returns the plan of an experiment with the given shares for some gains, as shares of the mean revenue; nil are
// the usual ones. The placement holds out a share of its decisions. window is the attribution window in seconds, which the last decisions wait for.
func (b *Basis) Report(shares []float64, holdout float64, gains []float64, window float64) *api.ExperimentPlan {
	r := &api.ExperimentPlan{Decisions: b.Totals.Rounds, PerDay: 86_400 * b.Rate, Observed: b.Seconds, Power: planPower,
		Gains: []api.PlannedGain{}}
	if b.Totals.Rounds == 0 {
		return r
	}
	n := float64(b.Totals.Rounds)
	r.Mean, r.Conversion = b.Totals.Revenue/n, float64(b.Totals.Purchases)/n
	r.SD = math.Sqrt(max(0, b.Totals.Squares/n-float64(r.Mean*r.Mean)))
	if n < 2 || r.Mean <= 0 {
		return r
	}
	if gains == nil {
		gains = plannedGains
	}
	for _, relative := range gains {
		g := api.PlannedGain{Relative: relative, Gain: relative * r.Mean}
		if need := b.Plan(shares, g.Gain); !math.IsInf(need, 1) {
			g.Decisions = new(math.Ceil(need / (1 - holdout)))
			if b.Rate > 0 {
				g.Seconds = new(*g.Decisions/b.Rate + window)
			}
		}
		r.Gains = append(r.Gains, g)
	}
	return r
}
