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

func (c *counts) offered(r *record) {
	c.Offered++
	if r.mode == ByChance {
		c.Chance++
	}
	if !r.shadowed {
		return
	}
	c.Shadow.Rounds++
	if r.agrees {
		c.Shadow.Agreements++
	}
	if r.probability != nil {
		c.Shadow.Estimated++
		c.Shadow.Policy += r.shadow
		c.Shadow.Baseline += r.revenue
	}
}

func (c *counts) abandoned(to status) {
	if to == evicted {
		c.Evicted++
	} else {
		c.Withdrawn++
	}
}

func (c *counts) closed(r *record) {
	earned := r.earned()
	purchases := uint64(0)
	if r.choice > 0 {
		purchases = 1
	}
	if r.status == chosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	arm := &c.Arms[r.mode-ByPolicy]
	arm.Rounds++
	arm.Purchases += purchases
	arm.Revenue += earned
	arm.Squares += earned * earned
	if r.probability == nil {
		return
	}
	c.Calibration.Revenue += earned
	c.Calibration.Predicted += r.estimates.revenue
	bin := &c.Calibration.Bins[min(int(10*(1-r.outside)), 9)]
	bin.Rounds++
	bin.Purchases += purchases
	bin.Predicted += 1 - r.outside
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
		Decisions: c.Offered, Outcomes: c.Chosen, Expired: c.Expired, Withdrawn: c.Withdrawn, Pending: v.open.len, Memory: v.open.bytes + v.closed.bytes, Charged: v.charged,
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
