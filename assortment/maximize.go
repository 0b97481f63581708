// Package assortment finds the assortment with the largest expected revenue
// under the MNL model, exactly, over a feasible family. It also has the families.
//
// A family is a [vitrine.Constraint], a linear oracle: for given gains it returns
// the set with the largest sum. [Maximize] turns the fractional problem into a few
// calls of the oracle, so a new family needs no change of the optimiser.
//
// [AtMost] bounds the number of items, a [Quota] also the numbers from groups and a
// sum of weights, and [NewSlots] puts items into slots. [MaximizeOrdered],
// [MaximizeNested] and [MaximizeMixture] are for displays with places and for other
// models of choice.
// Items are numbers from 0 on; constructors return errors that name them.
package assortment

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Maximize returns the assortment S of the family c with the largest expected
// revenue under the utilities u and the revenues r ≥ 0 (nil means 1 for all),
//
//	R(S) = Σ_{i∈S} exp(u_i) r_i / (1 + Σ_{j∈S} exp(u_j)),
//
// and R(S), which is [vitrine.ExpectedRevenue] of S bit for bit. S is stored in
// dst if it suffices; nil allocates S and nothing else. Where all revenues
// are zero S earns 0, and is empty unless the family demands items.
//
// It is Dinkelbach's iteration (1967) for fractional programs. R(S) > z holds
// for some S exactly if Σ_{i∈S} v_i (r_i − z) > v_0 z does, with v ∝ exp(u), so
// from z = 0 on
//
//	S ← argmax over the family of Σ_{i∈S} v_i (r_i − z),   z ← R(S)
//
// until z does not grow, which takes a handful of calls of the oracle. The oracle
// is called at z(1+ε), where ε = (|S|+8)2⁻⁵² bounds the rounding error of R(S). So
// no set of the family earns more than R(S)(1+ε), for utilities in [-700, 700] and
// revenues that are 0 or in [1e-100, 1e100].
//
// For sets of at most K items it is the problem of Rusmevichientong, Shen and
// Shmoys (2010). If revenues are equal, R grows with Σ v_i and one call suffices.
//
// Two limits apply to families that demand items:
//   - If the family leaves open which, the utilities of the items that are not
//     [Hidden] should lie within 400 of each other, because their exponentials
//     are compared at one scale.
//   - If a demanded item outweighs all others by more than the precision of a
//     float64, R(S) is the largest, but S may leave out an item that adds less
//     than that precision.
//
// Maximize panics unless r is nil or as long as u. A utility may be −∞, for an item
// that nobody takes. If one is NaN or +∞, S is some set of the family, not the best.
func Maximize(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64) (vitrine.Assortment, float64) {
	s, revenue, _ := MaximizeIterations(dst, c, u, r)
	return s, revenue
}

// MaximizeIterations is [Maximize] and also returns the number of calls of the
// family's oracle.
func MaximizeIterations(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64) (s vitrine.Assortment, revenue float64, iterations int) {
	if r != nil && len(r) != len(u) {
		panic(fmt.Sprintf("assortment: Maximize has %d revenues for %d utilities", len(r), len(u)))
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.exact = Bounds{Lower: u, Upper: u}
	return w.maximize(dst, c, &w.exact, r)
}

// Bounds are utilities u that are known up to an interval, and can be known
// better. The slices have one entry for each item.
type Bounds struct {
	Lower, Upper []float64 // Lower[i] ≤ u_i ≤ Upper[i]
	Known        []bool    // whether both are u_i

	// Tighten narrows the bounds of the given items, none of which is known.
	// After a few calls an item must be known.
	Tighten func(items []int)
}

// MaximizeBounds returns what [Maximize] would return for the utilities within
// the bounds, the same set and the same revenue, bit for bit. It tightens only
// the bounds that the answer depends on. r ≥ 0 are the revenues; nil means 1 for
// all. It panics unless the family is [Stable] and the lengths agree.
//
// The iteration is Maximize's, with the largest gain that each item may have:
// v_i (r_i − z) of the upper bound if r_i > z, and otherwise of the lower bound,
// because the gain then falls with the utility. Once all items of the oracle's
// answer are known it is the answer for the utilities too, because the gains of
// all other items can only fall. Until then the items in the answer are made
// known, those that might replace them are tightened, and the oracle is called
// again. The largest utility, to which exponentials are relative, is made known in
// the same way.
//
// Like Maximize it needs u ∈ [-700, 700] or −∞.
func MaximizeBounds(dst vitrine.Assortment, c vitrine.Constraint, b *Bounds, r []float64) (vitrine.Assortment, float64) {
	n := len(b.Upper)
	if !Stable(c) {
		panic(fmt.Sprintf("assortment: MaximizeBounds over a family %T that is not stable", c))
	}
	if len(b.Lower) != n || len(b.Known) != n || r != nil && len(r) != n {
		panic(fmt.Sprintf("assortment: MaximizeBounds has %d lower bounds, %d upper, %d known and %d revenues", len(b.Lower), n, len(b.Known), len(r)))
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	s, revenue, _ := w.maximize(dst, c, b, r)
	return s, revenue
}

// EqualRevenues reports whether all revenues are equal and positive, so that R(S)
// grows with Σ_{i∈S} exp(u_i). nil means 1 for all.
func EqualRevenues(r []float64) bool {
	for _, v := range r {
		if v != r[0] || v == 0 {
			return false
		}
	}
	return true
}

// ranker is a family that finds its set with the largest Σ exp(u_i) from the order
// of the utilities; ok is false if it cannot.
type ranker interface {
	top(dst vitrine.Assortment, u []float64) (s vitrine.Assortment, ok bool)
}

// selective is a family in which some items are in no set. They must not set
// the scale of the others' gains. hides has an entry per item, or is nil if
// there are none.
type selective interface{ hides() []bool }

// Hidden returns which items the family declares to be in none of its sets; nil
// if it declares nothing. [NeverShown] also asks families that do not declare it.
func Hidden(c vitrine.Constraint) []bool {
	if s, ok := c.(selective); ok {
		return s.hides()
	}
	return nil
}

// workspace is one problem and its scratch.
type workspace struct {
	c      vitrine.Constraint
	b      *Bounds // Known is nil if all utilities are known; then Lower is Upper
	r      []float64
	hidden []bool

	shift      float64
	v, low     []float64          // N: exp(u − shift) of the upper and the lower bounds; the same slice if all are known
	lows       []float64          // N: storage of low
	gain       []float64          // N: the oracle's question
	best, next vitrine.Assortment // the answers
	lower      vitrine.Assortment // the answer to the smallest gains
	items      []int              // to be tightened
	exact      Bounds             // of known utilities
	pruned     Pruned
	some       []float64 // utilities of a few items
	iterations int
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func (w *workspace) maximize(dst vitrine.Assortment, c vitrine.Constraint, b *Bounds, r []float64) (s vitrine.Assortment, revenue float64, iterations int) {
	w.c, w.b, w.r, w.hidden = c, b, r, Hidden(c)
	w.shift, w.iterations = math.Inf(1), 0 // no weights yet
	if s = w.prune(); s == nil && EqualRevenues(r) {
		s = w.maximizeSales()
	} else if s == nil {
		s = w.maximizeRevenue()
	}
	if dst == nil {
		dst = make(vitrine.Assortment, 0, len(s))
	}
	dst = append(dst[:0], s...)
	revenue = vitrine.ExpectedRevenue(dst, b.Upper, r)
	w.c, w.b, w.r, w.hidden, w.exact = nil, nil, nil, nil, Bounds{} // the pool must not keep the caller's
	return dst, revenue, w.iterations
}

// prune solves for many items of known utilities by a few of them. It returns nil if these do not suffice, or if one pass over all
// items would.
func (w *workspace) prune() vitrine.Assortment {
	rules, size, ok := Prunable(w.c, len(w.b.Upper))
	if !ok || w.b.Known != nil || rules.Weights == nil && EqualRevenues(w.r) {
		return nil
	}
	w.iterations++
	w.next = rules.Ungrouped(size).best(w.next, w.b.Upper, negInf)
	best, ok := w.pruned.Maximize(rules, w.r, w.next, size, w.pick)
	if !ok {
		return nil
	}
	return best
}

// pick returns the utilities of some items.
func (w *workspace) pick(items []int) []float64 {
	w.some = scratch.Grow(w.some, len(items))
	for j, i := range items {
		w.some[j] = w.b.Upper[i]
	}
	return w.some
}

// maximizeRevenue is Dinkelbach's iteration.
//
// Called at z itself, the oracle may see an item with revenue within rounding of z
// and a large v. Its gain has the wrong size, it takes the place of an item that
// improves, and z does not grow though it could. Just above z every gain is
// accurate, and if then z does not grow, no set exceeds z(1+ε).
func (w *workspace) maximizeRevenue() vitrine.Assortment {
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

// rounding bounds the relative error of an expected revenue of n items: of two
// sums of n terms, and of what comes before and after.
func rounding(n int) float64 { return float64(float64(n+8) * 0x1p-52) }

const (
	vanishing   = -750 // exp of less is 0
	near        = 100  // shifts so close can share v
	maxExponent = 600  // of v, which only an item that cannot gain would exceed
)

// maxGain calls the oracle at z.
//
// The gains may be scaled by any factor, so v is taken relative to a utility
// close to the largest among the items that still can gain: an item of low
// utility and high revenue must not underflow because of one of high utility
// that is worth nothing.
func (w *workspace) maxGain(dst vitrine.Assortment, z float64) vitrine.Assortment {
	shift := w.maxUtility(z, vanishing)
	if !(math.Abs(shift-w.shift) <= near) {
		w.weigh(shift)
	}
	return w.ask(dst, z)
}

// maximizeSales solves for equal revenues: by the order of the utilities if the family can, and otherwise with the gains v.
func (w *workspace) maximizeSales() vitrine.Assortment {
	if k, ok := w.c.(ranker); ok {
		if w.best, ok = k.top(w.best, w.b.Upper); ok {
			return w.rank(k)
		}
	}
	w.resize(len(w.b.Upper))
	w.weigh(w.maxUtility(math.Inf(-1), -math.MaxFloat64))
	w.best = w.ask(w.best, math.Inf(-1))
	return w.best
}

// rank finds the best set by the order of the utilities. w.best is the answer to their upper bounds.
func (w *workspace) rank(k ranker) vitrine.Assortment {
	for some := minBatch; ; some *= 2 {
		w.iterations++
		if !w.know(w.best) {
			return w.best
		}
		w.next, _ = k.top(w.next, w.b.Lower)
		w.know(w.next)
		minimum := minOf(w.b.Lower, w.next)
		w.tighten(some, func(i int) bool { return w.b.Upper[i] >= minimum })
		w.best, _ = k.top(w.best, w.b.Upper)
	}
}

// minBatch is the number of items that may be tightened before the next call of
// the oracle, in addition to those in its answer. It doubles from call to call.
const minBatch = 1024

// maxUtility returns the largest utility of the items with r_i > z that are not
// hidden, or minimum if that is larger.
func (w *workspace) maxUtility(z, minimum float64) float64 {
	counts := func(i int) bool { return (w.r == nil || w.r[i] > z) && (w.hidden == nil || !w.hidden[i]) }
	for some := minBatch; ; some *= 2 {
		top, upper, sure, lower := -1, minimum, -1, minimum
		for i, u := range w.b.Upper {
			if u > lower && counts(i) {
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
		w.tighten(some, func(i int) bool { return w.b.Upper[i] > lower && counts(i) })
	}
}

// ask returns the oracle's answer at z once it holds for the utilities; at −∞ the
// gains are v. An item may belong in it if its largest gain is at least the
// smallest gain in the answer to the smallest gains, once that answer is known.
// For sets of at most K items these are all such items.
func (w *workspace) ask(dst vitrine.Assortment, z float64) vitrine.Assortment {
	for some := minBatch; ; some *= 2 {
		dst = w.answer(dst, z, w.v, w.low)
		if !w.know(dst) {
			return dst
		}
		w.lower = w.answer(w.lower, z, w.low, w.v)
		w.know(w.lower)
		minimum := math.Inf(1)
		for _, i := range w.lower {
			minimum = min(minimum, w.gainOf(i, z, w.low, w.v))
		}
		w.tighten(some, func(i int) bool { return w.gainOf(i, z, w.v, w.low) >= minimum })
	}
}

// answer returns the oracle's answer to the gains at z. It is in dst's storage or
// in new storage, never in the family's: an answer that the family keeps must not
// enter the pool. The storage gets the answer's capacity, which is what the family
// will need next time.
func (w *workspace) answer(dst vitrine.Assortment, z float64, up, down []float64) vitrine.Assortment {
	w.iterations++
	if math.IsInf(z, -1) {
		copy(w.gain, up)
	} else {
		for i, r := range w.r {
			w.gain[i] = up[i] * (r - z)
		}
		if w.b.Known != nil {
			for i, r := range w.r {
				if !(r > z) {
					w.gain[i] = down[i] * (r - z)
				}
			}
		}
	}
	s := w.c.MaxGain(dst, w.gain)
	return append(slices.Grow(dst[:0], cap(s)), s...)
}

// gainOf returns the gain of item i at z: of the weight in up if the gain grows
// with the weight, and of that in down if it falls.
func (w *workspace) gainOf(i int, z float64, up, down []float64) float64 {
	if math.IsInf(z, -1) {
		return up[i]
	}
	r := w.r[i]
	if r > z {
		return up[i] * (r - z)
	}
	return down[i] * (r - z)
}

// minOf returns the smallest value of the items, +Inf if there are none.
func minOf(value []float64, items []int) float64 {
	minimum := math.Inf(1)
	for _, i := range items {
		minimum = min(minimum, value[i])
	}
	return minimum
}

// know makes the items known and reports whether any was not.
func (w *workspace) know(items []int) bool {
	need := false
	for w.b.Known != nil {
		w.items = w.items[:0]
		for _, i := range items {
			if !w.b.Known[i] {
				w.items = append(w.items, i)
			}
		}
		if len(w.items) == 0 {
			break
		}
		need = true
		w.b.Tighten(w.items)
		w.reweigh(w.items)
	}
	return need
}

// tighten narrows the bounds of up to some of the items that matter.
func (w *workspace) tighten(some int, matters func(i int) bool) {
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

// weigh stores exp(u_i − shift) in v and low.
func (w *workspace) weigh(shift float64) {
	w.shift = shift
	if w.b.Known == nil {
		for i, u := range w.b.Upper {
			w.v[i] = min(u-shift, maxExponent)
		}
		kernel.Exp(w.v, w.v)
		return
	}
	for i := range w.v {
		w.v[i], w.low[i] = w.exponents(i)
	}
	kernel.Exp(w.v, w.v)
	kernel.Exp(w.low, w.low)
}

// reweigh updates the weights of some items, if there are weights.
func (w *workspace) reweigh(items []int) {
	if math.IsInf(w.shift, 1) {
		return
	}
	for _, i := range items {
		w.v[i], w.low[i] = w.exponents(i)
		kernel.Exp(w.v[i:i+1], w.v[i:i+1])
		kernel.Exp(w.low[i:i+1], w.low[i:i+1])
	}
}

// apart is added between bounds before their exponentials are taken: rounding may
// put the exponentials of close numbers in the wrong order.
const apart = 1e-13

func (w *workspace) exponents(i int) (upper, lower float64) {
	upper, lower = w.b.Upper[i]-w.shift, w.b.Lower[i]-w.shift
	if !w.b.Known[i] {
		upper, lower = upper+apart, lower-apart
	}
	return min(upper, maxExponent), min(lower, maxExponent)
}

func (w *workspace) resize(n int) {
	w.v, w.gain = scratch.Grow(w.v, n), scratch.Grow(w.gain, n)
	w.low = w.v
	if w.b.Known != nil {
		w.lows = scratch.Grow(w.lows, n)
		w.low = w.lows
	}
}
