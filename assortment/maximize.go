// Package assortment finds the assortment of the largest expected revenue
// under the MNL model, exactly, over a feasible family, and holds the families.
//
// A family is a [vitrine.Constraint], a linear oracle: it knows which of its
// sets has the largest sum of given gains. [Maximize] turns the fractional
// problem into a few of those, so a new family never touches the optimiser.
package assortment

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/kernel"
)

// Maximize returns the assortment S of the family c with the largest expected
// revenue under the utilities u and the revenues r ≥ 0 (nil means 1 for all),
//
//	R(S) = Σ_{i∈S} exp(u_i) r_i / (1 + Σ_{j∈S} exp(u_j)),
//
// and R(S), which is [vitrine.ExpectedRevenue] of S bit for bit. S is stored in
// dst where it suffices; nil allocates S and nothing else. Where all revenues
// are zero S earns 0, and is empty unless the family demands items.
//
// It is Dinkelbach's iteration (1967) for fractional programs. R(S) > z holds
// for some S exactly if Σ_{i∈S} v_i (r_i − z) > v_0 z does, with v ∝ exp(u), so
// from z = 0 on
//
//	S ← argmax over the family of Σ_{i∈S} v_i (r_i − z),   z ← R(S)
//
// until z does not grow, which takes a handful of calls of the oracle. The
// oracle is asked at z(1+ε), where ε = (|S|+8)2⁻⁵² bounds the rounding error of
// R(S); so no set of the family earns more than R(S)(1+ε), for utilities in
// [-700, 700] and revenues that are 0 or in [1e-100, 1e100].
//
// For sets of at most K items it is the problem of Rusmevichientong, Shen and
// Shmoys (2010). Where revenues are equal R grows with Σ v_i alone, and one
// call suffices.
//
// Where the family demands items and leaves open which, the utilities of those
// that are not [Hidden] should lie within 400 of each other, for all of their
// exponentials must be seen at one scale. And beside a
// demanded item that outweighs all others by more than the precision of a
// float64, what the others earn cannot be seen: R(S) is the largest, but S may
// leave out an item that adds less than that.
//
// It panics unless r is nil or as long as u. Utilities may be −∞, for items
// that nobody takes, but must not be NaN or +∞: then S is some set of the
// family, not the best.
func Maximize(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64) (vitrine.Assortment, float64) {
	s, revenue, _ := MaximizeIterations(dst, c, u, r)
	return s, revenue
}

// MaximizeIterations is [Maximize], and returns how often it asked the family's
// oracle too.
func MaximizeIterations(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64) (s vitrine.Assortment, revenue float64, iterations int) {
	if r != nil && len(r) != len(u) {
		panic(fmt.Sprintf("assortment: Maximize has %d revenues for %d utilities", len(r), len(u)))
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.iterations = 0
	if equal(r) {
		s = w.maximizeSales(c, u, r)
	} else {
		s = w.maximizeRevenue(c, u, r)
	}
	if dst == nil {
		dst = make(vitrine.Assortment, 0, len(s))
	}
	dst = append(dst[:0], s...)
	return dst, vitrine.ExpectedRevenue(dst, u, r), w.iterations
}

// workspace is the scratch of one call.
type workspace struct {
	v, gain    []float64 // N: exp(u − shift), and the oracle's question
	shift      float64
	best, next vitrine.Assortment // the answers
	iterations int
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// ranker is a family whose sets of the largest Σ exp(u_i) can be told from the
// order of the utilities alone.
type ranker interface {
	top(dst vitrine.Assortment, u []float64) vitrine.Assortment
}

// selective is a family in which some items are in no set. They must not set
// the scale of the others' gains. hides has an entry per item, or is nil where
// there are none.
type selective interface{ hides() []bool }

// Hidden returns which items are in no set of the family, as far as it says; nil
// where it says nothing.
func Hidden(c vitrine.Constraint) []bool {
	if s, ok := c.(selective); ok {
		return s.hides()
	}
	return nil
}

// maximizeSales solves for equal revenues.
func (w *workspace) maximizeSales(c vitrine.Constraint, u, r []float64) vitrine.Assortment {
	worthless := len(r) > 0 && r[0] == 0
	if k, ok := c.(ranker); ok && !worthless {
		w.best = k.top(w.best, u)
		w.iterations++
		return w.best
	}
	w.resize(len(u))
	if !worthless {
		shift := -math.MaxFloat64
		hidden := Hidden(c)
		for i, v := range u {
			if hidden == nil || !hidden[i] {
				shift = max(shift, v)
			}
		}
		w.weigh(u, shift)
		copy(w.gain, w.v)
	} else {
		clear(w.gain)
	}
	w.best = w.ask(w.best, c)
	return w.best
}

// ask returns the oracle's answer in dst's storage or in new storage, never in
// the family's: an answer of its own, which a family may give, must not find
// its way into the pool. The storage gets the answer's capacity, which is what
// the family wants to find next time.
func (w *workspace) ask(dst vitrine.Assortment, c vitrine.Constraint) vitrine.Assortment {
	w.iterations++
	return ask(dst, c, w.gain)
}

func ask(dst vitrine.Assortment, c vitrine.Constraint, gain []float64) vitrine.Assortment {
	s := c.MaxGain(dst, gain)
	return append(slices.Grow(dst[:0], cap(s)), s...)
}

// maximizeRevenue is Dinkelbach's iteration.
//
// Asked at z itself, the oracle may see an item with revenue within rounding
// of z and a large v: it has a gain of the wrong size, takes the place of an
// item that improves, and z does not grow though it could. Just above z every
// gain is accurate, and if then z does not grow, no set exceeds z(1+ε).
func (w *workspace) maximizeRevenue(c vitrine.Constraint, u, r []float64) vitrine.Assortment {
	w.resize(len(u))
	w.shift = math.Inf(1)
	w.best = w.maxGain(w.best, c, u, r, 0)
	z := vitrine.ExpectedRevenue(w.best, u, r)
	for {
		w.next = w.maxGain(w.next, c, u, r, z*(1+rounding(len(w.best))))
		revenue := vitrine.ExpectedRevenue(w.next, u, r)
		if !(revenue > z) {
			return w.best
		}
		z = revenue
		w.best, w.next = w.next, w.best
	}
}

// rounding bounds the relative error of an expected revenue of n items: of two
// sums of n terms, and of what comes before and after.
func rounding(n int) float64 { return float64(n+8) * 0x1p-52 }

const (
	vanishing = -750 // exp of less is 0
	near      = 100  // shifts for which the same v will do
)

// maxGain asks the oracle at z.
//
// The gains may be scaled by any factor, so v is taken relative to a utility
// close to the largest among the items that still can gain: an item of low
// utility and high revenue must not underflow because of one of high utility
// that is worth nothing.
func (w *workspace) maxGain(dst vitrine.Assortment, c vitrine.Constraint, u, r []float64, z float64) vitrine.Assortment {
	shift := float64(vanishing)
	hidden := Hidden(c)
	for i, ri := range r {
		if ri > z && (hidden == nil || !hidden[i]) {
			shift = max(shift, u[i])
		}
	}
	if !(math.Abs(shift-w.shift) <= near) {
		w.weigh(u, shift)
	}
	for i, v := range w.v {
		w.gain[i] = v * (r[i] - z)
	}
	return w.ask(dst, c)
}

// weigh stores exp(u_i − shift) in v, at most 1e260, which only an item that
// cannot gain exceeds.
func (w *workspace) weigh(u []float64, shift float64) {
	w.shift = shift
	for i, ui := range u {
		w.v[i] = min(ui-shift, 600)
	}
	kernel.Exp(w.v, w.v)
}

func (w *workspace) resize(n int) {
	if cap(w.v) < n {
		w.v, w.gain = make([]float64, n), make([]float64, n)
	}
	w.v, w.gain = w.v[:n], w.gain[:n]
}

// equal reports whether all revenues are the same.
func equal(r []float64) bool {
	for _, v := range r {
		if v != r[0] {
			return false
		}
	}
	return true
}
