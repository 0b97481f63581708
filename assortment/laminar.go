package assortment

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"vitrine"
)

// Laminar is a family of bounded groups, nested or disjoint,
//
//	𝒮 = {S : l_A ≤ |S ∩ A| ≤ h_A for every group A}
//
// among N items. The groups form a tree, and so do all rules that bound a number: the
// bounds on |S| belong to the root, categories are inside departments, and a pinned or
// an excluded item is a leaf with bounds 1 or 0. Any combination is exact. Groups that
// cross are refused: two partitions would need a flow, and more are NP-hard.
//
// The best sum of gains with exactly k items of a group is concave in k, and the sets
// that attain it are nested, so a greedy choice from the leaves up is exact: each group
// first commits the l_A best items that its parts have left, and then passes the best
// of the others, at most h_A − l_A of them, to its parent. Only the order of the gains
// matters. It takes O(N·depth) for selections and O(|S| log |S|) to sort the answer,
// for any K.
//
// The assortment problem under such rules, which are totally unimodular, is solved
// exactly in Davis, Gallego and Topaloglu (Assortment planning under the multinomial
// logit model with totally unimodular constraint structures, 2013).
//
// The empty set is in the family unless a rule demands items.
type Laminar struct {
	rules Rules
	nodes []node // parts before the whole: the last is the root, the set of all items
	at    []int  // N: the node that an item belongs to directly
	state []byte // N: free, pinned or excluded
	never []bool // N: whether an item is in no set at all; nil if none is

	counting sync.Once
	counts   *counts
}

const (
	free byte = iota
	pinned
	excluded
)

// node is a group A. Its parts are its groups and the items that are in none of
// them.
type node struct {
	Group
	parent           int   // -1 for the root
	first            int   // the nodes of A are those from first to A itself
	free, pinned     []int // the items that are in no part
	base             int   // how many items the parts demand, Σ l_B + |pinned|
	minimum, maximum int   // how many items A can have
	demanding        bool  // A, or a group around it, may take items of no gain
}

// NewLaminar returns the family of sets that obey the rules. It returns an error if two
// groups that bound something cross, or if no set obeys the rules. It keeps no slice of
// r.
func NewLaminar(r Rules) (*Laminar, error) {
	r = r.clone()
	l := &Laminar{rules: r, at: make([]int, r.Items), state: make([]byte, r.Items)}
	if err := l.mark(r.Include, pinned); err != nil {
		return nil, err
	}
	if err := l.mark(r.Exclude, excluded); err != nil {
		return nil, err
	}
	if err := l.plant(); err != nil {
		return nil, err
	}
	for i, a := range l.at {
		switch l.state[i] {
		case free:
			l.nodes[a].free = append(l.nodes[a].free, i)
		case pinned:
			l.nodes[a].pinned = append(l.nodes[a].pinned, i)
		}
	}
	if err := l.bound(); err != nil {
		return nil, err
	}
	l.findNever()
	return l, nil
}

func (l *Laminar) mark(items []int, state byte) error {
	for _, i := range items {
		if i < 0 || i >= l.rules.Items {
			return fmt.Errorf("item %d is outside [0, %d)", i, l.rules.Items)
		}
		if l.state[i] != free && l.state[i] != state {
			return fmt.Errorf("%s is both included and excluded", l.rules.name(i))
		}
		l.state[i] = state
	}
	return nil
}

// plant makes the tree. Groups come in from the largest to the smallest, so
// that the innermost group of an item so far is the only one that can be the
// parent of the next.
func (l *Laminar) plant() error {
	root := Group{Name: "size", Min: l.rules.Min, Max: l.rules.Max}
	for _, g := range append([]Group{root}, l.rules.Groups...) {
		if err := l.check(g); err != nil {
			return err
		}
	}
	// What bounds nothing crosses nothing.
	groups := slices.DeleteFunc(slices.Clone(l.rules.Groups), func(g Group) bool { return g.Min == 0 && g.Max >= min(len(g.Items), l.rules.Max) })
	slices.SortStableFunc(groups, func(a, b Group) int { return len(b.Items) - len(a.Items) })

	tree := []node{{Group: root, parent: -1}}
	parts := [][]int{nil}
	for _, g := range groups {
		a := len(tree)
		parent := 0
		for k, i := range g.Items {
			switch p := l.at[i]; {
			case p == a:
				return fmt.Errorf("%s has %s twice", g.Name, l.rules.name(i))
			case k == 0:
				parent = p
			case p != parent:
				return crossing(g, tree, p, parent)
			}
			l.at[i] = a
		}
		tree = append(tree, node{Group: g, parent: parent})
		parts = append(parts, nil)
		parts[parent] = append(parts[parent], a)
	}

	place := make([]int, len(tree)) // in l.nodes
	var visit func(a int)
	visit = func(a int) {
		first := len(l.nodes)
		for _, b := range parts[a] {
			visit(b)
		}
		place[a] = len(l.nodes)
		l.nodes = append(l.nodes, tree[a])
		l.nodes[place[a]].first = first
	}
	visit(0)
	for k := range l.nodes {
		if p := l.nodes[k].parent; p >= 0 {
			l.nodes[k].parent = place[p]
		}
	}
	for i, a := range l.at {
		l.at[i] = place[a]
	}
	return nil
}

func (l *Laminar) check(g Group) error {
	switch {
	case g.Min < 0:
		return fmt.Errorf("%s: at least %d: must not be negative", g.Name, g.Min)
	case g.Max < 0:
		return fmt.Errorf("%s: at most %d: must not be negative", g.Name, g.Max)
	case g.Min > g.Max:
		return fmt.Errorf("%s: at least %d and at most %d: the bounds exclude each other", g.Name, g.Min, g.Max)
	}
	for _, i := range g.Items {
		if i < 0 || i >= l.rules.Items {
			return fmt.Errorf("%s: item %d is outside [0, %d)", g.Name, i, l.rules.Items)
		}
	}
	return nil
}

// crossing names the group that g crosses, of two that hold different items of
// it: the smaller one, which stands later in the tree, cannot hold all of g.
func crossing(g Group, tree []node, a, b int) error {
	return sharedError{g.Name, tree[max(a, b)].Name}
}

// sharedError names two groups that cross.
type sharedError [2]string

func (e sharedError) Error() string {
	return fmt.Sprintf("%s and %s share items, but neither contains the other: groups must be nested or disjoint", e[0], e[1])
}

// bound finds how many items every group can have, and reports where the rules
// leave no number.
func (l *Laminar) bound() error {
	supply := make([]int, len(l.nodes)) // of the parts
	for k := range l.nodes {
		a := &l.nodes[k]
		a.base += len(a.pinned)
		supply[k] += len(a.pinned) + len(a.free)
		a.minimum, a.maximum = max(a.Min, a.base), min(a.Max, supply[k])
		switch {
		case a.base > a.Max:
			return fmt.Errorf("%s: at most %d, but %s demanded: %s", a.Name, a.Max, areDemanded(a.base), l.demands(k))
		case a.Min > supply[k]:
			return fmt.Errorf("%s: at least %d, but no more than %d can be shown: %s", a.Name, a.Min, supply[k], l.supplies(k))
		}
		if a.parent >= 0 {
			l.nodes[a.parent].base += a.minimum
			supply[a.parent] += a.maximum
		}
	}
	for k := len(l.nodes) - 1; k >= 0; k-- {
		a := &l.nodes[k]
		a.demanding = a.Min > a.base
		if a.parent >= 0 {
			p := &l.nodes[a.parent]
			a.demanding = a.demanding || p.demanding
			a.maximum = min(a.maximum, p.maximum-(p.base-a.minimum))
		}
	}
	return nil
}

func areDemanded(n int) string {
	if n == 1 {
		return "1 item is"
	}
	return fmt.Sprintf("%d items are", n)
}

// demands lists what the parts of a group demand.
func (l *Laminar) demands(k int) string {
	var list []string
	for _, i := range l.nodes[k].pinned {
		list = append(list, l.rules.name(i)+" is included")
	}
	for _, b := range l.nodes[l.nodes[k].first:k] {
		if b.parent == k && b.minimum > 0 {
			if b.Min == b.minimum {
				list = append(list, fmt.Sprintf("at least %d of %s", b.minimum, b.Name))
			} else {
				list = append(list, fmt.Sprintf("%d in %s", b.minimum, b.Name))
			}
		}
	}
	return few(list)
}

// supplies says what keeps the parts of a group from having more items.
func (l *Laminar) supplies(k int) string {
	var list []string
	size, out := 0, 0
	for i, at := range l.at {
		if at >= l.nodes[k].first && at <= k {
			size++
			if l.state[i] == excluded {
				out++
			}
		}
	}
	list = append(list, "it has "+plural(size))
	if out > 0 {
		list = append(list, fmt.Sprintf("%d of them excluded", out))
	}
	for _, b := range l.nodes[l.nodes[k].first:k] {
		if b.parent == k && b.Max != NoLimit {
			list = append(list, fmt.Sprintf("at most %d of %s", b.Max, b.Name))
		}
	}
	return few(list)
}

// few joins the first words of a list.
func few(list []string) string {
	const maximum = 5
	if len(list) > maximum {
		list = append(list[:maximum:maximum], fmt.Sprintf("and %d more", len(list)-maximum))
	}
	return strings.Join(list, ", ")
}

// findNever finds the items that are in no set. A free item can be shown where
// its group has a place for it: one that must be filled anyway, or one more
// here and in the groups around it.
func (l *Laminar) findNever() {
	room := make([]bool, len(l.nodes))
	for k := len(l.nodes) - 1; k >= 0; k-- {
		a := &l.nodes[k]
		room[k] = a.Min > a.base || a.base < a.Max && (a.parent < 0 || room[a.parent])
	}
	for i, a := range l.at {
		if l.state[i] == excluded || l.state[i] == free && !room[a] {
			if l.never == nil {
				l.never = make([]bool, len(l.at))
			}
			l.never[i] = true
		}
	}
}

// hides implements selective.
func (l *Laminar) hides() []bool { return l.never }

// Items returns N.
func (l *Laminar) Items() int { return len(l.at) }

// Contains implements vitrine.Constraint.
func (l *Laminar) Contains(s vitrine.Assortment) bool {
	w := laminarScratches.Get().(*laminarScratch)
	defer laminarScratches.Put(w)
	w.resize(len(l.nodes))
	clear(w.count)
	included := 0
	for _, i := range s {
		if i < 0 || i >= len(l.at) || l.state[i] == excluded {
			return false
		}
		if l.state[i] == pinned {
			included++
		}
		w.count[l.at[i]]++
	}
	for k := range l.nodes {
		a := &l.nodes[k]
		included -= len(a.pinned)
		if w.count[k] < a.Min || w.count[k] > a.Max {
			return false
		}
		if a.parent >= 0 {
			w.count[a.parent] += w.count[k]
		}
	}
	return included == 0
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (l *Laminar) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	return l.best(dst, gain, 0)
}

// top implements ranker: exp(u_i) is positive if u_i is above −∞.
func (l *Laminar) top(dst vitrine.Assortment, u []float64) vitrine.Assortment {
	return l.best(dst, u, negInf)
}

// best returns the set with the largest values. Values of items that no rule demands
// must be above minimum.
func (l *Laminar) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	if len(value) != len(l.at) {
		panic(fmt.Sprintf("assortment: %d gains for a family of %d items", len(value), len(l.at)))
	}
	w := laminarScratches.Get().(*laminarScratch)
	defer laminarScratches.Put(w)
	w.resize(len(l.nodes))
	dst, open := dst[:0], w.open[:0] // committed, and not decided
	for k := range l.nodes {
		a := &l.nodes[k]
		w.count[k], w.start[k] = len(dst), len(open)
		committed, start := w.count[a.first], w.start[a.first]
		dst = append(dst, a.pinned...)
		open = appendLargest(open, a.free, a.maximum, value, minimum, a.demanding)
		if missing := a.Min - (len(dst) - committed); missing > 0 {
			selectLargest(open[start:], missing, value)
			dst = append(dst, open[start:start+missing]...)
			open = slices.Delete(open, start, start+missing)
		}
		if maximum := a.Max - (len(dst) - committed); len(open)-start > maximum {
			selectLargest(open[start:], maximum, value)
			open = open[:start+maximum]
		}
	}
	for _, i := range open {
		if value[i] > minimum {
			dst = append(dst, i)
		}
	}
	w.open = open
	slices.Sort(dst)
	return dst
}

// laminarScratch is the scratch of one call.
type laminarScratch struct {
	count []int // committed before a node; in Contains, the items of a node
	start []int // undecided before a node
	open  []int
}

var laminarScratches = sync.Pool{New: func() any { return new(laminarScratch) }}

func (w *laminarScratch) resize(nodes int) {
	if cap(w.count) < nodes {
		w.count, w.start = make([]int, nodes), make([]int, nodes)
	}
	w.count, w.start = w.count[:nodes], w.start[:nodes]
}

// without implements narrower.
func (l *Laminar) without(items []int) (vitrine.Constraint, error) {
	return NewLaminar(l.rules.without(items))
}

// Limit implements [Limiter].
func (l *Laminar) Limit(maximum int) (vitrine.Constraint, error) {
	if l.nodes[len(l.nodes)-1].maximum <= maximum {
		return l, nil
	}
	rules := l.rules
	rules.Max = max(maximum, 0)
	return NewLaminar(rules)
}

func (r Rules) without(items []int) Rules {
	r.Exclude = slices.Concat(r.Exclude, items)
	return r
}
