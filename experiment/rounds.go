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

// rounds iterates over a seed's rounds, which are the same for every policy.
type rounds struct {
	e        *Experiment
	shoppers env.Shoppers

	// The current round.
	t int
	env.Shopper
	best    vitrine.Assortment
	effects []float64 // by place; nil if all places are alike
	optimum float64   // R_t(S*_t), for best in the best order
	baskets env.Baskets
	family  vitrine.Constraint
	shown   []float64 // the context's numbers

	sets assortment.Sets // scratch
}

// rounds returns a seed's rounds, before the first one.
func (e *Experiment) rounds(seed uint64) (*rounds, error) {
	world := e.World(stream.New(seed, 0, stream.World))
	if world == nil {
		return nil, errors.New("the world is nil")
	}
	return &rounds{e: e, effects: env.PlaceEffects(world), baskets: env.BasketsOf(world),
		shoppers: env.Shoppers{World: world, Seed: seed}}, nil
}

// next moves to the next round. It makes a new context but reuses the slices.
func (r *rounds) next() error {
	r.t++
	if err := r.shoppers.Meet(&r.Shopper, r.t); err != nil {
		return err
	}
	if r.family = r.Context.Feasible; r.family == nil {
		r.family = r.e.Constraint
	}
	r.shown = numbers(r.shown, r.Context)
	if r.baskets != nil && r.baskets.Mean() == 0 {
		if r.effects != nil {
			return errors.New("the best order is not known for baskets that depend on the page: leave out " +
				"position_effects")
		}
		best, optimum, err := bestBasket(r.best, &r.sets, r.baskets, r.family, &r.Shopper)
		r.best, r.optimum = best, optimum
		return err
	}
	if r.effects != nil {
		for i, u := range r.Utilities {
			if u > assortment.MaxSpan { // above 0, the outside option's
				return fmt.Errorf("the true utility of item %d is %v: with position effects the best order can be found only "+
					"for utilities up to %v: choose a truth with smaller utilities", i, u, assortment.MaxSpan)
			}
		}
		if !assortment.Orderable(r.family) {
			return errors.New("the best order is not known: position effects need a family without lower bounds on " +
				"groups, pinned items, capacities and crossing groups")
		}
		r.best, r.optimum = assortment.MaximizeOrdered(r.best, r.family, r.Utilities, r.effects, r.Context.Revenue)
	} else {
		r.best, r.optimum = assortment.Maximize(r.best, r.family, r.Utilities, r.Context.Revenue)
	}
	if r.baskets != nil {
		r.optimum *= r.baskets.Mean()
	}
	return nil
}

// numbers returns the revenues and features of a context in dst. A policy must leave them as they are, because it is
// judged by them.
func numbers(dst []float64, x *vitrine.Context) []float64 {
	dst = append(dst[:0], x.Revenue...)
	for i := range x.NumItems() {
		dst = append(dst, x.Features.RawRowView(i)...)
	}
	return dst
}

// shows reports whether a context still holds the numbers.
func shows(numbers []float64, x *vitrine.Context) bool {
	holds := func(list []float64) bool {
		n := min(len(list), len(numbers))
		ok := slices.Equal(list, numbers[:n])
		numbers = numbers[n:]
		return ok
	}
	ok := holds(x.Revenue)
	for i := 0; ok && i < x.NumItems(); i++ {
		ok = holds(x.Features.RawRowView(i))
	}
	return ok && len(numbers) == 0
}

// MaxSets is the largest number of sets in a round with baskets that depend on the page: the best one is found among all.
const MaxSets = 20_000

// bestBasket returns the page of at most size items that earns most with baskets without a formula, among all of them,
// in dst, with scratch for the sets.
func bestBasket(dst vitrine.Assortment, scratch *assortment.Sets, b env.Baskets, c vitrine.Constraint,
	p *env.Shopper) (best vitrine.Assortment, revenue float64, err error) {
	size, ok := c.(assortment.AtMost)
	if !ok {
		return nil, 0, errors.New("the best page is known for baskets that depend on the page only in the family " +
			"at-most: leave out [constraint]")
	}
	sets, err := assortment.Enumerate(scratch, c, int(size), len(p.Utilities), MaxSets)
	if err != nil {
		return nil, 0, fmt.Errorf("baskets that depend on the page: %w: take fewer items", err)
	}
	best = dst[:0]
	for k := range sets.Len() {
		s := sets.At(k)
		first := vitrine.ExpectedRevenue(s, p.Utilities, p.Context.Revenue)
		if all := b.Revenue(p.Context, s, p.Shown(s, nil, nil), first); all > revenue {
			best, revenue = append(best[:0], s...), all
		}
	}
	return best, revenue, nil
}

// display returns the display order for an offer: its own order; otherwise, as in a service, the order of the policy's
// estimated utilities; otherwise the order of the items.
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
