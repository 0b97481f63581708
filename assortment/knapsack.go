package assortment

import (
	"sync"

	"vitrine"
)

// program is the dynamic program of a [Space],
//
//	best_k(c) = max Σ gain_i over sets of k items of at most c units
//
// item by item, with a bit for each item, number and space: whether the item is
// in the set that attains it so far. Where only the least number of items
// matters, the last k stands for that number or more, and one more row of bits
// says whether the set had so many without the item.
type program struct {
	relaxed vitrine.Assortment // the best set that disregards the space
	items   []int              // the candidates
	units   []int
	best    []float64 // by k and c
	taken   []uint64  // by item, k and c
}

var programs = sync.Pool{New: func() any { return new(program) }}

// solve appends the items of the best set to dst.
func (p *program) solve(dst vitrine.Assortment, s *Space, gain []float64) vitrine.Assortment {
	dst, least := p.choose(dst, s, gain)
	last := s.most
	if !s.capped {
		last = least
	}
	width := s.room + 1
	words := (width + 63) / 64
	open := !s.capped && last > 0 // the last row means "or more"
	rows := last + 1
	if open {
		rows++
	}
	p.best = grow(p.best, (last+1)*width)
	p.taken = grow(p.taken, len(p.items)*rows*words)
	clear(p.taken)
	clear(p.best[:width])
	for c := width; c < len(p.best); c++ {
		p.best[c] = negInf
	}

	for at, i := range p.items {
		units, g := p.units[at], gain[i]
		if !(g > -1e300) { // or NaN
			g = -1e300
		}
		taken := p.taken[at*rows*words:][:rows*words]
		closed := last
		if !s.capped {
			p.addToLast(taken, last, width, units, g)
			closed--
		}
		for k := closed; k > 0; k-- {
			fewer, row, bits := p.best[(k-1)*width:], p.best[k*width:], taken[k*words:]
			for c := units; c < width; c++ {
				if v := fewer[c-units] + g; v > row[c] {
					row[c] = v
					bits[c>>6] |= 1 << (c & 63)
				}
			}
		}
	}

	k := last
	if s.capped {
		k = least
		for more := k + 1; more <= last; more++ {
			if p.best[more*width+width-1] > p.best[k*width+width-1] {
				k = more
			}
		}
	}
	c := width - 1
	for at := len(p.items) - 1; at >= 0; at-- {
		taken := p.taken[at*rows*words:][:rows*words]
		in := func(row int) bool { return taken[row*words+c>>6]>>(c&63)&1 == 1 }
		if !in(k) {
			continue
		}
		dst = append(dst, p.items[at])
		if s.capped || open && !in(last+1) || k < last {
			k--
		}
		c -= p.units[at]
	}
	return dst
}

// addToLast tries the item of the taken bits in the sets of last items or more:
// beside one item fewer, or beside as many. Of equal sums the smaller set is
// kept, so that no item of gain 0 stays without need.
func (p *program) addToLast(taken []uint64, last, width, units int, gain float64) {
	words := (width + 63) / 64
	row, bits := p.best[last*width:], taken[last*words:]
	if last == 0 {
		for c := width - 1; c >= units; c-- {
			if v := row[c-units] + gain; v > row[c] {
				row[c] = v
				bits[c>>6] |= 1 << (c & 63)
			}
		}
		return
	}
	fewer, stays := p.best[(last-1)*width:], bits[words:]
	for c := width - 1; c >= units; c-- {
		one, more := fewer[c-units]+gain, row[c-units]+gain
		if v := max(one, more); v > row[c] {
			row[c] = v
			bits[c>>6] |= 1 << (c & 63)
			if more > one {
				stays[c>>6] |= 1 << (c & 63)
			}
		}
	}
}

// choose appends to dst the items that cost no space and gain, where their
// number is not capped, and makes the best of each class the candidates. It
// returns how many items remain to be demanded.
func (p *program) choose(dst vitrine.Assortment, s *Space, gain []float64) (vitrine.Assortment, int) {
	least := s.least
	p.items, p.units = p.items[:0], p.units[:0]
	for _, class := range s.classes {
		start, most := len(p.items), class.cap
		free := class.units == 0 && !s.capped
		for _, i := range class.items {
			switch {
			case free && gain[i] > 0:
				dst = append(dst, i)
				least = max(0, least-1)
			case least > 0 || gain[i] > 0:
				p.items = append(p.items, i)
			}
		}
		if free {
			most = min(most, least)
		}
		if len(p.items)-start > most {
			selectLargest(p.items[start:], most, gain)
			p.items = p.items[:start+most]
		}
		for range len(p.items) - start {
			p.units = append(p.units, class.units)
		}
	}
	return dst, least
}

// grow returns a slice of length n, in the storage of v where it suffices.
func grow[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}
