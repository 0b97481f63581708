package experiment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/internal/scratch"
)

// Oracle knows the truth. It offers the optimal assortment under the true utilities, so its regret is exactly 0. In a
// drifting world it assumes that the current round directly follows the observed ones.
type Oracle struct {
	p      bandit.Problem
	env    env.Environment
	rounds int // number observed
}

// NewOracle returns a world's oracle.
func NewOracle(p bandit.Problem, e env.Environment) (*Oracle, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(e); e == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("NewOracle: the environment is nil: give it the world that the learner is played in")
	}
	p.Constraint = p.Family(new(vitrine.Context)) // limited once
	return &Oracle{p: p, env: e}, nil
}

// Policy implements vitrine.Learner.
func (l *Oracle) Policy() vitrine.Policy {
	return &oracle{p: l.p, env: env.At(l.env, l.rounds+1)}
}

// Observe implements vitrine.Learner.
func (l *Oracle) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.NumFeatures); err != nil {
		return err
	}
	l.rounds++
	return nil
}

type oracle struct {
	p   bandit.Problem
	env env.Environment // at the current round
}

// Offer implements vitrine.Policy.
func (o *oracle) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	family := o.p.Family(x) // first, because it panics if x has another number of features
	s := oracles.Get().(*oracleScratch)
	defer oracles.Put(s)
	s.u = scratch.Grow(s.u, x.NumItems())
	o.env.Utilities(s.u, x)
	if effects := env.PlaceEffects(o.env); effects != nil {
		order, _ := assortment.MaximizeOrdered(nil, family, s.u, effects, x.Revenue)
		return vitrine.Offer{Assortment: slices.Sorted(slices.Values(order)), Order: order, Propensity: 1}
	}
	if b := env.BasketsOf(o.env); b != nil && b.Mean() == 0 {
		best, _, err := bestBasket(nil, &s.sets, b, family, &env.Shopper{Context: x, Utilities: s.u})
		if err != nil {
			panic(fmt.Sprintf("experiment: the oracle: %v", err))
		}
		return vitrine.Offer{Assortment: best, Propensity: 1}
	}
	best, _ := assortment.Maximize(nil, family, s.u, x.Revenue)
	return vitrine.Offer{Assortment: best, Propensity: 1}
}

type oracleScratch struct {
	u    []float64
	sets assortment.Sets
}

var oracles = sync.Pool{New: func() any { return new(oracleScratch) }}
