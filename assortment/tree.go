package assortment

import (
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// tree finds the best sets of a hierarchy, which may require items.
//
// The best sum of gains with exactly k items of a group is concave in k, and the sets that attain it are nested, so a
// greedy choice from the leaves up is exact: each group first commits the items that it requires, the best that its
// parts left over. It then passes the best of the remaining items, as many as it may show, to its parent. Only the
// order of the gains matters. This takes O(N·depth) for selections and O(|S| log |S|) to sort the answer, for any K.
//
// The assortment problem under such rules, which are totally unimodular, is solved exactly in Davis, Gallego and
// Topaloglu (Assortment planning under the multinomial logit model with totally unimodular constraint structures,
// 2013).
type tree struct {
	nodes        []node
	free, pinned [][]int // by node: the items that are in no part

	counting sync.Once
	counts   *counts
}

func newTree(h *hierarchy, states []state) *tree {
	t := &tree{nodes: h.nodes, free: make([][]int, len(h.nodes)), pinned: make([][]int, len(h.nodes))}
	for k, a := range h.nodes {
		t.free[k] = make([]int, 0, a.free)
	}
	for i, k := range h.at {
		switch states[i] {
		case free:
			t.free[k] = append(t.free[k], i)
		case pinned:
			t.pinned[k] = append(t.pinned[k], i)
		}
	}
	return t
}

// best returns the set with the largest values. Items that no rule requires need a value above minimum.
func (t *tree) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	w := treeScratches.Get().(*treeScratch)
	defer treeScratches.Put(w)
	w.count, w.start = scratch.Grow(w.count, len(t.nodes)), scratch.Grow(w.start, len(t.nodes))
	dst, open := dst[:0], w.open[:0] // dst holds committed items, open undecided ones
	for k := range t.nodes {
		a := &t.nodes[k]
		w.count[k], w.start[k] = len(dst), len(open)
		committed, start := w.count[a.first], w.start[a.first]
		dst = append(dst, t.pinned[k]...)
		open = w.ranking.appendLargest(open, t.free[k], a.maximum, value, minimum, a.demanding)
		if missing := a.Min - (len(dst) - committed); missing > 0 {
			before := len(dst)
			dst = w.ranking.appendLargest(dst, open[start:], missing, value, minimum, true)
			required := dst[before:]
			slices.Sort(required)
			open = append(open[:start], slices.DeleteFunc(open[start:], func(i int) bool { return among(required, i) })...)
		}
		if maximum := a.Max - (len(dst) - committed); len(open)-start > maximum {
			open = w.ranking.appendLargest(open[:start], open[start:], maximum, value, minimum, true)
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

// treeScratch is the scratch of one call.
type treeScratch struct {
	count   []int // committed before a node
	start   []int // undecided before a node
	open    []int
	ranking Ranking
}

var treeScratches = sync.Pool{New: func() any { return new(treeScratch) }}
