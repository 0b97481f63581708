package decision

import (
	"cmp"
	"math"

	"vitrine/service/api"
)

// counts are the counters that are part of the state.
type counts struct {
	Offered, Chosen, Expired, Stale uint64
	Withdrawn, Evicted              uint64
	Chance                          uint64
	Arms                            [3]api.Group // ByPolicy, ByChance, ByBaseline
	Calibration                     api.Calibration
	Shadow                          api.Comparison
}

func (c *counts) offered(o *offer) {
	c.Offered++
	if o.Mode == ByChance {
		c.Chance++
	}
	if !o.shadowed {
		return
	}
	c.Shadow.Rounds++
	if o.agrees {
		c.Shadow.Agreements++
	}
	if o.probability != nil {
		c.Shadow.Estimated++
		c.Shadow.Policy += o.shadow
		c.Shadow.Baseline += o.estimates.revenue
	}
}

func (c *counts) abandoned(to status) {
	if to == evicted {
		c.Evicted++
	} else {
		c.Withdrawn++
	}
}

// closed counts a decision with an outcome, and the rest only where there is its offer.
func (c *counts) closed(r *record, o *offer) {
	if r.status == chosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	if o == nil {
		return
	}
	earned := o.earned(int(r.choice))
	purchases := uint64(0)
	if r.choice > 0 {
		purchases = 1
	}
	arm := &c.Arms[o.Mode-ByPolicy]
	arm.Rounds++
	arm.Purchases += purchases
	arm.Revenue += earned
	arm.Squares += float64(earned * earned)
	if o.probability == nil {
		return
	}
	c.Calibration.Revenue += earned
	c.Calibration.Predicted += o.estimates.revenue
	bin := &c.Calibration.Bins[min(int(10*(1-o.outside)), 9)]
	bin.Rounds++
	bin.Purchases += purchases
	bin.Predicted += 1 - o.outside
}

// Stats returns the counters of a placement.
func (e *Engine) Stats(name string) (api.Stats, error) {
	v, err := e.view(name)
	if err != nil {
		return api.Stats{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	c := &v.counts
	done := v.worker.done.Load()
	seen, current := v.worker.seen.Load(), v.worker.current.Load()
	s := api.Stats{
		Placement: name, Mode: v.config.Mode,
		Decisions: c.Offered, Outcomes: c.Chosen, Expired: c.Expired, Withdrawn: c.Withdrawn, Pending: len(v.open.heap), Memory: v.open.bytes + v.closed.bytes, Charged: v.charged,
		ExpiredEarly: c.Evicted, MemorySeconds: v.pace.seconds(v.config.Memory),
		PolicyVersion: current.version, Lag: v.worker.given.Load() - done,
		Learned: seen.observed, Skipped: seen.skipped, Forgotten: seen.forgotten, Stale: c.Stale, Broken: seen.broken, Problem: seen.problem,
		Versions: append([]uint64{}, v.kept...),
		ByPolicy: c.Arms[0], ByChance: c.Arms[1], ByBaseline: c.Arms[2],
		Calibration: c.Calibration, Shadow: c.Shadow,
	}
	if fault := v.worker.fault.Load(); fault != nil {
		s.Problem = *fault
	}
	if text := v.sound.problem(); text != "" {
		s.Unsound, s.Problem = true, cmp.Or(s.Problem, text)
	}
	s.Clipped = v.sound.clipped.Load()
	if c.Offered > 0 {
		s.ExplorationShare = float64(c.Chance) / float64(c.Offered)
	}
	if s.ByPolicy.Rounds > 1 && s.ByChance.Rounds > 1 {
		mine, a := s.ByPolicy.Mean()
		uniform, b := s.ByChance.Mean()
		s.Uplift = &api.Uplift{Estimate: mine - uniform, StandardError: math.Hypot(a, b)}
	}
	return s, nil
}
