package assortment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
)

// Sample implements [Sampler]: it draws the number of items and the weight of each group in
// proportion to the number of sets with them, then of each class of items of one weight, and
// then the items. It takes the time to count the sets, O(Pkcm) for P classes, where k and c are
// the numbers of items and of units that a set can have, and m is the largest number of items
// of a group. It panics unless n is N.
func (s *Knapsack) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	if s.slack {
		return s.counts.Sample(dst, n, rng)
	}
	return s.draw(dst, s.counted(n), rng)
}

// draw draws one of the sets.
func (s *Knapsack) draw(dst vitrine.Assortment, sets *tally, rng *rand.Rand) vitrine.Assortment {
	dst = append(dst[:0], s.pinned...)
	if sets.total().m == 0 { // only the empty set
		return dst
	}
	k, c := sets.draw(rng, sets.at)
	dst = s.sample(dst, s.portions(len(s.groups)-1), k, c, rng)
	slices.Sort(dst)
	return dst
}

// Propensity implements [Sampler]. It panics unless n is N.
func (s *Knapsack) Propensity(n int) float64 {
	if s.slack {
		return s.counts.Propensity(n)
	}
	return s.counted(n).propensity()
}

// counted counts the nonempty sets of the family on the first call.
func (s *Knapsack) counted(n int) *tally {
	if n != len(s.weight) {
		panic(fmt.Sprintf("assortment: a draw from %d items of a family of %d", n, len(s.weight)))
	}
	s.counting.Do(func() { s.sets = s.tally() })
	return s.sets
}

// tally counts the nonempty sets.
func (s *Knapsack) tally() *tally {
	root := len(s.groups) - 1
	s.large = s.isLarge()
	t := s.tallyOf(portion{group: root}, s.groups[root].maximum, s.room)
	if len(s.pinned) == 0 {
		t.set(0, 0, count{})
	}
	return t
}

// isLarge reports whether there may be too many sets for a float64: no more than (N + 1)^K.
func (s *Knapsack) isLarge() bool {
	const most = 1000 // bits
	items := 1.0
	for _, g := range s.groups {
		for _, c := range g.classes {
			items += float64(len(c.items))
		}
	}
	return float64(s.groups[len(s.groups)-1].maximum)*math.Log2(items) > most
}

// portion is a part of a group: a group within it, or the items of a class.
type portion struct {
	group int
	class *class // nil of a group
}

// portions returns those of a group.
func (s *Knapsack) portions(group int) []portion {
	var list []portion
	g := &s.groups[group]
	for k := range g.classes {
		list = append(list, portion{class: &g.classes[k]})
	}
	for k := g.first; k < group; k++ {
		if s.groups[k].parent == group {
			list = append(list, portion{group: k})
		}
	}
	return list
}

// tallyOf counts the sets of at most k items and c units of a part that its minima and maxima allow.
func (s *Knapsack) tallyOf(p portion, k, c int) *tally {
	if p.class != nil {
		units := p.class.units
		k = p.class.fit(k, c)
		t := newTally(k, k*units, s.large)
		n := count{0.5, 1}
		for j := range k + 1 {
			t.set(j, j*units, n)
			n = n.times(countOf(float64(len(p.class.items)-j) / float64(j+1)))
		}
		return t
	}
	g := &s.groups[p.group]
	t := s.product(s.portions(p.group), min(k, g.maximum), c)
	t.clear(g.minimum)
	return t
}

// product counts the sets of parts side by side. A group with more kinds of sets than items is not counted by itself.
func (s *Knapsack) product(parts []portion, k, c int) *tally {
	k, c = s.reach(parts, k, c)
	t := newTally(k, c, s.large)
	t.set(0, 0, count{0.5, 1})
	for at, p := range parts {
		o := s.tallyOf(p, k, c)
		switch {
		case p.class != nil:
			t.join(o, p.class.units)
		case at > 0 && o.kinds() <= s.steps(p.group):
			t = t.product(o, k, c)
		default:
			sets := []*tally{o}
			if at > 0 {
				sets = s.extend(t, p.group, k, c)
			}
			t = newTally(k, c, s.large)
			for _, some := range sets {
				t.add(some, 0, 0, count{0.5, 1})
			}
		}
	}
	return t
}

// reach returns bounds of the items and units of a set of parts, of at most k items and c units.
func (s *Knapsack) reach(parts []portion, k, c int) (items, units int) {
	for _, p := range parts {
		if p.class != nil {
			n := p.class.fit(k, c)
			items, units = min(k, items+n), min(c, units+n*p.class.units)
			continue
		}
		n, u := s.reach(s.portions(p.group), min(k, s.groups[p.group].maximum), c)
		items, units = min(k, items+n), min(c, units+u)
	}
	return items, units
}

// fit returns how many items of a class a set of k items and c units can have.
func (p *class) fit(k, c int) int {
	if k = min(k, p.cap); p.units > 0 {
		k = min(k, c/p.units)
	}
	return k
}

// extend counts the unions of a set of t and one of a group that have at most k items and c units, by the number of items of
// the group. It takes one class after the other.
func (s *Knapsack) extend(t *tally, group, k, c int) []*tally {
	g := &s.groups[group]
	begin := func(first *tally) []*tally {
		by := make([]*tally, min(k, g.maximum)+1)
		by[0] = first
		for j := range by[1:] {
			by[1+j] = newTally(k, c, s.large)
		}
		return by
	}
	by := begin(t)
	for _, p := range s.portions(group) {
		if p.class == nil {
			next := begin(newTally(k, c, s.large))
			for j, t := range by {
				for i, own := range s.extend(t, p.group, k, c) {
					if j+i < len(next) {
						next[j+i].add(own, 0, 0, count{0.5, 1})
					}
				}
			}
			by = next
			continue
		}
		o := s.tallyOf(p, k, c)
		for j := len(by) - 1; j > 0; j-- { // those below are still without the class
			for i := 1; i < min(o.rows, j+1); i++ {
				by[j].add(by[j-i], i, i*p.class.units, o.at(i, i*p.class.units))
			}
		}
	}
	for j := range min(g.minimum, len(by)) {
		by[j] = newTally(0, 0, s.large)
	}
	return by
}

// steps returns how many times extend adds a tally to another.
func (s *Knapsack) steps(group int) (number int) {
	for _, p := range s.portions(group) {
		if p.class == nil {
			number += s.steps(p.group)
		} else {
			number += p.class.cap + 1
		}
	}
	return number * (s.groups[group].maximum + 1)
}

// sample appends k items of c units of the parts. It halves the parts, draws how many items and
// units each half has, and goes on in the halves. These have fewer items and units, so that all
// steps together take little more than the first one.
func (s *Knapsack) sample(dst vitrine.Assortment, parts []portion, k, c int, rng *rand.Rand) vitrine.Assortment {
	switch {
	case k == 0:
		return dst
	case len(parts) == 1 && parts[0].class == nil:
		return s.sample(dst, s.portions(parts[0].group), k, c, rng)
	case len(parts) == 1:
		start, items := len(dst), parts[0].class.items
		dst = slices.Grow(dst, k)[:start+k]
		subset(dst[start:], k, len(items), rng)
		for at, i := range dst[start:] {
			dst[start+at] = items[i]
		}
		return dst
	}
	half := len(parts) / 2
	a, b := s.product(parts[:half], k, c), s.product(parts[half:], k, c)
	j, d := b.draw(rng, func(j, d int) count { return a.at(k-j, c-d).times(b.at(j, d)) })
	dst = s.sample(dst, parts[:half], k-j, c-d, rng)
	return s.sample(dst, parts[half:], j, d, rng)
}

// tally has numbers of sets, by how many items and units they have.
type tally struct {
	rows, width int
	of          []float64 // rows×width
	large       []count   // instead, if there may be too many sets for a float64
}

func newTally(k, c int, large bool) *tally {
	t := &tally{rows: k + 1, width: c + 1}
	if n := t.rows * t.width; large {
		t.large = make([]count, n)
	} else {
		t.of = make([]float64, n)
	}
	return t
}

func (t *tally) set(k, c int, n count) {
	if at := k*t.width + c; t.large != nil {
		t.large[at] = n
	} else {
		t.of[at] = math.Ldexp(n.m, n.e)
	}
}

// at returns the number of sets of k items and c units.
func (t *tally) at(k, c int) count {
	switch {
	case k < 0 || k >= t.rows || c < 0 || c >= t.width:
		return count{}
	case t.large != nil:
		return t.large[k*t.width+c]
	}
	return countOf(t.of[k*t.width+c])
}

// clear removes the sets of less than k items.
func (t *tally) clear(k int) {
	if n := min(k, t.rows) * t.width; t.large != nil {
		clear(t.large[:n])
	} else {
		clear(t.of[:n])
	}
}

func (t *tally) total() (sum count) {
	for k := range t.rows {
		for c := range t.width {
			sum = sum.plus(t.at(k, c))
		}
	}
	return sum
}

// propensity returns one over the number of sets, 1 if there are none.
func (t *tally) propensity() float64 {
	total := t.total()
	if total.m == 0 {
		return 1
	}
	return portable.Exp(-(portable.Log(total.m) + float64(float64(total.e)*math.Ln2)))
}

// product counts the unions of a set of t and one of o that have at most k items and c units.
func (t *tally) product(o *tally, k, c int) *tally {
	p := newTally(min(k, t.rows+o.rows-2), min(c, t.width+o.width-2), t.large != nil)
	for j := range o.rows {
		for d := range o.width {
			p.add(t, j, d, o.at(j, d))
		}
	}
	return p
}

// add adds n times the sets of t, with k more items and c more units each. It leaves out those that have no cell.
func (p *tally) add(t *tally, k, c int, n count) {
	if n.m == 0 || c >= p.width {
		return
	}
	for i := range min(t.rows, p.rows-k) {
		p.addRow(i+k, t, i, c, n)
	}
}

// addRow adds n times row i of t to row k, with c more units.
func (p *tally) addRow(k int, t *tally, i, c int, n count) {
	from, to, size := i*t.width, k*p.width+c, min(t.width, p.width-c)
	if p.large == nil {
		kernel.Axpy(p.of[to:][:size], math.Ldexp(n.m, n.e), t.of[from:][:size])
		return
	}
	for e, m := range t.large[from:][:size] {
		if m.m != 0 {
			p.large[to+e] = p.large[to+e].plus(m.times(n))
		}
	}
}

// join adds items of a class, whose sets are those of o, to the sets of t. It is the product in place.
func (t *tally) join(o *tally, units int) {
	for k := t.rows - 1; k > 0; k-- { // the rows below are still without the class
		for j := 1; j < min(o.rows, k+1) && j*units < t.width; j++ {
			t.addRow(k, t, k-j, j*units, o.at(j, j*units))
		}
	}
}

// kinds returns the number of cells with sets.
func (t *tally) kinds() (number int) {
	for k := range t.rows {
		for c := range t.width {
			if t.at(k, c).m != 0 {
				number++
			}
		}
	}
	return number
}

// draw draws a cell in proportion to its share.
func (t *tally) draw(rng *rand.Rand, share func(k, c int) count) (k, c int) {
	var total count
	for k := range t.rows {
		for c := range t.width {
			total = total.plus(share(k, c))
		}
	}
	left := rng.Float64()
	for row := range t.rows {
		for column := range t.width {
			n := share(row, column)
			if n.m == 0 {
				continue
			}
			k, c = row, column
			if left -= math.Ldexp(n.m/total.m, n.e-total.e); left < 0 {
				return k, c
			}
		}
	}
	return k, c
}

// count is a number m·2^e, 0 or with m in [½, 1).
type count struct {
	m float64
	e int
}

func countOf(v float64) count {
	m, e := math.Frexp(v)
	return count{m, e}
}

func (a count) times(b count) count {
	m, e := float64(a.m*b.m), a.e+b.e
	if m < 0.5 && m > 0 {
		m, e = 2*m, e-1
	}
	return count{m, e}
}

func (a count) plus(b count) count {
	if a.m == 0 || b.m != 0 && b.e > a.e {
		a, b = b, a
	}
	const precision = 64
	if b.m == 0 || a.e-b.e > precision {
		return a
	}
	m := a.m + math.Float64frombits(math.Float64bits(b.m)-uint64(a.e-b.e)<<52)
	if m < 1 {
		return count{m, a.e}
	}
	return count{m / 2, a.e + 1}
}
