package assortment

import (
	"math"
	"slices"
	"sync"

	"vitrine"
)

// Ranking keeps the set with the largest values among the items added so far, comparing values from the largest down
// and preferring lower items among equals. The sets obey Max and the Limits of some rules, together with the pinned
// items, which the Ranking does not store. They are the independent sets of a matroid, so the order of adding does not
// matter: an item outside the best set of some items is also outside the best set of more items (Edmonds 1971). The
// items form a heap, with the next item to be replaced at the root.
type Ranking struct {
	Items  []int
	Values []float64

	rules   Rules
	size    int // maximum number of items
	minimum float64
}

// Reset empties the ranking. It will admit only values above the minimum.
func (r *Ranking) Reset(rules Rules, minimum float64) {
	r.rules, r.size, r.minimum = rules, max(0, rules.Max-len(rules.Include)), minimum
	r.Items, r.Values = slices.Grow(r.Items[:0], r.size), slices.Grow(r.Values[:0], r.size)
}

// Threshold returns the value that further items must reach to enter. Items numbered above all earlier ones must exceed
// it.
func (r *Ranking) Threshold() float64 {
	if r.Full() && len(r.Values) > 0 {
		return r.Values[0]
	}
	return r.minimum
}

// Full reports whether the set contains as many items as the rules allow.
func (r *Ranking) Full() bool { return len(r.Items) == r.size }

// AddAll adds consecutive items, starting at from. Every item added earlier must be numbered below from.
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
	at := 0 // the item to be replaced
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

// tight returns the limit of item i's innermost group that is full, or nil if there is none. Among full groups the
// innermost contains the fewest items of the set; if two contain equally many, they contain the same.
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

// last returns the position of the item in item i's group that is replaced first. There must be one.
func (r *Ranking) last(l *Limit, i int) int {
	last := -1
	for j, other := range r.Items {
		if l.Group[other] == l.Group[i] && (last < 0 || r.before(other, r.Values[j], last)) {
			last = j
		}
	}
	return last
}

// before reports whether item i is replaced before the item at j.
func (r *Ranking) before(i int, value float64, j int) bool {
	return value < r.Values[j] || value == r.Values[j] && i > r.Items[j]
}

// sift restores the heap around position j.
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
	k.rules = Rules{} // the pool must not retain the caller's slices
	return dst
}

// appendLargest appends the k items with the largest values. Unless all is true, values must exceed the minimum. dst
// may end where items begins in the same storage.
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
		if all && !(v > -math.MaxFloat64) { // also excludes NaN
			v = -math.MaxFloat64
		}
		if v >= threshold { // items come in any order
			r.Add(i, v)
			threshold = r.Threshold()
		}
	}
	return append(dst, r.Items...)
}
