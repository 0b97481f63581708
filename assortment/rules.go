package assortment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rules bound the number of items shown, in total and per group, and optionally a sum of weights. [NewQuota] turns them
// into a family.
type Rules struct {
	Items    int                // N
	Min, Max int                // Min ≤ |S| ≤ Max
	Groups   []Group            // groups as lists of items
	Limits   []Limit            // numbered groups, for catalogues with millions of items
	Include  []int              // pinned items, contained in every set
	Exclude  []int              // items that no set may contain
	Weights  *Weights           // nil for no capacity
	Name     func(i int) string // name of item i in errors; nil means "item 3"

	Work *Work // limits the steps of searches among groups that cross; nil means no limit
	// MaxTable bounds the table of the program for a capacity, in bits. 0 means 2³², which is 537 MB.
	MaxTable float64
}

// Group bounds the number of items shown from a group,
//
//	Min ≤ |S ∩ Items| ≤ Max
type Group struct {
	Name  string `toml:"-"` // what errors call it, such as "group shoes"; "" means "group 3"
	Items []int  `toml:"items"`
	Min   int    `toml:"min" range:"[0, inf)"`
	Max   int    `toml:"max" range:"[0, inf)"`
}

// Limit bounds the number of items shown from each of several disjoint groups.
type Limit struct {
	Group []int32 // by item: the number of its group, from 0 on, or negative
	Max   int     // bound for each group
	Name  func(group int32) string
}

// Weights bounds the sum of the weights of a set, Σ_{i∈S} a_i ≤ Capacity. A weight may be the space that an item takes
// on a shelf. [WeightsOf] fills it. [NewQuota] panics if Of or Count lacks an index of Kind.
type Weights struct {
	Kind     []int32 // by item: the index of its weight
	Of       []int   // by index: whole numbers, at least 0
	Count    []int   // by index: maximum number of items with the weight
	Capacity int
}

// WeightsOf builds Weights from one weight per item.
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

// left returns the capacity left over by the given items, or a negative number if they weigh too much.
func (w *Weights) left(items []int) int {
	left := w.Capacity
	for _, i := range items {
		if left -= w.of(i); left < 0 {
			return -1
		}
	}
	return left
}

// NoLimit, as a Max, means no upper bound.
const NoLimit = math.MaxInt

// ErrTable is wrapped by errors about families that need too large a dynamic program.
var ErrTable = errors.New("too large for the exact program")

func (r *Rules) name(i int) string {
	if r.Name == nil {
		return fmt.Sprintf("item %d", i)
	}
	return r.Name(i)
}

// Allows reports whether s may be shown together with the pinned items. It checks only Max, Limits and pins.
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

// Ungrouped returns rules without a capacity for sets of the given size, in any combination of groups, from the items
// that r does not hide.
func (r Rules) Ungrouped(size int) Rules {
	r.Max, r.Include = size, nil
	r.Limits = slices.DeleteFunc(slices.Clone(r.Limits), func(l Limit) bool { return l.Max > 0 })
	return r
}

// includes reports whether every set contains item i.
func (r *Rules) includes(i int) bool { return among(r.Include, i) }

// hides reports whether Max, Limits, pins or the capacity keep item i out of every set.
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

// among reports whether items, in increasing order, contains i.
func among(items []int, i int) bool {
	if len(items) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(items, i)
	return ok
}

// HidesAny reports whether r may hide any item.
func (r *Rules) HidesAny() bool {
	return r.Max <= 0 || len(r.Exclude) > 0 || len(r.Include) > 0 || r.Weights != nil ||
		slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Max <= 0 })
}

// count returns the number of items in item i's group, among the pinned items and the other items of s.
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

// among returns the rules of a capacity for the given items, renumbered from 0 on. items must include the pinned items,
// and no excluded ones.
func (r Rules) among(items []int) Rules {
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
		r.Limits[k].Group, r.Limits[k].Name = of, func(int32) string { return "" }
	}
	w := &Weights{Kind: make([]int32, len(items)), Of: r.Weights.Of, Capacity: r.Weights.Capacity}
	for j, i := range items {
		w.Kind[j] = r.Weights.Kind[i]
	}
	r.Weights = w
	include := make([]int, len(r.Include))
	for k, i := range r.Include {
		include[k], _ = slices.BinarySearch(items, i)
	}
	r.Items, r.Include, r.Exclude = len(items), include, nil
	return r
}

// grouped returns the rules with numbered groups turned into lists of items. It drops groups without effect.
func (r Rules) grouped() Rules {
	r.Groups = slices.Clip(r.Groups)
	for _, l := range r.Limits {
		size := 0
		for _, g := range l.Group {
			size = max(size, int(g)+1)
		}
		count, at := make([]int, size), make([]int, size) // at: one more than the group's index
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
