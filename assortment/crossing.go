package assortment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// Crossing is the family of the sets with at most a given number of items of each brand, of each
// category, and in all:
//
//	𝒮 = {S : |S ∩ brand_a| ≤ h_a, |S ∩ category_b| ≤ k_b, |S| ≤ maximum}
//
// A brand and a category are any two partitions of the items, so one need not be within the other,
// as the groups of a [Laminar] are. A set is a flow from brands to categories, with a unit through
// the cell (a, b) for each of its items of that brand and category; [Crossing.MaxGain] finds the flow
// of the largest gain by augmenting paths of the largest gain. Each flow on the way is the best of
// its size, and gains are concave in the size, so it stops at the first path that gains nothing.
// Source: Ahuja, Magnanti and Orlin, Network Flows (1993), Section 9.7.
//
// A call costs O(N log N), and for each item of the answer a few passes over the cells.
type Crossing struct {
	brand, category       []int // N
	brandMax, categoryMax []int // h and k
	maximum               int
	cell                  []int // N: the cell of an item
	cells                 []cell
	never                 []bool // N: the items of a brand or category that shows none; nil if there are none
	pool                  *sync.Pool
}

// hides implements selective.
func (c *Crossing) hides() []bool { return c.never }

// cell is a brand and a category that some item has.
type cell struct{ brand, category int }

// NewCrossing returns the family. brand and category have an entry for each item, which is an index of
// brandMax or of categoryMax; these have the bounds. It returns an error that names an item or a bound
// that is out of range.
func NewCrossing(brand, category, brandMax, categoryMax []int, maximum int) (*Crossing, error) {
	if len(brand) != len(category) {
		return nil, fmt.Errorf("%d items have a brand, and %d a category", len(brand), len(category))
	}
	c := &Crossing{brand: slices.Clone(brand), category: slices.Clone(category),
		brandMax: slices.Clone(brandMax), categoryMax: slices.Clone(categoryMax), maximum: max(maximum, 0)}
	of := map[cell]int{}
	for i := range brand {
		at := cell{brand[i], category[i]}
		if at.brand < 0 || at.brand >= len(brandMax) {
			return nil, fmt.Errorf("item %d is of brand %d: there are %d", i, at.brand, len(brandMax))
		}
		if at.category < 0 || at.category >= len(categoryMax) {
			return nil, fmt.Errorf("item %d is of category %d: there are %d", i, at.category, len(categoryMax))
		}
		k, ok := of[at]
		if !ok {
			k = len(c.cells)
			of[at] = k
			c.cells = append(c.cells, at)
		}
		c.cell = append(c.cell, k)
	}
	for k, h := range slices.Concat(brandMax, categoryMax) {
		if h < 0 && k < len(brandMax) {
			return nil, fmt.Errorf("brand %d shows at most %d items: want a number that is not negative", k, h)
		} else if h < 0 {
			return nil, fmt.Errorf("category %d shows at most %d items: want a number that is not negative", k-len(brandMax), h)
		}
	}
	for i, b := range brand {
		if brandMax[b] == 0 || categoryMax[category[i]] == 0 {
			if c.never == nil {
				c.never = make([]bool, len(brand))
			}
			c.never[i] = true
		}
	}
	c.pool = &sync.Pool{New: func() any { return &flow{Crossing: c} }}
	return c, nil
}

// Contains implements vitrine.Constraint.
func (c *Crossing) Contains(s vitrine.Assortment) bool {
	if len(s) > c.maximum {
		return false
	}
	brands, categories := make([]int, len(c.brandMax)), make([]int, len(c.categoryMax))
	for _, i := range s {
		if i < 0 || i >= len(c.brand) {
			return false
		}
		b, k := c.brand[i], c.category[i]
		brands[b]++
		categories[k]++
		if brands[b] > c.brandMax[b] || categories[k] > c.categoryMax[k] {
			return false
		}
	}
	return true
}

// Limit implements [Limiter].
func (c *Crossing) Limit(maximum int) (vitrine.Constraint, error) {
	if maximum >= c.maximum {
		return c, nil
	}
	return NewCrossing(c.brand, c.category, c.brandMax, c.categoryMax, maximum)
}

// MaxGain implements vitrine.Constraint. It panics unless there is a gain for each item.
func (c *Crossing) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if len(gain) != len(c.brand) {
		panic(fmt.Sprintf("assortment: Crossing of %d items has %d gains", len(c.brand), len(gain)))
	}
	f := c.pool.Get().(*flow)
	defer c.pool.Put(f)
	f.begin(gain)
	size := 0
	for size < c.maximum && f.augment() {
		size++
	}
	dst = slices.Grow(dst[:0], size)
	for k := range c.cells {
		dst = append(dst, f.order[f.start[k]:f.start[k]+f.taken[k]]...)
	}
	slices.Sort(dst)
	return dst
}

// flow is the state of one call. The items of a cell that are in the flow are those of its largest
// gains: a path adds the best of the others, and takes back the worst.
type flow struct {
	*Crossing
	gain               []float64
	order              []int // the items of positive gain, cell by cell, the best first
	start              []int // by cell: where it begins in order; the last entry is len(order)
	taken              []int // by cell: how many of its items are in the flow
	brands, categories []int // how many items of each are in the flow

	// The labels of round t: the largest gain of a walk with up to t cells taken back, and the cell
	// that it ended with.
	toBrand, toCategory labels
	nodes, edges        []int // a walk, from its last category back
}

// labels are those of all rounds, one round after the other.
type labels struct {
	gain []float64
	via  []int
}

const (
	carried = -1 // the label is that of the round before
	source  = -2 // the walk begins here
)

// round returns the labels of round t of n nodes: those of the round before, or −∞.
func (l *labels) round(t, n int) (gain []float64, via []int) {
	l.gain, l.via = append(l.gain[:t*n], make([]float64, n)...), append(l.via[:t*n], make([]int, n)...)
	gain, via = l.gain[t*n:], l.via[t*n:]
	for k := range gain {
		gain[k], via[k] = math.Inf(-1), carried
		if t > 0 {
			gain[k] = l.gain[(t-1)*n+k]
		}
	}
	return gain, via
}

// begin sorts the items, and empties the flow.
func (f *flow) begin(gain []float64) {
	f.gain, f.order = gain, f.order[:0]
	for i, g := range gain {
		if g > 0 {
			f.order = append(f.order, i)
		}
	}
	slices.SortFunc(f.order, func(a, b int) int {
		if d := f.cell[a] - f.cell[b]; d != 0 {
			return d
		}
		if d := cmp.Compare(gain[b], gain[a]); d != 0 {
			return d
		}
		return a - b
	})
	f.start = scratch.Grow(f.start, len(f.cells)+1)
	f.taken = scratch.Grow(f.taken, len(f.cells))
	f.brands, f.categories = scratch.Grow(f.brands, len(f.brandMax)), scratch.Grow(f.categories, len(f.categoryMax))
	clear(f.taken)
	clear(f.brands)
	clear(f.categories)
	at := 0
	for k := range f.cells {
		for at < len(f.order) && f.cell[f.order[at]] < k {
			at++
		}
		f.start[k] = at
	}
	f.start[len(f.cells)] = len(f.order)
}

// augment adds the best path to the flow, and reports whether it gains something.
func (f *flow) augment() bool {
	brands, via := f.toBrand.round(0, len(f.brands))
	for b, n := range f.brands {
		if n < f.brandMax[b] {
			brands[b], via[b] = 0, source
		}
	}
	t := 0
	for {
		categories, via := f.toCategory.round(t, len(f.categories))
		improved := false
		for k, at := range f.cells {
			if next := f.start[k] + f.taken[k]; next < f.start[k+1] {
				if g := brands[at.brand] + f.gain[f.order[next]]; g > categories[at.category] {
					categories[at.category], via[at.category] = g, k
					improved = true
				}
			}
		}
		if !improved || t == len(f.brands) {
			break
		}
		brands, via = f.toBrand.round(t+1, len(f.brands))
		improved = false
		for k, at := range f.cells {
			if f.taken[k] > 0 {
				if g := categories[at.category] - f.gain[f.order[f.start[k]+f.taken[k]-1]]; g > brands[at.brand] {
					brands[at.brand], via[at.brand] = g, k
					improved = true
				}
			}
		}
		if !improved {
			break
		}
		t++
	}
	end, best := -1, 0.0
	for c, g := range f.toCategory.gain[t*len(f.categories):][:len(f.categories)] {
		if f.categories[c] < f.categoryMax[c] && g > best {
			end, best = c, g
		}
	}
	if end < 0 {
		return false
	}
	f.trace(t, end)
	f.follow()
	return true
}

// trace stores the walk to a category with the labels of round t.
func (f *flow) trace(t, category int) {
	f.nodes, f.edges = append(f.nodes[:0], category), f.edges[:0]
	for node := category; ; {
		for f.toCategory.via[t*len(f.categories)+node] == carried {
			t--
		}
		k := f.toCategory.via[t*len(f.categories)+node]
		node = f.cells[k].brand
		f.nodes, f.edges = append(f.nodes, node), append(f.edges, k)
		for f.toBrand.via[t*len(f.brands)+node] == carried {
			t--
		}
		k = f.toBrand.via[t*len(f.brands)+node]
		if k == source {
			return
		}
		node = f.cells[k].category
		f.nodes, f.edges = append(f.nodes, node), append(f.edges, k)
		t--
	}
}

// follow adds the walk to the flow. It leaves out what lies between two visits of a node, which gains
// nothing but what rounding makes of it.
func (f *flow) follow() {
	for at := 0; at < len(f.edges); at++ {
		for last := len(f.nodes) - 1; last > at; last-- {
			if (last-at)%2 == 0 && f.nodes[last] == f.nodes[at] {
				at = last
				break
			}
		}
		if at == len(f.edges) {
			return
		}
		k, change := f.edges[at], 1
		if at%2 == 1 {
			change = -1
		}
		f.taken[k] += change
		f.brands[f.cells[k].brand] += change
		f.categories[f.cells[k].category] += change
	}
}
