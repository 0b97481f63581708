package env

import (
	"slices"

	"vitrine"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
)

// Shopper is a customer in front of the items of a context. Their choice from any
// assortment is settled: all policies that meet a shopper meet the same one.
type Shopper struct {
	Context   *vitrine.Context
	Utilities []float64 // N, the true ones
	Shocks    []float64 // N+1, Gumbel: of the outside option, then of the items
}

// Choose returns what the shopper takes from s.
func (p *Shopper) Choose(s vitrine.Assortment) vitrine.Choice {
	return vitrine.Choose(s, p.Utilities, p.Shocks)
}

// ChooseDisplayed returns what the shopper takes from s if its items are shown in an order, from the
// first place on, and places have effects.
func (p *Shopper) ChooseDisplayed(s vitrine.Assortment, order []int, effects []float64) vitrine.Choice {
	choice, best := vitrine.Outside, p.Shocks[0]
	for place, i := range order {
		if v := p.Utilities[i] + vitrine.PlaceEffect(effects, place) + p.Shocks[i+1]; v > best {
			k, _ := slices.BinarySearch(s, i)
			choice, best = vitrine.Choice(k+1), v
		}
	}
	return choice
}

// Shoppers are the customers of a world under a seed, one in each round. Their draws
// are addressed by (seed, round), so shoppers may be met in any order. Concurrent
// callers need Shoppers of their own.
type Shoppers struct {
	World Environment
	Seed  uint64

	draws stream.Stream
}

// Meet makes p the shopper of round t ≥ 1. The context is a new one, the slices of p
// are overwritten. The error is that of [vitrine.Context.Check]; p then has only the
// context.
func (s *Shoppers) Meet(p *Shopper, t int) error {
	world := At(s.World, t)
	p.Context = world.Context(s.draws.At(s.Seed, t, stream.Contexts))
	n, d := p.Context.Features.Dims()
	if err := p.Context.Check(d); err != nil {
		return err
	}
	p.Utilities, p.Shocks = scratch.Grow(p.Utilities, n), scratch.Grow(p.Shocks, n+1)
	world.Utilities(p.Utilities, p.Context)
	vitrine.DrawShocks(p.Shocks, s.draws.At(s.Seed, t, stream.Customers))
	return nil
}
