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
	w.c, w.u, w.r, w.hidden = c, u, r, Hidden(c)
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
	w.c, w.u, w.r, w.hidden = nil, nil, nil, nil // the pool must not retain the caller's slices
	return dst, vitrine.ExpectedRevenue(dst, u, r), w.iterations
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
	u, r   []float64
	hidden []bool

	shift      float64
	v          []float64          // N: exp(u − shift)
	gain       []float64          // N: argument of the oracle
	best, next vitrine.Assortment // the answers
	pruned     Pruned
	some       []float64 // utilities of a few items
	iterations int
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// prune solves a problem with many items by looking at a few of them. It returns nil if these do not suffice, or if a
// single pass over all items would do.
func (w *workspace) prune() vitrine.Assortment {
	rules, size, ok := Prunable(w.c, len(w.u))
	if !ok || EqualRevenues(w.r) {
		return nil
	}
	w.iterations++
	w.next = rules.Ungrouped(size).best(w.next, w.u, negInf)
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
		w.some[j] = w.u[i]
	}
	return w.some
}

// maximizeRevenue is Dinkelbach's iteration.
//
// At exactly z, rounding may give an item with a revenue close to z and a large v a gain of the wrong size. The item
// would displace one that improves, and z would stop growing too early. Just above z every gain is accurate. If z does
// not grow there, no set exceeds z(1+ε).
func (w *workspace) maximizeRevenue() vitrine.Assortment {
	w.resize()
	w.best = w.maxGain(w.best, w.start())
	z := vitrine.ExpectedRevenue(w.best, w.u, w.r)
	for {
		w.next = w.maxGain(w.next, z*(1+rounding(len(w.best))))
		revenue := vitrine.ExpectedRevenue(w.next, w.u, w.r)
		if !(revenue > z) {
			return w.best
		}
		z = revenue
		w.best, w.next = w.next, w.best
	}
}

// start returns a revenue that a set surely exceeds. Under a capacity it comes from the best single item: at 0 every item
// gains, and a program would look at as many items of each weight as a set can hold.
func (w *workspace) start() float64 {
	q, ok := w.c.(*Quota)
	if !ok || q.most == nil {
		return 0
	}
	best, z := 0, 0.0
	for i, u := range w.u {
		if v := w.r[i] / (1 + math.Exp(-u)); v > z && (w.hidden == nil || !w.hidden[i]) {
			best, z = i, v
		}
	}
	if !q.Contains(vitrine.Assortment{best}) {
		return 0
	}
	return z * (1 - 1e-9)
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
	return w.answer(dst, z)
}

// maximizeSales solves the case of equal revenues, by the order of the utilities if the family supports it, and
// otherwise with the gains v.
func (w *workspace) maximizeSales() vitrine.Assortment {
	if k, ok := w.c.(ranker); ok {
		if w.best, ok = k.top(w.best, w.u); ok {
			w.iterations++
			return w.best
		}
	}
	w.resize()
	w.weigh(w.maxUtility(math.Inf(-1), -math.MaxFloat64))
	w.best = w.answer(w.best, math.Inf(-1))
	return w.best
}

// maxUtility returns the largest utility among the items with r_i > z that are not hidden, but at least minimum.
func (w *workspace) maxUtility(z, minimum float64) float64 {
	largest := minimum
	for i, u := range w.u {
		if u > largest && (w.r == nil || w.r[i] > z) && (w.hidden == nil || !w.hidden[i]) {
			largest = u
		}
	}
	return largest
}

// answer returns the oracle's answer for the gains at z, in dst's storage or in new storage. At −∞ the gains are v. It
// copies the family's slice, because a slice that the family keeps must not enter the pool. The copy gets the same
// capacity, which is the storage that the family will need next time.
func (w *workspace) answer(dst vitrine.Assortment, z float64) vitrine.Assortment {
	w.iterations++
	if math.IsInf(z, -1) {
		copy(w.gain, w.v)
	} else {
		for i, r := range w.r {
			w.gain[i] = w.v[i] * (r - z)
		}
	}
	s := w.c.MaxGain(dst, w.gain)
	return append(slices.Grow(dst[:0], cap(s)), s...)
}

// weigh stores exp(u_i − shift) in v.
func (w *workspace) weigh(shift float64) {
	w.shift = shift
	for i, u := range w.u {
		w.v[i] = min(u-shift, maxExponent)
	}
	kernel.Exp(w.v, w.v)
}

func (w *workspace) resize() {
	w.v, w.gain = scratch.Grow(w.v, len(w.u)), scratch.Grow(w.gain, len(w.u))
}
