package assortment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rules bound how many items are shown, in all and of each group, and may bound a sum of weights. [NewQuota] makes a family
// of them.
type Rules struct {
	Items    int                // N
	Min, Max int                // Min ≤ |S| ≤ Max
	Groups   []Group            // groups that list their items
	Limits   []Limit            // groups that are numbered, for catalogues with millions of items
	Include  []int              // pinned items, which every set contains
	Exclude  []int              // items that no set contains
	Weights  *Weights           // nil without a capacity
	Name     func(i int) string // what errors call item i; nil means "item 3"

	Work     *Work   // bounds the steps of the searches among groups that cross; nil bounds nothing
	MaxTable float64 // bounds the table of the program for a capacity, in bits; 0 means 2³², which is 537 MB
}

// Group bounds the number of items shown from a group,
//
//	Min ≤ |S ∩ Items| ≤ Max
type Group struct {
	Name     string // what errors call it, such as "group shoes"
	Items    []int
	Min, Max int
}

// Limit bounds the number of items shown from each of some disjoint groups.
type Limit struct {
	Group []int32 // of each item: the number of its group, from 0 on, negative for none
	Max   int     // of the items of a group
	Name  func(group int32) string
}

// Weights bound the sum of the weights of a set, Σ_{i∈S} a_i ≤ Capacity. A weight may be the space that an item takes on a
// shelf.
type Weights struct {
	Kind     []int32 // of each item: the number of its weight
	Of       []int   // by number, whole and at least 0
	Count    []int   // by number: how many items, at most, have the weight
	Capacity int
}

// WeightsOf returns the weights of items, one for each.
func WeightsOf(weights []int, capacity int) *Weights {
	w := &Weights{Kind: make([]int32, len(weights)), Capacity: capacity}
	number := map[int]int32{}
	for i, a := range weights {
		k, ok := number[a]
		if !ok {
			k = int32(len(w.Of))
			number[a], w.Of, w.Count = k, append(w.Of, a), append(w.Count, 0)
		}
		w.Kind[i] = k
		w.Count[k]++
	}
	return w
}

func (w *Weights) of(i int) int { return w.Of[w.Kind[i]] }

// left returns what some items leave of the capacity, a negative number if they weigh more.
func (w *Weights) left(items []int) int {
	left := w.Capacity
	for _, i := range items {
		if left -= w.of(i); left < 0 {
			return -1
		}
	}
	return left
}

// NoLimit as a Max means that there is no upper bound.
const NoLimit = math.MaxInt

// ErrTable is wrapped by the errors of families whose dynamic program would take too much memory and time.
var ErrTable = errors.New("too large for the exact program")

func (r *Rules) name(i int) string {
	if r.Name == nil {
		return fmt.Sprintf("item %d", i)
	}
	return r.Name(i)
}

// Allows reports whether a set may be shown, together with the pinned items. It looks only at Max, Limits and pins.
func (r *Rules) Allows(s []int) bool {
	size := len(r.Include)
	for k, i := range s {
		if r.includes(i) {
			continue
		}
		if size++; size > r.Max || r.hides(i) {
			return false
		}
		for _, l := range r.Limits {
			if l.Group[i] >= 0 && r.count(&l, i, s[:k]) >= l.Max {
				return false
			}
		}
	}
	return size <= r.Max
}

// Ungrouped returns rules for sets of some size from the items that these rules do not hide, whatever their groups.
func (r Rules) Ungrouped(size int) Rules {
	if w := r.Weights; w != nil && len(r.Include) > 0 {
		r.Weights = &Weights{w.Kind, w.Of, w.Count, w.left(r.Include)}
	}
	r.Max, r.Include = size, nil
	r.Limits = slices.DeleteFunc(slices.Clone(r.Limits), func(l Limit) bool { return l.Max > 0 })
	return r
}

// includes reports whether every set contains an item.
func (r *Rules) includes(i int) bool { return among(r.Include, i) }

// hides reports whether Max, Limits, pins or the capacity keep an item out of every set.
func (r *Rules) hides(i int) bool {
	if among(r.Exclude, i) {
		return true
	}
	if r.includes(i) {
		return false
	}
	if len(r.Include) >= r.Max || r.Weights != nil && r.Weights.of(i) > r.Weights.left(r.Include) {
		return true
	}
	for _, l := range r.Limits {
		if l.Group[i] >= 0 && r.count(&l, i, nil) >= l.Max {
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

// HidesAny reports whether hides may hold for an item.
func (r *Rules) HidesAny() bool {
	return r.Max <= 0 || len(r.Exclude) > 0 || len(r.Include) > 0 || r.Weights != nil || slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Max <= 0 })
}

// count returns how many items are in the group of item i, of the pinned ones and the others of s.
func (r *Rules) count(l *Limit, i int, s []int) (n int) {
	g := l.Group[i]
	for _, j := range r.Include {
		if l.Group[j] == g {
			n++
		}
	}
	for _, j := range s {
		if l.Group[j] == g && !r.includes(j) {
			n++
		}
	}
	return n
}

// among returns the rules of a capacity for some items, which are numbered from 0 on, and as many others as asked for of each kind
// of weight, in no group. The pinned items must be among the items, and the excluded ones must not.
func (r Rules) among(items []int, others []int) Rules {
	r.Limits = slices.Clone(r.Limits)
	for k, l := range r.Limits {
		of, number := make([]int32, len(items)), map[int32]int32{-1: -1}
		for j, i := range items {
			g := max(l.Group[i], -1)
			if _, ok := number[g]; !ok {
				number[g] = int32(len(number) - 1)
			}
			of[j] = number[g]
		}
		for _, n := range others {
			of = append(of, slices.Repeat([]int32{-1}, n)...)
		}
		r.Limits[k].Group, r.Limits[k].Name = of, func(int32) string { return "" }
	}
	w := &Weights{Kind: make([]int32, len(items)), Of: r.Weights.Of, Capacity: r.Weights.Capacity}
	for j, i := range items {
		w.Kind[j] = r.Weights.Kind[i]
	}
	for k, n := range others {
		w.Kind = append(w.Kind, slices.Repeat([]int32{int32(k)}, n)...)
	}
	r.Weights = w
	include := make([]int, len(r.Include))
	for k, i := range r.Include {
		include[k], _ = slices.BinarySearch(items, i)
	}
	r.Items, r.Include, r.Exclude = len(w.Kind), include, nil
	return r
}

// grouped returns the rules with groups that list their items in the place of numbered ones. Those that bound nothing are left out.
func (r Rules) grouped() Rules {
	r.Groups = slices.Clip(r.Groups)
	for _, l := range r.Limits {
		size := 0
		for _, g := range l.Group {
			size = max(size, int(g)+1)
		}
		count, at := make([]int, size), make([]int, size) // at: one more than the place of a group
		for _, g := range l.Group {
			if g >= 0 {
				count[g]++
			}
		}
		for i, g := range l.Group {
			if g < 0 || count[g] <= l.Max {
				continue
			}
			if at[g] == 0 {
				r.Groups = append(r.Groups, Group{Name: l.name(g), Items: make([]int, 0, count[g]), Max: l.Max})
				at[g] = len(r.Groups)
			}
			k := at[g] - 1
			r.Groups[k].Items = append(r.Groups[k].Items, i)
		}
	}
	r.Limits = nil
	return r
}

func (l *Limit) name(group int32) string {
	if l.Name == nil {
		return fmt.Sprintf("group %d", group)
	}
	return l.Name(group)
}

// plural returns "1 item" or "2 items".
func plural(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

func areDemanded(n int) string {
	if n == 1 {
		return "1 item is"
	}
	return fmt.Sprintf("%d items are", n)
}

// few joins the first words of a list.
func few(list []string) string {
	const maximum = 5
	if len(list) > maximum {
		list = append(list[:maximum:maximum], fmt.Sprintf("and %d more", len(list)-maximum))
	}
	return strings.Join(list, ", ")
}
