package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// experiment is a placement's experiment, and its learners.
type experiment struct {
	*abtest.Experiment
	owner   *worker   // the placement's learner
	workers []*worker // by variant: those of its own, nil if it has none
}

const maxPast = 10 // experiments that have ended

// routing returns the routes of the experiment that runs, nil if none does.
func (p *placement) routing() *abtest.Routes {
	if p.experiment == nil {
		return nil
	}
	return p.experiment.Routes
}

// isOwn reports whether an offer has the estimates of the placement's learner.
func (p *placement) isOwn(o *offer.Offer) bool {
	if o.Variant == "" {
		return true
	}
	if p.experiment == nil {
		return false
	}
	class := p.experiment.ClassOf(o.Variant)
	return class >= len(p.experiment.workers) || class >= 0 && p.experiment.workers[class] == nil
}

// taught returns the learners that learn from a decision. During an experiment with learn "own" the learner of a
// variant learns from it only, so that what it earns does not depend on the others. The placement's learner learns
// from everything if it is that of no variant.
func (p *placement) taught(o *offer.Offer) (list []*worker) {
	e := p.experiment
	if e == nil {
		return []*worker{p.worker}
	}
	class := e.ClassOf(o.Variant)
	isVariant := abtest.IsShown(e.Design, api.ShowPolicy)
	if e.Design.Learn == api.LearnAll || !isVariant || class < 0 || class < len(e.workers) && e.Show(class) == api.ShowPolicy && e.workers[class] == nil {
		list = append(list, p.worker)
	}
	for i, w := range e.workers {
		if w != nil && (e.Design.Learn == api.LearnAll || i == class) {
			list = append(list, w)
		}
	}
	return list
}

// newVariants reports whether an experiment begins with a configuration.
func (p *placement) newVariants(c *setup.Config) bool {
	return c.Experiment != nil && (p == nil || p.experiment == nil || p.config.Experiment.Name != c.Experiment.Name || !p.config.SameLearner(c))
}

// buildVariants builds the learners of the variants that have their own, for an experiment that begins with a
// configuration; nil if none does.
func buildVariants(build func(setup.Spec) (vitrine.Learner, error), p *placement, c *setup.Config) ([]*worker, error) {
	if !p.newVariants(c) {
		return nil, nil
	}
	workers := make([]*worker, len(c.Experiment.Variants))
	err := c.OfVariants(func(i int, own *setup.Config) (err error) {
		workers[i], err = newWorker(build, own)
		return err
	})
	return workers, err
}

// conduct begins, changes or ends the experiment of a placement after its configuration has changed.
func (s *fold) conduct(p *placement, sequence uint64, time int64, workers []*worker) {
	c := p.config
	if e := p.experiment; e != nil && (c.Experiment == nil || c.Experiment.Name != e.Design.Name || e.owner != p.worker) {
		p.endExperiment(time)
	}
	switch {
	case c.Experiment == nil:
		return
	case p.experiment == nil:
		p.experiment = &experiment{abtest.New(sequence, time, c.Experiment, p.earnings.Guard.Watch.Cohort()), p.worker, workers}
		for _, w := range workers {
			if w != nil {
				w.begin(sequence)
				s.start(p, w)
			}
		}
	default:
		p.experiment.Divide(c.Experiment, sequence, time)
	}
	for _, w := range p.experiment.workers {
		if w != nil {
			w.SetBound(c.Share())
		}
	}
}

// endExperiment ends the experiment and keeps its report. Its learners end, except the one that decides now.
func (p *placement) endExperiment(now int64) {
	report := p.report()
	report.Ended, report.Counts = new(time.Unix(0, now).UTC()), nil
	p.past = append(slices.Clone(p.past), string(setup.Canonical(report)))
	p.past = p.past[max(0, len(p.past)-maxPast):]
	for _, w := range p.experiment.workers {
		if w != nil && w != p.worker {
			w.Stop()
		}
	}
	p.experiment = nil
}

// challengers are the learners that variants have of their own.
func (p *placement) challengers() (list []*worker) {
	if p.experiment == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.experiment.workers), func(w *worker) bool { return w == nil })
}

// adoptable returns the variant whose learner goes on under a configuration without an experiment, -1 if there is none.
func (p *placement) adoptable(c *setup.Config) int {
	if p.experiment == nil || c.Experiment != nil {
		return -1
	}
	return slices.IndexFunc(p.experiment.workers, func(w *worker) bool { return w != nil && w.config.SameLearner(c) })
}

// adopt makes the learner of a variant the one that decides, and ends the experiment.
func (s *fold) adopt(p *placement, sequence uint64, time int64, b *eventlog.LearnerAdopted) error {
	c, err := setup.Parse(b.Config)
	if err != nil {
		return err
	}
	at := p.adoptable(c)
	if at < 0 || p.experiment.Name(at) != b.Variant {
		return fmt.Errorf("no learner of a variant %q can decide", b.Variant)
	}
	r, err := s.prepared(p, c, false)
	if err != nil {
		return err
	}
	s.keepBefore(p, time, b.Note, 0)
	s.retire(p)
	p.worker = p.experiment.workers[at]
	p.learned, p.standing = sequence, 0
	p.configure(c, sequence)
	s.conduct(p, sequence, time, nil)
	s.replaced(p, sequence, time, api.BegunByAdoption, 0, r.held)
	return nil
}

// ends reports what a change of a placement with an experiment would lose. done says that nothing else is to be checked.
func (p *placement) ends(c *setup.Config, how *Change) (done bool, err error) {
	same := p.config.SameLearner(c)
	switch {
	case p.experiment == nil:
		if how.relearns() && c.Experiment != nil && !same {
			return true, api.Fieldf("/mode", "%q cannot begin with a relearning: begin it when that has ended", api.Experimenting)
		}
		return false, nil
	case same && c.Experiment != nil && c.Experiment.Name == p.config.Experiment.Name:
		return true, setup.MayBecome(p.config, c)
	case p.adoptable(c) >= 0 && !same:
		return true, nil
	case how.relearns():
		return true, fmt.Errorf("placement %q: %w", p.name, ErrExperiment)
	case how.Reset:
		return false, nil
	}
	loss := &LossError{Placement: p.name, Fields: []string{"experiment"}, Experiment: p.config.Experiment.Name}
	for i, w := range p.experiment.workers {
		if w == nil {
			continue
		}
		if n := w.rounds(); n > 0 {
			loss.Rounds += n
			loss.Variants = append(loss.Variants, p.experiment.Name(i))
		}
	}
	if loss.Rounds > 0 {
		return true, loss
	}
	return false, nil
}

// rounds is how many rounds a learner has learned or is about to.
func (w *worker) rounds() uint64 {
	seen := w.Progress()
	return seen.Learned + seen.Lag
}

// report returns what the experiment has found. It leaves out what the learners have learned, which is not part of the
// state.
func (p *placement) report() *api.ExperimentReport {
	e, w := p.experiment, &p.earnings.Guard.Watch
	r := e.Report(w.Window, w.Cohort())
	for class := range r.Variants {
		if w := e.workers[class]; w != nil {
			r.Variants[class].Learner = &api.LearnerReport{Policy: w.config.Policy, Own: true}
		} else if r.Variants[class].Show == api.ShowPolicy {
			r.Variants[class].Learner = &api.LearnerReport{Policy: e.owner.config.Policy}
		}
	}
	return r
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
	all.Experiment = p.report()
	for i := range all.Experiment.Variants {
		v, w := &all.Experiment.Variants[i], p.experiment.workers[i]
		if v.Learner == nil {
			continue
		}
		if w == nil {
			w = p.worker
		}
		seen := w.Progress()
		v.Learner.Learned, v.Learner.Skipped, v.Learner.Broken, v.Learner.Problem, v.Learner.Lag = seen.Learned, seen.Skipped, seen.Broken, seen.Problem, seen.Lag
	}
	return all, nil
}
