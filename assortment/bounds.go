package assortment

import (
	"fmt"
	"math"
	"sync"

	"vitrine"
	"vitrine/internal/kernel"
)

// Stabler is implemented by families that can promise to be stable: an answer
// of MaxGain stands when gains of items that it did not take fall. That is, for
// gains g' ≤ g that are g on S = MaxGain(g),
//
//	MaxGain(g') = S
//
// among sets of equal gain too. Oracles that compare single gains in a fixed
// order, as a greedy algorithm does, are stable, and so are those that build
// sums and keep the larger of two, the first of equals, as dynamic programming
// does: rounded addition is increasing, so what lost loses again.
type Stabler interface {
	vitrine.Constraint
	Stable() bool
}

// Stable reports whether a family promises to be stable.
func Stable(c vitrine.Constraint) bool {
	s, ok := c.(Stabler)
	return ok && s.Stable()
}

// Stable implements [Stabler].
func (AtMost) Stable() bool { return true }

// Bounds are utilities u that are known up to an interval, and where that is
// too wide can be known better. The slices have one entry for each item.
type Bounds struct {
	Lower, Upper []float64 // Lower[i] ≤ u_i ≤ Upper[i]
	Known        []bool    // whether both are u_i

	// Tighten narrows the bounds of the given items, none of which is known.
	// After a few calls an item must be known.
	Tighten func(items []int)
}

// MaximizeBounds returns what [Maximize] would return for the utilities within
// the bounds, the same set and the same revenue, bit for bit; where it can it
// leaves the bounds as wide as they are. r ≥ 0 are the revenues and nil means 1
// for all. It panics unless the family is stable and the lengths agree.
//
// It is Maximize with the largest gain that each item may have: v̄_i (r_i − z) of
// the upper bound where r_i > z, and of the lower bound elsewhere, where the
// gain falls with the utility. The oracle's answer holds for the utilities
// themselves once all items in it are known, because the gains of all others can
// only fall. Until then the items in it are made known and those that might
// take their place are tightened, and the oracle is asked again. So is the
// largest utility, relative to which Maximize has its exponentials, made known.
//
// It needs u ∈ [-700, 700] or −∞ as Maximize does.
func MaximizeBounds(dst vitrine.Assortment, c vitrine.Constraint, b *Bounds, r []float64) (vitrine.Assortment, float64) {
	n := len(b.Upper)
	if !Stable(c) {
		panic(fmt.Sprintf("assortment: MaximizeBounds over a family %T that is not stable", c))
	}
	if len(b.Lower) != n || len(b.Known) != n || r != nil && len(r) != n {
		panic(fmt.Sprintf("assortment: MaximizeBounds has %d lower bounds, %d upper, %d known and %d revenues", len(b.Lower), n, len(b.Known), len(r)))
	}
	w := boundsPool.Get().(*boundsWorkspace)
	defer boundsPool.Put(w)
	w.c, w.b, w.r = c, b, r
	w.shift = math.Inf(1) // of no weights
	defer w.release()
	var s vitrine.Assortment
	if equal(r) {
		s = w.maximizeSales()
	} else {
		s = w.maximizeRevenue()
	}
	if dst == nil {
		dst = make(vitrine.Assortment, 0, len(s))
	}
	dst = append(dst[:0], s...)
	return dst, vitrine.ExpectedRevenue(dst, b.Upper, r)
}

// boundsWorkspace is the scratch of one call. v is of the upper bounds, and low
// of the lower ones.
type boundsWorkspace struct {
	workspace
	c     vitrine.Constraint
	b     *Bounds
	r     []float64
	low   []float64          // N
	lower vitrine.Assortment // the answer to the smallest gains
	items []int              // to be tightened
}

var boundsPool = sync.Pool{New: func() any { return new(boundsWorkspace) }}

func (w *boundsWorkspace) release() { w.c, w.b, w.r = nil, nil, nil }

// maximizeSales is [workspace.maximizeSales] within bounds.
func (w *boundsWorkspace) maximizeSales() vitrine.Assortment {
	if len(w.r) > 0 && w.r[0] == 0 {
		return w.workspace.maximizeSales(w.c, w.b.Upper, w.r)
	}
	if k, ok := w.c.(ranker); ok {
		for some := leastBatch; ; some *= 2 {
			w.best = k.top(w.best, w.b.Upper)
			if !w.know(w.best) {
				return w.best
			}
			w.next = k.top(w.next, w.b.Lower)
			w.know(w.next)
			least := leastOf(w.b.Lower, w.next)
			w.tighten(some, func(i int) bool { return w.b.Upper[i] >= least })
		}
	}
	w.resize(len(w.b.Upper))
	w.weigh(w.largest(math.Inf(-1), -math.MaxFloat64))
	w.best = w.ask(w.best, math.Inf(-1))
	return w.best
}

// maximizeRevenue is [workspace.maximizeRevenue] within bounds.
func (w *boundsWorkspace) maximizeRevenue() vitrine.Assortment {
	w.resize(len(w.b.Upper))
	w.best = w.maxGain(w.best, 0)
	z := vitrine.ExpectedRevenue(w.best, w.b.Upper, w.r)
	for {
		w.next = w.maxGain(w.next, z*(1+rounding(len(w.best))))
		revenue := vitrine.ExpectedRevenue(w.next, w.b.Upper, w.r)
		if !(revenue > z) {
			return w.best
		}
		z = revenue
		w.best, w.next = w.next, w.best
	}
}

// maxGain is [workspace.maxGain] within bounds.
func (w *boundsWorkspace) maxGain(dst vitrine.Assortment, z float64) vitrine.Assortment {
	shift := w.largest(z, vanishing)
	if !(math.Abs(shift-w.shift) <= near) {
		w.weigh(shift)
	}
	return w.ask(dst, z)
}

// leastBatch is the number of items that may be tightened before the next
// question, beside those in its answer. It doubles from question to question.
const leastBatch = 1024

// largest returns the largest utility of the items with r_i > z, or least where
// that is larger.
func (w *boundsWorkspace) largest(z, least float64) float64 {
	for some := leastBatch; ; some *= 2 {
		top, upper, sure, lower := -1, least, -1, least
		for i, u := range w.b.Upper {
			if u > lower && (w.r == nil || w.r[i] > z) {
				if w.b.Lower[i] > lower {
					sure, lower = i, w.b.Lower[i]
				}
				if u > upper {
					top, upper = i, u
				}
			}
		}
		if top < 0 || !w.know([]int{top}) {
			return upper
		}
		if sure >= 0 {
			w.know([]int{sure})
			lower = w.b.Lower[sure]
		}
		w.tighten(some, func(i int) bool { return w.b.Upper[i] > lower && (w.r == nil || w.r[i] > z) })
	}
}

// ask returns the oracle's answer at z, −∞ where gains are v alone, once it
// holds for the utilities. Items may have a place in it whose largest gain is
// not below the least of those in the answer to the smallest gains, once these
// are known; of sets of at most K items these are all.
func (w *boundsWorkspace) ask(dst vitrine.Assortment, z float64) vitrine.Assortment {
	for some := leastBatch; ; some *= 2 {
		for i := range w.gain {
			w.gain[i] = w.gainOf(i, z, w.v, w.low)
		}
		dst = ask(dst, w.c, w.gain)
		if !w.know(dst) {
			return dst
		}
		for i := range w.gain {
			w.gain[i] = w.gainOf(i, z, w.low, w.v)
		}
		w.lower = ask(w.lower, w.c, w.gain)
		w.know(w.lower)
		for _, i := range w.lower {
			w.gain[i] = w.gainOf(i, z, w.low, w.v)
		}
		least := leastOf(w.gain, w.lower)
		w.tighten(some, func(i int) bool { return w.gainOf(i, z, w.v, w.low) >= least })
	}
}

// gainOf returns the gain of item i at z, of the weight in up where the gain
// grows with it and of that in down where it falls.
func (w *boundsWorkspace) gainOf(i int, z float64, up, down []float64) float64 {
	if math.IsInf(z, -1) {
		return up[i]
	}
	r := w.r[i]
	if r > z {
		return up[i] * (r - z)
	}
	return down[i] * (r - z)
}

// leastOf returns the least value of the items, +Inf of none.
func leastOf(value []float64, items []int) float64 {
	least := math.Inf(1)
	for _, i := range items {
		least = min(least, value[i])
	}
	return least
}

// know makes the items known and reports whether there was need to.
func (w *boundsWorkspace) know(items []int) bool {
	need := false
	for {
		w.items = w.items[:0]
		for _, i := range items {
			if !w.b.Known[i] {
				w.items = append(w.items, i)
			}
		}
		if len(w.items) == 0 {
			return need
		}
		need = true
		w.b.Tighten(w.items)
		w.reweigh(w.items)
	}
}

// tighten narrows the bounds of up to some of the items that matter.
func (w *boundsWorkspace) tighten(some int, matters func(i int) bool) {
	w.items = w.items[:0]
	for i, known := range w.b.Known {
		if !known && matters(i) {
			if w.items = append(w.items, i); len(w.items) == some {
				break
			}
		}
	}
	if len(w.items) > 0 {
		w.b.Tighten(w.items)
		w.reweigh(w.items)
	}
}

// apart is what bounds are moved apart before their exponentials are taken,
// whose rounding errors may otherwise put them in the wrong order.
const apart = 1e-13

// weigh stores what [workspace.weigh] does of the bounds in v and low.
func (w *boundsWorkspace) weigh(shift float64) {
	w.shift = shift
	for i := range w.v {
		w.v[i], w.low[i] = w.exponents(i)
	}
	kernel.Exp(w.v, w.v)
	kernel.Exp(w.low, w.low)
}

// reweigh does so for some items, once there are weights.
func (w *boundsWorkspace) reweigh(items []int) {
	if math.IsInf(w.shift, 1) {
		return
	}
	for _, i := range items {
		w.v[i], w.low[i] = w.exponents(i)
		kernel.Exp(w.v[i:i+1], w.v[i:i+1])
		kernel.Exp(w.low[i:i+1], w.low[i:i+1])
	}
}

func (w *boundsWorkspace) exponents(i int) (upper, lower float64) {
	upper, lower = w.b.Upper[i]-w.shift, w.b.Lower[i]-w.shift
	if !w.b.Known[i] {
		upper, lower = upper+apart, lower-apart
	}
	return min(upper, 600), min(lower, 600)
}

func (w *boundsWorkspace) resize(n int) {
	w.workspace.resize(n)
	if cap(w.low) < n {
		w.low = make([]float64, n)
	}
	w.low = w.low[:n]
}
