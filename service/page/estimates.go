package page

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/panics"
	"vitrine/service/offer"
)

// estimator is a policy that estimates utilities: Utilities stores f_ŵ(x_i) of each item in dst. The probabilities in
// an answer come from these estimates, not from the optimistic or drawn utilities behind the offer.
type estimator interface {
	Utilities(dst []float64, x *vitrine.Context)
}

// estimate stores the choice probabilities of the set shown and returns the set in display order: by decreasing
// probability, unless ordered says that the request or the policy fixes the order.
func (d *Decider) estimate(ordered bool) []int32 {
	order, e, own := int32s(d.shown), &d.estimates, &d.own
	if e.Shadowed {
		sorted := slices.Clone(d.shown)
		slices.Sort(sorted)
		e.Agrees = slices.Equal(sorted, own.Assortment)
	}
	estimator, ok := d.policy.Policy.(estimator)
	if !ok {
		return order
	}
	u, ok := d.utilities(estimator, d.shown)
	d.made.Estimated, d.made.Usable = true, ok || u == nil
	if !ok {
		return order
	}
	if !ordered {
		sortByUtility(order, u)
	}
	effects := placeEffects(d.policy.Policy)
	addEffects(u, effects)
	p := make([]float64, len(u)+1)
	vitrine.Probabilities(p, u)
	e.Outside, e.Probability = p[0], p[1:]
	e.Expected = expectedRevenue(p[1:], order, d.x.Revenue)
	if e.Shadowed {
		page := []int(own.Assortment)
		if own.Order != nil {
			page = own.Order
		}
		u, ok := d.utilities(estimator, page)
		if !ok {
			e.Probability, e.Outside, e.Expected = nil, 0, 0
			return order
		}
		addEffects(u, effects)
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		e.Shadow = expectedRevenue(p[1:], page, d.x.Revenue)
	}
	return order
}

// sortByUtility sorts items and their utilities, the largest first.
func sortByUtility(items []int32, u []float64) {
	before, byItem, at := slices.Clone(items), slices.Clone(u), make([]int, len(items))
	for k := range at {
		at[k] = k
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(byItem[b], byItem[a]) })
	for j, k := range at {
		items[j], u[j] = before[k], byItem[k]
	}
}

func int32s(items []int) []int32 {
	all := make([]int32, len(items))
	for k, i := range items {
		all[k] = int32(i)
	}
	return all
}

// placeEffects returns the position effects that a policy has learned, or nil.
func placeEffects(pi vitrine.Policy) []float64 {
	if p, ok := pi.(interface{ PlaceEffects() []float64 }); ok {
		return p.PlaceEffects()
	}
	return nil
}

// addEffects adds position effects to the utilities of items in display order.
func addEffects(u, effects []float64) {
	for p := range u {
		u[p] += vitrine.PlaceEffect(effects, p)
	}
}

func expectedRevenue[I int | int32](p []float64, items []I, r []float64) float64 {
	sum := 0.0
	for k, i := range items {
		sum += float64(p[k] * offer.Revenue(r, int(i)))
	}
	return sum
}

// utilities returns the policy's utilities for some items, in d's memory. ok is false if the policy fails or a utility
// is unusable.
func (d *Decider) utilities(pi estimator, items []int) (u []float64, ok bool) {
	d.u = resize(d.u, len(items))
	if len(items) == 0 {
		return d.u, true
	}
	width := d.width
	d.part = resize(d.part, len(items)*width)
	for k, i := range items {
		d.row(d.part[k*width:(k+1)*width], i)
	}
	part := &vitrine.Context{Features: mat.NewDense(len(items), width, d.part)}
	err, _ := panics.Safely(func() error { pi.Utilities(d.u, part); return nil })
	if err != nil {
		return nil, false
	}
	for _, v := range d.u {
		if !(math.Abs(v) <= 700) {
			return d.u, false
		}
	}
	return d.u, true
}
