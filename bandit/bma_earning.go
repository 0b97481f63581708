package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/search"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

const (
	sampled        = 512 // items of the first set of a slot
	thin           = 16  // the next set is of one block of items in thin
	gaining        = 256 // items of the largest gains, or gainingPerItem for each item shown
	gainingPerItem = 32
	gainingShare   = 8    // there must be gainingShare times more items
	maxPasses      = 3    // over all items
	margin         = 1e-9 // for rounding
)

// numGaining returns the number of items of the largest gains that are enough for a set that the rules allow.
func numGaining(q assortment.Rules) int { return max(gaining, gainingPerItem*q.Max) }

// slotSet is a slot's best set so far, and its expected revenue.
type slotSet struct {
	items   vitrine.Assortment
	u       []float64 // of items
	revenue float64
	done    bool // it is the best of all
}

// earning is many for unequal revenues. Each slot needs the set of the largest expected revenue under its sampled
// utilities.
//
// Let z be less than that revenue, such as the revenue of the best set within a sample of the items. The gain of an
// item, v_i (r_i − z), falls with z. So let C be some items of the largest gains at z, S the best set within C, R ≥ z
// its revenue, and τ the smallest gain at R in S, 0 if S is smaller than the rules allow. If no gain at z outside C is
// larger than τ, none is at R, and S is the best set of all: an outside item could only replace an item of S. Otherwise
// z becomes R. ok is false if some slot still lacks such a set after some passes over the items.
func (o *mixture) earning(w *mixtureScratch, family vitrine.Constraint, q assortment.Rules, z standardisation,
	x *vitrine.Context) (s vitrine.Assortment, ok bool) {
	size := numGaining(q)
	sets := make([]slotSet, len(w.expert))
	some := make([]int, 0, 2*sampled)
	for i := 0; i < w.n; i += w.n / sampled {
		some = append(some, i)
	}
	for k := range sets {
		o.solve(w, &sets[k], k, q, some, z, x)
	}
	gains := func(k int, u []float64, from int) {
		clamp(u)
		kernel.Exp(u, u)
		least := float64((1 - margin) * sets[k].revenue)
		for j, r := range x.Revenue[from:][:len(u)] {
			u[j] *= r - least
		}
	}
	least := slices.Repeat([]float64{math.Inf(-1)}, len(sets)) // of each slot, the gain that about 2·size items exceed
	if w.n >= 2*thin*sampled {
		best := o.rank(w, look{0, len(sets), thin, assortment.Rules{Max: size / 4}, gains, least}, z, x.Features)
		for k := range sets {
			before := sets[k].revenue
			o.solve(w, &sets[k], k, q, best[k].Items, z, x)
			if !q.HidesAny() { // the sample may contain hidden items
				least[k] = nthGain(&best[k], x.Revenue, before, sets[k].revenue, 2*size/thin)
			}
		}
	}
	first, end := 0, len(sets) // slots without a set yet
	for range maxPasses {
		best := o.rank(w, look{first, end, 1, q.Ungrouped(size), gains, least[first:end]}, z, x.Features)
		from := first
		first, end = len(sets), 0
		for j, b := range best {
			k := from + j
			set := &sets[k]
			if set.done {
				continue
			}
			outside := max(0, least[k]) // bounds the gains outside C
			if len(b.Items) == size {
				outside = slices.Min(b.Values) * (1 + margin)
			}
			gain, ok := o.solve(w, set, k, q, b.Items, z, x)
			if !ok {
				return nil, false
			}
			if set.done = outside <= gain; !set.done {
				least[k] = math.Inf(-1)
				first, end = min(first, k), k+1
			}
		}
		if first < end {
			continue
		}
		w.taken, w.takers = w.taken[:0], w.takers[:0]
		for k := range sets {
			w.take(k, family, sets[k].items, sets[k].u, x.Revenue, sets[k].revenue)
		}
		return w.shown(q), true
	}
	return nil, false
}

// nthGain returns the n-th largest gain at z of some items, valued by their gains at before, or −∞ if they are fewer.
// It changes the values.
func nthGain(some *search.Best, r []float64, before, z float64, n int) float64 {
	for j, i := range some.Items {
		some.Values[j] *= (r[i] - z) / (r[i] - before)
	}
	slices.Sort(some.Values)
	if len(some.Values) < n {
		return math.Inf(-1)
	}
	return some.Values[len(some.Values)-n]
}

// solve sets a slot's best set among some items, in any order, under the rules, and returns the smallest gain in it. ok
// is false if the slot's present set earns more.
func (o *mixture) solve(w *mixtureScratch, set *slotSet, k int, q assortment.Rules, items []int, z standardisation,
	x *vitrine.Context) (gain float64, ok bool) {
	w.some = append(w.some[:0], items...)
	slices.Sort(w.some)
	best, u, revenue, gain := w.pruned.Among(nil, q, w.some, func(items []int) []float64 {
		w.sampled = o.slotUtilities(w.sampled, w, k, items, z, x.Features)
		clamp(w.sampled)
		return w.sampled
	}, x.Revenue)
	if revenue < (1-margin/2)*set.revenue {
		return 0, false
	}
	set.items, set.u, set.revenue = best, u, revenue
	return gain, true
}

// slotUtilities returns the sampled utilities of a slot for some items of x, in dst.
func (o *mixture) slotUtilities(dst []float64, w *mixtureScratch, k int, items []int, z standardisation,
	x *mat.Dense) []float64 {
	dst = scratch.Grow(dst, len(items))
	for from := 0; from < len(items); from += indexRows {
		to := min(from+indexRows, len(items))
		o.fillBlock(w, w, z, w.rows.Rows(x, items[from:to]), k, k+1, func(int) []float64 { return dst[from:to] })
	}
	return dst
}
