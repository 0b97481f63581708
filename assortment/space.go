package assortment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"vitrine"
)

// Space is a family of sets that fit on a shelf,
//
//	𝒮 = {S in counts : Σ_{i∈S} a_i ≤ C}
//
// with whole sizes a_i ≥ 0 beside the rules of a [Laminar]: bounds on the size,
// on groups and on groups within groups, pinned and excluded items. The problem
// is NP-hard, and C makes it tractable: the best sum of gains is found by the
// exact dynamic program of the knapsack, over items, numbers of items and space.
// Désir, Goyal and Zhang (Capacitated assortment optimization: hardness and
// approximation, Operations Research 2022) show the hardness, and approximate
// where C is large.
//
// The program passes group after group, so that its table has the numbers of the
// groups around an item and of no others. Of a group's items of size a only the
// best ⌊C/a⌋ are candidates, and at most h of them where it is bounded by h, which
// a selection finds: M of N remain, at most C(1 + log C) for each group where no
// size is 0. A call takes O(N + MCk) and MCk bits, where k is the product over the
// groups around an item, all items being one of them, of
//
//	h + 1 where h keeps out items that fit, l + 1 where at least l are demanded, else 1
//
// C counts in units of the greatest common divisor of the sizes. Where the best
// set that disregards the space fits it, it is the answer, in the time of
// [Laminar].
//
// The sums are of floats, so a set is the best up to a relative rounding error
// of the sum of |gain_i| over it.
//
// The empty set is in the family unless items are demanded.
type Space struct {
	counts   *Laminar // the same family on a shelf without end
	size     []int    // as they were given
	capacity int

	slack  bool    // every set of counts fits
	pinned []int   // of counts
	room   int     // units that the pinned items leave
	groups []shelf // as the nodes of counts
}

// shelf is a group of counts, without the pinned items.
type shelf struct {
	parent, first int
	least, most   int
	capped        bool    // most keeps out items that fit, and that the groups around it have places for
	classes       []class // of the items that are in no group within
}

// class are the items of one size.
type class struct {
	items []int
	units int  // of their size
	cap   int  // how many of them can be in a set
	free  bool // they cost nothing: no space, and no place that is counted
}

// largestTable bounds the memory of the dynamic program, in bits.
const largestTable = 1 << 32

// NewSpace returns the family of those sets of counts whose sizes, one for each
// item, sum to at most the capacity. It reports sizes that are negative, a
// capacity that no set keeps, and one with a table of more than 2³² bits, 537
// megabytes. It keeps no slice of the caller's.
func NewSpace(counts *Laminar, size []int, capacity int) (*Space, error) {
	if counts == nil {
		return nil, errors.New("NewSpace: the family counts is nil: make it by NewLaminar")
	}
	rules, size := counts.rules, slices.Clone(size)
	switch {
	case len(size) != counts.Items():
		return nil, fmt.Errorf("%d sizes for %d items", len(size), counts.Items())
	case capacity < 0:
		return nil, fmt.Errorf("space = %d: must not be negative", capacity)
	}
	for i, a := range size {
		if a < 0 {
			return nil, fmt.Errorf("%s: space = %d: must not be negative", rules.name(i), a)
		}
	}
	s := &Space{size: size, capacity: capacity}
	order := numbers(len(size))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(size[i], size[j]) })
	// To a greedy oracle the order of the sizes says what their sum does.
	value := make([]float64, len(size))
	for k, i := range order {
		value[i] = -float64(k)
	}
	smallest := counts.MaxGain(nil, value)
	if s.fitting(smallest, capacity) < len(smallest) {
		return nil, fmt.Errorf("space = %d: the smallest set that the other rules allow needs more: %s", capacity, s.sizes(rules, smallest))
	}
	var err error
	if s.counts, err = NewLaminar(rules.without(s.unfit(counts, smallest))); err != nil {
		return nil, err
	}
	for k, i := range order {
		value[i] = float64(k + 1)
	}
	largest := s.counts.MaxGain(nil, value)
	if s.slack = s.fitting(largest, capacity) == len(largest); s.slack {
		return s, nil
	}
	s.plan(order)
	if bits, numbers := s.table(); bits > largestTable {
		hint := "measure sizes in larger units"
		if numbers > 1 {
			hint += fmt.Sprintf(", or bound fewer numbers of items, which multiply it by up to %.0f", numbers)
		}
		return nil, fmt.Errorf("space = %d: too large for the exact program: its table would have %.0f MB, more than %.0f: %s", capacity, bits/8e6, largestTable/8e6, hint)
	}
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

// sizes lists the sizes of items.
func (s *Space) sizes(rules Rules, items []int) string {
	var list []string
	for _, i := range items {
		list = append(list, fmt.Sprintf("%s needs %d", rules.name(i), s.size[i]))
	}
	return few(list)
}

// unfit returns the items that no set has room for. The smallest set with item i
// is the smallest of all with i added, or in the place of another item: that is
// the exchange property of M♮-convex sets, such as a laminar family (Murota,
// Discrete Convex Analysis, 2003).
func (s *Space) unfit(counts *Laminar, smallest vitrine.Assortment) []int {
	const none = -1
	left := s.capacity
	shown := make([]bool, len(s.size))
	for _, i := range smallest {
		left -= s.size[i]
		shown[i] = true
	}
	number := make([]int, len(counts.nodes))
	spare := make([]int, len(counts.nodes)) // the largest item that can go where another of the group comes
	for k := range counts.nodes {
		spare[k] = none
	}
	for _, i := range smallest {
		k := counts.at[i]
		number[k]++
		if counts.state[i] != pinned {
			spare[k] = max(spare[k], s.size[i])
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
			if !shown[i] && (spare[k] == none || s.size[i] > left+spare[k]) {
				items = append(items, i)
			}
		}
	}
	return items
}

// plan makes the groups of the program, and sorts their items into classes. The
// order is of all items, by size.
func (s *Space) plan(order []int) {
	nodes := s.counts.nodes
	s.groups = make([]shelf, len(nodes))
	s.room = s.capacity
	included := make([]int, len(nodes))
	for k := range nodes {
		a := &nodes[k]
		included[k] += len(a.pinned)
		s.groups[k] = shelf{parent: a.parent, first: a.first, least: max(0, a.Min-included[k]), most: a.Max - included[k]}
		if a.parent >= 0 {
			included[a.parent] += included[k]
		}
		s.pinned = append(s.pinned, a.pinned...)
		for _, i := range a.pinned {
			s.room -= s.size[i]
		}
	}
	order = slices.DeleteFunc(order, func(i int) bool { return s.counts.state[i] != free })
	unit := 0
	for _, i := range order {
		unit = gcd(unit, s.size[i])
	}
	unit = max(unit, 1)
	s.room /= unit

	fit, taken := make([]int, len(nodes)), make([]int, len(nodes)) // the smallest items of a group
	for _, i := range order {
		units, at := s.size[i]/unit, s.counts.at[i]
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
		most := fit[k]
		if g.parent >= 0 {
			most = min(most, s.groups[g.parent].most)
			counted[k] = counted[g.parent]
		}
		g.capped = g.most < most
		g.most = min(g.most, most)
		counted[k] = counted[k] || g.capped
		slices.Reverse(g.classes) // the program, which passes the last first, improves less often by large ones
		for at := range g.classes {
			c := &g.classes[at]
			c.cap = min(len(c.items), g.most)
			c.free = c.units == 0 && !counted[k]
			if c.units > 0 {
				c.cap = min(c.cap, s.room/c.units)
				needed += min(c.cap*c.units, s.room-needed)
			}
		}
	}
	s.room = needed
}

// fitting returns how many of the items, from the first, the space holds.
func (s *Space) fitting(items []int, space int) int {
	for k, i := range items {
		if s.size[i] > space {
			return k
		}
		space -= s.size[i]
	}
	return len(items)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// width is the number of spaces in a row of the table, and words that of the
// words of their bits.
func (s *Space) width() int { return s.room + 1 }
func (s *Space) words() int { return (s.width() + 63) / 64 }

// table returns the bits that the program needs, at worst: one for each
// candidate, numbers of items and space, and 64 for the values. Every group adds
// a candidate, for the time to pass it. It returns how many numbers there are,
// too.
func (s *Space) table() (bits, numbers float64) {
	rows, demand := make([]float64, len(s.groups)), make([]int, len(s.groups))
	candidates := 0.0
	for k := len(s.groups) - 1; k >= 0; k-- {
		g := &s.groups[k]
		rows[k], demand[k] = float64(g.least)+1, g.least
		if g.capped {
			rows[k] = float64(g.most) + 1
		}
		if g.parent >= 0 {
			rows[k] *= rows[g.parent]
			demand[k] = max(demand[k], demand[g.parent])
		}
		numbers = max(numbers, rows[k])
		candidates += rows[k]
		for _, c := range g.classes {
			most := c.cap
			if c.free {
				most = min(most, demand[k])
			}
			candidates += rows[k] * float64(most)
		}
	}
	return (candidates + 64*numbers) * (float64(s.room) + 64), numbers
}

// Items returns N.
func (s *Space) Items() int { return len(s.size) }

// hides implements selective.
func (s *Space) hides() []bool { return s.counts.hides() }

// without implements narrower.
func (s *Space) without(items []int) (vitrine.Constraint, error) {
	counts, err := NewLaminar(s.counts.rules.without(items))
	if err != nil {
		return nil, err
	}
	return NewSpace(counts, s.size, s.capacity)
}

// Limit implements [Limiter].
func (s *Space) Limit(most int) (vitrine.Constraint, error) {
	counts, err := s.counts.Limit(most)
	if err != nil {
		return nil, err
	}
	if counts == vitrine.Constraint(s.counts) {
		return s, nil
	}
	return NewSpace(counts.(*Laminar), s.size, s.capacity)
}

// Contains implements vitrine.Constraint.
func (s *Space) Contains(set vitrine.Assortment) bool {
	return s.counts.Contains(set) && s.fitting(set, s.capacity) == len(set)
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (s *Space) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
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
