package assortment

import (
	"math"
	"slices"
	"sync"

	"vitrine"
)

// Ranking holds, of the items added so far, the set with the largest values, compared from the largest down; of equal values
// the lower items. The sets are those within Max and the Limits of some rules, together with the pinned items, which it does
// not hold. They are the independent sets of a matroid, so the order of adding does not matter: an item that is not in the
// best set of some items is not in the best set of more of them (Edmonds 1971). It is a heap with the item to be replaced
// first at its root.
type Ranking struct {
	Items  []int
	Values []float64

	rules   Rules
	size    int // how many items it may hold
	minimum float64
}

// Reset makes the ranking empty. Only values above the minimum will enter.
func (r *Ranking) Reset(rules Rules, minimum float64) {
	r.rules, r.size, r.minimum = rules, max(0, rules.Max-len(rules.Include)), minimum
	r.Items, r.Values = slices.Grow(r.Items[:0], r.size), slices.Grow(r.Values[:0], r.size)
}

// Threshold returns the value that the items to come must reach, and that they must exceed if they are higher
// than those before.
func (r *Ranking) Threshold() float64 {
	if r.Full() && len(r.Values) > 0 {
		return r.Values[0]
	}
	return r.minimum
}

// Full reports whether the set has as many items as the rules allow.
func (r *Ranking) Full() bool { return len(r.Items) == r.size }

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
	if !(value > r.minimum) || r.size == 0 {
		return
	}
	if r.Full() && r.before(i, value, 0) || r.rules.hides(i) || r.rules.includes(i) {
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
	for k := range r.rules.Limits {
		l := &r.rules.Limits[k]
		if l.Group[i] < 0 {
			continue
		}
		if n := r.rules.count(l, i, r.Items); n >= l.Max && (tight == nil || n < least) {
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

var rankings = sync.Pool{New: func() any { return new(Ranking) }}

// best stores the set with the largest values above the minimum in dst.
func (r Rules) best(dst vitrine.Assortment, values []float64, minimum float64) vitrine.Assortment {
	k := rankings.Get().(*Ranking)
	defer rankings.Put(k)
	k.Reset(r, minimum)
	k.AddAll(0, values)
	dst = append(append(slices.Grow(dst[:0], len(k.Items)+len(r.Include)), k.Items...), r.Include...)
	slices.Sort(dst)
	k.rules = Rules{} // the pool must not keep the caller's
	return dst
}

// appendLargest appends the k items of the largest values above the minimum, or of the largest values if all will do.
func (r *Ranking) appendLargest(dst, items []int, k int, value []float64, minimum float64, all bool) []int {
	if k >= len(items) {
		for _, i := range items {
			if all || value[i] > minimum {
				dst = append(dst, i)
			}
		}
		return dst
	}
	if all {
		minimum = negInf
	}
	r.Reset(Rules{Max: k}, minimum)
	threshold := minimum
	for _, i := range items {
		v := value[i]
		if all && !(v > -math.MaxFloat64) { // or NaN
			v = -math.MaxFloat64
		}
		if v > threshold {
			r.Add(i, v)
			threshold = r.Threshold()
		}
	}
	return append(dst, r.Items...)
}
