package state

import (
	"errors"
	"fmt"
	"slices"

	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// put creates a placement, or changes it in a way that lets its learner continue: with the same rows and settings.
// Replacing the deciding learner takes an event of its own.
func (s *State) put(sequence uint64, time int64, name string, config []byte) error {
	c, err := setup.Parse(config)
	if err != nil {
		return err
	}
	p := s.Placements[name]
	if p != nil && !p.Config.SameLearner(c) {
		return errors.New("a put of a placement changes what its learner sees")
	}
	r, err := s.prepared(p, c, p == nil)
	if err != nil {
		return err
	}
	if p == nil {
		p = &Placement{persisted: persisted{Name: name, born: sequence}}
		s.Placements[name] = p
		s.begin(p, r.Worker, c, sequence)
	} else {
		switch {
		case p.Config.Watch() != c.Watch(): // which restarts the guard
			s.resume(p, sequence, p.Earnings.Guard.Doubtful(sequence+1))
		case c.LearnInAlarm:
			s.resume(p, sequence, earnings.Doubt{})
		}
		p.configure(c, sequence)
	}
	s.conduct(p, sequence, time, r.Variants)
	s.recharge(p, s.chargeOf(p), r.Held)
	s.forget(p)
	return nil
}

// reset changes a placement and restarts its learner.
func (s *State) reset(p *Placement, sequence uint64, time int64, b *eventlog.LearnerReset) error {
	c, err := setup.Parse(b.Config)
	if err != nil {
		return err
	}
	r, err := s.prepared(p, c, true)
	if err != nil {
		return err
	}
	s.endRelearning(p)
	s.keepBefore(p, time, b.Note, 0)
	s.retire(p)
	s.begin(p, r.Worker, c, sequence)
	s.conduct(p, sequence, time, r.Variants)
	s.replaced(p, sequence, 0, r.Held)
	return nil
}

// begin gives a placement a new learner.
func (s *State) begin(p *Placement, w *Worker, c *setup.Config, sequence uint64) {
	w.begin(sequence)
	p.Worker = w
	p.Learner, p.learnedThrough, p.currentVersion = sequence, sequence, 0
	p.configure(c, sequence)
	p.sound.Forget()
	p.Earnings.Guard.SetTaught(0)
	p.restartGuard(sequence)
	s.start(p, w)
}

func (s *State) delete(p *Placement) {
	for _, w := range p.all() {
		w.Stop()
	}
	for r := range p.Open.Each() {
		s.decisions.remove(r)
	}
	for _, r := range p.closed.records {
		s.decisions.remove(r)
	}
	delete(s.Placements, p.Name)
	s.release(p)
}

// adopt makes the learner of a variant the one that decides, and ends the experiment.
func (s *State) adopt(p *Placement, sequence uint64, time int64, b *eventlog.LearnerAdopted) error {
	c, err := setup.Parse(b.Config)
	if err != nil {
		return err
	}
	at := p.Adoptable(c)
	if at < 0 || p.Experiment.Name(at) != b.Variant {
		return fmt.Errorf("no learner of a variant %q can decide", b.Variant)
	}
	r, err := s.prepared(p, c, false)
	if err != nil {
		return err
	}
	s.keepBefore(p, time, b.Note, 0)
	s.resume(p, sequence, p.Earnings.Guard.Doubtful(sequence+1)) // which the new guard ends
	s.retire(p)
	own := *p.Experiment.workers[at] // views still read the configuration of the variant
	p.Worker = &own
	p.Earnings.Guard.SetTaught(0)
	p.learnedThrough, p.currentVersion = sequence, 0
	p.configure(c, sequence)
	s.conduct(p, sequence, time, nil)
	s.replaced(p, sequence, 0, r.Held)
	return nil
}

// rollBack returns to a version. One of a former learner brings its configuration back.
func (s *State) rollBack(p *Placement, sequence uint64, time int64, b *eventlog.LearnerRolledBack) error {
	v := p.version(b.Version)
	if v == nil && s.isAudit() && b.Version <= s.Position.Sequence {
		v = &version{number: b.Version, learner: p.Worker}
		if at := slices.IndexFunc(p.former, func(w *Worker) bool { return w.Config.IsLogged(b.Config) }); at >= 0 {
			v.learner = p.former[at]
		}
	}
	if v == nil {
		return fmt.Errorf("version %d: %w", b.Version, ErrNotFound)
	}
	w, taught := v.learner, v.taught
	if same := w == p.Worker; same != (len(b.Config) == 0) || !same && !w.Config.IsLogged(b.Config) {
		return fmt.Errorf("version %d is not of the configuration %s", b.Version, b.Config)
	}
	s.keepBefore(p, time, b.Note, b.Version)
	if w != p.Worker {
		before := p.Config
		s.retire(p)
		p.former = slices.DeleteFunc(p.former, func(f *Worker) bool { return f == w })
		p.Worker = w
		p.configure(w.Config, sequence)
		s.conduct(p, sequence, time, nil)
		if !before.SameRows(w.Config) {
			p.Learner = sequence
		}
	}
	p.Earnings.Guard.SetTaught(taught)
	p.learnedThrough, p.currentVersion = sequence, b.Version
	w.ReturnTo(sequence, b.Version)
	s.replaced(p, sequence, b.Version, 0)
	return nil
}
