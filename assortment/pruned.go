package assortment

import (
	"math"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
)

const (
	fewItems   = 512 // initial number of items with the largest utilities, or fewPerItem per item shown
	fewPerItem = 32
	fewGrowth  = 16 // limit on the growth of their number
)

// Prunable returns the rules of a family over n items to which [Pruned] applies, and the number of items with which it
// should start. ok is false if n is too small.
func Prunable(c vitrine.Constraint, n int) (r Rules, size int, ok bool) {
	r, ok = Ranked(c)
	size = max(fewItems, fewPerItem*r.Max)
	return r, size, ok && n >= fewGrowth*size
}

// Ranked returns the rules of a family for which a [Ranking] finds the best set: [AtMost], and a [Quota] that bounds
// numbers of items but requires only single items.
func Ranked(c vitrine.Constraint) (r Rules, ok bool) {
	switch c := c.(type) {
	case AtMost:
		return Rules{Max: max(int(c), 0)}, true
	case *Quota:
		return c.rules, c.plain && c.most == nil
	}
	return Rules{}, false
}

// Pruned searches for the best set among many items of unequal revenues while looking at only a few of them. The zero
// value is ready to use and keeps its memory for the next call.
type Pruned struct {
	items   []int
	revenue []float64
	group   []int32 // the items' groups, limit after limit
	limits  []Limit
	include []int
}

// Maximize finds the best set that obeys rules of k items without a capacity. largest lists the size items with the
// largest utilities that [Rules.Ungrouped] admits, or all items with a utility above −∞ if there are fewer. r holds the
// revenues of all items; nil means 1 for all. utilities returns the utilities of the given items.
//
// The search begins with C = largest. Let S be the best set within C, R = R(S), and v the largest exp(u_i) outside C.
// The gain v_i (r_i − R) of an outside item is at most v (ρ − R) if its revenue is at most ρ. An outside item could only
// replace an item of S. So S is the best set of all if no revenue outside C exceeds ρ = R + τ/v, where τ is the smallest
// gain in S, or 0 if S contains fewer than k items. Items with larger revenues join C until there are none outside. ok is
// false if C grows to 16 times its size. If several sets tie for the best expected revenue, up to rounding, [Maximize]
// may find a different one.
func (f *Pruned) Maximize(
	rules Rules, r []float64, largest []int, size int, utilities func(items []int) []float64,
) (best vitrine.Assortment, ok bool) {
	f.hold(&rules, largest)
	full, least := len(largest) == size, math.Inf(-1)
	for {
		u := utilities(f.items)
		if full && math.IsInf(least, -1) {
			least = math.Inf(1)
			for j, i := range f.items {
				if !rules.includes(i) {
					least = min(least, u[j])
				}
			}
		}
		var revenue float64
		best, revenue = f.among(best, &rules, r, u)
		had := len(f.items)
		if full {
			const margin = 1e-9 // for rounding
			rho := revenue + float64(f.leastGain(&rules, best, u, revenue, least)*(1-margin)) - float64(margin*revenue)
			f.join(&rules, r, rho, fewGrowth*size)
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

// Among finds the best set that obeys rules without a capacity, from the given items, in increasing order, and the
// pinned ones. utilities returns the utilities of given items, and r holds the revenues of all items. Among returns the
// set, its utilities, its expected revenue R, and the smallest gain v_i (r_i − R) among its items that are not pinned.
// The gain is 0 if the rules allow more items.
func (f *Pruned) Among(
	dst vitrine.Assortment, rules Rules, items []int, utilities func(items []int) []float64, r []float64,
) (best vitrine.Assortment, u []float64, revenue, gain float64) {
	f.hold(&rules, items)
	all := utilities(f.items)
	best, revenue = f.among(dst, &rules, r, all)
	gain = f.leastGain(&rules, best, all, revenue, 0)
	for k, j := range best {
		u = append(u, all[j])
		best[k] = f.items[j]
	}
	return best, u, revenue, gain
}

// hold sets C to the given items, in increasing order, without the items that the rules hide and with the pinned ones.
func (f *Pruned) hold(r *Rules, items []int) {
	f.items = append(f.items[:0], items...)
	if r.HidesAny() {
		f.items = slices.DeleteFunc(f.items, r.hides)
	}
	if len(r.Include) > 0 {
		f.items = append(f.items, r.Include...)
		slices.Sort(f.items)
		f.items = slices.Compact(f.items)
	}
}

// among finds the best set of C, given the utilities u of C.
func (f *Pruned) among(
	dst vitrine.Assortment, rules *Rules, r, u []float64,
) (best vitrine.Assortment, revenue float64) {
	f.revenue = scratch.Grow(f.revenue, len(f.items))
	for j, i := range f.items {
		f.revenue[j] = vitrine.RevenueOf(r, i)
	}
	return Maximize(dst, f.family(rules), u, f.revenue)
}

// family returns the sets within C. The rules must hide no item of C.
func (f *Pruned) family(r *Rules) vitrine.Constraint {
	f.group = scratch.Grow(f.group, len(r.Limits)*len(f.items))
	f.limits, f.include = f.limits[:0], f.include[:0]
	for k, l := range r.Limits {
		if l.Max <= 0 { // C contains no items of such a group
			continue
		}
		group := f.group[k*len(f.items):][:len(f.items)]
		for j, i := range f.items {
			group[j] = l.Group[i]
		}
		f.limits = append(f.limits, Limit{Group: group, Max: l.Max})
	}
	for _, i := range r.Include {
		j, _ := slices.BinarySearch(f.items, i)
		f.include = append(f.include, j)
	}
	if len(f.limits) == 0 && len(f.include) == 0 {
		return AtMost(r.Max)
	}
	return &Quota{
		rules: Rules{Items: len(f.items), Max: r.Max, Limits: f.limits, Include: f.include}, size: r.Max, plain: true,
	}
}

// leastGain returns τ/v for the best set of C and log v, where τ is its smallest gain. If there may be more items, it
// returns 0.
func (f *Pruned) leastGain(r *Rules, best vitrine.Assortment, u []float64, revenue, logV float64) float64 {
	if len(best) < r.Max {
		return 0
	}
	tau := math.Inf(1)
	for _, j := range best {
		if !r.includes(f.items[j]) {
			tau = min(tau, portable.Exp(u[j]-logV)*(f.revenue[j]-revenue))
		}
	}
	return tau
}

// join adds other items, up to most, that the rules do not hide and that earn more than rho or an incomparable revenue.
func (f *Pruned) join(rules *Rules, r []float64, rho float64, most int) {
	had := f.items
	for i, v := range r {
		if !(v <= rho) && len(f.items) < most {
			if _, there := slices.BinarySearch(had, i); !there && !rules.hides(i) {
				f.items = append(f.items, i)
			}
		}
	}
	slices.Sort(f.items)
}
