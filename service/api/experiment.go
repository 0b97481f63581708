package api

import "time"

// Experiment configures the mode "experiment". While it runs, only its shares, its holdout and its minimum gain may
// change; another name begins another experiment.
type Experiment struct {
	Name     string    `json:"name" minLength:"1" maxLength:"100" doc:"of the experiment: another name begins another one"`
	Variants []Variant `json:"variants" minItems:"2" maxItems:"20" doc:"what is compared. Their shares sum to 1"`
	Control  string    `json:"control,omitzero" doc:"the variant that the others are compared with; if left out, the first baseline, or else the first variant"`
	Holdout  float64   `json:"holdout_share,omitzero" minimum:"0" maximum:"0.5" doc:"the share of all units that take no part in any experiment of the placement, and are always shown the caller's baseline; in steps of 0.0001"`
	Learn    string    `json:"learn_from,omitzero" enum:"own,all" doc:"what the learner of a variant learns from: own, the outcomes of its variant, so that no variant profits from another; all, those of the whole placement. own if left out"`
	MinGain  float64   `json:"min_gain,omitzero" minimum:"0" doc:"the least gain in revenue a decision that is worth a change; 0 if left out. The experiment should stop if no variant can gain as much"`
}

// Variant is a part of an experiment.
type Variant struct {
	Name   string         `json:"name" minLength:"1" maxLength:"64" doc:"of letters, digits, '.', '_', '-' and ':'; not holdout"`
	Show   string         `json:"show" enum:"policy,baseline,uniform" doc:"policy: what a policy chooses; baseline: what the caller shows by itself; uniform: a set drawn uniformly, or, under a capacity or limits whose groups cross, the set of most random gains, which has no known propensity"`
	Share  float64        `json:"share" minimum:"0" maximum:"1" doc:"of the units in the experiment, in steps of 0.0001"`
	Policy map[string]any `json:"policy,omitzero" doc:"of a learner of its own, with its settings; if left out, the placement's policy and learner"`
}

// Values of [Variant.Show].
const (
	ShowPolicy   = "policy"   // the policy's choice
	ShowBaseline = "baseline" // the caller's own page
	ShowUniform  = "uniform"  // a set drawn by chance
)

// Values of [Experiment.Learn].
const (
	LearnOwn = "own" // the learner of a variant learns from the outcomes of its variant
	LearnAll = "all" // from all outcomes of the placement
)

// Holdout is the name of the units that take no part in experiments.
const Holdout = "holdout"

// Experiments are the experiment of a placement and the last ones before it.
type Experiments struct {
	Placement  string             `json:"placement"`
	Experiment *ExperimentReport  `json:"experiment,omitempty" doc:"the one that runs"`
	Past       []ExperimentReport `json:"past" doc:"those that have ended, the oldest first: the last 10, as they were when they ended"`
}

// ExperimentReport holds an experiment's results so far. Its intervals may be read at any time: the probability that
// any difference is ever outside its interval is at most 5 %.
//
// All results are of decisions that closed, in the order of the decisions: a decision counts once all earlier ones,
// except those of the last part of the attribution window, have closed too. So a variant with quickly reported sales
// gains no advantage.
type ExperimentReport struct {
	Name      string          `json:"name"`
	Number    uint64          `json:"entry" doc:"the entry of the log that began it"`
	Begun     time.Time       `json:"begun"`
	Ended     *time.Time      `json:"ended,omitempty" doc:"left out while it runs"`
	Control   string          `json:"control"`
	Learn     string          `json:"learn_from" enum:"own,all"`
	MinGain   float64         `json:"min_gain"`
	Holdout   float64         `json:"holdout_share" doc:"share of all units"`
	Decisions uint64          `json:"decisions" doc:"decisions that count so far, without the holdout's"`
	Counts    *time.Time      `json:"counts_from,omitempty" doc:"latest time at which the first decisions will count; left out once some count, and before the first decision"`
	Variants  []VariantReport `json:"variants" doc:"in the order of the configuration"`
	Pairs     []Pair          `json:"pairs" doc:"differences between variants other than the control; a pair is left out until both variants have decisions"`
	HeldOut   *VariantReport  `json:"holdout,omitempty" doc:"what the holdout earned; left out if there is none"`
	Phases    []Phase         `json:"phases" doc:"times with the same shares, the oldest first"`
	Ratio     Ratio           `json:"sample_ratio"`
	Points    []ReportPoint   `json:"points" doc:"the results over time, at most 256"`
	Verdict   Verdict         `json:"verdict"`
	Left      *Left           `json:"remaining,omitempty" doc:"what the experiment probably still needs; left out unless it is to keep going, and if it would need more than 20 times as many decisions as it has"`
}

// Left estimates what an experiment still needs before it is certain whether its best variant gains the minimum, if the
// estimate, the variance and the rate of decisions stay as they are. The estimate is rough at first.
type Left struct {
	Decisions uint64  `json:"decisions"`
	Seconds   float64 `json:"seconds"`
}

// VariantReport holds a variant's results.
type VariantReport struct {
	Name       string         `json:"name"`
	Show       string         `json:"show" enum:"policy,baseline,uniform"`
	Share      float64        `json:"share" doc:"of the units in the experiment; of the holdout, of all units"`
	Asked      uint64         `json:"asked" doc:"decisions, with those that wait for an outcome"`
	Units      uint64         `json:"shoppers" doc:"units, by their first decision; some are missed once there are a million"`
	Group      Totals         `json:"totals" doc:"the decisions that count"`
	Later      float64        `json:"late_revenue" doc:"revenue of late outcomes, and of corrections, since the experiment began. No other number of the report includes it"`
	Mean       Interval       `json:"mean" doc:"revenue a decision; each interval by itself holds at all times with 95 %"`
	Difference *Interval      `json:"difference,omitempty" doc:"revenue a decision above the control's. These intervals and those of pairs all hold together, at all times, with 95 %. Left out of the control and the holdout, and before there are decisions of both"`
	Learner    *LearnerReport `json:"learner,omitempty" doc:"of the policy"`
}

// LearnerReport is the state of the learner of a variant.
type LearnerReport struct {
	Policy  map[string]any `json:"policy"`
	Own     bool           `json:"own" doc:"whether it is the variant's own; otherwise it is the placement's"`
	Learned uint64         `json:"learned" doc:"rounds"`
	Skipped uint64         `json:"skipped" doc:"rounds that it refused, or on which it panicked"`
	Lag     uint64         `json:"lag_rounds" doc:"rounds that it has not processed yet"`
	Broken  bool           `json:"broken"`
	Problem string         `json:"problem,omitzero"`
}

// Interval is an estimate between two bounds.
type Interval struct {
	Low      float64 `json:"low"`
	Estimate float64 `json:"estimate"`
	High     float64 `json:"high"`
}

// Times returns the interval of n times the estimate.
func (i Interval) Times(n uint64) Interval {
	return Interval{float64(n) * i.Low, float64(n) * i.Estimate, float64(n) * i.High}
}

// Pair compares two variants.
type Pair struct {
	Variant    string   `json:"variant" doc:"the variant with the larger estimate"`
	Over       string   `json:"over" doc:"the other variant"`
	Difference Interval `json:"difference" doc:"revenue a decision that the first variant earns above the other"`
}

// Phase is a time with the same shares.
type Phase struct {
	Entry   uint64    `json:"entry" doc:"of the log, which began it"`
	Time    time.Time `json:"time"`
	Shares  []float64 `json:"shares" doc:"of the variants, in their order"`
	Holdout float64   `json:"holdout_share"`
	Moved   float64   `json:"moved_share" doc:"share of the units in the experiment that got another variant; the least that is possible"`
}

// Ratio is the check whether the units are divided as the shares say.
type Ratio struct {
	Units    uint64  `json:"shoppers"`
	P        float64 `json:"p_value" doc:"an anytime-valid p-value: that it is ever below x has a probability of at most x if the units are divided rightly"`
	Mismatch bool    `json:"mismatch" doc:"whether it was below 0.001: do not trust the differences before the cause is known"`
}

// Gains returns the gains over the control of all variants that can be compared with it.
func (r *ExperimentReport) Gains() []Gain {
	list := []Gain{}
	for _, v := range r.Variants {
		if v.Difference != nil {
			list = append(list, Gain{v.Name, r.Control, true, r.Decisions, *v.Difference, v.Difference.Times(r.Decisions)})
		}
	}
	return list
}

// ReportPoint is the state of an experiment at a time.
type ReportPoint struct {
	Time        time.Time  `json:"time"`
	Decisions   uint64     `json:"decisions"`
	Means       []Interval `json:"means" doc:"of the variants, in their order"`
	Differences []Interval `json:"differences" doc:"above the control, in the order of the variants; that of the control is 0"`
}

// Verdict is the result of the stop rule.
type Verdict struct {
	Rule    string   `json:"rule" enum:"ship,keep either,stop,keep going"`
	Variant string   `json:"variant,omitzero" doc:"the variant to ship. With keep either: the one that shows the placement's own policy, which wins a tie; left out if no tied variant does"`
	Tied    []string `json:"tied,omitempty" doc:"with keep either: the variants that surely gain and cannot be told apart, the largest estimate first"`
	Reason  string   `json:"reason"`
	Gain    float64  `json:"gain,omitzero" doc:"estimated gain of the variant to ship over the control, in revenue a decision"`
}

// Values of [Verdict.Rule].
const (
	Ship       = "ship"        // a variant certainly gains the minimum, and earns more than every other one
	KeepEither = "keep either" // several variants surely gain, earn more than all others, and cannot be told apart
	Stop       = "stop"        // no variant can gain what is worth a change, or the units are not divided as planned
	KeepGoing  = "keep going"  // otherwise
)
