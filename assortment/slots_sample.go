package assortment

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
)

// Uniform reports whether [Slots.Sample] draws uniformly. It does if there are at most 2¹² ways to choose the number of
// items of each kind. Counting the sets of a transversal matroid in general is #P-complete (Colbourn, Provan and
// Vertigan 1995).
func (t *Slots) Uniform() bool { return !t.counted(len(t.kind)).unknown }

// Sample implements [Sampler]. It draws the number of items of each kind in proportion to the number of such sets, and
// then the items. If the family is not [Slots.Uniform], Sample keeps adding random items as long as any can be placed.
// It panics unless n is N.
func (t *Slots) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	c := t.counted(n)
	dst = dst[:0]
	if c.unknown {
		return t.sampleAny(dst, rng)
	}
	if len(c.until) == 0 { // only the empty set
		return dst
	}
	way, _ := slices.BinarySearch(c.until, rng.Float64())
	way = min(way, len(c.until)-1)
	for k, have := range c.of[way*len(t.kinds):][:len(t.kinds)] {
		start, items := len(dst), t.kinds[k].items
		dst = slices.Grow(dst, int(have))[:start+int(have)]
		subset(dst[start:], int(have), len(items), rng)
		for at, i := range dst[start:] {
			dst[start+at] = items[i]
		}
	}
	slices.Sort(dst)
	return dst
}

func (t *Slots) sampleAny(dst vitrine.Assortment, rng *rand.Rand) vitrine.Assortment {
	var m matching
	m.reset(t.slots)
	for _, i := range rng.Perm(len(t.kind)) {
		if len(dst) < t.rank && m.place(t, i, 0) {
			dst = append(dst, i)
		}
	}
	slices.Sort(dst)
	return dst
}

// Propensity implements [Sampler]. It is 0 if the family is not [Slots.Uniform]. It panics unless n is N.
func (t *Slots) Propensity(n int) float64 {
	c := t.counted(n)
	if c.unknown {
		return 0
	}
	return portable.Exp(-c.log)
}

// maxCount is the largest number of ways to choose the numbers of items by kind for which sets are counted.
const maxCount = 1 << 12

// slotCounts counts the sets by their number of items of each kind.
type slotCounts struct {
	of      []int32   // ways, by kind
	until   []float64 // until[m] is the share of the sets in the ways up to m
	log     float64   // log of the number of nonempty sets
	unknown bool      // too many ways
}

// logChoose returns log C(n, k).
func logChoose(n, k int) float64 {
	logC := 0.0
	for l := 1; l <= k; l++ {
		logC += logRatio(n, l)
	}
	return logC
}

// counted counts the sets on the first call. Π_k C(N_k, n_k) sets contain n_k items of each kind k, provided that n can
// be matched.
func (t *Slots) counted(n int) *slotCounts {
	if n != len(t.kind) {
		panic(fmt.Sprintf("assortment: a draw from %d items of a family of %d", n, len(t.kind)))
	}
	t.counting.Do(func() {
		c := &slotCounts{}
		t.counts = c
		supply := make([]int, len(t.kinds)+1) // how many items the kinds from k on can contribute
		for k := len(t.kinds) - 1; k >= 0; k-- {
			supply[k] = supply[k+1] + min(len(t.kinds[k].items), len(t.kinds[k].slots))
		}
		var logs []float64
		vector, steps := make([]int32, len(t.kinds)), 0
		// at: contents of the slots after each kind
		at, seen := make([]int, (len(t.kinds)+1)*t.slots), make([]bool, t.slots)
		for j := range t.slots {
			at[j] = none
		}
		var visit func(k, size int, log float64)
		visit = func(k, size int, log float64) {
			steps++
			if c.unknown = c.unknown || steps > 16*maxCount || len(logs) == maxCount; c.unknown {
				return
			}
			if k == len(t.kinds) || size == t.rank {
				clear(vector[k:])
				if size > 0 {
					c.of, logs = append(c.of, vector...), append(logs, log)
				}
				return
			}
			m := matching{at: at[(k+1)*t.slots:][:t.slots], seen: seen}
			copy(m.at, at[k*t.slots:])
			items := t.kinds[k].items
			for have := 0; ; {
				if size+have+supply[k+1] >= t.minimum {
					vector[k] = int32(have)
					visit(k+1, size+have, log+logChoose(len(items), have))
				}
				if have == len(items) || size+have == t.rank || !m.place(t, items[have], 0) {
					break
				}
				have++
			}
		}
		visit(0, 0, 0)
		if c.unknown || len(logs) == 0 {
			c.of = nil
			return
		}
		c.log = negInf
		for _, v := range logs {
			c.log = logAdd(c.log, v)
		}
		sum := 0.0
		for _, v := range logs {
			sum += portable.Exp(v - c.log)
			c.until = append(c.until, sum)
		}
	})
	return t.counts
}
