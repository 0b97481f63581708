package bandit

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/option"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// places are the position effects of a learner: an item in place p of the display gets the utility
//
//	u_i + γ_p(i),   γ_1 = 0
//
// The effects are parameters of K − 1 additional features, which say in which place from the second on an item was
// shown: a learner of f_w(x) + γᵀe_p learns them with the rest. places is the number of these features; 0 means that
// places are not told apart. A round without an order teaches as if every item was in the first place.
//
// A policy shows the best order ([assortment.MaximizeOrdered]) for the utilities in the first place and the estimated
// effects.
type places int

// maxPlaces bounds the places that are told apart. Each is a parameter.
const maxPlaces = 1000

// checkOptions reports the first option outside its range, or too many places to tell apart.
func (p Problem) checkOptions(options any) error {
	for _, o := range option.List(options) {
		if o.Key == "position_effects" && o.Default == true && p.MaxShown > maxPlaces {
			return fmt.Errorf("position_effects = true: a learner tells at most %d places apart, and size = %d",
				maxPlaces, p.MaxShown)
		}
	}
	return option.Check(options)
}

// newPlaces returns the places of a problem, and 0 unless they are to be told apart.
func newPlaces(p Problem, effects bool) places {
	if !effects {
		return 0
	}
	return places(p.MaxShown - 1)
}

// family returns a family with the effects, which are its last parameters.
func (k places) family(m utility.Model) utility.Model {
	if k == 0 {
		return m
	}
	return utility.NewSum(m, utility.NewLinear(int(k), false))
}

// basis is family for utilities that are linear in their parameters.
func (k places) basis(m utility.LinearInParams) utility.LinearInParams {
	if k == 0 {
		return m
	}
	return utility.NewLinearSum(m, utility.NewLinear(int(k), false))
}

// moments returns initial moments: the features of the places are not standardised.
func (k places) moments(d int) moments {
	m := newMoments(d + int(k))
	m.plain = int(k)
	return m
}

// effects returns γ of the parameters, from the first place on.
func (k places) effects(w []float64) []float64 {
	return append([]float64{0}, w[len(w)-int(k):]...)
}

// features stores the features of items of x, with the given places, in dst, and returns it. nil is
// all items, or the first place.
func (k places) features(dst *scratch.Matrix, x *mat.Dense, items, place []int) *mat.Dense {
	n, d := x.Dims()
	if items != nil {
		n = len(items)
	}
	rows := dst.Reshape(n, d+int(k))
	for j := range n {
		i := j
		if items != nil {
			i = items[j]
		}
		row := rows.RawRowView(j)
		copy(row, x.RawRowView(i))
		clear(row[d:])
		if place != nil && place[j] > 0 {
			row[d+min(place[j], int(k))-1] = 1
		}
	}
	return rows
}

// round returns the round with the features of the places, of the items shown only. It uses dst.
func (k places) round(dst *scratch.Matrix, r vitrine.Round) vitrine.Round {
	s := r.Offer.Assortment
	if k == 0 || len(s) == 0 {
		return r
	}
	var place []int
	if r.Offer.Order != nil {
		place = make([]int, len(s))
		for p, i := range r.Offer.Order {
			j, _ := slices.BinarySearch(s, i)
			place[j] = p
		}
	}
	shown := make(vitrine.Assortment, len(s))
	for j := range shown {
		shown[j] = j
	}
	return vitrine.Round{
		Context: &vitrine.Context{Features: k.features(dst, r.Context.Features, s, place)},
		Offer:   vitrine.Offer{Assortment: shown},
		Choice:  r.Choice,
		More:    r.More,
	}
}

// first returns the context with all items in the first place. It uses dst.
func (k places) first(dst *scratch.Matrix, x *vitrine.Context) *vitrine.Context {
	if k == 0 || x.NumItems() == 0 {
		return x
	}
	placed := *x
	placed.Features = k.features(dst, x.Features, nil, nil)
	return &placed
}

// offer returns the best offer of the family for the utilities z in the first place and the
// parameters w.
func (k places) offer(c vitrine.Constraint, z, w, revenue []float64) vitrine.Offer {
	order, _ := assortment.MaximizeOrdered(nil, c, z, k.effects(w), revenue)
	return vitrine.Offer{Assortment: slices.Sorted(slices.Values(order)), Order: order}
}

// utilities stores the estimated utilities of the items of x in the first place in dst.
func (k places) utilities(dst []float64, m utility.Model, w []float64, x *vitrine.Context) {
	rows := firsts.Get().(*scratch.Matrix)
	defer firsts.Put(rows)
	m.Utilities(dst, w, k.first(rows, x).Features)
}

var firsts = sync.Pool{New: func() any { return new(scratch.Matrix) }}

// placed is the policy of lines 10 and 11 of Algorithm 1, and of every upper-confidence baseline, with position
// effects: the bonus is an item's in the first place.
type placed struct {
	*optimistic
	places places
}

// Offer implements vitrine.Policy.
func (o *placed) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	c := o.p.Family(x)
	rows := firsts.Get().(*scratch.Matrix)
	defer firsts.Put(rows)
	offer := o.places.offer(c, o.z.Utilities(nil, o.places.first(rows, x)), o.z.Params, x.Revenue)
	offer.Propensity = 1
	return offer
}

// Utilities stores the estimated utilities in the first place in dst.
func (o *placed) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	o.places.utilities(dst, o.z.Model, o.z.Params, x)
}

// PlaceEffects returns the estimated effects of the places, γ_1 = 0 first.
func (o *placed) PlaceEffects() []float64 { return o.places.effects(o.z.Params) }

// effectsOf returns the effects of the places that a policy estimates; nil without position effects.
func effectsOf(o estimated) []float64 {
	if p, ok := o.(*placed); ok {
		return p.PlaceEffects()
	}
	return nil
}

// bestOrder finds the order of a set in which it earns most.
type bestOrder struct {
	order, next, items, places []int
	gain                       []float64
}

// of returns all items of s in their best order, from the first place on, for the utilities u in the first place, the
// effects γ and the revenues r. It is Dinkelbach's iteration: at the revenue z of an order the largest gains (r_i − z)
// exp(u_i) take the places of the largest effects (the rearrangement inequality). The order is valid until the next
// call.
func (b *bestOrder) of(s vitrine.Assortment, u, gamma, r []float64) []int {
	b.order = append(b.order[:0], s...)
	b.gain = scratch.Grow(b.gain, len(u))
	b.places = b.places[:0]
	maximum := math.Inf(-1)
	for p, i := range s {
		b.places = append(b.places, p)
		maximum = max(maximum, u[i])
	}
	slices.SortStableFunc(b.places, func(p, q int) int {
		return cmp.Compare(vitrine.PlaceEffect(gamma, q), vitrine.PlaceEffect(gamma, p))
	})
	b.items = append(b.items[:0], s...)
	b.next = append(b.next[:0], s...)
	for z := vitrine.OrderedRevenue(b.order, u, gamma, r); ; {
		for _, i := range s {
			b.gain[i] = (vitrine.RevenueOf(r, i) - z) * portable.Exp(u[i]-maximum)
		}
		slices.SortStableFunc(b.items, func(i, j int) int { return cmp.Compare(b.gain[j], b.gain[i]) })
		for k, p := range b.places {
			b.next[p] = b.items[k]
		}
		earned := vitrine.OrderedRevenue(b.next, u, gamma, r)
		if !(earned > z) {
			return b.order
		}
		b.order, b.next, z = b.next, b.order, earned
	}
}

// PlaceEffects returns the effects of the places at the mean parameters, γ_1 = 0 first; nil without
// position effects.
func (o *sampling) PlaceEffects() []float64 {
	if o.places == 0 {
		return nil
	}
	return o.places.effects(o.mean)
}

// Value implements [Explainer].
func (o *placed) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	return valueAt(&o.z, mean, sd, o.places.first(new(scratch.Matrix), &vitrine.Context{Features: x}).Features)
}

// Reasons implements [Explainer].
func (o *placed) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.reasons(o.places.first(new(scratch.Matrix), x))
	r.IsBest = false // it is the best order, with the effects of the places
	return r
}
