// Package assortment finds the assortment with the largest expected revenue under the MNL model, exactly, over a
// feasible family. It also provides the families.
//
// A family is a [vitrine.Constraint], a linear oracle: given gains, it returns the set with the largest sum. [Maximize]
// solves the fractional problem with a few calls of the oracle, so a new family needs no change to the optimiser.
//
// [AtMost] bounds the number of items. A [Quota] also bounds the numbers from groups and a sum of weights. [NewSlots]
// assigns items to slots. [MaximizeOrdered], [MaximizeNested] and [MaximizeMixture] serve displays with places and
// other choice models. Constructors return errors that name items, which are numbered from 0, and groups without a
// name and slots, from 1. The groups of a [Limit] have your own numbers.
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

// MaxSpan is how far apart utilities may lie if their exponentials are compared on one scale.
const MaxSpan = 400

// Maximize returns the assortment S of family c with the largest expected revenue under utilities u and revenues r ≥ 0
// (nil means 1 for all),
//
//	R(S) = Σ_{i∈S} exp(u_i) r_i / (1 + Σ_{j∈S} exp(u_j)),
//
// and R(S), equal bit for bit to [vitrine.ExpectedRevenue] of S. It stores S in dst if it fits; with a nil dst, S is
// the only allocation, except for a [Quota] with a capacity, which plans each search. If all revenues are zero, S earns
// 0, and is empty unless the family requires items.
//
// The algorithm is Dinkelbach's iteration (1967) for fractional programs. R(S) > z holds for some S exactly if
// Σ_{i∈S} v_i (r_i − z) > v_0 z does, with v ∝ exp(u). Starting from z = 0, it repeats
//
//	S ← argmax over the family of Σ_{i∈S} v_i (r_i − z),   z ← R(S)
//
// until z does not grow, which takes a handful of calls of the oracle. The oracle is called at z(1+ε), where
// ε = (|S|+8)2⁻⁵² bounds the rounding error of R(S). So no set of the family earns more than R(S)(1+ε), for utilities
// in [-700, 700] and revenues that are 0 or in [1e-100, 1e100].
//
// For sets of at most K items, this is the problem of Rusmevichientong, Shen and Shmoys (2010). If revenues are equal,
// R grows with Σ v_i and one call suffices.
//
// Two limits apply to families that require items:
//
//   - If the family leaves open which items, the utilities of the items that are not [Hidden] should lie within
//     [MaxSpan] of each other, because their exponentials are compared on one scale.
//   - If a required item outweighs all others by more than the precision of a float64, R(S) is the largest, but S may
//     leave out an item that adds less than that precision.
//
// Maximize panics unless r is nil or as long as u. A utility of −∞ marks an item that nobody takes. If a utility is NaN
// or +∞, S is some set of the family, not necessarily the best.
func Maximize(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64) (vitrine.Assortment, float64) {
	s, revenue, _ := MaximizeIterations(dst, c, u, r)
	return s, revenue
}

// MaximizeIterations is [Maximize] and also returns the number of oracle calls.
func MaximizeIterations(
	dst vitrine.Assortment, c vitrine.Constraint, u, r []float64,
) (s vitrine.Assortment, revenue float64, iterations int) {
	if r != nil && len(r) != len(u) {
		panic(fmt.Sprintf("assortment: Maximize has %d revenues for %d utilities", len(r), len(u)))
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.exact = Bounds{Lower: u, Upper: u}
	return w.maximize(dst, c, &w.exact, r)
}

// Bounds describes utilities u by intervals that can be narrowed on request. Each slice contains one entry per item.
type Bounds struct {
	Lower, Upper []float64 // Lower[i] ≤ u_i ≤ Upper[i]
	Known        []bool    // whether both bounds equal u_i

	// Tighten narrows the bounds of the given items, all of them still unknown. Within a few calls an item must become
	// known.
	Tighten func(items []int)
}

// MaximizeBounds returns the same set and the same revenue, bit for bit, as [Maximize] would for the utilities inside
// the bounds. It tightens only the bounds that influence the answer. r ≥ 0 are the revenues; nil means 1 for all. It
// panics unless the family is [Stable] and the lengths agree.
//
// The iteration is Maximize's, with the largest gain possible for each item: v_i (r_i − z) at the upper bound if
// r_i > z, and otherwise at the lower bound, because the gain then falls with the utility. Once all items of the
// oracle's answer are known, it is also the answer for the utilities, because all other gains can only fall. Until
// then, MaximizeBounds makes the items in the answer known, tightens the items that might replace them, and calls the
// oracle again. It finds the largest utility, the reference for exponentials, in the same way.
//
// Like Maximize it requires u ∈ [-700, 700] or −∞.
func MaximizeBounds(
	dst vitrine.Assortment, c vitrine.Constraint, b *Bounds, r []float64,
) (vitrine.Assortment, float64) {
	n := len(b.Upper)
	if !Stable(c) {
		panic(fmt.Sprintf("assortment: MaximizeBounds over a family %T that is not stable", c))
	}
	if len(b.Lower) != n || len(b.Known) != n || r != nil && len(r) != n {
		panic(fmt.Sprintf("assortment: MaximizeBounds has %d lower bounds, %d upper, %d known and %d revenues",
			len(b.Lower), n, len(b.Known), len(r)))
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	s, revenue, _ := w.maximize(dst, c, b, r)
	return s, revenue
}

// EqualRevenues reports whether all revenues are equal and positive, so that R(S) grows with Σ_{i∈S} exp(u_i). nil
// means 1 for all.
func EqualRevenues(r []float64) bool {
	for _, v := range r {
		if v != r[0] || v == 0 {
			return false
		}
	}
	return true
}

// ranker is a family that can find the set with the largest Σ exp(u_i) from the order of the utilities. ok is false if
// it cannot.
type ranker interface {
	top(dst vitrine.Assortment, u []float64) (s vitrine.Assortment, ok bool)
}

// selective is a family in which some items never appear. Such items must not set the scale of the others' gains. hides
// returns an entry per item, or nil if every item appears in some set.
type selective interface{ hides() []bool }

// Hidden returns which items the family declares to appear in none of its sets, or nil if it declares no such items.
// [NeverShown] also covers families that do not declare them.
func Hidden(c vitrine.Constraint) []bool {
	if s, ok := c.(selective); ok {
		return s.hides()
	}
	return nil
}

// workspace is one problem and its scratch.
type workspace struct {
	c      vitrine.Constraint
	b      *Bounds // if all utilities are known, Known is nil and Lower equals Upper
	r      []float64
	hidden []bool

	shift      float64
	v, low     []float64          // N: exp(u − shift) of the upper and lower bounds; one slice if all are known
	lows       []float64          // N: storage of low
	gain       []float64          // N: argument of the oracle
	best, next vitrine.Assortment // the answers
	lower      vitrine.Assortment // answer to the smallest gains
	items      []int              // to tighten
	exact      Bounds             // holds known utilities
	pruned     Pruned
	some       []float64 // utilities of a few items
	iterations int
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func (w *workspace) maximize(
	dst vitrine.Assortment, c vitrine.Constraint, b *Bounds, r []float64,
) (s vitrine.Assortment, revenue float64, iterations int) {
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
	w.c, w.b, w.r, w.hidden, w.exact = nil, nil, nil, nil, Bounds{} // the pool must not retain the caller's slices
	return dst, revenue, w.iterations
}

// prune solves a problem with many items of known utilities by looking at a few of them. It returns nil if these do not
// suffice, or if a single pass over all items would do.
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

// pick returns the utilities of the given items.
func (w *workspace) pick(items []int) []float64 {
	w.some = scratch.Grow(w.some, len(items))
	for j, i := range items {
		w.some[j] = w.b.Upper[i]
	}
	return w.some
}

// maximizeRevenue is Dinkelbach's iteration.
//
// At exactly z, rounding may give an item with a revenue close to z and a large v a gain of the wrong size. The item
// would displace one that improves, and z would stop growing too early. Just above z every gain is accurate. If z does
// not grow there, no set exceeds z(1+ε).
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

// rounding bounds the relative error of an expected revenue of n items: two sums of n terms, and the steps before and
// after.
func rounding(n int) float64 { return float64(float64(n+8) * 0x1p-52) }

const (
	vanishing   = -750 // exp of anything smaller is 0
	near        = 100  // shifts this close can share v
	maxExponent = 600  // of v; only an item that cannot gain would exceed it
)

// maxGain calls the oracle at z.
//
// The gains may be scaled by any factor. maxGain takes v relative to a utility close to the largest among the items
// that can still gain, so that a worthless item of high utility does not make an item of low utility and high revenue
// underflow.
func (w *workspace) maxGain(dst vitrine.Assortment, z float64) vitrine.Assortment {
	shift := w.maxUtility(z, vanishing)
	if !(math.Abs(shift-w.shift) <= near) {
		w.weigh(shift)
	}
	return w.ask(dst, z)
}

// maximizeSales solves the case of equal revenues, by the order of the utilities if the family supports it, and
// otherwise with the gains v.
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

// rank finds the best set by the order of the utilities. On entry, w.best is the answer for the upper bounds.
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

// minBatch is the number of items that may be tightened before the next oracle call, besides the items of the last
// answer. It doubles from call to call.
const minBatch = 1024

// maxUtility returns the largest utility among the items with r_i > z that are not hidden, but at least minimum.
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

// ask returns the oracle's answer at z once it is certain to hold for the utilities. At −∞ the gains are v. The answer
// to the smallest possible gains sets a threshold, the smallest gain in it: only items that may gain that much can
// belong to the result. For sets of at most K items this test is exact.
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

// answer returns the oracle's answer for the gains at z, in dst's storage or in new storage. It copies the family's
// slice, because a slice that the family keeps must not enter the pool. The copy gets the same capacity, which is the
// storage that the family will need next time.
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

// gainOf returns the gain of item i at z. It uses the weight in up if the gain grows with the weight, and the weight in
// down if it falls.
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

// minOf returns the smallest value of the items, or +Inf without items.
func minOf(value []float64, items []int) float64 {
	minimum := math.Inf(1)
	for _, i := range items {
		minimum = min(minimum, value[i])
	}
	return minimum
}

// know makes the items known and reports whether any of them was not.
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

// tighten narrows the bounds of up to the given number of items that matter.
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

// reweigh updates the weights of the given items, once there are weights.
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

// apart is added between bounds before taking their exponentials, because rounding may reverse the order of the
// exponentials of close numbers.
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
