package assortment

import (
	"math/bits"
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

// selectLargest moves the k items with the largest values to the front, in any order, preferring lower items among
// equals. It is Hoare's selection (1961) with the median of three, in O(len(items)). If pivots turn out badly, it sorts
// instead.
func selectLargest(items []int, k int, value []float64) {
	before := func(a, b int) bool { return value[a] > value[b] || value[a] == value[b] && a < b }
	for bad := 2 * bits.Len(uint(len(items))); 0 < k && k < len(items); bad-- {
		if len(items) <= 12 || bad == 0 {
			slices.SortFunc(items, func(a, b int) int {
				if before(a, b) {
					return -1
				}
				return 1
			})
			return
		}
		// The pivot goes to the front, and then to its final position at.
		mid, last := len(items)/2, len(items)-1
		if before(items[mid], items[0]) {
			items[mid], items[0] = items[0], items[mid]
		}
		if before(items[last], items[mid]) {
			items[last], items[mid] = items[mid], items[last]
			if before(items[mid], items[0]) {
				items[mid], items[0] = items[0], items[mid]
			}
		}
		items[0], items[mid] = items[mid], items[0]
		pivot, at, end := items[0], 1, last
		for {
			for at <= end && before(items[at], pivot) {
				at++
			}
			for at <= end && before(pivot, items[end]) {
				end--
			}
			if at >= end {
				break
			}
			items[at], items[end] = items[end], items[at]
			at++
			end--
		}
		at = end
		items[0], items[at] = items[at], items[0]
		switch {
		case k <= at:
			items = items[:at]
		case k == at+1:
			return
		default:
			items, k = items[at+1:], k-at-1
		}
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
