package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/live"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

const maxPast = 10 // ended experiments

const numComparisons = 2

// comparisons are the hold-out and the experiment, nil without one.
func (p *Placement) comparisons() [numComparisons]*abtest.Experiment {
	list := [numComparisons]*abtest.Experiment{p.Holdout}
	if p.Experiment != nil {
		list[1] = p.Experiment.Experiment
	}
	return list
}

// routes returns the routes of the hold-out and of the experiment, nil without one.
func (p *Placement) routes() (holdout, experiment *abtest.Routes) {
	if p.Holdout != nil {
		holdout = p.Holdout.Routes
	}
	if p.Experiment != nil {
		experiment = p.Experiment.Routes
	}
	return holdout, experiment
}

// checkOffer returns an error if an offer does not follow the hold-out and the experiment.
func (p *Placement) checkOffer(o *offer.Offer) error {
	holdout, experiment := p.routes()
	return abtest.CheckOffer(holdout, experiment, o)
}

// holdOut begins, changes or ends the hold-out after a change of configuration.
func (p *Placement) holdOut(sequence uint64, time int64) {
	c, before := p.Config, p.divided
	p.divided = c
	switch {
	case c.Holdout == 0:
		p.Holdout = nil
	case p.Holdout == nil, before.EndsHoldout(c):
		p.Holdout = abtest.NewHoldout(c.Holdout, sequence, time, p.Earnings.Guard.Watch.Cohort())
	default:
		p.Holdout.Divide(abtest.HoldoutDesign(c.Holdout), sequence, time)
	}
}

// isOwn reports whether the placement's learner made an offer's estimates.
func (p *Placement) isOwn(o *offer.Offer) bool {
	class := -1
	if p.Experiment != nil {
		class = p.Experiment.ClassOf(o.Variant)
	}
	return o.Variant == "" || o.Variant == api.Holdout || class >= 0 && p.Experiment.workers[class] == nil
}

// Taught returns the learners that learn from a decision. During an experiment with learn "own" a variant's learner
// learns only from its variant, so that its earnings do not depend on the others. The placement's learner learns from
// everything if no variant uses it.
func (p *Placement) Taught(o *offer.Offer) (list []*Worker) {
	e := p.Experiment
	if e == nil {
		return []*Worker{p.Worker}
	}
	class := e.ClassOf(o.Variant)
	isVariant := abtest.IsShown(e.Design, api.ShowPolicy)
	if e.Design.Learn == api.LearnAll || !isVariant || class < 0 && o.Variant != api.Holdout ||
		class >= 0 && e.Show(class) == api.ShowPolicy && e.workers[class] == nil {
		list = append(list, p.Worker)
	}
	for i, w := range e.workers {
		if w != nil && (e.Design.Learn == api.LearnAll || i == class) {
			list = append(list, w)
		}
	}
	return list
}

// NewVariants reports whether an experiment begins with a configuration.
func (p *Placement) NewVariants(c *setup.Config) bool {
	return c.Experiment != nil && (p == nil || p.Experiment == nil || p.Config.Experiment.Name != c.Experiment.Name ||
		!p.Config.SameLearner(c))
}

// BuildVariants builds the variants' own learners for a configuration's experiment, or returns nil without any.
func BuildVariants(build func(setup.Spec) (vitrine.Learner, error), p *Placement, c *setup.Config) ([]*Worker, error) {
	if !p.NewVariants(c) {
		return nil, nil
	}
	workers := make([]*Worker, len(c.Experiment.Variants))
	err := c.OfVariants(func(i int, own *setup.Config) (err error) {
		workers[i], err = NewWorker(build, own)
		return err
	})
	return workers, err
}

// conduct begins, changes or ends a placement's experiment after a change of configuration.
func (s *State) conduct(p *Placement, sequence uint64, time int64, workers []*Worker) {
	c := p.Config
	p.holdOut(sequence, time)
	if e := p.Experiment; e != nil && (c.Experiment == nil || c.Experiment.Name != e.Design.Name ||
		e.owner != p.Worker) {
		p.endExperiment(time)
	}
	switch {
	case c.Experiment == nil:
		return
	case p.Experiment == nil:
		p.Experiment = &experiment{abtest.New(sequence, time, c.Experiment, p.Earnings.Guard.Watch.Cohort()), p.Worker,
			workers, live.NewLatencies(abtest.Names(c.Experiment))}
		for _, w := range workers {
			if w != nil {
				w.begin(sequence)
				s.start(p, w)
			}
		}
	default:
		p.Experiment.Divide(c.Experiment, sequence, time)
	}
	for _, w := range p.Experiment.workers {
		if w != nil {
			w.SetBound(c.Share())
		}
	}
}

// endExperiment ends the experiment and keeps its report. Its learners end, except the one that decides now.
func (p *Placement) endExperiment(now int64) {
	report := p.report()
	report.Ended, report.Counts, report.Left = new(time.Unix(0, now).UTC()), nil, nil
	p.past = append(slices.Clone(p.past), string(setup.Canonical(report)))
	p.past = p.past[max(0, len(p.past)-maxPast):]
	for _, w := range p.Experiment.workers {
		if w != nil && w.Learner != p.Worker.Learner {
			w.Stop()
		}
	}
	p.Experiment = nil
}

// segment returns the shopper's value of the feature that has the segments of the experiment, "" if it has no column of
// its own.
func (p *Placement) segment(o *offer.Closed) string {
	e, schema := p.Experiment, p.Config.Schema()
	if e == nil || e.Design.Segments == "" || o == nil || len(o.Features) < schema.Width() {
		return ""
	}
	return schema.ValueOf(o.Features[:schema.Width()], e.Design.Segments).Text
}

// Adoptable returns the variant with the learner that continues under a configuration without an experiment, or -1.
func (p *Placement) Adoptable(c *setup.Config) int {
	if p.Experiment == nil || c.Experiment != nil {
		return -1
	}
	return slices.IndexFunc(p.Experiment.workers, func(w *Worker) bool { return w != nil && w.Config.SameLearner(c) })
}

// report returns the experiment's results, without the learners' knowledge, which is not part of the state.
func (p *Placement) report() *api.ExperimentReport {
	e, w := p.Experiment, &p.Earnings.Guard.Watch
	r := e.Report(p.Config.Currency, w.Window, w.Cohort())
	for class := range r.Variants {
		if w := e.workers[class]; w != nil {
			r.Variants[class].Learner = &api.LearnerReport{Policy: w.Config.Policy, Own: true}
		} else if r.Variants[class].Show == api.ShowPolicy {
			r.Variants[class].Learner = &api.LearnerReport{Policy: e.owner.Config.Policy}
		}
	}
	return r
}

// Experiments returns the running experiment and the ended ones.
func (p *Placement) Experiments() (*api.Experiments, error) {
	all := &api.Experiments{Placement: p.Name, Past: make([]api.ExperimentReport, len(p.past))}
	for i, text := range p.past {
		if err := json.Unmarshal([]byte(text), &all.Past[i]); err != nil {
			return nil, fmt.Errorf("placement %q: the report of an experiment: %w", p.Name, err)
		}
	}
	if p.Holdout != nil {
		all.Holdout = p.Holdout.Report(p.Config.Currency, p.Config.Window(), p.Earnings.Guard.Watch.Cohort())
	}
	if p.Experiment == nil {
		return all, nil
	}
	all.Experiment = p.report()
	for i := range all.Experiment.Variants {
		v, w := &all.Experiment.Variants[i], p.Experiment.workers[i]
		v.Latency = p.Experiment.took[v.Name].Report()
		if v.Learner == nil {
			continue
		}
		if w == nil {
			w = p.Worker
		}
		seen := w.Progress()
		v.Learner.Learned, v.Learner.Skipped, v.Learner.Broken, v.Learner.Problem, v.Learner.Lag = &seen.Learned,
			seen.Skipped, seen.Broken, seen.Problem, seen.Lag
	}
	return all, nil
}
