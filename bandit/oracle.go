package bandit

import (
	"math/rand/v2"
	"sync"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
)

// Oracle knows the truth: it offers the optimal assortment under the true
// utilities, so its regret is 0 exactly.
type Oracle struct {
	p      Problem
	policy *oracle
}

// NewOracle returns the oracle of a world.
func NewOracle(p Problem, e env.Environment) (*Oracle, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &Oracle{p: p, policy: &oracle{p: p, env: e}}, nil
}

// Policy implements vitrine.Learner.
func (l *Oracle) Policy() vitrine.Policy { return l.policy }

// Observe implements vitrine.Learner.
func (l *Oracle) Observe(r vitrine.Round) error { return r.Check(l.p.Features) }

type oracle struct {
	p    Problem
	env  env.Environment
	pool sync.Pool // of *[]float64
}

// Offer implements vitrine.Policy.
func (o *oracle) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	u, ok := o.pool.Get().(*[]float64)
	if !ok {
		u = new([]float64)
	}
	defer o.pool.Put(u)
	*u = grow(*u, x.NumItems())
	o.env.Utilities(*u, x)
	s, _ := assortment.Maximize(nil, o.p.family(x), *u, x.Revenue)
	return vitrine.Offer{Assortment: s, Propensity: 1}
}
