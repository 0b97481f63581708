package decision

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/variants"
)

// mean returns the revenue a decision of a class, the zero interval without decisions.
func (e *experiment) mean(class int) (i api.Interval) {
	r, v := e.results, class
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
func (e *experiment) difference(v int) (i api.Interval, ok bool) {
	low, estimate, high, ok := e.results.Difference(v, experimentError/float64(len(e.shares)-1))
	if !ok {
		return i, false
	}
	most := e.results.Mean.Bound
	return api.Interval{Low: max(low, -most), Estimate: estimate, High: min(high, most)}, true
}

// point is the state at a time.
func (e *experiment) point(at int64) point {
	p := point{time: at, decisions: e.results.Mean.N}
	for v := range e.shares {
		difference, _ := e.difference(v)
		p.means, p.differences = append(p.means, e.mean(v)), append(p.differences, difference)
	}
	return p
}

// report returns what the experiment has found. What the learners have learned is left out, because it is not part of
// the state.
func (e *experiment) report() *api.ExperimentReport {
	d := e.design
	r := &api.ExperimentReport{
		Name: d.Name, Number: e.number, Begun: *timeOf(e.begun), Control: d.Control, Learn: d.Learn, Worth: d.Worth, Holdout: d.Holdout,
		Decisions: e.results.Mean.N, Phases: []api.Phase{}, Points: []api.ReportPoint{},
		Ratio: api.Ratio{P: e.ratio.P(), Mismatch: e.ratio.P() < ratioError},
	}
	for class := range e.groups {
		v := api.VariantReport{Name: e.name(class), Show: e.show(class), Asked: e.asked[class], Units: e.units[class], Group: e.groups[class], Share: d.Holdout}
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
		if w := e.workers[class]; w != nil {
			v.Learner = &api.LearnerReport{Policy: w.config.Policy, Own: true}
		} else if v.Show == api.ShowPolicy {
			v.Learner = &api.LearnerReport{Policy: e.owner.config.Policy}
		}
		r.Variants = append(r.Variants, v)
	}
	for _, p := range e.phases {
		r.Phases = append(r.Phases, api.Phase{Entry: p.entry, Time: *timeOf(p.time), Shares: p.shares, Holdout: float64(p.holdout) / variants.Buckets, Moved: float64(p.moved) / variants.Buckets})
	}
	for _, p := range e.points {
		r.Points = append(r.Points, api.ReportPoint{Time: *timeOf(p.time), Decisions: p.decisions, Means: p.means, Differences: p.differences})
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

// Experiments returns the experiment of a placement, if one runs, and those that have ended.
func (e *Engine) Experiments(name string) (*api.Experiments, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.named(name)
	if err != nil {
		return nil, err
	}
	all := &api.Experiments{Placement: name, Past: make([]api.ExperimentReport, len(p.past))}
	for i, text := range p.past {
		if err := json.Unmarshal([]byte(text), &all.Past[i]); err != nil {
			return nil, fmt.Errorf("placement %q: the report of an experiment: %w", name, err)
		}
	}
	if p.experiment == nil {
		return all, nil
	}
	all.Experiment = p.experiment.report()
	for i := range all.Experiment.Variants {
		v, w := &all.Experiment.Variants[i], p.experiment.workers[i]
		if v.Learner == nil {
			continue
		}
		if w == nil {
			w = p.worker
		}
		seen := w.seen.Load()
		v.Learner.Learned, v.Learner.Skipped, v.Learner.Broken, v.Learner.Problem = seen.observed, seen.skipped, seen.broken, seen.problem
		v.Learner.Lag = w.given.Load() - w.done.Load()
	}
	return all, nil
}
