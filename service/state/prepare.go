package state

import (
	"vitrine/internal/panics"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/setup"
)

// fits reports whether the placement and its items are still the same.
func (r *Prepared) fits(p *Placement, c *setup.Config) bool {
	return p == r.Placement && (p == nil || p.Changed == r.Changed) &&
		(r.Refit == nil || r.Refit.Fits(p.Items.Of, c.Inherit(p.Config).Schema()))
}

// Claim returns true to its first caller: the writer, or Put if the writer did not use the learner.
func (r *Prepared) Claim() bool { return r.claimed.CompareAndSwap(false, true) }

// prepared returns the learner that a caller prepared, or prepares one: a logged placement is never refused for its
// size.
func (s *State) prepared(p *Placement, c *setup.Config, needsLearner bool) (r *Prepared, err error) {
	if r, s.Ready = s.Ready, nil; r != nil {
		return r, nil
	}
	r = new(Prepared)
	if needsLearner {
		if r.Worker, err = NewWorker(s.Build, c); err != nil {
			return nil, err
		}
	}
	r.Variants, err = BuildVariants(s.Build, p, c)
	return r, err
}

// Charge returns a placement's charge in bytes under a configuration: its learner, its saved states (the last
// checkpoint, the next one, and versions), and [Config.Bound]. States of the placement's other learners may be larger.
func (s *State) Charge(c *setup.Config, others ...*Worker) (int64, error) {
	size, err := s.SizeOf(c)
	if err != nil {
		return int64(c.Bound() + c.ShopperBytes()), err
	}
	for _, w := range others {
		if other, err := s.SizeOf(w.Config); err == nil {
			size.State = max(size.State, other.State)
		}
	}
	all := size.Learner + int64(2+c.MaxVersions)*size.State + int64(c.Bound()+c.ShopperBytes())
	if c.Holdout > 0 {
		all += abtest.Size
	}
	if c.Experiment != nil {
		all += abtest.Size + abtest.MetricSize*int64(len(c.Experiment.Metrics))
	}
	err = c.OfVariants(func(_ int, own *setup.Config) error {
		size, err := s.SizeOf(own)
		all += size.Learner + 2*size.State + int64(2*own.Share())
		return err
	})
	return all, err
}

// SizeOf returns the size of a learner. The error is a *api.FieldError of its policy.
func (s *State) SizeOf(c *setup.Config) (size setup.Size, err error) {
	if s.Size == nil {
		return setup.Size{}, nil
	}
	if err, _ = panics.Safely(func() (err error) { size, err = s.Size(c.Spec()); return err }); err != nil {
		return setup.Size{}, api.Fieldf("/policy", "%v", err)
	}
	return size, nil
}

// chargeOf returns a placement's present charge, whatever its size.
func (s *State) chargeOf(p *Placement) int64 {
	charge, _ := s.Charge(p.Config, p.former...)
	if p.Relearning != nil {
		charge += s.ChargeOfSecond(p.Relearning.Worker.Config)
	}
	return charge
}

// ChargeOfSecond returns the additional charge of a placement's second learner.
func (s *State) ChargeOfSecond(c *setup.Config) int64 {
	size, _ := s.SizeOf(c)
	return size.Learner + 2*size.State + int64(c.Bound())
}

// recharge changes a placement's charge. The budget already reserved held of the bytes.
func (s *State) recharge(p *Placement, charge, held int64) {
	s.Budget.Charge(charge - p.Charged - held)
	p.Charged = charge
}
