// Package search finds the assortment with the largest expected revenue under optimistic utilities. If there are many
// items, it avoids computing the norm of every gradient.
//
// An upper bound on an optimistic utility is cheap if ‖∇f_w(x_i)‖ can be computed without the gradient
// ([utility.Sketcher]). If the model offers it, a rougher bound comes first ([utility.Glancer]). Items that survive are
// bounded again, by components along more directions of V⁻¹, and only the items left after that get their norm computed.
// The bounds account for rounding ([gram.Bound]), and an item is excluded only if its bound is too low. So the answer
// equals the full computation's, bit for bit, in whatever order the items are visited.
//
//	optimistic.go  the utilities, the choice among the ways to maximise, and the way for unequal revenues: a few
//	               items, and a proof that they suffice
//	top.go         equal revenues and bounded numbers: the K largest utilities that the rules allow
//	slots.go       for each of several slots, the largest values
//	workers.go     goroutines that read the context once, in blocks of rows
package search

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// Optimistic describes the optimistic utilities of line 10 of Algorithm 1, and of every upper-confidence baseline:
//
//	z_i = f_w(x_i) + Radius · ‖∇f_w(x_i)‖_{V⁻¹} + Slack
//
// With radius 0 they need neither gradients nor V⁻¹. With a negative radius they are lower bounds, and every norm is
// computed: sketches bound utilities from above only if the norm raises them. An Optimistic is safe for concurrent use
// as long as its fields do not change.
type Optimistic struct {
	Model   utility.Model
	Params  []float64    // w, d_w of them
	Inverse gram.Inverse // V⁻¹
	Radius  float64      // √β_t
	Slack   float64      // β_t C_h / λ

	bound, rough lazyBound // bound the norms, and roughly if that costs little
}

const (
	// minItems is the smallest N for which a search pays. minItemsPerParam is the N per parameter from which the
	// eigenvectors of V⁻¹, computed once per policy, pay for themselves in one decision. docs/adr/0022-pruning.md gives
	// the measurement.
	minItems         = 2048
	minItemsPerParam = 32

	// minRoughItemsPerParam is the N per parameter from which a rough bound, too, pays for itself in one decision.
	minRoughItemsPerParam = 512

	// BlockRows is the number of items for which gradients are held at a time.
	BlockRows = 256
)

// Maximize returns the assortment of family c with the largest expected revenue under the optimistic utilities of the
// items of x: line 11 of Algorithm 1.
func (o *Optimistic) Maximize(c vitrine.Constraint, x *vitrine.Context) vitrine.Assortment {
	s := searches.Get().(*search)
	defer searches.Put(s)
	n := x.NumItems()
	workers := numWorkers(n)
	sketcher, ok := o.Model.(utility.Sketcher)
	sketches := ok && o.Radius > 0 && n >= max(minItems, minItemsPerParam*len(o.Params))
	if sketches || o.Radius == 0 && n >= minItems {
		if rules, ok := assortment.Ranked(c); ok && assortment.EqualRevenues(x.Revenue) {
			return s.top(o, sketcher, x.Features, rules, workers)
		}
		if rules, size, ok := assortment.Prunable(c, n); ok {
			if best, ok := s.prune(o, sketcher, rules, size, x, workers); ok {
				return best
			}
		}
	}
	s.z = o.utilities(s, s.z, x)
	best, _ := assortment.Maximize(nil, c, s.z, x.Revenue)
	return best
}

// prune finds the best set while looking at only a few items, starting with size of them (see [assortment.Pruned]).
func (s *search) prune(
	o *Optimistic, sketcher utility.Sketcher, rules assortment.Rules, size int, x *vitrine.Context, workers int,
) (best vitrine.Assortment, ok bool) {
	largest := s.top(o, sketcher, x.Features, rules.Ungrouped(size), workers)
	return s.pruned.Maximize(rules, x.Revenue, largest, size, func(items []int) []float64 {
		s.some = o.utilities(s, s.some, &vitrine.Context{Features: s.rows.Rows(x.Features, items)})
		return s.some
	})
}

// Utilities returns the optimistic utilities of all items of x, in dst's storage if it suffices.
func (o *Optimistic) Utilities(dst []float64, x *vitrine.Context) []float64 {
	s := searches.Get().(*search)
	defer searches.Put(s)
	return o.utilities(s, dst, x)
}

func (o *Optimistic) utilities(s *search, dst []float64, x *vitrine.Context) []float64 {
	n := x.NumItems()
	dst = scratch.Grow(dst, n)
	if n > 0 && o.Radius == 0 {
		o.Model.Utilities(dst, o.Params, x.Features)
		for i := range dst {
			dst[i] += o.Slack
		}
		return dst
	}
	if workers := numWorkers(n); workers > 1 {
		blocks(n, workers, func(int) (block func(from, to int), done func()) {
			s := searches.Get().(*search)
			return func(from, to int) { o.block(s, dst, x.Features, from, to) }, func() { searches.Put(s) }
		})
		return dst
	}
	for from := 0; from < n; from += BlockRows {
		o.block(s, dst, x.Features, from, min(from+BlockRows, n))
	}
	return dst
}

func (o *Optimistic) block(s *search, dst []float64, x *mat.Dense, from, to int) {
	o.exact(dst[from:to], s.items.View(x, from, to), &s.g, &s.norms)
}

// exact stores the optimistic utilities of the items x in z. An item's utility does not depend on the other items.
func (o *Optimistic) exact(z []float64, x *mat.Dense, g *scratch.Matrix, norms *[]float64) {
	rows := g.Reshape(len(z), len(o.Params))
	utility.Linearize(o.Model, z, rows, o.Params, x)
	*norms = scratch.Grow(*norms, len(z))
	o.Inverse.Norms(*norms, rows)
	for i, norm := range *norms {
		z[i] = o.at(z[i], norm)
	}
}

// at returns the optimistic utility given the utility f and the norm. With a positive radius it increases in both. The
// conversion keeps compilers from fusing the product and the sum in some places but not in others, because bounds are
// compared with utilities computed elsewhere.
func (o *Optimistic) at(f, norm float64) float64 {
	f += float64(o.Radius * norm)
	return f + o.Slack
}

// numDirections returns the number of directions for the bounds. They cost less than half of a norm.
func numDirections(params int) int { return params / 5 }

// lazyBound is computed by the first call of get.
type lazyBound struct {
	made   atomic.Pointer[gram.Bound]
	making sync.Mutex
}

func (l *lazyBound) get(compute func() *gram.Bound) *gram.Bound {
	if b := l.made.Load(); b != nil {
		return b
	}
	l.making.Lock()
	defer l.making.Unlock()
	if b := l.made.Load(); b != nil {
		return b
	}
	b := compute()
	l.made.Store(b)
	return b
}
