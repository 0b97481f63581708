package assortment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// Crossing is the family of the sets that obey rules whose groups cross, such as at most h of each brand and at most k of
// each category:
//
//	𝒮 = {S : P ⊆ S, minimum ≤ |S| ≤ maximum, |S ∩ G| ≤ h_G for every group G}
//
// with the items P. The groups form two hierarchies: within each, groups are nested or disjoint, as those of a [Laminar] are,
// and groups of different hierarchies may share any items. A set is a flow: each of its items sends a unit down one hierarchy
// to its smallest group there, through the cell of all items with the same two smallest groups, and up the other hierarchy.
// [Crossing.MaxGain] finds the flow of the largest gain by augmenting paths of the largest gain. Each flow on the way is the
// best of its size, and gains are concave in the size, so it stops at the first path that gains nothing.
// Source: Ahuja, Magnanti and Orlin, Network Flows (1993), Section 9.7.
//
// A call costs a pass over the items, and for each item of the answer a few passes over the cells and groups.
type Crossing struct {
	items            int
	minimum, maximum int // of all items
	sides            [2]hierarchy
	cell             []int32 // N: −1 for an item that is in every set, or in none
	cells            []cell  // by their node of side 0
	first            []int32 // by node of side 0: its first cell; one more at the end
	start            []int32 // by cell: where its best items begin in flow.top; one more at the end
	include          vitrine.Assortment
	never            []bool // N: the items that are in no set; nil if there are none
	work             *Work
	pool             *sync.Pool

	rules   Rules // of the groups that bound something
	side    []int // of each of these groups
	drawing struct {
		once  sync.Once
		draws crossingDraws
	}
}

// hierarchy has the groups of one side as a tree. Node 0 is the set itself, and parents come before their parts.
type hierarchy struct {
	parent []int32
	room   []int32 // how many items a set may have beside those that every set has
}

// cell is the items with the same smallest groups: a node of each side.
type cell [2]int32

// Work bounds the steps of all searches that share it. A nil *Work bounds nothing.
type Work struct {
	mu   sync.Mutex
	left int
}

// NewWork allows a number of steps.
func NewWork(steps int) *Work { return &Work{left: steps} }

// Exceeded reports whether a search has stopped early, so that its answer may not be the best set.
func (w *Work) Exceeded() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left < 0
}

// Stop leaves no steps.
func (w *Work) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = -1
}

// spend takes steps, and reports whether they were left.
func (w *Work) spend(steps int) bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = max(w.left-steps, -1)
	return w.left >= 0
}

// hides implements selective.
func (c *Crossing) hides() []bool { return c.never }

// hereditary implements the interface of [Hereditary].
func (c *Crossing) hereditary() bool { return len(c.include) == 0 && c.minimum == 0 }

// NewCrossing returns the family of the sets with at most a given number of items of each brand, of each category, and in
// all. A brand and a category are any two partitions of the items: brand and category have an entry for each item, which is
// an index of brandMax or of categoryMax; these have the bounds. It returns an error that names an item or a bound that is out
// of range.
func NewCrossing(brand, category, brandMax, categoryMax []int, maximum int) (*Crossing, error) {
	if len(brand) != len(category) {
		return nil, fmt.Errorf("%d items have a brand, and %d a category", len(brand), len(category))
	}
	r := Rules{Items: len(brand), Max: max(maximum, 0)}
	for _, by := range []struct {
		name  string
		of    []int
		bound []int
	}{{"brand", brand, brandMax}, {"category", category, categoryMax}} {
		groups := make([]Group, len(by.bound))
		for k, h := range by.bound {
			if h < 0 {
				return nil, fmt.Errorf("%s %d shows at most %d items: want a number that is not negative", by.name, k, h)
			}
			groups[k] = Group{Name: fmt.Sprintf("%s %d", by.name, k), Max: h}
		}
		for i, k := range by.of {
			if k < 0 || k >= len(groups) {
				return nil, fmt.Errorf("item %d is of %s %d: there are %d", i, by.name, k, len(groups))
			}
			groups[k].Items = append(groups[k].Items, i)
		}
		r.Groups = append(r.Groups, groups...)
	}
	return NewCrossed(r, nil)
}

// NewCrossed returns the family of sets that obey rules whose groups may cross. Its searches take their steps from work. It
// keeps slices of r. It returns an error if the groups do not form two hierarchies, if a group has a lower bound, or if no set
// obeys the rules.
func NewCrossed(r Rules, work *Work) (*Crossing, error) {
	r.Groups = slices.DeleteFunc(slices.Clone(r.Groups), func(g Group) bool { return g.Min == 0 && g.Max >= min(len(g.Items), r.Max) })
	c := &Crossing{items: r.Items, minimum: r.Min, maximum: r.Max, work: work}
	slices.SortStableFunc(r.Groups, func(a, b Group) int { return len(b.Items) - len(a.Items) }) // parents come first
	of, err := r.groupsOf()
	if err != nil {
		return nil, err
	}
	if c.side, err = r.sides(of); err != nil {
		return nil, err
	}
	if err := c.plant(&r, of); err != nil {
		return nil, err
	}
	r.Name = nil // it may be of use only now
	c.rules = r
	c.pool = &sync.Pool{New: func() any { return &flow{Crossing: c} }}
	if r.Min > 0 {
		if n := len(c.MaxGain(nil, make([]float64, r.Items))); n < r.Min {
			return nil, fmt.Errorf("size: at least %d, but no more than %d can be shown", r.Min, n)
		}
	}
	return c, nil
}

// memberships are the groups of each item, in their order.
type memberships struct {
	start  []int32
	groups []int32
}

func (m *memberships) at(i int) []int32 { return m.groups[m.start[i]:m.start[i+1]] }

// groupsOf returns the groups of each item.
func (r *Rules) groupsOf() (*memberships, error) {
	m := &memberships{start: make([]int32, r.Items+2)}
	for _, g := range r.Groups {
		if g.Min > 0 {
			return nil, fmt.Errorf("%s: at least %d: groups that cross others have no lower bounds", g.Name, g.Min)
		}
		if g.Max < 0 {
			return nil, fmt.Errorf("%s: at most %d: must not be negative", g.Name, g.Max)
		}
		for _, i := range g.Items {
			if i < 0 || i >= r.Items {
				return nil, fmt.Errorf("%s: item %d is outside [0, %d)", g.Name, i, r.Items)
			}
			m.start[i+2]++
		}
	}
	for i := range r.Items {
		m.start[i+2] += m.start[i+1]
	}
	m.groups = make([]int32, m.start[r.Items+1])
	seen := make([]int32, r.Items) // one more than the last group of each item
	for k, g := range r.Groups {
		for _, i := range g.Items {
			if seen[i] == int32(k+1) {
				return nil, fmt.Errorf("%s has %s twice", g.Name, r.name(i))
			}
			seen[i], m.groups[m.start[i+1]] = int32(k+1), int32(k)
			m.start[i+1]++
		}
	}
	return m, nil
}

// shared calls yield for each other group that shares items with group k, and their number.
func (r *Rules) shared(of *memberships, k int, count []int32, yield func(other, n int)) {
	list := []int32(nil)
	for _, i := range r.Groups[k].Items {
		for _, other := range of.at(i) {
			if count[other] == 0 {
				list = append(list, other)
			}
			count[other]++
		}
	}
	slices.Sort(list)
	for _, other := range list {
		if int(other) != k {
			yield(int(other), int(count[other]))
		}
		count[other] = 0
	}
}

// sides returns the hierarchy of each group, 0 or 1: groups that cross are in different ones.
func (r *Rules) sides(of *memberships) ([]int, error) {
	crosses := make([][]int, len(r.Groups))
	count := make([]int32, len(r.Groups))
	for k := range r.Groups {
		r.shared(of, k, count, func(other, n int) {
			if n < min(len(r.Groups[k].Items), len(r.Groups[other].Items)) {
				crosses[k] = append(crosses[k], other)
			}
		})
	}
	const unknown = -1
	side, before := slices.Repeat([]int{unknown}, len(r.Groups)), make([]int, len(r.Groups))
	for root := range r.Groups {
		if side[root] != unknown {
			continue
		}
		side[root], before[root] = 0, root
		for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
			k := queue[0]
			for _, other := range crosses[k] {
				switch side[other] {
				case unknown:
					side[other], before[other] = 1-side[k], k
					queue = append(queue, other)
				case side[k]:
					return nil, &CrossingError{r.cycle(before, k, other)}
				}
			}
		}
	}
	return side, nil
}

// cycle returns the names of the groups on the way from one group to another, through those where they were found.
func (r *Rules) cycle(before []int, a, b int) (names []string) {
	var up []int
	for k := a; ; k = before[k] {
		if up = append(up, k); before[k] == k {
			break
		}
	}
	for k := b; ; k = before[k] {
		names = append(names, r.Groups[k].Name)
		if at := slices.Index(up, k); at >= 0 {
			for at--; at >= 0; at-- {
				names = append(names, r.Groups[up[at]].Name)
			}
			return names
		}
	}
}

// CrossingError reports groups that do not form two hierarchies: each of them crosses the next one, and the last one crosses the
// first. For three hierarchies no efficient search of the best set is known.
type CrossingError struct{ Groups []string }

// Error implements error.
func (e *CrossingError) Error() string {
	last := len(e.Groups) - 1
	return fmt.Sprintf("%s and %s cross each other: items may be grouped in two ways that cross, not in three; drop one of these limits", strings.Join(e.Groups[:last], ", "), e.Groups[last])
}

// plant makes the hierarchies and the cells.
func (c *Crossing) plant(r *Rules, of *memberships) error {
	node := make([]int32, len(r.Groups)) // of each group, in its hierarchy
	for s := range c.sides {
		c.sides[s] = hierarchy{parent: []int32{-1}, room: []int32{int32(min(r.Max, r.Items))}}
	}
	count := make([]int32, len(r.Groups))
	for k, g := range r.Groups {
		h := &c.sides[c.side[k]]
		parent := int32(0)
		r.shared(of, k, count, func(other, n int) {
			if other < k && c.side[other] == c.side[k] && n == len(g.Items) {
				parent = node[other] // the last one is the smallest
			}
		})
		node[k] = int32(len(h.parent))
		h.parent, h.room = append(h.parent, parent), append(h.room, int32(min(g.Max, r.Max)))
	}
	smallest := func(i int) (at cell) {
		for _, k := range of.at(i) {
			at[c.side[k]] = node[k]
		}
		return at
	}
	out := make([]bool, r.Items)
	for _, i := range r.Exclude {
		if i < 0 || i >= r.Items {
			return fmt.Errorf("item %d is outside [0, %d)", i, r.Items)
		}
		out[i] = true
	}
	c.include = slices.Clone(r.Include)
	slices.Sort(c.include)
	c.include = slices.Compact(c.include)
	for _, i := range c.include {
		switch {
		case i < 0 || i >= r.Items:
			return fmt.Errorf("item %d is outside [0, %d)", i, r.Items)
		case out[i]:
			return fmt.Errorf("%s is both included and excluded", r.name(i))
		}
		for _, k := range of.at(i) {
			if h := &c.sides[c.side[k]]; h.room[node[k]] == 0 {
				return c.demands(r, r.Groups[k])
			}
		}
		at := smallest(i)
		for s := range c.sides {
			h := &c.sides[s]
			if h.room[0] == 0 {
				return c.demands(r, Group{Name: "size", Max: r.Max, Items: c.include})
			}
			for n := at[s]; n >= 0; n = h.parent[n] {
				h.room[n]--
			}
		}
	}
	for s := range c.sides {
		h := &c.sides[s]
		for n := 1; n < len(h.room); n++ {
			h.room[n] = min(h.room[n], h.room[h.parent[n]])
		}
	}
	c.findCells(smallest, out)
	return nil
}

// demands reports a group with too many items that every set must have.
func (c *Crossing) demands(r *Rules, g Group) error {
	var list []string
	for _, i := range c.include {
		if slices.Contains(g.Items, i) {
			list = append(list, r.name(i)+" is included")
		}
	}
	return fmt.Errorf("%s: at most %d, but %s demanded: %s", g.Name, g.Max, areDemanded(len(list)), few(list))
}

// findCells puts the items that may be in a set, but need not be, into cells. out are the excluded items.
func (c *Crossing) findCells(smallest func(i int) cell, out []bool) {
	c.cell = make([]int32, c.items)
	number, sizes := map[cell]int32{}, []int32(nil)
	hidden := false
	for i := range c.cell {
		at := smallest(i)
		_, included := slices.BinarySearch(c.include, i)
		if out[i] = !included && (out[i] || c.sides[0].room[at[0]] == 0 || c.sides[1].room[at[1]] == 0); included || out[i] {
			hidden = hidden || out[i]
			c.cell[i] = -1
			continue
		}
		k, ok := number[at]
		if !ok {
			k = int32(len(c.cells))
			number[at], c.cells, sizes = k, append(c.cells, at), append(sizes, 0)
		}
		c.cell[i] = k
		sizes[k]++
	}
	if hidden {
		c.never = out
	}
	order := make([]int32, len(c.cells)) // the cells by their nodes
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.cells[a][0], c.cells[b][0]), cmp.Compare(c.cells[a][1], c.cells[b][1]))
	})
	cells, place := make([]cell, len(order)), make([]int32, len(order))
	c.start, c.first = make([]int32, len(order)+1), make([]int32, len(c.sides[0].parent)+1)
	for k, old := range order {
		at := c.cells[old]
		cells[k], place[old] = at, int32(k)
		c.start[k+1] = c.start[k] + min(sizes[old], c.sides[0].room[at[0]], c.sides[1].room[at[1]])
		c.first[at[0]+1] = int32(k + 1)
	}
	for n := 1; n < len(c.first); n++ {
		c.first[n] = max(c.first[n], c.first[n-1])
	}
	c.cells = cells
	for i, k := range c.cell {
		if k >= 0 {
			c.cell[i] = place[k]
		}
	}
}

// Contains implements vitrine.Constraint.
func (c *Crossing) Contains(s vitrine.Assortment) bool {
	if len(s) > c.maximum || len(s) < c.minimum {
		return false
	}
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.empty()
	included := 0
	for _, i := range s {
		if i < 0 || i >= c.items {
			return false
		}
		if c.cell[i] < 0 {
			if _, ok := slices.BinarySearch(c.include, i); !ok {
				return false
			}
			included++
			continue
		}
		for side, n := range c.cells[c.cell[i]] {
			for h := &c.sides[side]; n >= 0; n = h.parent[n] {
				if f.count[side][n]++; f.count[side][n] > h.room[n] {
					return false
				}
			}
		}
	}
	return included == len(c.include)
}

// Limit implements [Limiter].
func (c *Crossing) Limit(maximum int) (vitrine.Constraint, error) {
	if maximum >= c.maximum {
		return c, nil
	}
	r := c.rules
	r.Max = max(maximum, 0)
	return NewCrossed(r, c.work)
}

// MaxGain implements vitrine.Constraint. It panics unless there is a gain for each item.
func (c *Crossing) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if len(gain) != c.items {
		panic(fmt.Sprintf("assortment: Crossing of %d items has %d gains", c.items, len(gain)))
	}
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.begin(gain)
	size := len(c.include)
	for size < c.maximum && f.augment(size < c.minimum) {
		size++
	}
	dst = append(slices.Grow(dst[:0], size), c.include...)
	for _, k := range f.used {
		for _, i := range f.top[c.start[k] : c.start[k]+f.taken[k]] {
			dst = append(dst, int(i))
		}
	}
	slices.Sort(dst)
	return dst
}

// flow is the state of one call. The items of a cell that are in the flow are those of its largest gains: a path adds the best
// of the others, and takes back the worst.
type flow struct {
	*Crossing
	top   []int32   // the items of the largest gains of each cell, cell by cell, the best first
	value []float64 // their gains
	found []int32   // by cell: how many there are
	taken []int32   // by cell: how many of them are in the flow
	next  []float64 // by cell: the gain of the best item outside the flow; −∞ if there is none
	used  []int32   // the cells that have had items in the flow
	count [2][]int32

	labels [2]labels
	nodes  []int32 // a walk from its last node back; the nodes of side 1 come after those of side 0
	edges  []int32 // between the nodes: a cell, or −1 minus the lower node of a step within a hierarchy
}

// labels are those of all rounds, one round after the other. In round t they have the largest gain of a walk to each node
// that takes back up to t items, and where it comes from.
type labels struct {
	gain []float64
	via  []int32
}

// A label comes from a cell, or from a node of the same side, which is stored as stepped minus the node, or
const (
	carried = -1 // it is that of the round before
	source  = -2 // the walk begins here
	stepped = -3
)

// round returns the labels of round t of n nodes: those of the round before, or −∞.
func (l *labels) round(t, n int) (gain []float64, via []int32) {
	l.gain, l.via = scratch.Grow(l.gain, (t+1)*n), scratch.Grow(l.via, (t+1)*n)
	gain, via = l.gain[t*n:], l.via[t*n:]
	if t > 0 {
		copy(gain, l.gain[(t-1)*n:])
	}
	for k := range via {
		via[k] = carried
		if t == 0 {
			gain[k] = math.Inf(-1)
		}
	}
	return gain, via
}

func (f *flow) empty() {
	for s := range f.count {
		f.count[s] = scratch.Grow(f.count[s], len(f.sides[s].room))
		clear(f.count[s])
	}
}

// begin finds the best items of each cell, and empties the flow. Of equal gains the lower item is better.
func (f *flow) begin(gain []float64) {
	f.empty()
	f.found, f.taken = scratch.Grow(f.found, len(f.cells)), scratch.Grow(f.taken, len(f.cells))
	f.next = scratch.Grow(f.next, len(f.cells))
	clear(f.found)
	clear(f.taken)
	f.used = f.used[:0]
	size := int(f.start[len(f.cells)])
	f.top, f.value = scratch.Grow(f.top, size), scratch.Grow(f.value, size)
	for i, g := range gain {
		k := f.cell[i]
		if k < 0 || !(g > 0 || f.minimum > 0) {
			continue
		}
		base, n := int(f.start[k]), int(f.found[k])
		if n < int(f.start[k+1])-base {
			f.found[k]++
		} else if n--; !(g > f.value[base+n]) {
			continue
		}
		top, value := f.top[base:base+n+1], f.value[base:base+n+1]
		at, _ := slices.BinarySearchFunc(value[:n], g, func(v, g float64) int {
			if v >= g {
				return -1
			}
			return 1
		})
		copy(top[at+1:], top[at:n])
		copy(value[at+1:], value[at:n])
		top[at], value[at] = int32(i), g
	}
	for k := range f.next {
		f.look(k)
	}
	f.work.spend(len(gain))
}

// look finds the best item of a cell outside the flow.
func (f *flow) look(k int) {
	if f.next[k] = math.Inf(-1); f.taken[k] < f.found[k] {
		f.next[k] = f.value[f.start[k]+f.taken[k]]
	}
}

// augment adds the best path to the flow, and reports whether it gains something, or at least is there if it must be.
func (f *flow) augment(must bool) bool {
	t, steps := 0, 0
	from, to := len(f.sides[0].parent), len(f.sides[1].parent)
	sending, via := f.labels[0].round(0, from)
	sending[0], via[0] = 0, source
	f.down(0, sending, via, func(n int32) bool { return f.count[0][n] < f.sides[0].room[n] })
	for {
		taking, viaTaking := f.labels[1].round(t, to)
		improved := false
		for n, g := range sending {
			if math.IsInf(g, -1) || t > 0 && via[n] == carried {
				continue
			}
			steps += int(f.first[n+1] - f.first[n])
			for k := f.first[n]; k < f.first[n+1]; k++ {
				if b := f.cells[k][1]; g+f.next[k] > taking[b] {
					taking[b], viaTaking[b] = g+f.next[k], k
					improved = true
				}
			}
		}
		steps += from + to
		if !improved {
			break
		}
		f.up(1, taking, viaTaking, 0, func(n int32) bool { return f.count[1][n] < f.sides[1].room[n] })
		f.down(1, taking, viaTaking, func(n int32) bool { return f.count[1][n] > 0 })
		if t == from {
			break
		}
		sending, via = f.labels[0].round(t+1, from)
		improved = false
		for _, k := range f.used {
			a, b := f.cells[k][0], f.cells[k][1]
			if f.taken[k] == 0 || a == 0 || b == 0 { // a walk does not come back to its beginning, or go on after its end
				continue
			}
			if g := taking[b] - f.value[f.start[k]+f.taken[k]-1]; g > sending[a] {
				sending[a], via[a] = g, k
				improved = true
			}
		}
		if !improved {
			break
		}
		f.up(0, sending, via, 1, func(n int32) bool { return f.count[0][n] > 0 })
		f.down(0, sending, via, func(n int32) bool { return f.count[0][n] < f.sides[0].room[n] })
		t++
	}
	best := f.labels[1].gain[t*to]
	if math.IsInf(best, -1) || !must && !(best > 0) || !f.work.spend(steps) {
		return false
	}
	f.trace(t)
	f.follow()
	return true
}

// up passes labels from groups to those that contain them, from the first node on.
func (f *flow) up(side int, gain []float64, via []int32, first int32, may func(n int32) bool) {
	parent := f.sides[side].parent
	for n := int32(len(parent)) - 1; n > 0; n-- {
		if p := parent[n]; p >= first && gain[n] > gain[p] && may(n) {
			gain[p], via[p] = gain[n], stepped-n
		}
	}
}

// down passes labels from groups to their parts. Those of the whole set are passed on only if they are where walks begin.
func (f *flow) down(side int, gain []float64, via []int32, may func(n int32) bool) {
	parent := f.sides[side].parent
	for n := int32(1); n < int32(len(parent)); n++ {
		if p := parent[n]; (p > 0 || side == 0) && gain[p] > gain[n] && may(n) {
			gain[n], via[n] = gain[p], stepped-p
		}
	}
}

// trace stores the walk to the end of side 1 with the labels of round t.
func (f *flow) trace(t int) {
	sizes := [2]int{len(f.sides[0].parent), len(f.sides[1].parent)}
	f.nodes, f.edges = f.nodes[:0], f.edges[:0]
	for side, node := 1, int32(0); ; {
		f.nodes = append(f.nodes, node+int32(side*sizes[0]))
		for f.labels[side].via[t*sizes[side]+int(node)] == carried {
			t--
		}
		switch via := f.labels[side].via[t*sizes[side]+int(node)]; {
		case via == source:
			return
		case via <= stepped:
			lower := max(node, stepped-via) // parents come before their parts
			f.edges = append(f.edges, -1-lower)
			node = stepped - via
		default:
			f.edges = append(f.edges, via)
			if side == 0 {
				t--
			}
			side = 1 - side
			node = f.cells[via][side]
		}
	}
}

// follow adds the walk to the flow. It leaves out what lies between two visits of a node, which gains nothing but what rounding
// makes of it.
func (f *flow) follow() {
	size := int32(len(f.sides[0].parent)) // of side 0
	for at := 0; at < len(f.edges); at++ {
		for last := len(f.nodes) - 1; last > at; last-- {
			if f.nodes[last] == f.nodes[at] {
				at = last
				break
			}
		}
		if at == len(f.edges) {
			return
		}
		to := f.nodes[at]
		if k := f.edges[at]; k >= 0 {
			if to < size {
				f.taken[k]--
			} else if f.taken[k]++; !slices.Contains(f.used, k) {
				f.used = append(f.used, k)
			}
			f.look(int(k))
			continue
		}
		// A step down side 0, or up side 1, sends a unit through the lower node; the other one takes it back.
		lower, side := -1-f.edges[at], 0
		if to >= size {
			to, side = to-size, 1
		}
		if (to == lower) == (side == 0) {
			f.count[side][lower]++
		} else {
			f.count[side][lower]--
		}
	}
}
