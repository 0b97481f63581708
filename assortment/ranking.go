package assortment

import (
	"math"
	"slices"

	"vitrine"
)

// Quota bounds how many items are shown, in all and of each group. The sets within it are the independent sets of a
// matroid: those of [AtMost], and those of a [Partition].
type Quota struct {
	Size    int
	Group   []int32 // of each item, negative for none; nil if no item has one
	Most    int     // of the items of a group
	Exclude []int   // items that are not shown, in increasing order
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

// Allows reports whether a set is within the quota.
func (q *Quota) Allows(s vitrine.Assortment) bool {
	if len(s) > q.Size {
		return false
	}
	for k, i := range s {
		if q.hides(i) || q.count(s[:k], i) >= q.Most && q.group(i) >= 0 {
			return false
		}
	}
	return true
}

// Ungrouped returns the quota of some of the items that this one does not hide, whatever their groups.
func (q Quota) Ungrouped(size int) Quota {
	q.Size = size
	if q.Most > 0 {
		q.Group = nil
	}
	return q
}

// hides reports whether an item is in no set.
func (q *Quota) hides(i int) bool {
	if len(q.Exclude) > 0 {
		if _, excluded := slices.BinarySearch(q.Exclude, i); excluded {
			return true
		}
	}
	return q.Most <= 0 && q.group(i) >= 0
}

// hidesAny reports whether the quota may hide an item.
func (q *Quota) hidesAny() bool { return len(q.Exclude) > 0 || q.Group != nil && q.Most <= 0 }

func (q *Quota) group(i int) int32 {
	if q.Group == nil {
		return -1
	}
	return q.Group[i]
}

// count returns how many items of a set are in the group of item i.
func (q *Quota) count(s []int, i int) (n int) {
	g := q.group(i)
	for _, j := range s {
		if q.group(j) == g {
			n++
		}
	}
	return n
}

// Ranking holds, of the items added so far, the set within a quota with the largest values, compared from the largest
// down; of equal values the lower items. The order in which they are added does not matter: an item that is not in the best
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
func (r *Ranking) Full() bool { return len(r.Items) == r.quota.Size }

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
	if !(value > r.minimum) || r.quota.Size == 0 {
		return
	}
	if r.Full() && r.before(i, value, 0) || r.quota.hides(i) {
		return
	}
	at := 0 // the item that it replaces
	if n := len(r.Items); r.quota.group(i) >= 0 && r.quota.count(r.Items, i) == r.quota.Most {
		at = r.last(r.quota.group(i))
		if r.before(i, value, at) {
			return
		}
	} else if !r.Full() {
		r.Items, r.Values, at = append(r.Items, i), append(r.Values, value), n
	}
	r.Items[at], r.Values[at] = i, value
	r.sift(at)
}

// last returns where the item of a group is that is replaced first.
func (r *Ranking) last(group int32) int {
	last := -1
	for j, i := range r.Items {
		if r.quota.group(i) == group && (last < 0 || r.before(i, r.Values[j], last)) {
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
	dst = append(dst[:0], r.Items...)
	slices.Sort(dst)
	r.quota = Quota{} // it may be kept
	return dst
}

// noMinimum lets all values enter a ranking but −∞.
var noMinimum = math.Inf(-1)
