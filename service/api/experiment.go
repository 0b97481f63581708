package api

import (
	"math"
	"slices"
	"time"
)

// Experiment configures the mode "experiment". While it runs, only its shares and its minimum gain may change; another
// name begins another experiment.
type Experiment struct {
	Name     string    `json:"name" minLength:"1" maxLength:"100" doc:"of the experiment: another name begins another one"`
	Variants []Variant `json:"variants" minItems:"2" maxItems:"20" doc:"what is compared. Their shares sum to 1"`
	Control  string    `json:"control,omitzero" doc:"the variant that the others are compared with; if left out, the first baseline, or else the first variant"`
	Learn    string    `json:"learn_from,omitzero" enum:"own,all" doc:"what the learner of a variant learns from: own, the outcomes of its variant, so that no variant profits from another; all, those of the whole placement. own if left out"`
	Starts   time.Time `json:"starts,omitzero" format:"date-time" doc:"when it starts; at once if left out"`
	Ends     time.Time `json:"ends,omitzero" format:"date-time" doc:"when it ends; with another configuration of the placement if left out. Its variants keep what they have learned until then"`
	Outside  string    `json:"outside,omitzero" enum:"policy,baseline" doc:"what all shoppers are shown before it starts and after it ends: policy, by the placement's own policy, or baseline, which every request must then contain; policy if left out. These decisions do not count, and need no shopper_id"`
	Metrics  []Metric  `json:"metrics,omitempty" maxItems:"5" doc:"what else to compare the variants by, as the caller reports it: the margin, the time that a page takes"`
	Segments string    `json:"segment_by,omitzero" maxLength:"100" doc:"a feature of shoppers, a category, by which results are reported too"`
	MinGain  float64   `json:"min_gain,omitzero" minimum:"0" maximum:"1e12" doc:"the least gain in revenue a decision that is worth a change; 0 if left out. The experiment should stop if no variant can gain as much"`
}

// Metric is what the caller reports of its decisions, in addition to revenue.
type Metric struct {
	Name   string  `json:"name" minLength:"1" maxLength:"64" doc:"of letters, digits, '.', '_', '-' and ':'; not conversion or items"`
	Max    float64 `json:"max" doc:"the largest value; larger ones count as this one, and negative ones as its negative at least. Intervals are wider if it is larger than needed"`
	Better string  `json:"better,omitzero" enum:"higher,lower" doc:"which values are better; higher if left out"`
}

// Values of [Metric.Better].
const (
	BetterHigher = "higher"
	BetterLower  = "lower"
)

// Metrics of every experiment.
const (
	Conversion = "conversion" // share of decisions that sold
	ItemsTaken = "items"      // units taken per decision, at most 10 of each
)

// Measurements are what the caller reports of a decision, by the names of an experiment's metrics.
type Measurements struct {
	Metrics map[string]float64 `json:"metrics" doc:"finite values by name; names that the running experiment does not compare are ignored"`
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

// The parts of a placement with a hold-out. Every decision belongs to one of them, and those that are not held out may
// also belong to a variant of an experiment.
const (
	Holdout    = "holdout" // always shown the caller's baseline
	NotHeldOut = "vitrine" // all others
)

// ExperimentPlan says how long an experiment takes to show a gain, from the placement's own revenue in the last four
// weeks.
type ExperimentPlan struct {
	Decisions  uint64        `json:"decisions" doc:"decisions that the plan is based on; the other numbers are 0 if they earned nothing"`
	Mean       float64       `json:"mean_revenue" doc:"revenue per decision"`
	SD         float64       `json:"standard_deviation" doc:"standard deviation of the revenue per decision"`
	Conversion float64       `json:"conversion" doc:"share of decisions that sold"`
	PerDay     float64       `json:"decisions_per_day"`
	Observed   float64       `json:"observed_seconds" doc:"the time that decisions_per_day is from: since the first decision of the last four weeks"`
	Power      float64       `json:"power" doc:"probability with which an experiment of the planned length shows the gain; less if shoppers come back, and no hold-out or running experiment has shown how often"`
	Gains      []PlannedGain `json:"gains"`
}

// PlannedGain says how long an experiment takes to show one gain.
type PlannedGain struct {
	Relative  float64  `json:"relative" doc:"the gain as a share of the mean revenue"`
	Gain      float64  `json:"gain" doc:"the gain in revenue per decision"`
	Decisions *float64 `json:"decisions" doc:"decisions of the placement; null if it takes more than 10^12"`
	Seconds   *float64 `json:"seconds" doc:"time at the present rate of decisions, with the attribution window of the last one; null if that is not known"`
}

// Experiments are the experiment of a placement and the last ones before it.
type Experiments struct {
	Placement  string             `json:"placement"`
	Experiment *ExperimentReport  `json:"experiment,omitempty" doc:"the one that runs"`
	Holdout    *ExperimentReport  `json:"holdout,omitempty" doc:"what all other decisions, of the variant vitrine, earn over the shoppers who are held out, of the variant holdout: in the form of an experiment that begins with the hold-out and never ends; left out without a hold-out"`
	Past       []ExperimentReport `json:"past" doc:"those that have ended, the oldest first: the last 10, as they were when they ended"`
}

// ExperimentReport holds an experiment's results so far. Its intervals may be read at any time: the probability that
// any difference is ever outside its interval is at most 5%.
//
// All results are of decisions that closed, in the order of the decisions: a decision counts once all earlier ones,
// except in the last part of the attribution window, have closed too. So a variant with quickly reported sales
// gains no advantage.
type ExperimentReport struct {
	Name      string          `json:"name"`
	Number    uint64          `json:"entry" doc:"the entry of the log that began it"`
	Begun     time.Time       `json:"begun"`
	Ended     *time.Time      `json:"ended,omitempty" doc:"left out while it runs"`
	Starts    time.Time       `json:"starts,omitzero" format:"date-time" doc:"when it starts, if the configuration says so"`
	Ends      time.Time       `json:"ends,omitzero" format:"date-time" doc:"when it ends, if the configuration says so"`
	Control   string          `json:"control"`
	Learn     string          `json:"learn_from" enum:"own,all"`
	MinGain   float64         `json:"min_gain"`
	Decisions uint64          `json:"decisions" doc:"decisions that count so far"`
	Counts    *time.Time      `json:"counts_from,omitempty" doc:"latest time at which the next decisions will count; left out if no outcome is awaited: decisions that do not count yet then count with the next decision"`
	Variants  []VariantReport `json:"variants" doc:"in the order of the configuration"`
	Pairs     []Pair          `json:"pairs" doc:"differences between variants other than the control; a pair is left out until both variants have decisions"`
	Metrics   []MetricReport  `json:"metrics" doc:"what else the variants change; conversion and items come first"`
	SegmentBy string          `json:"segment_by,omitzero" doc:"the feature of shoppers that has the segments"`
	Segments  []SegmentReport `json:"segments,omitempty" doc:"results by value of that feature, the first ones seen, at most 8; the last one of 8 has all other values"`
	Phases    []Phase         `json:"phases" doc:"times with the same shares, the oldest first"`
	Ratio     Ratio           `json:"sample_ratio"`
	Points    []ReportPoint   `json:"points" doc:"the results over time, at most 256"`
	Verdict   Verdict         `json:"verdict"`
	Left      *Left           `json:"remaining,omitempty" doc:"what the experiment probably still needs; left out unless it continues, and if it would need more than 20 times as many decisions as it has"`
}

// Left estimates what an experiment still needs before it is certain whether its best variant gains the minimum, if the
// estimate, the variance and the rate of decisions stay as they are. The estimate is rough at first.
type Left struct {
	Decisions uint64  `json:"decisions"`
	Seconds   float64 `json:"seconds"`
}

// VariantReport holds a variant's results.
type VariantReport struct {
	Name         string         `json:"name"`
	Show         string         `json:"show" enum:"policy,baseline,uniform"`
	Share        float64        `json:"share" doc:"of the units in the experiment"`
	Made         uint64         `json:"decisions_made" doc:"decisions, with those that wait for an outcome"`
	ExpiredEarly uint64         `json:"expired_early,omitzero" doc:"decisions that left memory before the end of their attribution window, which do not count; left out if 0"`
	Units        uint64         `json:"shoppers" doc:"units that these decisions were made for, estimated from hashes: to 1% up to five million"`
	Deferred     uint64         `json:"deferred,omitzero" doc:"shoppers whose first decision was deferred, and counts; left out if 0"`
	Seen         uint64         `json:"seen,omitzero" doc:"shoppers whose deferred first decision was seen: it was activated or got an outcome in time"`
	SeenLess     string         `json:"seen_less_than,omitzero" doc:"the variant that is surely seen more often, by an estimated fiftieth of its share of seen decisions or more: do not trust the differences. If there are several, the one with the largest difference"`
	Group        Totals         `json:"totals" doc:"the decisions that count; revenue and squares are net of corrections until then; purchases are as reported"`
	Later        float64        `json:"late_revenue" doc:"revenue of late outcomes, and of corrections of decisions that counted already, since the experiment began; also what earlier corrections take below 0, or above the outcome and the most expensive item. No other number of the report includes it, but the verdict considers it"`
	Mean         Interval       `json:"mean" doc:"revenue a decision; each interval by itself holds at all times with 95%"`
	Difference   *Interval      `json:"difference,omitempty" doc:"revenue a decision above the control's. These intervals and those of pairs all hold together, at all times, with 95%, if no visit earns more than its page's most expensive item or than earlier visits. Left out of the control, and before there are decisions of both"`
	Fallback     uint64         `json:"fallback_decisions,omitzero" doc:"decisions that showed the caller's baseline in place of the placement's policy, during an alarm"`
	WithoutSale  uint64         `json:"without_sale" doc:"latest decisions in a row without a sale, while other variants sold"`
	Silence      uint64         `json:"silence,omitzero" doc:"decisions in the longest row without a sale, while other variants sold, if it is longer than usual sales allow: the sales were probably not reported. A row that has ended is left out below a fiftieth of the decisions that count"`
	Worth        *float64       `json:"worth,omitempty" doc:"value of a sale divided by the declared revenue of what was taken, the geometric mean; left out before there are 32, or more if the values vary much"`
	Learner      *LearnerReport `json:"learner,omitempty" doc:"of the policy"`
	Latency      *Latency       `json:"latency,omitempty" doc:"how long the answering process took for the variant's decisions since it started; left out of past experiments"`
}

// MetricReport compares the variants by a metric other than revenue. Its differences and the other metrics' all hold
// together, at all times, with 95%.
type MetricReport struct {
	Name     string          `json:"name" doc:"conversion is the share of decisions that sold, items the units taken per decision, of which at most 10 count"`
	Better   string          `json:"better" enum:"higher,lower"`
	Reported uint64          `json:"reported" doc:"decisions with a value; the others count as 0"`
	Variants []VariantMetric `json:"variants" doc:"in the order of the configuration"`
}

// VariantMetric is a metric of a variant.
type VariantMetric struct {
	Variant    string    `json:"variant"`
	Mean       Interval  `json:"mean" doc:"per decision; each interval by itself holds at all times with 95%"`
	Difference *Interval `json:"difference,omitempty" doc:"above the control's, per decision; left out of the control, and before there are decisions of both"`
	Worse      bool      `json:"worse" doc:"whether it is surely worse than the control's"`
}

// SegmentReport holds the variants' results for some of the shoppers. The differences of all segments hold together, at
// all times, with 95%, apart from the whole experiment's: among many segments some look different by chance.
type SegmentReport struct {
	Value    string           `json:"value" doc:"of the feature; empty for all other values"`
	Variants []SegmentVariant `json:"variants" doc:"in the order of the configuration"`
}

// SegmentVariant is a variant in a segment.
type SegmentVariant struct {
	Variant    string    `json:"variant"`
	Group      Totals    `json:"totals" doc:"the decisions that count"`
	Difference *Interval `json:"difference,omitempty" doc:"revenue per decision above the control's in the segment; left out of the control, before there are decisions of both, and of segments with fewer than about 8 shoppers"`
}

// LearnerReport is the state of the learner of a variant.
type LearnerReport struct {
	Policy  map[string]any `json:"policy"`
	Own     bool           `json:"own" doc:"whether it is the variant's own; otherwise it is the placement's"`
	Learned *uint64        `json:"learned,omitempty" doc:"rounds; left out of past experiments"`
	Skipped uint64         `json:"skipped,omitzero" doc:"rounds that it refused, or on which it panicked; left out if 0"`
	Lag     uint64         `json:"lag_rounds,omitzero" doc:"rounds that it has not processed yet; left out if 0"`
	Broken  bool           `json:"broken,omitzero" doc:"left out if false"`
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
	Entry  uint64    `json:"entry" doc:"of the log, which began it"`
	Time   time.Time `json:"time"`
	Shares []float64 `json:"shares" doc:"of the variants, in their order"`
	Moved  float64   `json:"moved_share" doc:"share of the units in the experiment that got another variant; the least that is possible"`
}

// Ratio is the check whether the units are divided as the shares say. A unit counts when its first decision is made.
type Ratio struct {
	Units    uint64  `json:"shoppers"`
	P        float64 `json:"p_value" doc:"an anytime-valid p-value: that it is ever below x has a probability of at most x if the units are divided rightly"`
	Mismatch bool    `json:"mismatch" doc:"whether it was below 0.001: do not trust the differences before the cause is known"`
}

// From returns the time from which shoppers see the variants: the planned start, or the beginning if that was later.
func (r *ExperimentReport) From() time.Time {
	if r.Starts.After(r.Begun) {
		return r.Starts
	}
	return r.Begun
}

// Late returns how much more revenue of one variant than of another came too late to count, per decision that counts.
func Late(of, over *VariantReport) float64 {
	return PerDecision(of.Later, of.Group.Rounds) - PerDecision(over.Later, over.Group.Rounds)
}

// PerDecision divides revenue by the number of decisions that count; without decisions it returns the revenue.
func PerDecision(revenue float64, decisions uint64) float64 {
	return revenue / float64(max(decisions, 1))
}

// Variant returns a variant's results, or nil.
func (r *ExperimentReport) Variant(name string) *VariantReport {
	if at := slices.IndexFunc(r.Variants, func(v VariantReport) bool { return v.Name == name }); at >= 0 {
		return &r.Variants[at]
	}
	return nil
}

// Worse returns the metrics in which a variant is surely worse than the control.
func (r *ExperimentReport) Worse(variant string) (metrics []string) {
	for _, m := range r.Metrics {
		if slices.ContainsFunc(m.Variants, func(of VariantMetric) bool { return of.Variant == variant && of.Worse }) {
			metrics = append(metrics, m.Name)
		}
	}
	return metrics
}

// Rival returns the first variant that may earn as much as the given one, or whose lead of the minimum gain may be lost
// if it is the control, once late revenue is added. It returns nil if late revenue cannot reverse what is certain.
func (r *ExperimentReport) Rival(of *VariantReport) *VariantReport {
	for i := range r.Variants {
		over := &r.Variants[i]
		if late := Late(of, over); over != of && late < 0 && r.leadOver(of, over)+late <= 0 {
			return over
		}
	}
	return nil
}

// leadOver returns how much more one variant surely earns than another, beyond the least gain if that is the control. It
// is +Inf if that is not certain.
func (r *ExperimentReport) leadOver(of, over *VariantReport) float64 {
	if over.Name == r.Control {
		return of.Difference.Low - r.MinGain
	}
	for _, p := range r.Pairs {
		if p.Variant == of.Name && p.Over == over.Name && p.Difference.Low > 0 {
			return p.Difference.Low
		}
	}
	return math.Inf(1)
}

// Forgets returns a variant of which too many decisions left memory for a comparison, or nil.
func (r *ExperimentReport) Forgets() *VariantReport {
	at := slices.IndexFunc(r.Variants, func(v VariantReport) bool { return ManyEvicted(v.ExpiredEarly, v.Made) })
	if at < 0 {
		return nil
	}
	return &r.Variants[at]
}

// FewLost is how many decisions there must be for each one that is lost to ignore the loss: it hides under 2% of the
// revenue.
const FewLost = 50

// ManyEvicted reports whether so many decisions left memory that the others may be unlike them: one in FewLost of those
// made, and not only a few of the first ones.
func ManyEvicted(evicted, made uint64) bool { return evicted >= 32 && FewLost*evicted >= made }

// Gains returns the gains over the control of all variants that can be compared with it. There is no gain if too many
// decisions of a variant left memory.
func (r *ExperimentReport) Gains() []Gain {
	list := []Gain{}
	if r.Forgets() != nil {
		return list
	}
	for i := range r.Variants {
		if v := &r.Variants[i]; v.Difference != nil {
			list = append(list, Gain{v.Name, r.Control, true, r.From(), r.Decisions, *v.Difference,
				v.Difference.Times(r.Decisions), float64(r.Decisions) * Late(v, r.Variant(r.Control))})
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
	Result    string   `json:"result" enum:"ship,weigh,tie,stop,continue"`
	Untrusted bool     `json:"untrusted,omitzero" doc:"whether it is stop because the differences may compare the wrong decisions: find the cause that the reason names. Left out if false"`
	Variant   string   `json:"variant,omitzero" doc:"the variant to ship or to weigh. In a tie: the one that shows the placement's own policy, which wins a tie; left out if no tied variant does"`
	Tied      []string `json:"tied,omitempty" doc:"in a tie: the variants that surely gain and cannot be told apart, the largest estimate first"`
	Reason    string   `json:"reason"`
	Gain      float64  `json:"gain,omitzero" doc:"estimated gain of the variant to ship over the control, in revenue a decision"`
}

// Values of [Verdict.Result].
const (
	Ship     = "ship"     // a variant certainly gains the minimum, and earns more than every other one
	Weigh    = "weigh"    // a variant certainly earns more, as for ship, but another metric is certainly worse, or late revenue could reverse it
	Tie      = "tie"      // several variants surely gain, earn more than all others, and cannot be told apart
	Stop     = "stop"     // no variant can gain what is worth a change, or the differences cannot be trusted
	Continue = "continue" // otherwise
)
