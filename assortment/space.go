package assortment

import (
	"fmt"
	"slices"

	"vitrine"
)

// Space is a family of sets that fit on a shelf,
//
//	𝒮 = {S : Σ_{i∈S} a_i ≤ C,  l ≤ |S| ≤ h,  pinned ⊆ S,  S ∩ excluded = ∅}
//
// with whole sizes a_i ≥ 0. The problem is NP-hard, and C makes it tractable:
// the best sum of gains is found by the exact dynamic program of the knapsack
// over (items, space), or over (items, number of items, space) where the number
// is bounded within what fits. Désir, Goyal and Zhang (Capacitated assortment
// optimization: hardness and approximation, Operations Research 2022) show the
// hardness, and approximate where C is large.
//
// Of the items of size a only the best ⌊C/a⌋ are candidates, and at most h of
// them, which a selection finds: M of N remain, at most C(1 + log C) where no
// size is 0. A call takes O(N + MC) and MC bits where the number is not bounded,
// (l+2) times that where only l is, and (h+1) times where h keeps out items that
// fit; C counts in units of the greatest common divisor of the sizes. Where the
// best set that disregards the space fits it, it is the answer, in the time of
// [Laminar].
//
// The sums are of floats, so a set is the best up to a relative rounding error
// of the sum of |gain_i| over it.
//
// Groups are refused beside a space: the program would need the number of items
// of every group in its table.
//
// The empty set is in the family unless items are demanded.
type Space struct {
	counts   *Laminar // the same family on a shelf without end
	size     []int    // as they were given
	capacity int

	slack       bool    // every set of counts fits
	pinned      []int   // of counts
	classes     []class // of the other items that are in some set
	room        int     // units that the pinned items leave
	least, most int     // how many items beside them
	capped      bool    // most keeps out items that fit
}

// class are the items of one size.
type class struct {
	items []int
	units int // of their size
	cap   int // how many of them can be in a set
}

// largestTable bounds the memory of the dynamic program, in bits.
const largestTable = 1 << 32

// NewSpace returns the family of those sets of counts whose sizes, one for each
// item, sum to at most the capacity. It reports rules with groups, sizes that are
// negative, a capacity that no set keeps, and one with a table of more than 512
// megabytes.
func NewSpace(counts *Laminar, size []int, capacity int) (*Space, error) {
	rules := counts.rules
	switch {
	case len(counts.nodes) > 1:
		return nil, fmt.Errorf("space with %s: only the size of the assortment, included and excluded items can be combined with space, for the exact program over both would need a table with the numbers of every group", counts.nodes[0].Name)
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
	root := &counts.nodes[0]
	left := capacity
	for _, i := range root.pinned {
		if left -= size[i]; left < 0 {
			return nil, fmt.Errorf("space = %d: the included items need more: %s", capacity, s.sizes(rules, root.pinned))
		}
	}
	s.least = max(0, root.Min-root.base)

	items := slices.Clone(root.free)
	slices.SortStableFunc(items, func(i, j int) int { return size[i] - size[j] })
	for k, i := range items[:s.least] {
		if k > 0 {
			left -= size[items[k-1]]
		}
		if size[i] > left {
			return nil, fmt.Errorf("space = %d: size: at least %d, but the smallest such set needs more: %s", capacity, root.Min, s.sizes(rules, slices.Concat(root.pinned, items[:s.least])))
		}
	}
	// Beside the others that are demanded, left is the space for one more.
	fit := slices.IndexFunc(items, func(i int) bool { return size[i] > left })
	if fit < 0 {
		fit = len(items)
	}
	var err error
	if s.counts, err = NewLaminar(rules.without(items[fit:])); err != nil {
		return nil, err
	}
	s.plan(items[:fit])
	if bits := s.table(); !s.slack && bits > largestTable {
		return nil, fmt.Errorf("space = %d: too large for the exact program: its table would have %.0f MB, more than %.0f: measure sizes in larger units, or bound the number of items", capacity, bits/8e6, largestTable/8e6)
	}
	return s, nil
}

// sizes lists the sizes of items.
func (s *Space) sizes(rules Rules, items []int) string {
	var list []string
	for _, i := range items {
		list = append(list, fmt.Sprintf("%s needs %d", rules.name(i), s.size[i]))
	}
	return few(list)
}

// plan sorts the items that fit into classes. They come by increasing size.
func (s *Space) plan(items []int) {
	root := &s.counts.nodes[0]
	s.pinned = root.pinned
	s.most = min(root.Max-root.base, len(items))
	left := s.capacity
	for _, i := range s.pinned {
		left -= s.size[i]
	}
	s.slack = s.fitting(items[len(items)-s.most:], left) == s.most
	fit := s.fitting(items, left)
	s.capped = s.most < fit
	s.most = min(s.most, fit)
	if s.most == 0 {
		return
	}
	unit := 0
	for _, i := range items {
		unit = gcd(unit, s.size[i])
	}
	unit = max(unit, 1)
	s.room = left / unit
	needed := 0
	for len(items) > 0 {
		c := class{units: s.size[items[0]] / unit}
		n := slices.IndexFunc(items, func(i int) bool { return s.size[i] != s.size[items[0]] })
		if n < 0 {
			n = len(items)
		}
		c.items, items = items[:n], items[n:]
		slices.Sort(c.items)
		c.cap = min(n, s.most)
		if c.units > 0 {
			c.cap = min(c.cap, s.room/c.units)
		}
		needed += min(c.cap*c.units, s.room-needed)
		s.classes = append(s.classes, c)
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

// rows returns how many numbers of items the program distinguishes beside 0: up
// to the most where they are capped, else up to the least, where "least" means
// so many or more.
func (s *Space) rows() int {
	if s.capped {
		return s.most
	}
	return s.least
}

// table returns the bits that the program needs, at worst: one for each
// candidate, number of items and space, and 64 for the values.
func (s *Space) table() float64 {
	candidates := 0
	for _, c := range s.classes {
		if c.units == 0 && !s.capped {
			candidates += min(c.cap, s.least)
		} else {
			candidates += c.cap
		}
	}
	return (float64(candidates) + 64) * float64(s.rows()+2) * (float64(s.room) + 64)
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
