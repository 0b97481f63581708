package assortment

import (
	"math"
	"math/bits"
	"slices"
)

var negInf = math.Inf(-1)

// appendLargest appends the items whose values are above minimum, or all items,
// and where their number is far above k only the k largest, by the heap of
// [largest]. The items increase.
func appendLargest(dst, items []int, k int, value []float64, minimum float64, all bool) []int {
	const far = 8
	if k == 0 {
		return dst
	}
	if k > len(items)/far {
		k = len(items)
	}
	start := len(dst)
	for at, i := range items {
		if !all && !(value[i] > minimum) {
			continue
		}
		dst = append(dst, i)
		if len(dst)-start < k {
			continue
		}
		if at+1 < len(items) {
			replaceSmaller(dst[start:], items[at+1:], value)
		}
		break
	}
	return dst
}

// replaceSmaller makes the heap hold the largest of its items and the given ones.
func replaceSmaller(heap, items []int, value []float64) {
	for j := len(heap)/2 - 1; j >= 0; j-- {
		siftDown(heap, value, j)
	}
	threshold := value[heap[0]]
	for _, i := range items {
		if value[i] > threshold {
			heap[0] = i
			siftDown(heap, value, 0)
			threshold = value[heap[0]]
		}
	}
}

// selectLargest moves the k items of the largest values to the front, in any
// order; of equal values the lower items. It is Hoare's selection (1961) by
// medians of three, in O(len(items)), which sorts where pivots are bad.
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
		// The pivot goes to the front, and then to its place at.
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
