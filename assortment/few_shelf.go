package assortment

import (
	"math"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
)

// MaximizeShelf is [Few.Maximize] for a shelf, of any revenues. largest are the size items of the largest utilities that
// [Shelf.Screen] leaves, or all with a utility above −∞ if they are fewer.
//
// Let S be the best set within C = largest, R = R(S) and v the largest exp(u_i) outside C. The gain v_i (r_i − R) of an
// item outside is at most g = v (ρ − R) if its revenue is at most ρ. So S is the best set of all if there is no better sum of
// gains among the items of C and others of the gain g, of every weight and in no group. The largest such ρ that some
// trials find takes the place of that of Maximize. For equal revenues ρ is their value.
func (f *Few) MaximizeShelf(s *Shelf, r []float64, largest []int, size int, utilities func(items []int) []float64) (best vitrine.Assortment, ok bool) {
	f.items = append(f.items[:0], largest...)
	full, equal, least := len(largest) == size, EqualRevenues(r), math.Inf(-1)
	for {
		u := utilities(f.items)
		if full && math.IsInf(least, -1) {
			least = slices.Min(u)
		}
		f.revenue = scratch.Grow(f.revenue, len(f.items))
		for j, i := range f.items {
			f.revenue[j] = revenueOf(r, i)
		}
		within, err := s.of(f.items, false)
		if err != nil {
			return nil, false
		}
		var revenue float64
		best, revenue = Maximize(best, within, u, f.revenue)
		had := len(f.items)
		if full {
			rho, ok := f.boundOf(s, u, revenue, least, equal)
			if !ok || !equal && !f.joinShelf(s, r, rho, fewGrowth*size) {
				return nil, false
			}
		}
		if len(f.items) == had {
			for j, i := range best {
				best[j] = f.items[i]
			}
			return best, true
		}
	}
}

// joinShelf adds the other items of the sets whose revenue is above rho, or is not comparable with it. It returns false if
// there are most of them.
func (f *Few) joinShelf(s *Shelf, r []float64, rho float64, most int) bool {
	had := f.items
	for i, v := range r {
		if !(v <= rho) && s.most[s.weights.Kind[i]] > 0 && !s.within.quota.hides(i) {
			if _, there := slices.BinarySearch(had, i); !there {
				if f.items = append(f.items, i); len(f.items) == most {
					return false
				}
			}
		}
	}
	slices.Sort(f.items)
	return true
}

// boundOf returns ρ, for the best revenue within C. For equal revenues ok says whether it is that of all items.
func (f *Few) boundOf(s *Shelf, u []float64, revenue, least float64, equal bool) (rho float64, ok bool) {
	const spread = 300 // of utilities whose exponentials are compared
	n, top := len(u), slices.Max(u)
	others := 0
	for _, most := range s.most {
		others += most
	}
	if others > fewGrowth*fewItems || top-least > spread {
		return 0, false
	}
	with, err := s.of(f.items, true)
	if err != nil {
		return 0, false
	}
	gain := make([]float64, with.items)
	z := revenue
	if equal {
		z = 0
	}
	most := 0.0
	for j, v := range u {
		gain[j] = portable.Exp(v-top) * (f.revenue[j] - z)
		most = max(most, gain[j])
	}
	var set vitrine.Assortment
	sum := func(outside float64) (sum float64) {
		for j := n; j < len(gain); j++ {
			gain[j] = outside
		}
		set = with.MaxGain(set, gain)
		for _, j := range set {
			sum += gain[j]
		}
		return sum
	}
	const margin, trials, step = 1e-12, 16, 0.7
	enough := sum(0) * (1 + margin)
	v := portable.Exp(least - top)
	if equal {
		return 0, sum(v*f.revenue[0]) <= enough
	}
	for range trials {
		if sum(most) <= enough {
			break
		}
		most *= step
	}
	if sum(most) > enough {
		return revenue, true
	}
	return revenue + float64(most/v*(1-1e-9)), true
}

// of returns the shelf of some items, and if asked of as many others of each weight as a set may have, in no group.
func (s *Shelf) of(items []int, others bool) (*Shelf, error) {
	q := s.within.quota
	kind := make([]int32, len(items))
	for j, i := range items {
		kind[j] = s.weights.Kind[i]
	}
	q.Exclude, q.Limits = nil, slices.Clone(q.Limits)
	for k, l := range q.Limits {
		q.Limits[k].Group = make([]int32, len(items))
		for j, i := range items {
			q.Limits[k].Group[j] = l.Group[i]
		}
	}
	if others {
		for k, most := range s.most {
			for range most {
				kind = append(kind, int32(k))
				for l := range q.Limits {
					q.Limits[l].Group = append(q.Limits[l].Group, -1)
				}
			}
		}
	}
	return NewShelf(len(kind), q, Weights{Kind: kind, Of: s.weights.Of}, s.capacity)
}

// Screen returns a quota of size items that hides the items that are in no set.
func (s *Shelf) Screen(size int) Quota {
	q := s.within.quota.Ungrouped(size)
	if s.heavy {
		heavy := Limit{Group: make([]int32, s.items)}
		for i, k := range s.weights.Kind {
			if s.most[k] > 0 {
				heavy.Group[i] = -1
			}
		}
		q.Limits = append(q.Limits, heavy)
	}
	return q
}

// NumFew is [NumFew] for a shelf. ok is also false if all sets fit, if there is none, if items are included, or if there are
// several limits.
func (s *Shelf) NumFew() (size int, ok bool) {
	q := &s.within.quota
	size, ok = NumFew(q.Size, s.items)
	return size, ok && !s.slack && q.Size > 0 && len(q.Include) == 0 && len(q.Limits) <= 1
}
