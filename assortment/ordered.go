package assortment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine"
)

// MaximizeOrdered returns the assortment S of family c, and the order in which to show it, with the largest expected
// revenue if places differ: an item in place p is worth u_i + γ_p,
//
//	R(S, p) = Σ_{i∈S} exp(u_i + γ_p(i)) r_i / (1 + Σ_{j∈S} exp(u_j + γ_p(j)))
//
// order lists the items from the first place on. |S| items take the first |S| places, and places beyond γ use its last
// entry. revenue is [vitrine.OrderedRevenue] of the order. If the family is a matroid ([Orderable]), no order earns more.
// [AtMost] and [Slots] are matroids, and so is a [Quota] without lower bounds on groups, pinned items, a capacity or
// groups that cross.
//
// The algorithm is Dinkelbach's iteration, as in [Maximize]. With v ∝ exp(u), w ∝ exp(γ) and the gains g_i = (r_i − z)
// v_i, a set of k items is worth Σ_j g_(j) w_(j) − z v_0: by the rearrangement inequality, its largest gains go with
// the largest w. Since
//
//	Σ_j g_(j) w_(j) = Σ_j (w_(j) − w_(j+1)) (g_(1) + … + g_(j))
//
// and the greedy set of a matroid attains the largest g_(1) + … + g_(j) for every j at once (Edmonds 1971), the first k
// items in greedy order are the best set of k, for every k.
//
// For other families, MaximizeOrdered considers the sets that [vitrine.Constraint.MaxGain] returns for the gains g.
//
// Exponentials are compared on one scale, so utilities and effects should lie within [MaxSpan] of each other. r ≥ 0;
// nil means 1 for all. MaximizeOrdered panics unless r is nil or as long as u, and if a utility or an effect is
// NaN or +∞.
func MaximizeOrdered(dst []int, c vitrine.Constraint, u, gamma, r []float64) (order []int, revenue float64) {
	if r != nil && len(r) != len(u) {
		panic(fmt.Sprintf("assortment: MaximizeOrdered has %d revenues for %d utilities", len(r), len(u)))
	}
	o := ordered{c: c, u: u, gamma: gamma, r: r, gain: make([]float64, len(u)), positive: make([]float64, len(u))}
	o.scale()
	if m, ok := c.(matroid); ok {
		o.minimum, o.exact = m.matroid()
	}
	order = dst[:0]
	found := false
	z := 0.0
	for {
		next := o.best(z * (1 + rounding(len(order)))) // just above z: see maximizeRevenue
		earned := vitrine.OrderedRevenue(next, u, gamma, r)
		if found && !(earned > revenue) {
			break
		}
		order, revenue, found = append(order[:0], next...), earned, true
		if !(earned > z) {
			break
		}
		z = earned
	}
	return order, revenue
}

// matroid is a family that, from a minimum size on, contains exactly the independent sets of a matroid. ok is false if
// it does not.
type matroid interface {
	matroid() (minimum int, ok bool)
}

// Orderable reports whether [MaximizeOrdered] finds the best order over the family for certain, because it is a matroid.
func Orderable(c vitrine.Constraint) bool {
	m, ok := c.(matroid)
	if !ok {
		return false
	}
	_, ok = m.matroid()
	return ok
}

func (AtMost) matroid() (int, bool) { return 0, true }

func (t *Slots) matroid() (int, bool) { return t.minimum, true }

// ordered is a search for the best order.
type ordered struct {
	c           vitrine.Constraint
	u, gamma, r []float64
	v, w        []float64 // exp(u) and exp(γ), scaled
	outside     float64   // v_0
	minimum     int
	exact       bool

	gain, positive []float64
	set            vitrine.Assortment
	byWeight       []float64 // w of the first places, decreasing
}

// scale computes v, w and v_0, scaled so that all are at most 1.
func (o *ordered) scale() {
	top, highest := 0.0, 0.0
	for _, u := range o.u {
		if !(u < math.Inf(1)) {
			panic(fmt.Sprintf("assortment: MaximizeOrdered has a utility of %v", u))
		}
		top = max(top, u)
	}
	for p, g := range o.gamma {
		if !(g < math.Inf(1)) {
			panic(fmt.Sprintf("assortment: MaximizeOrdered has an effect of %v", g))
		}
		if p == 0 || g > highest {
			highest = g
		}
	}
	for _, u := range o.u {
		o.v = append(o.v, math.Exp(u-top))
	}
	for _, g := range o.gamma {
		o.w = append(o.w, math.Exp(g-highest))
	}
	if o.w == nil {
		o.w = []float64{1}
	}
	o.outside = math.Exp(-top - highest)
}

// place returns the weight of place p.
func (o *ordered) place(p int) float64 { return o.w[min(p, len(o.w)-1)] }

// open adds place p to byWeight.
func (o *ordered) open(p int) {
	w := o.place(p)
	at, _ := slices.BinarySearchFunc(o.byWeight, w, func(a, b float64) int { return cmp.Compare(b, a) })
	o.byWeight = slices.Insert(o.byWeight, at, w)
}

// best returns the most valuable order at z among the sets that the search considers.
func (o *ordered) best(z float64) []int {
	for i, v := range o.v {
		o.gain[i] = v * (vitrine.RevenueOf(o.r, i) - z)
	}
	if !o.exact {
		o.set = o.c.MaxGain(o.set, o.gain)
		return o.arrange(o.sorted())
	}
	// Only the order of the gains matters, so ranks do as well, and they include items without gain.
	items := numbers(len(o.gain))
	slices.SortFunc(items, o.compare)
	for rank, i := range items {
		o.positive[i] = float64(len(items) - rank)
	}
	o.set = o.c.MaxGain(o.set, o.positive)
	items = o.sorted()
	k, most := o.minimum, math.Inf(-1)
	o.byWeight = o.byWeight[:0]
	for n := range min(len(items), max(o.minimum, o.enough())) + 1 {
		if n > 0 {
			o.open(n - 1)
		}
		if n < o.minimum {
			continue
		}
		worth := 0.0
		for j, w := range o.byWeight {
			worth += float64(w * o.gain[items[j]])
		}
		if worth > most {
			k, most = n, worth
		}
	}
	return o.arrange(items[:k])
}

// compare orders items by decreasing gain.
func (o *ordered) compare(a, b int) int {
	return cmp.Or(cmp.Compare(o.gain[b], o.gain[a]), cmp.Compare(a, b))
}

// sorted returns the items of the set by decreasing gain.
func (o *ordered) sorted() []int {
	items := slices.Clone([]int(o.set))
	slices.SortFunc(items, o.compare)
	return items
}

// arrange assigns items of decreasing gain to places of decreasing weight.
func (o *ordered) arrange(items []int) []int {
	places := numbers(len(items))
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(o.place(b), o.place(a)) })
	order := make([]int, len(items))
	for j, p := range places {
		order[p] = items[j]
	}
	return order
}

// enough returns a number of items beyond which more items do not help, because all items with positive gain already
// fit in places at least as good as the last distinct place.
func (o *ordered) enough() int {
	n := len(o.w)
	for _, g := range o.gain {
		if g > 0 {
			n++
		}
	}
	return n
}
