package state

import (
	"vitrine/service/feature"
	"vitrine/service/setup"
)

// addValues gives values of a category columns of their own.
func (p *Placement) addValues(seen feature.Seen) error {
	c, err := p.Config.Learn(seen)
	if err == nil {
		p.Config, p.Worker.Config = c, c.Plain()
	}
	return err
}

// Revision is the entry that changed the configuration last, or is changing it.
func (p *Placement) Revision() uint64 {
	if p.Relearning != nil {
		return p.Relearning.Worker.began
	}
	return p.Changed
}

// replaced ends a change of the deciding learner, for which the budget reserved held bytes. It keeps the version spare.
func (s *State) replaced(p *Placement, sequence, spare uint64, held int64) {
	p.sound.Forget()
	p.restartGuard(sequence)
	s.trim(p, spare)
	s.recharge(p, s.chargeOf(p), held)
	s.forget(p)
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
