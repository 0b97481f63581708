package assortment

import (
	"math"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
)

const (
	fewItems   = 512 // the number of items of the largest utilities to begin with, or fewPerSlot for each item shown
	fewPerSlot = 32
	fewGrowth  = 16 // by which factor their number may grow
)

// NumFew returns with how many of n items [Few] should begin for sets of at most k items. ok is false if n is too small.
func NumFew(k, n int) (size int, ok bool) {
	size = max(fewItems, fewPerSlot*k)
	return size, n >= fewGrowth*size
}

// Few finds the best set within a quota for unequal revenues among many items, of which it looks only at a few. The
// zero value is ready; it keeps its memory for the next call.
type Few struct {
	items   []int
	revenue []float64
	group   []int32 // of the items, limit after limit
	limits  []Limit
	include []int
}

// Maximize finds the best set within a quota of k items. largest are the size items of the largest utilities, or all with a
// utility above −∞ if they are fewer; r are the revenues of all items, and utilities returns the utilities of the given items.
//
// The search begins with C = largest. Let S be the best set within C, R = R(S), τ the smallest gain v_i (r_i − R) in S, 0
// if S has fewer than k items, and v the largest exp(u_i) outside C. S is the best set of all if no gain outside C is
// larger than τ, because an item from outside could only take the place of one of S. This holds if all revenues outside
// C are at most
//
//	ρ = R + τ/v
//
// Items with larger revenues join C, until there are none outside. ok is false if C becomes 16 times as large. If several
// sets have the same expected revenue, up to rounding, [Maximize] may find another one of them.
func (f *Few) Maximize(q Quota, r []float64, largest []int, size int, utilities func(items []int) []float64) (best vitrine.Assortment, ok bool) {
	f.hold(&q, largest)
	full, least := len(largest) == size, math.Inf(-1)
	for {
		u := utilities(f.items)
		if full && math.IsInf(least, -1) {
			least = math.Inf(1)
			for j, i := range f.items {
				if !q.includes(i) {
					least = min(least, u[j])
				}
			}
		}
		var revenue float64
		best, revenue = f.among(best, &q, r, u)
		had := len(f.items)
		if full {
			f.join(&q, r, f.bound(&q, best, u, revenue, least), fewGrowth*size)
		}
		switch len(f.items) {
		case had:
			for j, i := range best {
				best[j] = f.items[i]
			}
			return best, true
		case fewGrowth * size:
			return nil, false
		}
	}
}

// Among finds the best set within a quota of the given items, which increase, and of those that every set has. utilities
// returns those of items, and r are the revenues of all items. It returns the set, its utilities, its expected revenue R, and the
// smallest gain v_i (r_i − R) of an item in it that not every set has. That is 0 if the quota allows more items.
func (f *Few) Among(dst vitrine.Assortment, q Quota, items []int, utilities func(items []int) []float64, r []float64) (best vitrine.Assortment, u []float64, revenue, gain float64) {
	f.hold(&q, items)
	all := utilities(f.items)
	best, revenue = f.among(dst, &q, r, all)
	gain = f.gain(&q, best, all, revenue, 0)
	for k, j := range best {
		u = append(u, all[j])
		best[k] = f.items[j]
	}
	return best, u, revenue, gain
}

// hold makes C the given items, which increase, without those that the quota hides and with those that every set has.
func (f *Few) hold(q *Quota, items []int) {
	f.items = append(f.items[:0], items...)
	if q.HidesAny() {
		f.items = slices.DeleteFunc(f.items, q.hides)
	}
	if len(q.Include) > 0 {
		f.items = append(f.items, q.Include...)
		slices.Sort(f.items)
		f.items = slices.Compact(f.items)
	}
}

// among finds the best set within a quota of C, whose utilities are u.
func (f *Few) among(dst vitrine.Assortment, q *Quota, r, u []float64) (best vitrine.Assortment, revenue float64) {
	f.revenue = scratch.Grow(f.revenue, len(f.items))
	for j, i := range f.items {
		f.revenue[j] = r[i]
	}
	return Maximize(dst, f.family(q), u, f.revenue)
}

// gain returns τ/v for the best set of C and log v.
func (f *Few) gain(q *Quota, best vitrine.Assortment, u []float64, revenue, logV float64) float64 {
	if len(best) < q.Size {
		return 0
	}
	tau := math.Inf(1)
	for _, j := range best {
		if !q.includes(f.items[j]) {
			tau = min(tau, portable.Exp(u[j]-logV)*(f.revenue[j]-revenue))
		}
	}
	return tau
}

// family returns the sets of C within a quota, which hides none of its items.
func (f *Few) family(q *Quota) vitrine.Constraint {
	within := Quota{Size: q.Size}
	f.group = scratch.Grow(f.group, len(q.Limits)*len(f.items))
	f.limits, f.include = f.limits[:0], f.include[:0]
	for k, l := range q.Limits {
		if l.Most <= 0 { // the items of C are in no such group
			continue
		}
		group := f.group[k*len(f.items):][:len(f.items)]
		for j, i := range f.items {
			group[j] = l.Group[i]
		}
		f.limits = append(f.limits, Limit{group, l.Most})
	}
	for _, i := range q.Include {
		j, _ := slices.BinarySearch(f.items, i)
		f.include = append(f.include, j)
	}
	if len(f.limits) == 0 && len(f.include) == 0 {
		return AtMost(q.Size)
	}
	within.Limits, within.Include = f.limits, f.include
	return &Partition{items: len(f.items), quota: within}
}

// bound returns ρ, less what rounding may add to it, for the best set of C and the largest log v.
func (f *Few) bound(q *Quota, best vitrine.Assortment, u []float64, revenue, least float64) float64 {
	const margin = 1e-9
	return revenue + float64(f.gain(q, best, u, revenue, least)*(1-margin)) - float64(margin*revenue)
}

// join adds the other items whose revenue is above rho, or is not comparable with it, until there are most of them.
func (f *Few) join(q *Quota, r []float64, rho float64, most int) {
	had := f.items
	for i, v := range r {
		if !(v <= rho) && len(f.items) < most {
			if _, there := slices.BinarySearch(had, i); !there && !q.hides(i) {
				f.items = append(f.items, i)
			}
		}
	}
	slices.Sort(f.items)
}
