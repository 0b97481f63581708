package decision

import (
	"cmp"
	"math"
)

// Stats are the counters of a placement. Those of decisions are part of the
// state: they are the same after a replay.
type Stats struct {
	Placement string `json:"placement"`
	Mode      string `json:"mode"`

	Decisions uint64 `json:"decisions"`
	Outcomes  uint64 `json:"outcomes"`  // told in time
	Expired   uint64 `json:"expired"`   // counted as the outside option
	Withdrawn uint64 `json:"withdrawn"` // deferred, and not activated in time
	Pending   int    `json:"pending"`
	Memory    int    `json:"memory"` // bytes of decisions, of Config.Memory

	// ExpiredEarly are the decisions that left memory before their attribution window was over. They teach nothing.
	ExpiredEarly uint64 `json:"expired_early"`
	// MemorySeconds is how long an open decision stays in memory at the rate of the last minute of decisions, where no
	// outcome comes. It should be longer than the attribution window. 0 where the rate is not known yet.
	MemorySeconds float64 `json:"memory_seconds,omitzero"`

	Clipped uint64 `json:"clipped"` // values of features beyond their bounds, since the start
	Unsound bool   `json:"unsound"` // what the policy predicts is no number, or was certain not to come: see Problem

	PolicyVersion uint64   `json:"policy_version"`
	Lag           uint64   `json:"lag"`               // outcomes that the learner has not yet come to
	Learned       uint64   `json:"learned"`           // rounds
	Skipped       uint64   `json:"skipped"`           // that the learner refused, on which it panicked, or that came after it broke
	Forgotten     uint64   `json:"forgotten"`         // that it had learned before its state could not be read, and it began again
	Stale         uint64   `json:"stale"`             // that were of an earlier learner
	Broken        bool     `json:"broken"`            // it learns no more, and its last good policy decides
	Problem       string   `json:"problem,omitempty"` // the last one of the learner
	Versions      []uint64 `json:"versions"`          // kept, to roll back to

	// ExplorationShare is that of uniformly drawn sets among the decisions.
	ExplorationShare float64 `json:"exploration_share"`
	ByPolicy         Arm     `json:"by_policy"`
	ByChance         Arm     `json:"by_chance"`
	ByBaseline       Arm     `json:"by_baseline"`
	// Uplift is ByPolicy's revenue a decision beyond ByChance's, which the mode "explore" has;
	// nil before there are two rounds of each. ByPolicy's are of all times, also of the mode "learn".
	Uplift *Uplift `json:"uplift,omitempty"`

	Calibration Calibration `json:"calibration"`
	Shadow      Comparison  `json:"shadow"`
}

// Arm are the decisions with an outcome, or expired, of which the sets were
// found in one way.
type Arm struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases"`
	Revenue   float64 `json:"revenue"`
	Squares   float64 `json:"squares"` // Σ revenue²
}

// Mean returns the revenue a decision, and its standard error. Both are NaN
// where there are too few.
func (a Arm) Mean() (mean, standardError float64) {
	n := float64(a.Rounds)
	mean = a.Revenue / n
	variance := max(a.Squares-n*mean*mean, 0) / (n - 1)
	return mean, math.Sqrt(variance / n)
}

// Uplift is a difference of revenues a decision.
type Uplift struct {
	Estimate      float64 `json:"estimate"`
	StandardError float64 `json:"standard_error"`
}

// Calibration compares what was foretold with what came, over the decisions
// with an outcome whose probabilities were estimated: well calibrated estimates
// have as many purchases as they foretell, in every bin.
type Calibration struct {
	Revenue  float64 `json:"revenue"`  // earned
	Foretold float64 `json:"foretold"` // Σ R(S)
	Bins     [10]Bin `json:"bins"`     // bin b is of purchases foretold with a probability in [b/10, (b+1)/10)
}

// Bin are decisions of similar 1 − p(0|S).
type Bin struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases"`
	Foretold  float64 `json:"foretold"` // Σ 1 − p(0|S)
}

// Comparison is of the policy's own sets with the baselines that were shown in
// the mode "shadow", by the policy's own estimates: what they say of sets
// that were not shown is as good as they are, and the bins of the calibration tell
// how good that is.
type Comparison struct {
	Rounds     uint64  `json:"rounds"`
	Agreements uint64  `json:"agreements"` // rounds in which the sets were the same
	Estimated  uint64  `json:"estimated"`  // rounds with estimates
	Policy     float64 `json:"policy"`     // Σ R(S) of the policy's own sets, over these
	Baseline   float64 `json:"baseline"`   // and of the baselines
}

// counts are the counters that are part of the state.
type counts struct {
	Offered, Chosen, Expired, Stale uint64
	Withdrawn, Evicted              uint64
	Chance                          uint64
	Arms                            [3]Arm // ByPolicy, ByChance, ByBaseline
	Calibration                     Calibration
	Shadow                          Comparison
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
	c.Calibration.Foretold += r.estimates.revenue
	bin := &c.Calibration.Bins[min(int(10*(1-r.outside)), 9)]
	bin.Rounds++
	bin.Purchases += purchases
	bin.Foretold += 1 - r.outside
}

// Stats returns the counters of a placement.
func (e *Engine) Stats(name string) (Stats, error) {
	v, err := e.view(name)
	if err != nil {
		return Stats{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	c := &v.counts
	done := v.worker.done.Load()
	seen, current := v.worker.seen.Load(), v.worker.current.Load()
	s := Stats{
		Placement: name, Mode: v.config.Mode,
		Decisions: c.Offered, Outcomes: c.Chosen, Expired: c.Expired, Withdrawn: c.Withdrawn, Pending: v.open.len, Memory: v.open.bytes + v.closed.bytes,
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
		s.Uplift = &Uplift{mine - uniform, math.Hypot(a, b)}
	}
	return s, nil
}
