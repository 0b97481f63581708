package assortment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"vitrine"
)

// Knapsack is a family of sets whose weight is bounded,
//
//	𝒮 = {S in counts : Σ_{i∈S} a_i ≤ C}
//
// with whole weights a_i ≥ 0 and a capacity C, in addition to the rules of a
// [Laminar]. A weight may be the place that an item takes on a shelf. The problem is
// NP-hard. For moderate C the exact dynamic program of the knapsack solves it, over
// items, numbers of items and weight. Désir, Goyal and Zhang (Capacitated assortment
// optimization: hardness and approximation, Operations Research 2022) show the
// hardness, and approximate for large C.
//
// The program visits group after group, so that its table has only the numbers of
// the groups around an item. Of a group's items of weight a only the best ⌊C/a⌋ are
// candidates, and at most h of them if the group is bounded by h; a selection finds
// them. M of N items remain, at most C(1 + log C) for each group if no weight is 0. A
// call takes O(N + MCk) time and MCk bits, where k is the product over the groups
// around an item, all items being one of them, of
//
//	h + 1 if h keeps out items that fit, l + 1 if at least l are demanded, otherwise 1
//
// C counts in units of the greatest common divisor of the weights. If the best set
// regardless of weight fits, it is the answer, in the time of [Laminar].
//
// Sums are of floats, so a set is the best up to a relative rounding error of the
// sum of |gain_i| over it.
//
// The empty set is in the family unless items are demanded.
type Knapsack struct {
	counts   *Laminar // the same family without a capacity
	weight   []int    // as given
	capacity int

	slack  bool     // every set of counts fits
	pinned []int    // of counts
	room   int      // units that the pinned items leave
	groups []bundle // in the order of the nodes of counts

}

// bundle is a group of counts, without the pinned items.
type bundle struct {
	parent, first    int
	minimum, maximum int
	capped           bool    // maximum keeps out items that fit and that the groups around it allow
	classes          []class // of the items that are in no inner group
}

// class has the items of one weight.
type class struct {
	items []int
	units int  // the weight of each
	cap   int  // how many of them a set can have
	free  bool // they cost nothing: no weight, and no place that is counted
}

// maxTable bounds the memory of the dynamic program, in bits.
const maxTable = 1 << 32

// ErrTable is wrapped by the errors of families whose dynamic program would take too much memory and time.
var ErrTable = errors.New("too large for the exact program")

// NewKnapsack returns the family of the sets of counts whose weights, one for each
// item, sum to at most the capacity. It returns an error if a weight is negative, if
// no set of counts fits, or if the table of the program would exceed 2³² bits, 537
// megabytes. It keeps no slice of the caller's.
func NewKnapsack(counts *Laminar, weight []int, capacity int) (*Knapsack, error) {
	if counts == nil {
		return nil, errors.New("NewKnapsack: the family counts is nil: make it by NewLaminar")
	}
	s, err := newKnapsack(counts, weight, capacity)
	if err != nil || s.slack {
		return s, err
	}
	if bits, numbers := s.table(); bits > maxTable {
		hint := "measure weights in larger units"
		if numbers > 1 {
			hint += fmt.Sprintf(", or bound fewer numbers of items, which multiply it by up to %.0f", numbers)
		}
		return nil, fmt.Errorf("capacity = %d: %w: its table would have %.0f MB, more than %.0f: %s", capacity, ErrTable, bits/8e6, maxTable/8e6, hint)
	}
	return s, nil
}

// newKnapsack is NewKnapsack for a table of any size.
func newKnapsack(counts *Laminar, weight []int, capacity int) (*Knapsack, error) {
	rules, weight := counts.rules, slices.Clone(weight)
	switch {
	case len(weight) != counts.Items():
		return nil, fmt.Errorf("%d weights for %d items", len(weight), counts.Items())
	case capacity < 0:
		return nil, fmt.Errorf("capacity = %d: must not be negative", capacity)
	}
	for i, a := range weight {
		if a < 0 {
			return nil, fmt.Errorf("%s: weight = %d: must not be negative", rules.name(i), a)
		}
	}
	s := &Knapsack{weight: weight, capacity: capacity}
	order := numbers(len(weight))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(weight[i], weight[j]) })
	// For a greedy oracle the order of the weights has the effect of their sum.
	value := make([]float64, len(weight))
	for k, i := range order {
		value[i] = -float64(k)
	}
	lightest := counts.MaxGain(nil, value)
	if s.fitting(lightest, capacity) < len(lightest) {
		return nil, fmt.Errorf("capacity = %d: the lightest set that the other rules allow weighs more: %s", capacity, s.weights(rules, lightest))
	}
	var err error
	if s.counts, err = NewLaminar(rules.without(s.unfit(counts, lightest))); err != nil {
		return nil, err
	}
	for k, i := range order {
		value[i] = float64(k + 1)
	}
	heaviest := s.counts.MaxGain(nil, value)
	if s.slack = s.fitting(heaviest, capacity) == len(heaviest); s.slack {
		return s, nil
	}
	s.plan(order)
	return s, nil
}

// numbers returns 0, …, n−1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// weights lists the weights of items.
func (s *Knapsack) weights(rules Rules, items []int) string {
	var list []string
	for _, i := range items {
		list = append(list, fmt.Sprintf("%s weighs %d", rules.name(i), s.weight[i]))
	}
	return few(list)
}

// unfit returns the items that no set has room for. The lightest set with item i is
// the lightest of all sets with i added, or with i for another item: that is the
// exchange property of M♮-convex sets, such as a laminar family (Murota,
// Discrete Convex Analysis, 2003).
func (s *Knapsack) unfit(counts *Laminar, lightest vitrine.Assortment) []int {
	const none = -1
	left := s.capacity
	shown := make([]bool, len(s.weight))
	for _, i := range lightest {
		left -= s.weight[i]
		shown[i] = true
	}
	number := make([]int, len(counts.nodes))
	spare := make([]int, len(counts.nodes)) // the largest weight that can go if another item of the group comes
	for k := range counts.nodes {
		spare[k] = none
	}
	for _, i := range lightest {
		k := counts.at[i]
		number[k]++
		if counts.state[i] != pinned {
			spare[k] = max(spare[k], s.weight[i])
		}
	}
	for k := range counts.nodes {
		if a := &counts.nodes[k]; a.parent >= 0 {
			number[a.parent] += number[k]
			if number[k] > a.Min {
				spare[a.parent] = max(spare[a.parent], spare[k])
			}
		}
	}
	var items []int
	for k := len(counts.nodes) - 1; k >= 0; k-- {
		a := &counts.nodes[k]
		if number[k] < a.Max {
			around := 0 // it is added
			if a.parent >= 0 {
				around = spare[a.parent]
			}
			spare[k] = max(spare[k], around)
		}
		for _, i := range a.free {
			if !shown[i] && (spare[k] == none || s.weight[i] > left+spare[k]) {
				items = append(items, i)
			}
		}
	}
	return items
}

// plan makes the groups of the program and sorts their items into classes. order has
// all items by weight.
func (s *Knapsack) plan(order []int) {
	nodes := s.counts.nodes
	s.groups = make([]bundle, len(nodes))
	s.room = s.capacity
	included := make([]int, len(nodes))
	for k := range nodes {
		a := &nodes[k]
		included[k] += len(a.pinned)
		s.groups[k] = bundle{parent: a.parent, first: a.first, minimum: max(0, a.Min-included[k]), maximum: a.Max - included[k]}
		if a.parent >= 0 {
			included[a.parent] += included[k]
		}
		s.pinned = append(s.pinned, a.pinned...)
		for _, i := range a.pinned {
			s.room -= s.weight[i]
		}
	}
	order = slices.DeleteFunc(order, func(i int) bool { return s.counts.state[i] != free })
	unit := 0
	for _, i := range order {
		unit = gcd(unit, s.weight[i])
	}
	unit = max(unit, 1)
	s.room /= unit

	fit, taken := make([]int, len(nodes)), make([]int, len(nodes)) // by the lightest items of a group
	for _, i := range order {
		units, at := s.weight[i]/unit, s.counts.at[i]
		for k := at; k >= 0; k = nodes[k].parent {
			if units <= s.room-taken[k] {
				fit[k]++
				taken[k] += units
			}
		}
		g := &s.groups[at]
		if n := len(g.classes); n == 0 || g.classes[n-1].units != units {
			g.classes = append(g.classes, class{units: units})
		}
		c := &g.classes[len(g.classes)-1]
		c.items = append(c.items, i)
	}

	needed := 0
	counted := make([]bool, len(nodes)) // whether the group, or one around it, is capped
	for k := len(nodes) - 1; k >= 0; k-- {
		g := &s.groups[k]
		maximum := fit[k]
		if g.parent >= 0 {
			maximum = min(maximum, s.groups[g.parent].maximum)
			counted[k] = counted[g.parent]
		}
		g.capped = g.maximum < maximum
		g.maximum = min(g.maximum, maximum)
		counted[k] = counted[k] || g.capped
		slices.Reverse(g.classes) // the program visits the last first, and heavy items improve the table less often
		for at := range g.classes {
			c := &g.classes[at]
			c.cap = min(len(c.items), g.maximum)
			c.free = c.units == 0 && !counted[k]
			if c.units > 0 {
				c.cap = min(c.cap, s.room/c.units)
				needed += min(c.cap*c.units, s.room-needed)
			}
		}
	}
	s.room = needed
}

// fitting returns the number of items, from the first on, that the capacity holds.
func (s *Knapsack) fitting(items []int, capacity int) int {
	for k, i := range items {
		if s.weight[i] > capacity {
			return k
		}
		capacity -= s.weight[i]
	}
	return len(items)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// width is the number of capacities in a row of the table, words the number of words
// that hold a bit for each.
func (s *Knapsack) width() int { return s.room + 1 }
func (s *Knapsack) words() int { return (s.width() + 63) / 64 }

// Table bounds the bits of the table of the dynamic program, in proportion to which a call takes time. It is 0 if every
// set of the other rules fits.
func (s *Knapsack) Table() float64 {
	if s.slack {
		return 0
	}
	bits, _ := s.table()
	return bits
}

// table returns the bits that the program needs at worst: one for each candidate,
// vector of numbers of items and capacity, and 64 for the values. Every group counts
// as a candidate, for the time to visit it. It also returns how many such vectors
// there are.
func (s *Knapsack) table() (bits, numbers float64) {
	rows, demand := make([]float64, len(s.groups)), make([]int, len(s.groups))
	candidates := 0.0
	for k := len(s.groups) - 1; k >= 0; k-- {
		g := &s.groups[k]
		rows[k], demand[k] = float64(g.minimum)+1, g.minimum
		if g.capped {
			rows[k] = float64(g.maximum) + 1
		}
		if g.parent >= 0 {
			rows[k] *= rows[g.parent]
			demand[k] = max(demand[k], demand[g.parent])
		}
		numbers = max(numbers, rows[k])
		candidates += rows[k]
		for _, c := range g.classes {
			maximum := c.cap
			if c.free {
				maximum = min(maximum, demand[k])
			}
			candidates += float64(rows[k] * float64(maximum))
		}
	}
	return (candidates + float64(64*numbers)) * (float64(s.room) + 64), numbers
}

// Items returns N.
func (s *Knapsack) Items() int { return len(s.weight) }

// hides implements selective.
func (s *Knapsack) hides() []bool { return s.counts.hides() }

// without implements narrower.
func (s *Knapsack) without(items []int) (vitrine.Constraint, error) {
	counts, err := NewLaminar(s.counts.rules.without(items))
	if err != nil {
		return nil, err
	}
	return NewKnapsack(counts, s.weight, s.capacity)
}

// Limit implements [Limiter].
func (s *Knapsack) Limit(maximum int) (vitrine.Constraint, error) {
	counts, err := s.counts.Limit(maximum)
	if err != nil {
		return nil, err
	}
	if counts == vitrine.Constraint(s.counts) {
		return s, nil
	}
	return NewKnapsack(counts.(*Laminar), s.weight, s.capacity)
}

// Contains implements vitrine.Constraint.
func (s *Knapsack) Contains(set vitrine.Assortment) bool {
	return s.counts.Contains(set) && s.fitting(set, s.capacity) == len(set)
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (s *Knapsack) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if s.slack {
		return s.counts.MaxGain(dst, gain)
	}
	p := programs.Get().(*program)
	defer programs.Put(p)
	p.relaxed = s.counts.MaxGain(p.relaxed, gain)
	if s.fitting(p.relaxed, s.capacity) == len(p.relaxed) {
		return append(dst[:0], p.relaxed...)
	}
	dst = append(dst[:0], s.pinned...)
	dst = p.solve(dst, s, gain)
	slices.Sort(dst)
	return dst
}
