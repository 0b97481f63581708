package assortment

import (
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
)

// sample appends a set drawn uniformly from the nonempty sets. It draws the number of items of each group from the root
// down, in proportion to the number of such sets, and then the items. The sets are counted once per family, in O(N·h)
// for h the largest |S|, storing one number for each group and size.
func (t *tree) sample(dst vitrine.Assortment, rng *rand.Rand) vitrine.Assortment {
	c := t.counted()
	root := len(t.nodes) - 1
	sizes := c.sets[root]
	if len(sizes) == 1 { // only the empty set
		return dst
	}
	k := draw(rng, 1, len(sizes), func(k int) float64 { return sizes[k] - c.nonempty })
	dst = t.sampleGroup(dst, c, root, k, rng)
	slices.Sort(dst)
	return dst
}

// counts holds logs of numbers of sets, by group and number of items.
type counts struct {
	parts [][]int // the groups within a group
	sets  [][]float64
	// before[a][j][k] counts the sets of k items taken from A itself and from its first j groups.
	before   [][][]float64
	nonempty float64 // log of the number of nonempty sets; 0 if only the empty set exists
}

// counted counts the sets of the family on the first call, part by part of each group:
//
//	n_{A∪B}(k) = Σ_x n_A(k − x) n_B(x)
func (t *tree) counted() *counts {
	t.counting.Do(func() {
		c := &counts{parts: make([][]int, len(t.nodes)),
			sets: make([][]float64, len(t.nodes)), before: make([][][]float64, len(t.nodes))}
		for k := range t.nodes {
			a := &t.nodes[k]
			if a.parent >= 0 {
				c.parts[a.parent] = append(c.parts[a.parent], k)
			}
			sets := choices(len(t.pinned[k]), len(t.free[k]), a.maximum)
			for _, b := range c.parts[k] {
				c.before[k] = append(c.before[k], sets)
				sets = convolve(sets, c.sets[b], a.maximum)
			}
			sets = slices.Clone(sets)
			for x := range min(a.Min, len(sets)) {
				sets[x] = negInf
			}
			c.sets[k] = sets
		}
		for k, v := range c.sets[len(t.nodes)-1] {
			if k == 1 {
				c.nonempty = v
			} else if k > 1 {
				c.nonempty = logAdd(c.nonempty, v)
			}
		}
		t.counts = c
	})
	return t.counts
}

// choices returns log C(n, k − forced) for k up to maximum.
func choices(forced, n, maximum int) []float64 {
	sets := make([]float64, min(forced+n, maximum)+1)
	logC := 0.0
	for k := range sets {
		switch {
		case k < forced:
			sets[k] = negInf
		case k > forced:
			logC += logRatio(n, k-forced)
			fallthrough
		default:
			sets[k] = logC
		}
	}
	return sets
}

// convolve multiplies two polynomials, given by log coefficients, up to a degree.
func convolve(a, b []float64, maximum int) []float64 {
	product := make([]float64, min(len(a)+len(b)-2, maximum)+1)
	for k := range product {
		product[k] = coefficient(a, b, k)
	}
	return product
}

// coefficient returns the log of Σ_x exp(a_{k−x} + b_x).
func coefficient(a, b []float64, k int) float64 {
	sum := negInf
	for x := max(0, k-len(a)+1); x <= min(k, len(b)-1); x++ {
		sum = logAdd(sum, a[k-x]+b[x])
	}
	return sum
}

// logAdd returns log(exp(a) + exp(b)).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if b == negInf {
		return a
	}
	return a + portable.Log1p(portable.Exp(b-a))
}

// sampleGroup appends k items of group a.
func (t *tree) sampleGroup(dst vitrine.Assortment, c *counts, a, k int, rng *rand.Rand) vitrine.Assortment {
	total := c.before[a]
	for j := len(c.parts[a]) - 1; j >= 0; j-- {
		b := c.parts[a][j]
		others, sets := total[j], c.sets[b]
		sum := coefficient(others, sets, k)
		x := draw(rng, max(0, k-len(others)+1), min(k+1, len(sets)), func(x int) float64 {
			return others[k-x] + sets[x] - sum
		})
		dst = t.sampleGroup(dst, c, b, x, rng)
		k -= x
	}
	dst = append(dst, t.pinned[a]...)
	k -= len(t.pinned[a])
	start := len(dst)
	dst = slices.Grow(dst, k)[:start+k]
	subset(dst[start:], k, len(t.free[a]), rng)
	for at, i := range dst[start:] {
		dst[start+at] = t.free[a][i]
	}
	return dst
}

// draw draws from [lo, hi) with the given log probabilities, at least one of them finite.
func draw(rng *rand.Rand, lo, hi int, logP func(x int) float64) int {
	left, last := rng.Float64(), lo
	for x := lo; x < hi; x++ {
		p := portable.Exp(logP(x))
		if p == 0 {
			continue
		}
		last = x
		if left -= p; left < 0 {
			break
		}
	}
	return last
}

// propensity returns the probability of each nonempty set. Rounding may put the logarithm of one set below 0.
func (t *tree) propensity() float64 { return min(portable.Exp(-t.counted().nonempty), 1) }
