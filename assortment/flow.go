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
// A call starts with the items of the largest gains. A path cannot gain more than the item that it adds: otherwise the
// rest of the path would be a gain by itself, and the flow would not be the best of its size. So an item needs to join
// the search only once the best path gains less than the item. Usually a call costs two passes over the gains, plus a
// few passes over the cells of a thousand items for each item of the answer.
type crossing struct {
	minimum, maximum int  // of all items
	demands          bool // whether a group has a lower bound that the pinned items do not meet
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
	room   []int32 // how many items a set may show in addition to the pinned ones
	least  []int32 // how many it must
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
		c.sides[s] = side{make([]int32, last+1), make([]int32, last+1), make([]int32, last+1)}
		pins := make([]int, last+1)
		for k, a := range h.nodes {
			if pins[k] += a.pins; a.parent >= 0 {
				pins[a.parent] += pins[k]
			}
		}
		for n := range h.nodes {
			a := &h.nodes[last-n]
			parent, room, least := int32(-1), int32(min(a.Max, r.Items)-pins[last-n]), int32(0)
			if n > 0 {
				parent, least = int32(last-a.parent), int32(max(a.Min-pins[last-n], 0))
				room = min(room, c.sides[s].room[parent])
			}
			c.sides[s].parent[n], c.sides[s].room[n], c.sides[s].least[n] = parent, room, least
			c.demands = c.demands || least > 0
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
	return c, c.fill(hierarchies, never)
}

// fill reports lower bounds that no set meets, and finds the items that these bounds keep out of all sets. If a flow
// leaves a cell empty, some other flow uses the cell exactly if the cell lies on a cycle of steps that augment and take
// back.
func (c *crossing) fill(hierarchies []*hierarchy, never []bool) error {
	size := len(c.include)
	if size >= c.minimum && !c.demands {
		return nil
	}
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.begin(make([]float64, len(c.cell)), len(c.cell))
	for size < c.maximum && f.augment(size < c.minimum) {
		size++
	}
	f.gain = nil
	if size < c.minimum {
		return fmt.Errorf("size: at least %d, but no more than %d can be shown", c.minimum, size)
	}
	for s, h := range hierarchies {
		for n, least := range c.sides[s].least {
			shown := int32(0)
			if place := f.nets[s].place[n]; place > 0 {
				shown = f.nets[s].count[place-1]
			}
			if a := &h.nodes[len(h.nodes)-1-n]; shown < least {
				return fmt.Errorf("%s: at least %d, but the other bounds leave no more than %d", a.Name, a.Min,
					a.Min-int(least-shown))
			}
		}
	}
	out := make([]bool, len(c.cells))
	component, first := f.components(size), len(f.nets[0].nodes)
	for j, k := range f.active {
		out[k] = f.taken[k] == 0 && component[f.ends[j][0]] != component[first+int(f.ends[j][1])]
	}
	for i, k := range c.cell {
		never[i] = never[i] || k >= 0 && out[k]
	}
	return nil
}

// components returns the strong component of each node of the nets, side 1 after side 0, among the
// steps that keep the bounds. The step from the end of a flow to its beginning changes the size. Source: Tarjan,
// Depth-First Search and Linear Graph Algorithms (1972).
func (f *flow) components(size int) []int32 {
	first := int32(len(f.nets[0].nodes)) // of side 1
	steps := make([][]int32, int(first)+len(f.nets[1].nodes))
	add := func(a, b int32, forward, back bool) {
		if forward {
			steps[a] = append(steps[a], b)
		}
		if back {
			steps[b] = append(steps[b], a)
		}
	}
	add(first, 0, size < f.maximum, size > f.minimum)
	for s, base := range []int32{0, first} {
		for n := int32(1); n < int32(len(f.nets[s].nodes)); n++ {
			a, b := base+f.nets[s].parent[n], base+n
			if s == 1 {
				a, b = b, a
			}
			add(a, b, f.nets[s].hasRoom(n), f.nets[s].count[n] > f.nets[s].least[n])
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
	some := max(joining, joiningPerSlot*c.maximum)
	if c.demands { // a path may be best for the bounds that it meets
		some = len(gain)
	}
	f.begin(gain, some)
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
	place               []int32 // by node of the hierarchy, from 1 on; 0 if it is not of the net
	nodes               []int32 // of the hierarchy
	parent, room, least []int32
	count               []int32 // of items in the flow
}

// label is the best walk to a node: it meets the most lower bounds, and of those that meet as many it has the largest
// gain. A lower bound of h items counts as h. Pairs of bounds met and gain add and compare like numbers. So the best
// path in this order leads from the best flow of a size to the best flow of the next size.
type label struct {
	gain float64
	met  int32 // of the items of lower bounds, less those given up
	via  int32 // where the walk comes from
}

func (l *label) above(o *label) bool {
	return l.met > o.met || l.met == o.met && l.gain > o.gain
}

// noWalk is the label without a walk.
var noWalk = label{gain: math.Inf(-1), met: math.MinInt32 / 2, via: carried}

// labels holds the labels of all rounds, one round after the other. In round t the walks take back up to t items.
type labels []label

// A label comes from a cell, or from a node of the same side, which is stored as stepped minus the node, or
const (
	carried = -1 // same as in the round before
	source  = -2 // start of the walk
	stepped = -3
)

// round returns the labels of round t of n nodes: the labels of the round before, or no labels.
func (l *labels) round(t, n int) []label {
	*l = scratch.Grow(*l, (t+1)*n)
	now := (*l)[t*n:]
	for k := range now {
		if now[k] = noWalk; t > 0 {
			now[k] = (*l)[(t-1)*n+k]
			now[k].via = carried
		}
	}
	return now
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
	if f.minimum > 0 || f.demands {
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
		if !(g > -1e300) { // also includes NaN: a lower bound may need the item
			g = -1e300
		}
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
		n.parent, n.room = scratch.Grow(n.parent, len(n.nodes)), scratch.Grow(n.room, len(n.nodes))
		n.least, n.count = scratch.Grow(n.least, len(n.nodes)), scratch.Grow(n.count, len(n.nodes))
		for place, at := range n.nodes {
			n.place[at] = int32(place + 1)
			n.room[place], n.least[place], n.count[place], n.parent[place] = h.room[at], h.least[at], 0, -1
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
		switch best := &f.labels[1][t*len(f.nets[1].nodes)]; {
		case !f.work.spend(steps):
			return false
		case best.gain < f.least: // an item that has not joined may gain more
			f.join()
		case math.IsInf(best.gain, -1), !must && !best.above(&label{}):
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
	sending := f.labels[0].round(0, len(one.nodes))
	sending[0] = label{via: source}
	one.down(0, sending, one.send)
	for {
		taking := f.labels[1].round(t, len(two.nodes))
		improved := false
		for j, k := range f.active {
			a, b := f.ends[j][0], f.ends[j][1]
			if t > 0 && sending[a].via == carried {
				continue
			}
			if l := (label{sending[a].gain + f.next[k], sending[a].met, int32(j)}); l.gain > noWalk.gain &&
				l.above(&taking[b]) {
				taking[b], improved = l, true
			}
		}
		steps += 2*len(f.active) + len(one.nodes) + len(two.nodes)
		if !improved {
			return t, steps
		}
		two.up(0, taking, two.send)
		two.down(1, taking, two.takeBack)
		if t == len(one.nodes) {
			return t, steps
		}
		sending = f.labels[0].round(t+1, len(one.nodes))
		improved = false
		for j, k := range f.active {
			a, b := f.ends[j][0], f.ends[j][1]
			if f.taken[k] == 0 || a == 0 || b == 0 { // a walk must not return to its start or continue past its end
				continue
			}
			if l := (label{taking[b].gain - f.value[f.start[k]+f.taken[k]-1], taking[b].met,
				int32(j)}); l.gain > noWalk.gain && l.above(&sending[a]) {
				sending[a], improved = l, true
			}
		}
		if !improved {
			return t, steps
		}
		one.up(1, sending, one.takeBack)
		one.down(0, sending, one.send)
		t++
	}
}

// send says how much of a lower bound one more item through a node meets, and whether there is room for it.
func (n *net) send(node int32) (met int32, ok bool) {
	if n.count[node] < n.least[node] {
		met = 1
	}
	return met, n.count[node] < n.room[node]
}

// takeBack says the same of one item less.
func (n *net) takeBack(node int32) (met int32, ok bool) {
	if n.count[node] <= n.least[node] {
		met = -1
	}
	return met, n.count[node] > 0
}

func (n *net) hasRoom(node int32) bool { return n.count[node] < n.room[node] }

// up passes labels from groups to the groups around them, numbered from first on.
func (n *net) up(first int32, labels []label, step func(node int32) (met int32, ok bool)) {
	for node := int32(len(n.nodes)) - 1; node > 0; node-- {
		if p := n.parent[node]; p >= first {
			pass(labels, node, p, node, step)
		}
	}
}

// down passes labels from groups, numbered from first on, to their parts.
func (n *net) down(first int32, labels []label, step func(node int32) (met int32, ok bool)) {
	for node := int32(1); node < int32(len(n.nodes)); node++ {
		if p := n.parent[node]; p >= first {
			pass(labels, p, node, node, step)
		}
	}
}

// pass passes a label on, through the lower of two nodes.
func pass(labels []label, from, to, lower int32, step func(node int32) (met int32, ok bool)) {
	if labels[from].gain == noWalk.gain {
		return
	}
	met, ok := step(lower)
	if l := (label{labels[from].gain, labels[from].met + met, stepped - from}); ok && l.above(&labels[to]) {
		labels[to] = l
	}
}

// trace stores the walk to the end of side 1 with the labels of round t.
func (f *flow) trace(t int) {
	sizes := [2]int{len(f.nets[0].nodes), len(f.nets[1].nodes)}
	f.nodes, f.edges = f.nodes[:0], f.edges[:0]
	for side, node := 1, int32(0); ; {
		f.nodes = append(f.nodes, node+int32(side*sizes[0]))
		for f.labels[side][t*sizes[side]+int(node)].via == carried {
			t--
		}
		switch via := f.labels[side][t*sizes[side]+int(node)].via; {
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

// minOf returns the smallest value of the items, or +Inf without items.
func minOf(value []float64, items []int) float64 {
	minimum := math.Inf(1)
	for _, i := range items {
		minimum = min(minimum, value[i])
	}
	return minimum
}
