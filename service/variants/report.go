package variants

import (
	"fmt"
	"time"

	"vitrine/service/api"
)

// mean returns the revenue a decision of a class, the zero interval without decisions.
func (e *Experiment) mean(class int) (i api.Interval) {
	r, v := e.Results, class
	if class == len(e.shares) {
		r, v = e.held, 0
	}
	m := &r.Variants[v].Mean
	if m.N == 0 {
		return i
	}
	low, high := r.Earns(v, experimentError)
	return api.Interval{Low: max(low, 0), Estimate: m.Average(), High: min(high, m.Bound)}
}

// difference returns what a variant earns a decision above the control. All differences share the error.
func (e *Experiment) difference(v int) (i api.Interval, ok bool) {
	low, estimate, high, ok := e.Results.Difference(v, experimentError/float64(len(e.shares)-1))
	if !ok {
		return i, false
	}
	most := e.Results.Mean.Bound
	return api.Interval{Low: max(low, -most), Estimate: estimate, High: min(high, most)}, true
}

// point is the state at a time.
func (e *Experiment) point(at int64) point {
	p := point{time: at, decisions: e.Results.Mean.N}
	for v := range e.shares {
		difference, _ := e.difference(v)
		p.means, p.differences = append(p.means, e.mean(v)), append(p.differences, difference)
	}
	return p
}

// Report returns what the experiment has found. What the learners are and have learned is left out.
func (e *Experiment) Report() *api.ExperimentReport {
	d := e.Design
	r := &api.ExperimentReport{
		Name: d.Name, Number: e.Number, Begun: timeOf(e.begun), Control: d.Control, Learn: d.Learn, Worth: d.Worth, Holdout: d.Holdout,
		Decisions: e.Results.Mean.N, Phases: []api.Phase{}, Points: []api.ReportPoint{},
		Ratio: api.Ratio{P: e.Ratio.P(), Mismatch: e.Ratio.P() < ratioError},
	}
	for class := range e.groups {
		v := api.VariantReport{Name: e.Name(class), Show: e.Show(class), Asked: e.asked[class], Units: e.units[class], Group: e.groups[class], Share: d.Holdout}
		v.Mean = e.mean(class)
		r.Ratio.Units += e.units[class]
		if class == len(e.shares) {
			if d.Holdout > 0 || v.Asked > 0 {
				r.HeldOut = &v
			}
			continue
		}
		v.Share = e.shares[class]
		if difference, ok := e.difference(class); ok {
			v.Difference = &difference
		}
		r.Variants = append(r.Variants, v)
	}
	for _, p := range e.phases {
		r.Phases = append(r.Phases, api.Phase{Entry: p.entry, Time: timeOf(p.time), Shares: p.shares, Holdout: float64(p.holdout) / Buckets, Moved: float64(p.moved) / Buckets})
	}
	for _, p := range e.points {
		r.Points = append(r.Points, api.ReportPoint{Time: timeOf(p.time), Decisions: p.decisions, Means: p.means, Differences: p.differences})
	}
	r.Verdict = verdict(r)
	return r
}

// verdict is the stop rule:
//
//	stop        the units are not divided as the shares say
//	stop        each variant that is not the control surely gains less than what is worth a change, or surely loses
//	ship        a variant surely gains, the one with the largest estimate
//	keep going  otherwise
//
// All intervals hold at all times at once, so the rule may be applied at any time, and as often as one likes.
func verdict(r *api.ExperimentReport) api.Verdict {
	if r.Ratio.Mismatch {
		return api.Verdict{Rule: api.Stop, Reason: fmt.Sprintf("the units are not divided as the shares say (p = %.2g): do not trust the differences, and find the cause first", r.Ratio.P)}
	}
	var best, likely, top *api.VariantReport // that surely gains, with the largest estimate, and with the highest bound
	waits := ""
	for i := range r.Variants {
		v := &r.Variants[i]
		switch {
		case v.Name == r.Control:
		case v.Difference == nil:
			waits = v.Name
		default:
			if top == nil || v.Difference.High > top.Difference.High {
				top = v
			}
			if likely == nil || v.Difference.Estimate > likely.Difference.Estimate {
				likely = v
			}
			if v.Difference.Low > 0 && (best == nil || v.Difference.Estimate > best.Difference.Estimate) {
				best = v
			}
		}
	}
	switch {
	case waits != "":
		return api.Verdict{Rule: api.KeepGoing, Reason: fmt.Sprintf("%q cannot be compared with %q before both have decisions that count", waits, r.Control)}
	case top.Difference.High < r.Worth:
		return api.Verdict{Rule: api.Stop, Reason: fmt.Sprintf("no variant gains %.3g a decision over %q: the largest gain that is possible is %.3g, of %q", r.Worth, r.Control, top.Difference.High, top.Name)}
	case best != nil:
		return api.Verdict{Rule: api.Ship, Variant: best.Name, Gain: best.Difference.Estimate, Reason: fmt.Sprintf("%q earns at least %.3g a decision more than %q", best.Name, best.Difference.Low, r.Control)}
	}
	return api.Verdict{Rule: api.KeepGoing, Reason: fmt.Sprintf("no gain is certain yet: %q earns between %.3g and %.3g a decision more than %q", likely.Name, likely.Difference.Low, likely.Difference.High, r.Control)}
}

func timeOf(t int64) time.Time { return time.Unix(0, t).UTC() }
