package bandit

import (
	"errors"
	"math/rand/v2"
	"sync"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/scratch"
)

// Oracle knows the truth: it offers the optimal assortment under the true utilities, so
// its regret is exactly 0. In a world that moves it assumes that every round was
// observed.
type Oracle struct {
	p       Problem
	env     env.Environment
	rounds  int       // observed
	scratch sync.Pool // of *[]float64
}

// NewOracle returns the oracle of a world.
func NewOracle(p Problem, e env.Environment) (*Oracle, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if isNil(e) {
		return nil, errors.New("NewOracle: the environment is nil: give it the world that the learner is played in")
	}
	return &Oracle{p: p, env: e}, nil
}

// Policy implements vitrine.Learner.
func (l *Oracle) Policy() vitrine.Policy {
	return &oracle{p: l.p, env: env.At(l.env, l.rounds+1), scratch: &l.scratch}
}

// Observe implements vitrine.Learner.
func (l *Oracle) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.Features); err != nil {
		return err
	}
	l.rounds++
	return nil
}

type oracle struct {
	p       Problem
	env     env.Environment // of the round
	scratch *sync.Pool
}

// Offer implements vitrine.Policy.
func (o *oracle) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	family := o.p.family(x)
	u, ok := o.scratch.Get().(*[]float64)
	if !ok {
		u = new([]float64)
	}
	defer o.scratch.Put(u)
	*u = scratch.Grow(*u, x.NumItems())
	o.env.Utilities(*u, x)
	s, _ := assortment.Maximize(nil, family, *u, x.Revenue)
	return vitrine.Offer{Assortment: s, Propensity: 1}
}
