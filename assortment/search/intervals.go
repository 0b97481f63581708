package search

import (
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// intervals holds the utilities of N items, each known up to an interval,
//
//	f_w(x_i) + slack ≤ z_i ≤ f_w(x_i) + radius · (bound of ‖∇f_w(x_i)‖_{V⁻¹}) + slack
//
// With unequal revenues, and over families other than AtMost, the optimiser itself finds out which utilities matter.
// [assortment.MaximizeBounds] therefore asks for better intervals as it goes: first from a bound by more directions,
// then from the norm itself.
type intervals struct {
	assortment.Bounds
	search *search
	sharp  []bool // whether the upper bound uses all directions
	pass   []int  // the items to improve together
	x, g   scratch.Matrix
	z      []float64
	bounds []float64
}

// maximize returns the best assortment of the stable family c.
func (s *search) maximize(
	o *Optimistic, sketcher utility.Sketcher, c vitrine.Constraint, x *vitrine.Context, workers int,
) vitrine.Assortment {
	s.begin(o, sketcher, x.Features)
	defer s.end()
	n := x.NumItems()
	v := &s.intervals
	v.Lower, v.Upper = scratch.Grow(v.Lower, n), scratch.Grow(v.Upper, n)
	v.Known, v.sharp = scratch.Grow(v.Known, n), scratch.Grow(v.sharp, n)
	if v.Tighten == nil {
		v.search, v.Tighten = s, v.tighten
	}
	s.each((*worker).enclose, workers)
	answer, _ := assortment.MaximizeBounds(nil, c, &v.Bounds, x.Revenue)
	return answer
}

// enclose stores the intervals of the items from ≤ i < to.
func (w *worker) enclose(from, to int) {
	s := w.search
	m := s.numSketched()
	w.sketch(from, to, m)
	v := &s.intervals
	for i, u := range w.u {
		v.Lower[from+i] = s.o.at(u, 0)
		v.Upper[from+i] = s.o.at(u, gram.Norm(w.upper[i]))
		v.Known[from+i], v.sharp[from+i] = false, s.bound.NumDirections() == m
	}
}

// tighten bounds the items by all directions. Items already bounded that way become known.
func (v *intervals) tighten(items []int) {
	for ; len(items) > 0; items = items[min(BlockRows, len(items)):] {
		some := items[:min(BlockRows, len(items))]
		for _, sharp := range []bool{true, false} {
			v.pass = v.pass[:0]
			for _, i := range some {
				if v.sharp[i] == sharp && !v.Known[i] {
					v.pass = append(v.pass, i)
				}
			}
			if len(v.pass) == 0 {
				continue
			}
			x := v.x.Rows(v.search.x, v.pass)
			if sharp {
				v.know(x)
			} else {
				v.sharpen(x)
			}
		}
	}
}

// know makes the utilities of the pass known; x holds its items.
func (v *intervals) know(x *mat.Dense) {
	v.z = scratch.Grow(v.z, len(v.pass))
	v.search.o.exact(v.z, x, &v.g, &v.bounds)
	v.search.numNorms.Add(int64(len(v.pass)))
	for k, i := range v.pass {
		v.Lower[i], v.Upper[i], v.Known[i] = v.z[k], v.z[k], true
	}
}

// sharpen bounds the pass by all directions; x holds its items.
func (v *intervals) sharpen(x *mat.Dense) {
	o := v.search.o
	v.z, v.bounds = scratch.Grow(v.z, len(v.pass)), scratch.Grow(v.bounds, len(v.pass))
	g := v.g.Reshape(len(v.pass), len(o.Params))
	utility.Linearize(o.Model, v.z, g, o.Params, x)
	v.search.bound.Rows(v.bounds, g)
	for k, i := range v.pass {
		if upper := o.at(v.z[k], gram.Norm(v.bounds[k])); upper < v.Upper[i] {
			v.Upper[i] = upper
		}
		v.sharp[i] = true
	}
}
