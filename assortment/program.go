package assortment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// program finds the best sets under a capacity. The problem is NP-hard. For moderate capacities it is solved by the
// exact dynamic program of the knapsack, over items, numbers of items and weight. Désir, Goyal and Zhang (Capacitated
// assortment optimization: hardness and approximation, Operations Research 2022) show the hardness, and approximate for
// large capacities.
//
// The program visits group after group, so its table covers only the item numbers of the groups around an item. Of a
// group's items of weight a, only the best ⌊C/a⌋ are candidates, and at most h of them if the group is bounded by h; a
// selection finds them. M of N items remain, at most C(1 + log C) for each group if no weight is 0. A call takes
// O(N + MCk) time and MCk bits. Here k is a product over the groups around an item, including the group of all items. A
// group contributes
//
//	h + 1 if h keeps out items that fit, l + 1 if at least l are demanded, otherwise 1
//
// C counts in units of the greatest common divisor of the weights. Sums are floating-point, so a set is the best up to
// a relative rounding error of the sum of |gain_i| over it.
type program struct {
	pinned []int
	room   int      // units left by the pinned items
	groups []bundle // in the order of the tree's nodes
}

// bundle is a group without its pinned items.
type bundle struct {
	parent, first    int
	minimum, maximum int
	// capped means that maximum keeps out items that would fit and that the groups around allow.
	capped  bool
	classes []class // of the items that are in no inner group
}

// class groups the items of one weight.
type class struct {
	items []int
	units int  // weight of each item
	cap   int  // how many of them a set can contain
	free  bool // the items use neither capacity nor a counted place
}

// newProgram plans the program for the sets of a tree within a capacity. ascending lists all items by weight. If the
// table is too large, the error wraps [ErrTable].
func newProgram(h *hierarchy, t *tree, states []state, r *Rules, ascending []int) (*program, error) {
	s := &program{groups: make([]bundle, len(h.nodes)), room: r.Weights.left(r.Include)}
	included := make([]int, len(h.nodes))
	for k := range h.nodes {
		a := &h.nodes[k]
		included[k] += a.pins
		s.groups[k] = bundle{
			parent: a.parent, first: a.first, minimum: max(0, a.Min-included[k]), maximum: a.Max - included[k],
		}
		if a.parent >= 0 {
			included[a.parent] += included[k]
		}
		s.pinned = append(s.pinned, t.pinned[k]...)
	}
	unit := 0
	for _, i := range ascending {
		if states[i] == free {
			unit = gcd(unit, r.Weights.of(i))
		}
	}
	unit = max(unit, 1)
	s.room /= unit

	fit, taken := make([]int, len(h.nodes)), make([]int, len(h.nodes)) // by the lightest items of a group
	for _, i := range ascending {
		if states[i] != free {
			continue
		}
		units, at := r.Weights.of(i)/unit, h.at[i]
		for k := at; k >= 0; k = h.nodes[k].parent {
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
	counted := make([]bool, len(h.nodes)) // whether the group, or one around it, is capped
	for k := len(h.nodes) - 1; k >= 0; k-- {
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
	most := cmp.Or(r.MaxTable, defaultTable)
	if bits, numbers := s.size(); bits > most {
		hint := "measure weights in larger units"
		if numbers > 1 {
			hint += fmt.Sprintf(", or bound fewer numbers of items, which multiply it by up to %.0f", numbers)
		}
		return nil, fmt.Errorf("capacity = %d: %w: its table would have %.0f MB, more than %.0f: %s",
			r.Weights.Capacity, ErrTable, bits/8e6, most/8e6, hint)
	}
	return s, nil
}

// defaultTable bounds the memory of the dynamic program, in bits.
const defaultTable = 1 << 32

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// width is the number of capacities in a row of the table, and words the number of machine words for one bit per
// capacity.
func (s *program) width() int { return s.room + 1 }
func (s *program) words() int { return (s.width() + 63) / 64 }

// size returns the worst-case table size in bits: one bit for each combination of candidate, vector of item numbers and
// capacity, plus 64 for each value. Every group counts as a candidate, to account for the time of visiting it. size
// also returns the number of vectors.
func (s *program) size() (bits, numbers float64) {
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

// table is the table of one call. It visits the candidates from the last to the first. With
//
//	V_i(k, c) = max(V_{i+1}(k, c), gain_i + V_{i+1}(k + 1, c + a_i))
//
// V_i(k, c) is the largest gain of the candidates from i on if c units of capacity are used, and k_A places of each
// group A around i. A bit for each entry records whether i is taken. At the end of a group, V is −∞ if k_A is below the
// group's minimum; at its beginning, k_A is 0. So adjacent groups share the table, and nested groups multiply it. If
// only the minimum of a group matters, k_A stops there and stands for that number or more. Finally the bits are
// followed from the first candidate on.
type table struct {
	ranking Ranking
	losing  []int // scratch for a class
	groups  []stage
	items   []int // candidates, by group
	units   []int
	// best stores V by row and c. A row encodes the numbers k, with the innermost group's last.
	best  []float64
	taken []uint64 // one bit by candidate, row and c
}

// stage is a call's view of a group.
type stage struct {
	minimum int // number of items required besides those in every best set
	demand  int // largest minimum of this group and the ones around it
	extent  int // number of values of k_A
	rows    int // number of rows within it
	first   int // its candidates run from here to the next group's first
	bits    int // start of their bits
}

var tables = sync.Pool{New: func() any { return new(table) }}

// best returns the best set.
func (s *program) best(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	p := tables.Get().(*table)
	defer tables.Put(p)
	dst = p.choose(append(dst[:0], s.pinned...), s, gain)
	p.layOut(s)
	p.evaluate(s, gain)
	dst = p.follow(dst, s)
	slices.Sort(dst)
	return dst
}

// choose appends to dst the items that cost nothing and gain something. From every other class, the best become
// candidates.
func (p *table) choose(dst vitrine.Assortment, s *program, gain []float64) vitrine.Assortment {
	p.groups = scratch.Grow(p.groups, len(s.groups)+1)
	for k := range s.groups {
		p.groups[k].minimum = s.groups[k].minimum
	}
	for k := range s.groups {
		for _, class := range s.groups[k].classes {
			if !class.free {
				continue
			}
			before := len(dst)
			for _, i := range class.items {
				if gain[i] > 0 {
					dst = append(dst, i)
				}
			}
			for a := k; a >= 0; a = s.groups[a].parent {
				p.groups[a].minimum = max(0, p.groups[a].minimum-(len(dst)-before))
			}
		}
	}
	for k := len(s.groups) - 1; k >= 0; k-- {
		g := &p.groups[k]
		g.demand = g.minimum
		if a := s.groups[k].parent; a >= 0 {
			g.demand = max(g.demand, p.groups[a].demand)
		}
	}

	p.items, p.units = p.items[:0], p.units[:0]
	for k := range s.groups {
		p.groups[k].first = len(p.items)
		for _, class := range s.groups[k].classes {
			demanded := p.groups[k].demand
			switch {
			case !class.free:
				p.items = p.ranking.appendLargest(p.items, class.items, class.cap, gain, 0, demanded > 0)
			case demanded > 0:
				p.losing = p.losing[:0]
				for _, i := range class.items {
					if !(gain[i] > 0) {
						p.losing = append(p.losing, i)
					}
				}
				p.items = p.ranking.appendLargest(p.items, p.losing, min(class.cap, demanded), gain, 0, true)
			}
			for len(p.units) < len(p.items) {
				p.units = append(p.units, class.units)
			}
		}
	}
	p.groups[len(s.groups)].first = len(p.items)
	return dst
}

// layOut assigns each group its rows and bits.
func (p *table) layOut(s *program) {
	largest := 1
	for k := len(s.groups) - 1; k >= 0; k-- {
		g := &p.groups[k]
		g.extent = g.minimum + 1
		if s.groups[k].capped {
			g.extent = s.groups[k].maximum + 1
		}
		g.rows = g.extent
		if a := s.groups[k].parent; a >= 0 {
			g.rows *= p.groups[a].rows
		}
		largest = max(largest, g.rows)
	}
	bits := 0
	for k := range s.groups {
		p.groups[k].bits = bits
		bits += (p.groups[k+1].first - p.groups[k].first) * p.groups[k].rows * s.words()
	}
	p.best = scratch.Grow(p.best, largest*s.width())
	p.taken = scratch.Grow(p.taken, bits)
	clear(p.taken)
}

// bitsOf returns the bits of a candidate of group k.
func (p *table) bitsOf(s *program, k, at int) []uint64 {
	g, size := &p.groups[k], p.groups[k].rows*s.words()
	return p.taken[g.bits+(at-g.first)*size:][:size]
}

// evaluate fills in V and the bits, from the last candidate to the first.
func (p *table) evaluate(s *program, gain []float64) {
	clear(p.best[:s.width()])
	for k := len(s.groups) - 1; k >= 0; k-- {
		p.end(s, k)
		for at := p.groups[k+1].first - 1; at >= p.groups[k].first; at-- {
			g := gain[p.items[at]]
			if !(g > -1e300) { // also excludes NaN
				g = -1e300
			}
			p.try(s, k, p.units[at], g, p.bitsOf(s, k, at))
		}
		for a := k; a >= 0 && s.groups[a].first == k; a = s.groups[a].parent {
			p.begin(s, a)
		}
	}
}

// try decides where to take an item of group k. Each row refers to a larger row or to itself, so the V it reads still
// describes the items that follow.
func (p *table) try(s *program, k, units int, gain float64, taken []uint64) {
	width, words := s.width(), s.words()
	for row := range p.groups[k].rows {
		next := p.next(s, k, row)
		if next < 0 {
			continue
		}
		without, with, bits := p.best[row*width:][:width-units],
			p.best[next*width+units:][:width-units], taken[row*words:][:words]
		for c, v := range with {
			if v += gain; v > without[c] {
				without[c] = v
				bits[c>>6] |= 1 << (c & 63)
			}
		}
	}
}

// next returns the row after taking an item of group k. It returns −1 if a group is full, or contains fewer items than
// a group inside it.
func (p *table) next(s *program, k, row int) int {
	next, stride, within := row, 1, 0
	for ; k >= 0; k = s.groups[k].parent {
		extent := p.groups[k].extent
		number := row % extent
		switch open := number < extent-1; {
		case !open && s.groups[k].capped:
			return -1
		case open && number < within:
			return -1
		case open:
			next += stride
			within = number
		}
		row /= extent
		stride *= extent
	}
	return next
}

// end splits every row by the number of items of group k, all of which come earlier.
func (p *table) end(s *program, k int) {
	g, width := &p.groups[k], s.width()
	if g.extent == 1 {
		return
	}
	for row := g.rows - 1; row >= 0; row-- {
		dst := p.best[row*width:][:width]
		if row%g.extent >= g.minimum {
			copy(dst, p.best[row/g.extent*width:])
			continue
		}
		for c := range dst {
			dst[c] = negInf
		}
	}
}

// begin undoes the split of end: at the start of group k, it contributes no items.
func (p *table) begin(s *program, k int) {
	g, width := &p.groups[k], s.width()
	if g.extent == 1 {
		return
	}
	for row := range g.rows / g.extent {
		copy(p.best[row*width:][:width], p.best[row*g.extent*width:])
	}
}

// follow appends the items marked by the bits, from the first candidate on.
func (p *table) follow(dst vitrine.Assortment, s *program) vitrine.Assortment {
	row, c := 0, 0
	for k := range s.groups {
		for a := k; a >= 0 && s.groups[a].first == k; a = s.groups[a].parent {
			row *= p.groups[a].extent
		}
		for at := p.groups[k].first; at < p.groups[k+1].first; at++ {
			if p.bitsOf(s, k, at)[row*s.words()+c>>6]>>(c&63)&1 == 1 {
				dst = append(dst, p.items[at])
				row = p.next(s, k, row)
				c += p.units[at]
			}
		}
		row /= p.groups[k].extent
	}
	return dst
}
