package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// resolveItems is the number of remaining items that justify computing a block of gradients.
const resolveItems = 64

// top returns the set of k items with the largest optimistic utilities above −∞ that the rules allow. It may contain
// fewer items if there are not enough. Among equal utilities it prefers lower items.
func (s *search) top(
	o *Optimistic, sketcher utility.Sketcher, x *mat.Dense, rules assortment.Rules, workers int,
) vitrine.Assortment {
	n, _ := x.Dims()
	s.rules = rules
	s.rules.Max = min(rules.Max, n)
	if s.rules.Max < 1 {
		return vitrine.Assortment{}
	}
	s.sure.Store(math.Float64bits(math.Inf(-1)))
	rank := (*worker).rank
	if o.Radius == 0 {
		s.o, s.x = o, x
		rank = (*worker).rankKnown
	} else {
		s.begin(o, sketcher, x)
		s.glance()
	}
	defer s.end()
	active := s.each(rank, workers)
	s.best.Reset(s.rules, math.Inf(-1))
	for _, w := range active {
		for j, i := range w.best.Items {
			s.best.Add(i, w.best.Values[j])
		}
	}
	answer := append(append(make(vitrine.Assortment, 0, s.rules.Max), s.best.Items...), rules.Include...)
	slices.Sort(answer)
	return answer
}

// threshold returns a z that some set of k items reaches, or −∞ as long as no such set is known.
func (s *search) threshold() float64 { return math.Float64frombits(s.sure.Load()) }

// raise makes the threshold at least z.
func (s *search) raise(z float64) {
	for {
		old := s.sure.Load()
		if !(z > math.Float64frombits(old)) || s.sure.CompareAndSwap(old, math.Float64bits(z)) {
			return
		}
	}
}

// rankKnown searches the items from ≤ i < to if utilities include no bonus.
func (w *worker) rankKnown(from, to int) {
	s := w.search
	w.u = scratch.Grow(w.u, to-from)
	s.o.Model.Utilities(w.u, s.o.Params, w.view.View(s.x, from, to))
	minimum := s.threshold()
	for i, u := range w.u {
		if z := u + s.o.Slack; !(z < minimum) {
			w.best.Add(from+i, z)
		}
	}
	s.raise(w.best.Threshold())
}

// rank searches the items from ≤ i < to.
func (w *worker) rank(from, to int) {
	s := w.search
	w.sketch(from, to, w.directions)
	minimum := s.threshold()
	// For t = minimum − slack − u, minus ε times their sizes, z < minimum follows from t > 0 and radius² bound
	// (1+ε) < t², rounding included. The test needs no square root.
	const margin = 0x1p-40
	maximum := s.o.Radius * s.o.Radius * (1 + margin)
	gone := minimum - s.o.Slack - margin*(math.Abs(minimum)+math.Abs(s.o.Slack))
	for i, u := range w.u {
		bound := w.upper[i]
		if t := gone - u - float64(margin*math.Abs(u)); t > 0 && maximum*bound < t*t {
			continue
		}
		if s.o.at(u, gram.Norm(bound)) < minimum {
			continue
		}
		w.left, w.bounds = append(w.left, from+i), append(w.bounds, bound)
		w.survived++
	}
	if len(w.left) >= resolveItems {
		w.resolve()
	}
}

// resketch sketches the remaining items along the directions from ≤ k < to, and keeps the items that may still be among
// the best.
func (w *worker) resketch(from, to int) {
	s, n := w.search, len(w.left)
	w.f, w.norms, w.along = scratch.Grow(w.f, n), scratch.Grow(w.norms, n), scratch.Grow(w.along, (to-from)*n)
	s.sketcher.Sketch(w.f, w.norms, w.along, s.o.Params, s.bound.Directions(from, to), w.x.Rows(s.x, w.left))
	if from == 0 {
		s.bound.Sketches(w.bounds, w.norms, w.along)
	} else {
		s.bound.Less(w.bounds, w.along)
	}
	minimum, kept := s.threshold(), 0
	for i, item := range w.left {
		if s.o.at(w.f[i], gram.Norm(w.bounds[i])) < minimum {
			continue
		}
		w.left[kept], w.bounds[kept] = item, w.bounds[i]
		kept++
	}
	w.left, w.bounds = w.left[:kept], w.bounds[:kept]
}

// resolve ranks and removes all remaining items.
func (w *worker) resolve() {
	if len(w.left) == 0 {
		return
	}
	s := w.search
	b := s.bound
	known := w.directions
	maximum := min(sketchDirections+resketchDirections, b.NumDirections())
	if (known > 0 || w.glances) && known < maximum {
		w.resketch(known, maximum)
		known = maximum
	}
	if len(w.left) == 0 {
		return
	}
	g := w.g.Reshape(len(w.left), len(s.o.Params))
	w.f = scratch.Grow(w.f, len(w.left))
	utility.Linearize(s.o.Model, w.f, g, s.o.Params, w.x.Rows(s.x, w.left))
	for m := known; m < b.NumDirections() && len(w.left) > 0; m += directionsPerStep {
		b.Tighten(w.bounds, m, min(m+directionsPerStep, b.NumDirections()), g)
		minimum, kept := s.threshold(), 0
		for i, item := range w.left {
			if s.o.at(w.f[i], gram.Norm(w.bounds[i])) < minimum {
				continue
			}
			if kept < i {
				w.left[kept], w.bounds[kept], w.f[kept] = item, w.bounds[i], w.f[i]
				copy(g.RawRowView(kept), g.RawRowView(i))
			}
			kept++
		}
		w.left, w.bounds = w.left[:kept], w.bounds[:kept]
		if kept > 0 {
			g = w.g.Reshape(kept, len(s.o.Params))
		}
	}
	if len(w.left) == 0 {
		return
	}
	w.norms = scratch.Grow(w.norms, len(w.left))
	s.o.Inverse.Norms(w.norms, g)
	s.numNorms.Add(int64(len(w.left)))
	for j, i := range w.left {
		w.best.Add(i, s.o.at(w.f[j], w.norms[j]))
	}
	w.left, w.bounds = w.left[:0], w.bounds[:0]
	s.raise(w.best.Threshold())
}
