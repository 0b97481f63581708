package experiment

import (
	"errors"

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
	optimum float64 // R_t(S*_t), of best
}

// rounds returns the rounds of a seed, before the first.
func (e *Experiment) rounds(seed uint64) (*rounds, error) {
	world := e.World(stream.New(seed, 0, stream.World))
	if world == nil {
		return nil, errors.New("the world is nil")
	}
	return &rounds{e: e, shoppers: env.Shoppers{World: world, Seed: seed}}, nil
}

// next moves to the next round. The context is a new one, the slices are
// overwritten.
func (r *rounds) next() error {
	r.t++
	if err := r.shoppers.Meet(&r.Shopper, r.t); err != nil {
		return err
	}
	r.best, r.optimum = assortment.Maximize(r.best, r.e.Constraint, r.Utilities, r.Context.Revenue)
	return nil
}
