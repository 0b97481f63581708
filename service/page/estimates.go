package page

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/panics"
	"vitrine/service/offer"
)

// estimator is a policy that estimates utilities: Utilities stores f_ŵ(x_i) of each item in dst. The probabilities in
// an answer come from these estimates, not from the optimistic or drawn utilities behind the offer.
type estimator interface {
	Utilities(dst []float64, x *vitrine.Context)
}

// estimate stores the choice probabilities of the set shown and returns the set in display order, which ordered says
// that the request or the policy fixes.
func (d *Decider) estimate(ordered bool) []int32 {
	e, own := &d.estimates, &d.own
	if e.Shadowed {
		sorted := slices.Clone(d.shown)
		slices.Sort(sorted)
		e.Agrees = slices.Equal(sorted, own.Assortment)
	}
	order, p := d.display(d.shown, ordered)
	if p == nil {
		return order
	}
	if e.Shadowed {
		set, ordered := []int(own.Assortment), false
		if own.Order != nil && d.slots == nil {
			set, ordered = own.Order, true
		}
		page, p := d.display(set, ordered)
		if p == nil {
			return order
		}
		e.Shadow = expectedRevenue(p[1:], page, d.x.Revenue)
	}
	e.Outside, e.Probability = p[0], p[1:]
	e.Expected = expectedRevenue(p[1:], order, d.x.Revenue)
	return order
}

// display returns a set in display order, with the choice probabilities of the outside option and of the items, or nil
// if the policy has no usable estimates. Unless the order is fixed, it goes by decreasing probability, or by the slots.
func (d *Decider) display(set []int, ordered bool) (order []int32, p []float64) {
	order = int32s(set)
	var u []float64
	estimator, ok := d.policy.Policy.(estimator)
	if ok {
		u, ok = d.utilities(estimator, set)
		d.made.Estimated, d.made.Usable = true, ok || u == nil
	}
	if ok && !ordered {
		sortByUtility(order, u)
	}
	if d.slots != nil && !ordered {
		assign(d.slots, order, u)
	}
	if !ok {
		return order, nil
	}
	addEffects(u, placeEffects(d.policy.Policy))
	p = make([]float64, len(u)+1)
	vitrine.Probabilities(p, u)
	return order, p
}

// assign puts ordered items into the slots, with their utilities unless u is nil.
func assign(family *assortment.Slots, order []int32, u []float64) {
	items, of := make([]int, len(order)), map[int]float64{}
	for k, i := range order {
		items[k] = int(i)
		if u != nil {
			of[int(i)] = u[k]
		}
	}
	for k, i := range family.Assign(nil, items) {
		order[k] = int32(i)
		if u != nil {
			u[k] = of[i]
		}
	}
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
