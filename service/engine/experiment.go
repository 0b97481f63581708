package engine

import (
	"time"

	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
)

// Experiments returns a placement's running experiment, if any, and its ended ones.
func (e *Engine) Experiments(name string) (*api.Experiments, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	return p.Experiments()
}

// planSpan is the time before now that plans are based on.
const planSpan = 28 * 24 * time.Hour

// Plan says how long an experiment with the given shares, the control's first, takes to show gains. See
// [abtest.Basis.Report].
func (e *Engine) Plan(name string, shares []float64, holdout float64, gains []float64, now int64) (*api.ExperimentPlan, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	var b abtest.Basis
	b.Totals, b.Bound, b.Rate = p.Earnings.Series.Past(now, planSpan)
	return b.Report(shares, holdout, gains, p.Config.Window().Seconds()), nil
}
