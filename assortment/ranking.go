package assortment

import (
	"math"
	"slices"

	"vitrine"
)

// Quota bounds how many items are shown, in all and of each group. The sets within it are, but for the items that all of
// them have, the independent sets of a matroid: those of [AtMost], and those of a [Partition].
type Quota struct {
	Size    int
	Limits  []Limit // any two groups are disjoint, or one contains the other
	Include []int   // items that every set has, in increasing order
	Exclude []int   // items that are not shown, in increasing order
}

// Limit bounds how many items of each of some disjoint groups are shown.
type Limit struct {
	Group []int32 // of each item, negative for none
	Most  int     // of the items of a group
}

// QuotaOf returns the quota of a family; ok is false if the family has none.
func QuotaOf(c vitrine.Constraint) (q Quota, ok bool) {
	switch c := c.(type) {
	case AtMost:
		return Quota{Size: max(int(c), 0)}, true
	case *Partition:
		return c.quota, true
	case *Shelf:
		return c.within.quota, c.slack
	}
	return Quota{}, false
}

// Allows reports whether a set may be shown, together with the items that every set has.
func (q *Quota) Allows(s vitrine.Assortment) bool {
	size := len(q.Include)
	for k, i := range s {
		if q.includes(i) {
			continue
		}
		if size++; size > q.Size || q.hides(i) {
			return false
		}
		for _, l := range q.Limits {
			if l.Group[i] >= 0 && q.count(&l, i, s[:k]) >= l.Most {
				return false
			}
		}
	}
	return size <= q.Size
}

// Ungrouped returns the quota of some of the items that this one does not hide, whatever their groups.
func (q Quota) Ungrouped(size int) Quota {
	q.Size, q.Include = size, nil
	var hiding []Limit
	for _, l := range q.Limits {
		if l.Most <= 0 {
			hiding = append(hiding, l)
		}
	}
	q.Limits = hiding
	return q
}

// includes reports whether every set has an item.
func (q *Quota) includes(i int) bool { return among(q.Include, i) }

// hides reports whether an item is in no set.
func (q *Quota) hides(i int) bool {
	if among(q.Exclude, i) {
		return true
	}
	if q.includes(i) {
		return false
	}
	if len(q.Include) >= q.Size {
		return true
	}
	for _, l := range q.Limits {
		if l.Group[i] >= 0 && q.count(&l, i, nil) >= l.Most {
			return true
		}
	}
	return false
}

// among reports whether an item is among some in increasing order.
func among(items []int, i int) bool {
	if len(items) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(items, i)
	return ok
}

// HidesAny reports whether the quota may hide an item.
func (q *Quota) HidesAny() bool {
	return q.Size <= 0 || len(q.Exclude) > 0 || len(q.Include) > 0 || slices.ContainsFunc(q.Limits, func(l Limit) bool { return l.Most <= 0 })
}

// count returns how many items are in the group of item i, of those that every set has and the others of s.
func (q *Quota) count(l *Limit, i int, s []int) (n int) {
	g := l.Group[i]
	for _, j := range q.Include {
		if l.Group[j] == g {
			n++
		}
	}
	for _, j := range s {
		if l.Group[j] == g && !q.includes(j) {
			n++
		}
	}
	return n
}

// Ranking holds, of the items added so far, the set within a quota with the largest values, compared from the largest
// down; of equal values the lower items. It does not hold the items that every set has. The order in which they are added does not matter: an item that is not in the best
// set of some items is not in that of more of them (Edmonds 1971). It is a heap with the item to be replaced first at its
// root.
type Ranking struct {
	Items  []int
	Values []float64

	quota   Quota
	minimum float64
}

// Reset makes the ranking empty. Only values above the minimum will enter.
func (r *Ranking) Reset(q Quota, minimum float64) {
	r.quota, r.minimum = q, minimum
	r.Items, r.Values = slices.Grow(r.Items[:0], q.Size), slices.Grow(r.Values[:0], q.Size)
}

// Threshold returns the value that the items to come must reach, and that they must exceed if they are higher
// than those before.
func (r *Ranking) Threshold() float64 {
	if r.Full() && len(r.Values) > 0 {
		return r.Values[0]
	}
	return r.minimum
}

// Full reports whether the set has as many items as the quota allows.
func (r *Ranking) Full() bool { return len(r.Items) == r.size() }

func (r *Ranking) size() int { return r.quota.Size - len(r.quota.Include) }

// AddAll adds the items from one on. No item before was higher.
func (r *Ranking) AddAll(from int, values []float64) {
	threshold := r.Threshold()
	for j, v := range values {
		if v > threshold {
			r.Add(from+j, v)
			threshold = r.Threshold()
		}
	}
}

// Add adds an item.
func (r *Ranking) Add(i int, value float64) {
	if !(value > r.minimum) || r.size() <= 0 {
		return
	}
	if r.Full() && r.before(i, value, 0) || r.quota.hides(i) || r.quota.includes(i) {
		return
	}
	at := 0 // the item that it replaces
	if l := r.tight(i); l != nil {
		at = r.last(l, i)
		if r.before(i, value, at) {
			return
		}
	} else if n := len(r.Items); !r.Full() {
		r.Items, r.Values, at = append(r.Items, i), append(r.Values, value), n
	}
	r.Items[at], r.Values[at] = i, value
	r.sift(at)
}

// tight returns the limit of the innermost group of an item that can have no more items, nil if there is none. Of two such
// groups the outer one has more of the set, or the same items of it.
func (r *Ranking) tight(i int) (tight *Limit) {
	least := 0
	for k := range r.quota.Limits {
		l := &r.quota.Limits[k]
		if l.Group[i] < 0 {
			continue
		}
		if n := r.quota.count(l, i, r.Items); n >= l.Most && (tight == nil || n < least) {
			tight, least = l, n
		}
	}
	return tight
}

// last returns where the item in the group of item i is that is replaced first. There is one.
func (r *Ranking) last(l *Limit, i int) int {
	last := -1
	for j, other := range r.Items {
		if l.Group[other] == l.Group[i] && (last < 0 || r.before(other, r.Values[j], last)) {
			last = j
		}
	}
	return last
}

// before reports whether item i is replaced before the one at j.
func (r *Ranking) before(i int, value float64, j int) bool {
	return value < r.Values[j] || value == r.Values[j] && i > r.Items[j]
}

// sift restores the heap around j.
func (r *Ranking) sift(j int) {
	for ; j > 0; j = (j - 1) / 2 {
		if parent := (j - 1) / 2; r.before(r.Items[j], r.Values[j], parent) {
			r.swap(j, parent)
		} else {
			break
		}
	}
	for {
		child := 2*j + 1
		if child >= len(r.Items) {
			return
		}
		if child+1 < len(r.Items) && r.before(r.Items[child+1], r.Values[child+1], child) {
			child++
		}
		if !r.before(r.Items[child], r.Values[child], j) {
			return
		}
		r.swap(j, child)
		j = child
	}
}

func (r *Ranking) swap(a, b int) {
	r.Items[a], r.Items[b] = r.Items[b], r.Items[a]
	r.Values[a], r.Values[b] = r.Values[b], r.Values[a]
}

// best stores the set with the largest values above the minimum in dst.
func (r *Ranking) best(dst vitrine.Assortment, q Quota, values []float64, minimum float64) vitrine.Assortment {
	r.Reset(q, minimum)
	r.AddAll(0, values)
	dst = append(append(dst[:0], r.Items...), q.Include...)
	slices.Sort(dst)
	r.quota = Quota{} // it may be kept
	return dst
}

// noMinimum lets all values enter a ranking but −∞.
var noMinimum = math.Inf(-1)
