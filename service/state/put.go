package state

import (
	"errors"

	"vitrine/service/api"
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
	began := ""
	switch {
	case p == nil:
		p = &Placement{persisted: persisted{Name: name, born: sequence}}
		s.Placements[name] = p
		s.begin(p, r.Worker, c, sequence)
		began = api.BegunByCreation
	default:
		if p.Config.Watch() != c.Watch() || r.Variants != nil {
			began = api.BegunByMode
		}
		switch {
		case p.Config.Watch() != c.Watch(): // which restarts the guard
			s.resume(p, sequence, p.Earnings.Guard.Doubtful(sequence+1))
		case c.LearnInAlarm:
			s.resume(p, sequence, [2]uint64{})
		}
		p.configure(c, sequence)
	}
	s.conduct(p, sequence, time, r.Variants)
	if began != "" {
		p.turn(sequence, time, began)
	}
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
	s.replaced(p, sequence, time, api.BegunByReset, 0, r.Held)
	return nil
}

// replaced ends a change of the deciding learner, for which the budget reserved held bytes. It keeps the version spare.
func (s *State) replaced(p *Placement, sequence uint64, time int64, began string, spare uint64, held int64) {
	p.sound.Forget()
	p.restartGuard(sequence)
	p.turn(sequence, time, began)
	s.trim(p, spare)
	s.recharge(p, s.chargeOf(p), held)
	s.forget(p)
}

// begin gives a placement a new learner.
func (s *State) begin(p *Placement, w *Worker, c *setup.Config, sequence uint64) {
	w.begin(sequence)
	p.Worker = w
	p.Learner, p.learnedThrough, p.currentVersion = sequence, sequence, 0
	p.configure(c, sequence)
	p.sound.Forget()
	p.restartGuard(sequence)
	s.start(p, w)
}

// start runs a learner of a placement.
func (s *State) start(p *Placement, w *Worker) {
	log, name := s.Log, p.Name
	s.run(func() { w.Run(log, name) })
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

// configure gives the placement a configuration, with its categories' learned values.
func (p *Placement) configure(c *setup.Config, sequence uint64) {
	before := p.Config
	if before == nil || !before.Schema().Equal(c.Schema()) {
		p.Rows, p.outages = sequence, nil
	}
	if before != nil {
		c = c.Inherit(before)
	}
	if w := c.Watch(); before == nil || w != p.Earnings.Guard.Watch {
		if w.Window > p.Earnings.Guard.Watch.Window { // later sales count from now on
			p.Earnings.Guard.Forget()
		}
		p.Earnings.Watch(w, sequence)
		p.restartGuard(sequence)
	}
	p.Earnings.Guard.Currency = c.Currency
	p.Config, p.canonical, p.Changed, p.Worker.Config = c, c.Canonical(), sequence, c.Plain()
	p.Worker.SetBound(c.Share())
	p.remember(c)
	p.fallBack()
}
