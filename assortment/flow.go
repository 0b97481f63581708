package assortment

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"vitrine"
	"vitrine/internal/scratch"
)

// crossing finds the best sets if groups form two hierarchies, and groups of different hierarchies may share any items,
// such as at most h of each brand and at most k of each category. A set corresponds to a flow: each item sends a unit
// down one hierarchy to its smallest group there, through the cell of all items with the same two smallest groups, and
// up the other hierarchy. Augmenting along the path of the largest gain leads to the flow of the largest gain. Each
// intermediate flow is the best of its size, and gains are concave in the size, so the search stops at the first path
// that gains nothing. Source: Ahuja, Magnanti and Orlin, Network Flows (1993), Section 9.7.
//
// A call starts with the items of the largest gains. A path cannot gain more than an item that it adds, because the
// rest of the path would otherwise be a gain by itself, although the flow is already the best of its size. So an item
// needs to join the search only once the best path gains less than the item. Usually a call costs two passes over the
// gains, plus a few passes over the cells of a thousand items for each item of the answer.
type crossing struct {
	minimum, maximum int // bounds on the size of a set
	sides            [2]side
	cell             []int32 // N: −1 for an item that is in every set, or in no set
	cells            []cell
	start            []int32 // by cell: where its best items start in flow.top; the last entry is the end
	include          []int
	work             *Work
	pool             sync.Pool
}

// side is a hierarchy, listed from node 0, the set of all items, downwards: parents come before their parts.
type side struct {
	parent []int32
	room   []int32 // how many items a set may show besides the pinned ones
}

// cell identifies the items with the same smallest groups: a node of each side.
type cell [2]int32

// Work limits the total number of steps of all searches that share it. A nil *Work sets no limit.
type Work struct{ left atomic.Int64 }

// NewWork allows the given number of steps.
func NewWork(steps int) *Work {
	w := new(Work)
	w.left.Store(int64(steps))
	return w
}

// Exceeded reports whether a search stopped early, in which case its answer may not be the best set.
func (w *Work) Exceeded() bool { return w != nil && w.left.Load() < 0 }

// Stop uses up all steps.
func (w *Work) Stop() { w.left.Store(math.MinInt64 / 2) }

// spend uses up steps, and reports whether there were enough.
func (w *Work) spend(steps int) bool { return w == nil || w.left.Add(-int64(steps)) >= 0 }

// newCrossing prepares the search among the sets of two hierarchies. In never, it marks items that the minimum size
// keeps out of all sets.
func newCrossing(r *Rules, hierarchies []*hierarchy, states []state, never []bool) (*crossing, error) {
	c := &crossing{minimum: r.Min, maximum: r.Max, include: r.Include, work: r.Work, cell: make([]int32, r.Items)}
	c.pool.New = func() any { return &flow{crossing: c} }
	for s, h := range hierarchies {
		last := len(h.nodes) - 1
		c.sides[s] = side{make([]int32, last+1), make([]int32, last+1)}
		for n := range h.nodes {
			a := &h.nodes[last-n]
			parent, room := int32(-1), int32(min(a.Max, r.Items)-a.base)
			if n > 0 {
				parent = int32(last - a.parent)
				room = min(room, c.sides[s].room[parent])
			}
			c.sides[s].parent[n], c.sides[s].room[n] = parent, room
		}
	}
	number, sizes := map[cell]int32{}, []int32(nil)
	for i := range c.cell {
		if c.cell[i] = -1; states[i] != free || never[i] {
			continue
		}
		var at cell
		for s, h := range hierarchies {
			at[s] = int32(len(h.nodes) - 1 - h.at[i])
		}
		k, ok := number[at]
		if !ok {
			k = int32(len(c.cells))
			number[at], c.cells, sizes = k, append(c.cells, at), append(sizes, 0)
		}
		c.cell[i] = k
		sizes[k]++
	}
	c.start = make([]int32, len(c.cells)+1)
	for k, at := range c.cells {
		c.start[k+1] = c.start[k] + min(sizes[k], c.sides[0].room[at[0]], c.sides[1].room[at[1]])
	}
	if n := c.fill(never); n < r.Min {
		return nil, fmt.Errorf("size: at least %d, but no more than %d can be shown", r.Min, n)
	}
	return c, nil
}

// fill returns the minimum size, or the size of the largest set if that is smaller, and marks the items that the
// minimum keeps out of all sets. A cell that is empty in one flow is used by another flow of the same size if and only
// if it lies on a cycle of paths that augment and take back.
func (c *crossing) fill(never []bool) int {
	size := len(c.include)
	if size >= c.minimum {
		return size
	}
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.begin(make([]float64, len(c.cell)), len(c.cell))
	for size < c.minimum && f.augment(true) {
		size++
	}
	f.gain = nil
	if size < c.minimum {
		return size
	}
	out := make([]bool, len(c.cells))
	component, first := f.components(), len(f.nets[0].nodes)
	for j, k := range f.active {
		out[k] = f.taken[k] == 0 && component[f.ends[j][0]] != component[first+int(f.ends[j][1])]
	}
	for i, k := range c.cell {
		never[i] = never[i] || k >= 0 && out[k]
	}
	return size
}

// components returns the strong component of each node of the nets, side 0 before side 1. The edges are the steps that
// keep the flow's size. Source: Tarjan, Depth-First Search and Linear Graph Algorithms (1972).
func (f *flow) components() []int32 {
	first := int32(len(f.nets[0].nodes)) // first node of side 1
	steps := make([][]int32, int(first)+len(f.nets[1].nodes))
	add := func(a, b int32, forward, back bool) {
		if forward {
			steps[a] = append(steps[a], b)
		}
		if back {
			steps[b] = append(steps[b], a)
		}
	}
	for s, base := range []int32{0, first} {
		for n := int32(1); n < int32(len(f.nets[s].nodes)); n++ {
			a, b := base+f.nets[s].parent[n], base+n
			if s == 1 {
				a, b = b, a
			}
			add(a, b, f.nets[s].hasRoom(n), f.nets[s].hasFlow(n))
		}
	}
	for j, k := range f.active {
		add(f.ends[j][0], first+f.ends[j][1], f.taken[k] < f.found[k], f.taken[k] > 0)
	}
	component, found := make([]int32, len(steps)), make([]int32, len(steps)) // found: order of discovery, from 1 on
	var open []int32
	var visit func(node int32) (low int32)
	order := int32(0)
	visit = func(node int32) int32 {
		order++
		found[node] = order
		low, at := order, len(open)
		open = append(open, node)
		for _, next := range steps[node] {
			if found[next] == 0 {
				low = min(low, visit(next))
			} else if component[next] == 0 {
				low = min(low, found[next])
			}
		}
		if low == found[node] {
			for _, done := range open[at:] {
				component[done] = found[node]
			}
			open = open[:at]
		}
		return low
	}
	for node := range steps {
		if found[node] == 0 {
			visit(int32(node))
		}
	}
	return component
}

// best returns the set with the largest gain.
func (c *crossing) best(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.begin(gain, max(joining, joiningPerSlot*c.maximum))
	size := len(c.include)
	for size < c.maximum && f.augment(size < c.minimum) {
		size++
	}
	dst = append(slices.Grow(dst[:0], size), c.include...)
	for _, k := range f.active {
		for _, i := range f.top[c.start[k] : c.start[k]+f.taken[k]] {
			dst = append(dst, int(i))
		}
	}
	slices.Sort(dst)
	f.gain = nil // the pool must not retain the caller's slice
	return dst
}

// flow is the state of one call. From each cell the flow takes the items with the largest gains: a path adds the best
// of the others, and takes back the worst.
type flow struct {
	*crossing

	gain  []float64
	floor float64            // items that gain no more than this are useless
	least float64            // items with larger gains have joined the search; −∞ if all have
	size  int                // how many items join next
	best  vitrine.Assortment // the items with the largest gains

	top    []int32   // the best items of each cell that have joined, cell by cell, best first
	value  []float64 // their gains
	found  []int32   // by cell: number of entries in top
	taken  []int32   // by cell: how many of these are in the flow
	next   []float64 // by cell: gain of the best item outside the flow, or −∞
	active []int32   // cells of items that have joined, in increasing order
	ends   []cell    // nodes of the active cells in nets

	nets   [2]net
	labels [2]labels
	// A walk, from its last node back. The nodes of side 1 are numbered after side 0. An edge between two nodes is a
	// place in active, or −1 minus the lower node of a step within a hierarchy.
	nodes []int32
	edges []int32
}

// net is the part of a hierarchy above the active cells. It numbers its nodes in the hierarchy's order.
type net struct {
	place        []int32 // by node of the hierarchy, from 1 on; 0 outside the net
	nodes        []int32 // the nodes of the hierarchy
	parent, room []int32
	count        []int32 // number of items in the flow
}

// labels holds the labels of all rounds, one round after the other. Round t stores, for each node, the largest gain of
// a walk to it that takes back up to t items, and the walk's previous step.
type labels struct {
	gain []float64
	via  []int32
}

// via is a cell, or stepped minus a node of the same side, or one of these:
const (
	carried = -1 // same as in the round before
	source  = -2 // start of the walk
	stepped = -3
)

// round returns the labels of round t for n nodes. They start as a copy of the round before, or as −∞.
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

const (
	joining        = 1024 // number of items that join first, or joiningPerSlot per slot
	joiningPerSlot = 32
	joiningGrowth  = 8 // growth factor
)

// begin empties the flow and lets the items of the largest gains join the search.
func (f *flow) begin(gain []float64, some int) {
	f.found, f.taken, f.next = scratch.Grow(f.found, len(f.cells)),
		scratch.Grow(f.taken, len(f.cells)), scratch.Grow(f.next, len(f.cells))
	clear(f.found)
	clear(f.taken)
	size := int(f.start[len(f.cells)])
	f.top, f.value = scratch.Grow(f.top, size), scratch.Grow(f.value, size)
	f.gain, f.active, f.floor = gain, f.active[:0], 0
	if f.minimum > 0 {
		f.floor = math.Inf(-1)
	}
	f.least, f.size = math.Inf(1), some
	f.join()
}

// join lets more items join the search. Among equal gains in a cell, lower items are better.
func (f *flow) join() {
	f.work.spend(2 * len(f.gain))
	before := f.least
	if f.least = math.Inf(-1); f.size < len(f.gain)/joiningGrowth {
		if f.best = (Rules{Max: f.size}).best(f.best, f.gain, f.floor); len(f.best) == f.size {
			f.least = minOf(f.gain, f.best)
		}
	}
	f.size *= joiningGrowth
	for i, g := range f.gain {
		k := f.cell[i]
		if !(g < before) || g < f.least || !(g > f.floor) || k < 0 {
			continue
		}
		base, n := int(f.start[k]), int(f.found[k])
		if n == 0 {
			f.active = append(f.active, k)
		}
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
	slices.Sort(f.active)
	f.connect()
}

// connect builds the nets of the active cells.
func (f *flow) connect() {
	for s := range f.nets {
		h, n := &f.sides[s], &f.nets[s]
		n.place = scratch.Grow(n.place, len(h.parent))
		clear(n.place)
		n.nodes, n.place[0] = append(n.nodes[:0], 0), 1
		for _, k := range f.active {
			for at := f.cells[k][s]; n.place[at] == 0; at = h.parent[at] {
				n.nodes, n.place[at] = append(n.nodes, at), 1
			}
		}
		slices.Sort(n.nodes)
		n.parent, n.room, n.count = scratch.Grow(n.parent, len(n.nodes)),
			scratch.Grow(n.room, len(n.nodes)), scratch.Grow(n.count, len(n.nodes))
		for place, at := range n.nodes {
			n.place[at] = int32(place + 1)
			n.room[place], n.count[place], n.parent[place] = h.room[at], 0, -1
			if at > 0 {
				n.parent[place] = n.place[h.parent[at]] - 1
			}
		}
	}
	f.ends = f.ends[:0]
	for _, k := range f.active {
		end := cell{f.nets[0].place[f.cells[k][0]] - 1, f.nets[1].place[f.cells[k][1]] - 1}
		f.ends = append(f.ends, end)
		for s, at := range end {
			for n := &f.nets[s]; at > 0; at = n.parent[at] {
				n.count[at] += f.taken[k]
			}
		}
		f.look(k)
	}
}

// look finds the best item of a cell outside the flow.
func (f *flow) look(k int32) {
	if f.next[k] = math.Inf(-1); f.taken[k] < f.found[k] {
		f.next[k] = f.value[f.start[k]+f.taken[k]]
	}
}

// augment adds the best path to the flow and reports whether it did. Unless must is true, the path also has to gain
// something.
func (f *flow) augment(must bool) bool {
	for {
		t, steps := f.label()
		switch best := f.labels[1].gain[t*len(f.nets[1].nodes)]; {
		case !f.work.spend(steps):
			return false
		case best < f.least: // an item that has not joined may gain more
			f.join()
		case math.IsInf(best, -1), !must && !(best > 0):
			return false
		default:
			f.trace(t)
			f.follow()
			return true
		}
	}
}

// label computes the labels of all rounds. It returns the last round and the number of steps taken.
func (f *flow) label() (t, steps int) {
	one, two := &f.nets[0], &f.nets[1]
	sending, via := f.labels[0].round(0, len(one.nodes))
	sending[0], via[0] = 0, source
	one.down(0, sending, via, one.hasRoom)
	for {
		taking, viaTaking := f.labels[1].round(t, len(two.nodes))
		improved := false
		for j, k := range f.active {
			a, b := f.ends[j][0], f.ends[j][1]
			if t > 0 && via[a] == carried {
				continue
			}
			if g := sending[a] + f.next[k]; g > taking[b] {
				taking[b], viaTaking[b] = g, int32(j)
				improved = true
			}
		}
		steps += 2*len(f.active) + len(one.nodes) + len(two.nodes)
		if !improved {
			return t, steps
		}
		two.up(0, taking, viaTaking, two.hasRoom)
		two.down(1, taking, viaTaking, two.hasFlow)
		if t == len(one.nodes) {
			return t, steps
		}
		sending, via = f.labels[0].round(t+1, len(one.nodes))
		improved = false
		for j, k := range f.active {
			a, b := f.ends[j][0], f.ends[j][1]
			if f.taken[k] == 0 || a == 0 || b == 0 { // a walk must not return to its start or continue past its end
				continue
			}
			if g := taking[b] - f.value[f.start[k]+f.taken[k]-1]; g > sending[a] {
				sending[a], via[a] = g, int32(j)
				improved = true
			}
		}
		if !improved {
			return t, steps
		}
		one.up(1, sending, via, one.hasFlow)
		one.down(0, sending, via, one.hasRoom)
		t++
	}
}

func (n *net) hasRoom(node int32) bool { return n.count[node] < n.room[node] }
func (n *net) hasFlow(node int32) bool { return n.count[node] > 0 }

// up passes labels from groups to their parents, from the node first on.
func (n *net) up(first int32, gain []float64, via []int32, may func(node int32) bool) {
	for node := int32(len(n.nodes)) - 1; node > 0; node-- {
		if p := n.parent[node]; p >= first && gain[node] > gain[p] && may(node) {
			gain[p], via[p] = gain[node], stepped-node
		}
	}
}

// down passes labels from groups to their parts, from the node first on.
func (n *net) down(first int32, gain []float64, via []int32, may func(node int32) bool) {
	for node := int32(1); node < int32(len(n.nodes)); node++ {
		if p := n.parent[node]; p >= first && gain[p] > gain[node] && may(node) {
			gain[node], via[node] = gain[p], stepped-p
		}
	}
}

// trace stores the walk that the labels of round t describe, to the end of side 1.
func (f *flow) trace(t int) {
	sizes := [2]int{len(f.nets[0].nodes), len(f.nets[1].nodes)}
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
			node = f.ends[via][side]
		}
	}
}

// follow adds the walk to the flow. It cuts out any detour between two visits of the same node, which could gain only
// by rounding.
func (f *flow) follow() {
	size := int32(len(f.nets[0].nodes)) // number of nodes of side 0
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
		if j := f.edges[at]; j >= 0 {
			k := f.active[j]
			if to < size {
				f.taken[k]--
			} else {
				f.taken[k]++
			}
			f.look(k)
			continue
		}
		// A step down side 0, or up side 1, sends a unit through the lower node. A step the other way takes it back.
		lower, side := -1-f.edges[at], 0
		if to >= size {
			to, side = to-size, 1
		}
		if (to == lower) == (side == 0) {
			f.nets[side].count[lower]++
		} else {
			f.nets[side].count[lower]--
		}
	}
}
