package assortment

import (
	"fmt"
	"slices"
	"strings"

	"vitrine/internal/hint"
)

// hierarchy is a tree of groups, any two of them nested or disjoint. Its root is the set of all items.
type hierarchy struct {
	nodes []node // parts before the whole: the last one is the root
	at    []int  // N: an item's smallest group
}

// node is a group. Its parts are the groups inside it, and the items that lie in no such group.
type node struct {
	Group
	parent           int  // -1 for the root
	first            int  // the subtree consists of the nodes from first to this one
	pins, free       int  // number of pinned and other items that are in no part
	base             int  // how many items the parts require
	minimum, maximum int  // how many items the group can contribute
	demanding        bool // the group, or one around it, may need items without gain
}

// state tells whether the rules pin or exclude an item.
type state byte

const (
	free state = iota
	pinned
	excluded
)

// states returns the state of each item.
func (r *Rules) states() ([]state, error) {
	states := make([]state, r.Items)
	for _, list := range []struct {
		items []int
		state state
	}{{r.Include, pinned}, {r.Exclude, excluded}} {
		for _, i := range list.items {
			if i < 0 || i >= r.Items {
				return nil, fmt.Errorf("item %d is outside [0, %d)", i, r.Items)
			}
			if states[i] != free && states[i] != list.state {
				return nil, fmt.Errorf("%s is both included and excluded", r.name(i))
			}
			states[i] = list.state
		}
	}
	return states, nil
}

// hierarchies arranges the groups in one hierarchy, or in two if groups cross.
func (r *Rules) hierarchies(states []state) ([]*hierarchy, error) {
	for _, g := range append([]Group{r.root()}, r.Groups...) {
		if err := r.check(g); err != nil {
			return nil, err
		}
	}
	// A group without effect cannot cross another.
	groups := slices.DeleteFunc(slices.Clone(r.Groups), func(g Group) bool {
		return g.Min == 0 && g.Max >= min(len(g.Items), r.Max)
	})
	slices.SortStableFunc(groups, func(a, b Group) int { return len(b.Items) - len(a.Items) })
	h, err := r.plant(groups)
	all := []*hierarchy{h}
	if crossing, ok := err.(*CrossingError); ok {
		if all, err = r.divide(groups, crossing); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if err := h.bound(r, states); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *Rules) root() Group { return Group{Name: "size", Min: r.Min, Max: r.Max} }

func (r *Rules) check(g Group) error {
	switch {
	case g.Min < 0:
		return fmt.Errorf("%s: at least %d: must not be negative", g.Name, g.Min)
	case g.Max < 0:
		return fmt.Errorf("%s: at most %d: must not be negative", g.Name, g.Max)
	case g.Min > g.Max:
		return fmt.Errorf("%s: at least %d and at most %d: the bounds exclude each other", g.Name, g.Min, g.Max)
	}
	for _, i := range g.Items {
		if i < 0 || i >= r.Items {
			return fmt.Errorf("%s: item %d is outside [0, %d)", g.Name, i, r.Items)
		}
	}
	return nil
}

// plant builds the hierarchy of groups, given from the largest to the smallest. The order implies that only an item's
// smallest group so far can contain the next group. If two groups cross, the error is a [*CrossingError].
func (r *Rules) plant(groups []Group) (*hierarchy, error) {
	h := &hierarchy{at: make([]int, r.Items)}
	tree := []node{{Group: r.root(), parent: -1}}
	parts := [][]int{nil}
	for _, g := range groups {
		a := len(tree)
		parent := 0
		for k, i := range g.Items {
			switch p := h.at[i]; {
			case p == a:
				return nil, fmt.Errorf("%s has %s twice", g.Name, r.name(i))
			case k == 0:
				parent = p
			case p != parent: // the smaller of these two groups cannot contain g
				return nil, &CrossingError{[]string{g.Name, tree[max(p, parent)].Name}}
			}
			h.at[i] = a
		}
		tree = append(tree, node{Group: g, parent: parent})
		parts = append(parts, nil)
		parts[parent] = append(parts[parent], a)
	}
	place := make([]int, len(tree)) // in h.nodes
	var visit func(a int)
	visit = func(a int) {
		first := len(h.nodes)
		for _, b := range parts[a] {
			visit(b)
		}
		place[a] = len(h.nodes)
		h.nodes = append(h.nodes, tree[a])
		h.nodes[place[a]].first = first
	}
	visit(0)
	for k := range h.nodes {
		if p := h.nodes[k].parent; p >= 0 {
			h.nodes[k].parent = place[p]
		}
	}
	for i, a := range h.at {
		h.at[i] = place[a]
	}
	return h, nil
}

// CrossingError reports groups that cross, each the next one in the list. With three or more, the last also crosses the
// first: the groups do not form two hierarchies, and no efficient search for the best set is known.
type CrossingError struct{ Groups []string }

// Error implements error.
func (e *CrossingError) Error() string {
	last := len(e.Groups) - 1
	if last == 1 {
		return fmt.Sprintf("%s and %s share items, but neither contains the other: groups must be nested or disjoint",
			e.Groups[0], e.Groups[1])
	}
	return fmt.Sprintf("%s and %s cross each other: items may be grouped in two ways that cross, not in three; "+
		"drop one of these limits", strings.Join(e.Groups[:last], ", "), e.Groups[last])
}

// divide arranges groups in two hierarchies, so that groups that cross end up in different ones.
func (r *Rules) divide(groups []Group, crossing *CrossingError) (all []*hierarchy, err error) {
	if r.Weights != nil {
		return nil, fmt.Errorf("a capacity cannot be combined with groups that cross: %w", crossing)
	}
	crosses := crossings(groups, r.Items)
	const unknown = -1
	side, before := slices.Repeat([]int{unknown}, len(groups)), make([]int, len(groups))
	for root := range groups {
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
					return nil, &CrossingError{cycle(groups, before, k, other)}
				}
			}
		}
	}
	for s := range 2 {
		var own []Group
		for k, g := range groups {
			if side[k] == s {
				own = append(own, g)
			}
		}
		h, err := r.plant(own)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// crossings returns, for each group, the groups that share items with it without one containing the other.
func crossings(groups []Group, items int) [][]int {
	start := make([]int32, items+2) // start of an item's groups in of, stored two places later
	for _, g := range groups {
		for _, i := range g.Items {
			start[i+2]++
		}
	}
	for i := range items {
		start[i+2] += start[i+1]
	}
	of := make([]int32, start[items+1])
	for k, g := range groups {
		for _, i := range g.Items {
			of[start[i+1]] = int32(k)
			start[i+1]++
		}
	}
	crosses := make([][]int, len(groups))
	shared, others := make([]int, len(groups)), []int32(nil)
	for k, g := range groups {
		others = others[:0]
		for _, i := range g.Items {
			for _, other := range of[start[i]:start[i+1]] {
				if shared[other] == 0 {
					others = append(others, other)
				}
				shared[other]++
			}
		}
		slices.Sort(others)
		for _, other := range others {
			if shared[other] < min(len(g.Items), len(groups[other].Items)) {
				crosses[k] = append(crosses[k], int(other))
			}
			shared[other] = 0
		}
	}
	return crosses
}

// cycle returns the names of the groups on the path from a to b, along the edges by which the search discovered them.
func cycle(groups []Group, before []int, a, b int) (names []string) {
	var up []int
	for k := a; ; k = before[k] {
		if up = append(up, k); before[k] == k {
			break
		}
	}
	for k := b; ; k = before[k] {
		names = append(names, groups[k].Name)
		if at := slices.Index(up, k); at >= 0 {
			for at--; at >= 0; at-- {
				names = append(names, groups[up[at]].Name)
			}
			return names
		}
	}
}

// bound computes how many items every group can contribute. If there is no such number for some group, it returns an
// error.
func (h *hierarchy) bound(r *Rules, states []state) error {
	for i, k := range h.at {
		switch states[i] {
		case free:
			h.nodes[k].free++
		case pinned:
			h.nodes[k].pins++
		}
	}
	supply := make([]int, len(h.nodes)) // how many items the parts can contribute
	for k := range h.nodes {
		a := &h.nodes[k]
		a.base += a.pins
		supply[k] += a.pins + a.free
		a.minimum, a.maximum = max(a.Min, a.base), min(a.Max, supply[k])
		switch {
		case a.base > a.Max:
			return fmt.Errorf("%s: at most %d, but %s demanded: %s",
				a.Name, a.Max, areDemanded(a.base), h.demands(r, states, k))
		case a.Min > supply[k]:
			return fmt.Errorf("%s: at least %d, but no more than %d can be shown: %s",
				a.Name, a.Min, supply[k], h.supplies(states, k))
		}
		if a.parent >= 0 {
			h.nodes[a.parent].base += a.minimum
			supply[a.parent] += a.maximum
		}
	}
	for k := len(h.nodes) - 1; k >= 0; k-- {
		a := &h.nodes[k]
		a.demanding = a.Min > a.base
		if a.parent >= 0 {
			p := &h.nodes[a.parent]
			a.demanding = a.demanding || p.demanding
			a.maximum = min(a.maximum, p.maximum-(p.base-a.minimum))
		}
	}
	return nil
}

// demands lists the requirements of a group's parts.
func (h *hierarchy) demands(r *Rules, states []state, k int) string {
	var list []string
	for i, at := range h.at {
		if at == k && states[i] == pinned {
			list = append(list, r.name(i)+" is included")
		}
	}
	for _, b := range h.parts(k) {
		if b.minimum > 0 && b.Min == b.minimum {
			list = append(list, fmt.Sprintf("at least %d of %s", b.minimum, b.Name))
		} else if b.minimum > 0 {
			list = append(list, fmt.Sprintf("%d in %s", b.minimum, b.Name))
		}
	}
	return few(list)
}

// supplies explains why the parts of a group cannot supply more items.
func (h *hierarchy) supplies(states []state, k int) string {
	size, out := 0, 0
	for i, at := range h.at {
		if at >= h.nodes[k].first && at <= k {
			size++
			if states[i] == excluded {
				out++
			}
		}
	}
	list := []string{"it has " + hint.Count(size, "item")}
	if out > 0 {
		list = append(list, fmt.Sprintf("%d of them excluded", out))
	}
	for _, b := range h.parts(k) {
		if b.Max != NoLimit {
			list = append(list, fmt.Sprintf("at most %d of %s", b.Max, b.Name))
		}
	}
	return few(list)
}

// parts returns the largest groups inside a group.
func (h *hierarchy) parts(k int) (parts []node) {
	for _, b := range h.nodes[h.nodes[k].first:k] {
		if b.parent == k {
			parts = append(parts, b)
		}
	}
	return parts
}

// hide marks the free items that no set contains. A group can show a free item if it has a place for it: either a place
// that must be filled anyway, or room for one more both here and in the groups around it.
func (h *hierarchy) hide(never []bool, states []state) {
	room := make([]bool, len(h.nodes))
	for k := len(h.nodes) - 1; k >= 0; k-- {
		a := &h.nodes[k]
		room[k] = a.Min > a.base || a.base < a.Max && (a.parent < 0 || room[a.parent])
	}
	for i, k := range h.at {
		if states[i] == excluded || states[i] == free && !room[k] {
			never[i] = true
		}
	}
}
