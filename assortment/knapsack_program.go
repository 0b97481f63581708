package assortment

import (
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// program is the dynamic program of a [Knapsack]. It visits the candidates from the
// last to the first, with
//
//	V_i(k, c) = max(V_{i+1}(k, c), gain_i + V_{i+1}(k + 1, c + a_i))
//
// the largest gain of the candidates from i on if c units of capacity are taken, and
// k_A places of each group A around i; and a bit for each, whether i is taken. At the
// end of a group V is −∞ if k_A is below the group's minimum, and at its
// beginning k_A is 0. So groups side by side share the table, and nested groups
// multiply it. If only the minimum of a group matters, k_A stops there and
// stands for that number or more. Then the bits are followed from the first candidate
// on.
type program struct {
	relaxed vitrine.Assortment // the best set regardless of weight
	groups  []stage
	items   []int // the candidates, by group
	units   []int
	best    []float64 // V, by row and c; a row is the numbers k, that of the innermost group last
	taken   []uint64  // by candidate, row and c
}

// stage is what a call knows of a group.
type stage struct {
	minimum int // how many items it needs beside those that every best set has
	demand  int // the largest minimum of it and of the groups around it
	extent  int // how many k_A there are
	rows    int // how many rows there are within it
	first   int // its candidates are those from here to the next group's
	bits    int // where theirs begin
}

var programs = sync.Pool{New: func() any { return new(program) }}

// solve appends the items of the best set to dst.
func (p *program) solve(dst vitrine.Assortment, s *Knapsack, gain []float64) vitrine.Assortment {
	dst = p.choose(dst, s, gain)
	p.layOut(s)
	p.evaluate(s, gain)
	return p.follow(dst, s)
}

// choose appends to dst the items that cost nothing and gain, and makes the best
// of each class the candidates.
func (p *program) choose(dst vitrine.Assortment, s *Knapsack, gain []float64) vitrine.Assortment {
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
			start, maximum := len(p.items), class.cap
			for _, i := range class.items {
				gains := gain[i] > 0
				if gains && !class.free || !gains && p.groups[k].demand > 0 {
					p.items = append(p.items, i)
				}
			}
			if class.free {
				maximum = min(maximum, p.groups[k].demand)
			}
			if len(p.items)-start > maximum {
				selectLargest(p.items[start:], maximum, gain)
				p.items = p.items[:start+maximum]
			}
			for range len(p.items) - start {
				p.units = append(p.units, class.units)
			}
		}
	}
	p.groups[len(s.groups)].first = len(p.items)
	return dst
}

// layOut finds the rows of every group, and the places of its bits.
func (p *program) layOut(s *Knapsack) {
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
func (p *program) bitsOf(s *Knapsack, k, at int) []uint64 {
	g, size := &p.groups[k], p.groups[k].rows*s.words()
	return p.taken[g.bits+(at-g.first)*size:][:size]
}

// evaluate finds V and the bits, from the last candidate to the first.
func (p *program) evaluate(s *Knapsack, gain []float64) {
	clear(p.best[:s.width()])
	for k := len(s.groups) - 1; k >= 0; k-- {
		p.end(s, k)
		for at := p.groups[k+1].first - 1; at >= p.groups[k].first; at-- {
			g := gain[p.items[at]]
			if !(g > -1e300) { // or NaN
				g = -1e300
			}
			p.try(s, k, p.units[at], g, p.bitsOf(s, k, at))
		}
		for a := k; a >= 0 && s.groups[a].first == k; a = s.groups[a].parent {
			p.begin(s, a)
		}
	}
}

// try finds where an item of group k is taken. A row is followed by rows that
// are larger, or itself, so that their V is still that of the items after it.
func (p *program) try(s *Knapsack, k, units int, gain float64, taken []uint64) {
	width, words := s.width(), s.words()
	for row := range p.groups[k].rows {
		next := p.next(s, k, row)
		if next < 0 {
			continue
		}
		without, with, bits := p.best[row*width:][:width-units], p.best[next*width+units:][:width-units], taken[row*words:][:words]
		for c, v := range with {
			if v += gain; v > without[c] {
				without[c] = v
				bits[c>>6] |= 1 << (c & 63)
			}
		}
	}
}

// next returns the row after an item of group k is taken, or -1 if a group is
// full, or has fewer items than one within it.
func (p *program) next(s *Knapsack, k, row int) int {
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

// end splits every row by the number of items of group k, all of which are
// before.
func (p *program) end(s *Knapsack, k int) {
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

// begin joins what end has split: at first there is no item of group k.
func (p *program) begin(s *Knapsack, k int) {
	g, width := &p.groups[k], s.width()
	if g.extent == 1 {
		return
	}
	for row := range g.rows / g.extent {
		copy(p.best[row*width:][:width], p.best[row*g.extent*width:])
	}
}

// follow appends the items that the bits tell, from the first candidate on.
func (p *program) follow(dst vitrine.Assortment, s *Knapsack) vitrine.Assortment {
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
