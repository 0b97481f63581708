package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/stream"
)

// rounds iterates over the rounds of a seed, which are the same for every policy.
type rounds struct {
	e        *Experiment
	shoppers env.Shoppers

	// The current round.
	t int
	env.Shopper
	best    vitrine.Assortment
	effects []float64 // of the places; nil if they are alike
	optimum float64   // R_t(S*_t), of best, in the best order
}

// rounds returns the rounds of a seed, before the first.
func (e *Experiment) rounds(seed uint64) (*rounds, error) {
	world := e.World(stream.New(seed, 0, stream.World))
	if world == nil {
		return nil, errors.New("the world is nil")
	}
	return &rounds{e: e, effects: env.PlaceEffects(world), shoppers: env.Shoppers{World: world, Seed: seed}}, nil
}

// next moves to the next round. The context is a new one, the slices are
// overwritten.
func (r *rounds) next() error {
	r.t++
	if err := r.shoppers.Meet(&r.Shopper, r.t); err != nil {
		return err
	}
	if r.effects != nil {
		order, optimum, bound := assortment.MaximizeOrdered(r.best, r.e.Constraint, r.Utilities, r.effects, r.Context.Revenue)
		if bound > optimum*(1+1e-9) {
			return fmt.Errorf("the best order is known only to earn between %v and %v: position effects need a family without lower bounds on groups, pinned items, capacities and crossing groups", optimum, bound)
		}
		r.best, r.optimum = order, optimum
		return nil
	}
	r.best, r.optimum = assortment.Maximize(r.best, r.e.Constraint, r.Utilities, r.Context.Revenue)
	return nil
}

// display returns the order in which the offer of a policy is shown: its own, or else by the policy's
// estimated utilities, as a service has it, or that of the items.
func (r *rounds) display(o vitrine.Offer, pi vitrine.Policy) []int {
	if o.Order != nil {
		return o.Order
	}
	order := slices.Clone([]int(o.Assortment))
	if e, ok := pi.(interface {
		Utilities(dst []float64, x *vitrine.Context)
	}); ok {
		u := make([]float64, len(r.Utilities))
		e.Utilities(u, r.Context)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(u[b], u[a]) })
	}
	return order
}
