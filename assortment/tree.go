package assortment

import (
	"cmp"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// tree finds the best sets of a hierarchy, which may demand items.
//
// The best sum of gains with exactly k items of a group is concave in k, and the sets that attain it are nested, so a greedy
// choice from the leaves up is exact: each group first commits the items that it demands, the best that its parts have left,
// and then passes the best of the others, as many as it may show, to its parent. Only the order of the gains matters. It takes
// O(N·depth) for selections and O(|S| log |S|) to sort the answer, for any K.
//
// The assortment problem under such rules, which are totally unimodular, is solved exactly in Davis, Gallego and Topaloglu
// (Assortment planning under the multinomial logit model with totally unimodular constraint structures, 2013).
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

// best returns the set with the largest values. Values of items that no rule demands must be above minimum.
func (t *tree) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	w := treeScratches.Get().(*treeScratch)
	defer treeScratches.Put(w)
	w.count, w.start = scratch.Grow(w.count, len(t.nodes)), scratch.Grow(w.start, len(t.nodes))
	dst, open := dst[:0], w.open[:0] // committed, and not decided
	for k := range t.nodes {
		a := &t.nodes[k]
		w.count[k], w.start[k] = len(dst), len(open)
		committed, start := w.count[a.first], w.start[a.first]
		dst = append(dst, t.pinned[k]...)
		open = w.ranking.appendLargest(open, t.free[k], a.maximum, value, minimum, a.demanding)
		if missing := a.Min - (len(dst) - committed); missing > 0 {
			largestFirst(open[start:], missing, value)
			dst = append(dst, open[start:start+missing]...)
			open = slices.Delete(open, start, start+missing)
		}
		if maximum := a.Max - (len(dst) - committed); len(open)-start > maximum {
			largestFirst(open[start:], maximum, value)
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

// largestFirst puts the items of the k largest values before the others. Of equal values the lower item counts as larger.
func largestFirst(items []int, k int, value []float64) {
	if 0 < k && k < len(items) {
		slices.SortFunc(items, func(a, b int) int { return cmp.Or(cmp.Compare(value[b], value[a]), cmp.Compare(a, b)) })
	}
}

// treeScratch is the scratch of one call.
type treeScratch struct {
	count   []int // committed before a node
	start   []int // undecided before a node
	open    []int
	ranking Ranking
}

var treeScratches = sync.Pool{New: func() any { return new(treeScratch) }}
