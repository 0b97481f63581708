package env

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
)

// Shopper is a customer facing the items of a context. A shopper's preferences are fixed, so all policies that meet a
// shopper get consistent choices.
type Shopper struct {
	Context      *vitrine.Context
	Utilities    []float64 // N, the true utilities
	Exponentials []float64 // N+1 standard exponential draws E: the outside option's, then the items'
}

// Draw draws the exponentials for n items.
func (p *Shopper) Draw(n int, rng *rand.Rand) {
	p.Exponentials = scratch.Grow(p.Exponentials, n+1)
	for i := range p.Exponentials {
		p.Exponentials[i] = rng.ExpFloat64()
	}
}

// Shock returns a Gumbel shock, −log E: the outside option's for 0, and item i's for i + 1.
func (p *Shopper) Shock(i int) float64 { return -portable.Log(p.Exponentials[i]) }

// Choose returns the shopper's choice from s: see [vitrine.Choose].
func (p *Shopper) Choose(s vitrine.Assortment) vitrine.Choice { return p.ChooseDisplayed(s, s, nil) }

// ChooseDisplayed returns the shopper's choice from s if its items are shown in the given order, from the first place
// on, and places add the given effects.
func (p *Shopper) ChooseDisplayed(s vitrine.Assortment, order []int, effects []float64) vitrine.Choice {
	choice, best := vitrine.Outside, p.Shock(0)
	for place, i := range order {
		if v := p.Utilities[i] + vitrine.PlaceEffect(effects, place) + p.Shock(i+1); v > best {
			k, _ := slices.BinarySearch(s, i)
			choice, best = vitrine.Choice(k+1), v
		}
	}
	return choice
}

// Visit returns the takes of the shopper of round t from a page: the choice and further takes (see [Baskets]). order
// lists the items of s from the first place on, and places add the given effects; with nil effects places do not
// matter. Visit panics unless Meet made p the shopper of the round.
func (s *Shoppers) Visit(p *Shopper, t int, page vitrine.Assortment, order []int,
	effects []float64) (first vitrine.Choice, more []vitrine.Choice) {
	if len(p.Exponentials) != len(p.Utilities)+1 {
		panic("env: Visit of a shopper before Meet")
	}
	if effects == nil {
		first = p.Choose(page)
	} else {
		first = p.ChooseDisplayed(page, order, effects)
	}
	b := BasketsOf(s.World)
	if b == nil || first == vitrine.Outside {
		return first, nil
	}
	return first, b.Further(p.Context, page, p.Shown(page, order, effects), first, s.draws.At(s.Seed, t, stream.Takers))
}

// Shown returns the utilities of the items of a page as displayed.
func (p *Shopper) Shown(page vitrine.Assortment, order []int, effects []float64) []float64 {
	u := make([]float64, len(page))
	for k, i := range page {
		u[k] = p.Utilities[i]
		if effects != nil {
			u[k] += vitrine.PlaceEffect(effects, slices.Index(order, i))
		}
	}
	return u
}

// Shoppers are the customers of a world under a seed, one per round. Draws are addressed by (seed, round), so you can
// meet shoppers in any order. Concurrent callers each need their own Shoppers.
type Shoppers struct {
	World Environment
	Seed  uint64

	draws stream.Stream
}

// Meet makes p the shopper of round t ≥ 1. It allocates a new context and overwrites the slices of p. If the context
// fails [vitrine.Context.Check], Meet returns that error and sets only p.Context. If a utility is not finite, Meet
// returns an error.
func (s *Shoppers) Meet(p *Shopper, t int) error {
	world := At(s.World, t)
	p.Context = world.Context(s.draws.At(s.Seed, t, stream.Contexts))
	n, d := p.Context.NumItems(), 0
	if n > 0 {
		_, d = p.Context.Features.Dims()
	}
	if err := p.Context.Check(d); err != nil {
		return err
	}
	p.Utilities = scratch.Grow(p.Utilities, n)
	world.Utilities(p.Utilities, p.Context)
	for i, u := range p.Utilities {
		if math.IsNaN(u) || math.IsInf(u, 0) {
			return fmt.Errorf("the true utility of item %d is %v: it must be finite", i, u)
		}
	}
	p.Draw(n, s.draws.At(s.Seed, t, stream.Customers))
	return nil
}
