package experiment

import (
	"errors"
	"math"
	"math/rand/v2"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/stream"
)

// rounds are the rounds of a seed, one after the other. They are the same for
// every policy.
type rounds struct {
	e                   *Experiment
	seed                uint64
	world               env.Environment
	contexts, customers stream.Stream

	// The current round.
	t         int
	context   *vitrine.Context
	utilities []float64 // of all items
	shock     []float64 // of the outside option, then of all items
	best      vitrine.Assortment
	optimum   float64 // R_t(S*_t), of best
}

// rounds returns the rounds of a seed, before the first.
func (e *Experiment) rounds(seed uint64) (*rounds, error) {
	world := e.World(stream.New(seed, 0, stream.World))
	if world == nil {
		return nil, errors.New("the world is nil")
	}
	return &rounds{e: e, seed: seed, world: world}, nil
}

// next moves to the next round. The context is another in every round, the
// slices are overwritten.
func (r *rounds) next() error {
	r.t++
	r.context = r.world.Context(r.contexts.At(r.seed, r.t, stream.Contexts))
	n, d := r.context.Features.Dims()
	if err := r.context.Check(d); err != nil {
		return err
	}
	r.utilities, r.shock = grow(r.utilities, n), grow(r.shock, n+1)
	env.At(r.world, r.t).Utilities(r.utilities, r.context)
	gumbel(r.shock, r.customers.At(r.seed, r.t, stream.Customers))
	r.best, r.optimum = assortment.Maximize(r.best, r.e.Constraint, r.utilities, r.context.Revenue)
	return nil
}

// gumbel draws independent standard Gumbel shocks.
func gumbel(shock []float64, rng *rand.Rand) {
	for i := range shock {
		shock[i] = -math.Log(rng.ExpFloat64())
	}
}

func grow(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}
