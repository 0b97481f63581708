package bandit

import (
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/utility"
)

// With unequal revenues, and over families other than AtMost, which utilities
// matter is not known before the optimiser asks. It gets an interval for each,
//
//	f_w(x_i) + slack ≤ z_i ≤ f_w(x_i) + radius · (bound of ‖∇f_w(x_i)‖_{V⁻¹}) + slack
//
// and [assortment.MaximizeBounds] asks for better where its answer depends on
// it: first a bound by more directions, then the norm.

// index holds the intervals of N items, and what making them better takes.
type index struct {
	assortment.Bounds
	search *search
	sharp  []bool // whether the upper bound is by all directions
	pass   []int  // items
	x, g   matrix
	z      []float64
	bounds []float64
}

// maximize returns the best assortment, which must be of a stable family.
func (s *search) maximize(o *optimistic, sketcher utility.Sketcher, x *vitrine.Context, workers int) vitrine.Assortment {
	s.begin(o, sketcher, x.Features)
	defer s.end()
	n := x.NumItems()
	v := &s.index
	v.Lower, v.Upper = grow(v.Lower, n), grow(v.Upper, n)
	v.Known, v.sharp = growBools(v.Known, n), growBools(v.sharp, n)
	if v.Tighten == nil {
		v.search, v.Tighten = s, v.tighten
	}
	s.each((*searcher).enclose, workers)
	answer, _ := assortment.MaximizeBounds(nil, o.p.family(x), &v.Bounds, x.Revenue)
	return answer
}

// enclose stores the intervals of the items from ≤ i < to.
func (w *searcher) enclose(from, to int) {
	s := w.search
	m := s.sketched()
	w.sketch(from, to, m)
	for i, u := range w.u {
		s.index.Lower[from+i] = s.o.at(u, 0)
		s.index.Upper[from+i] = s.o.at(u, gram.Norm(w.upper[i]))
		s.index.Known[from+i], s.index.sharp[from+i] = false, s.bound.NumDirections() == m
	}
}

// tighten bounds the items by all directions, or those that are so bounded
// already by their norms.
func (v *index) tighten(items []int) {
	for ; len(items) > 0; items = items[min(indexRows, len(items)):] {
		some := items[:min(indexRows, len(items))]
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
			x := v.x.rows(v.search.x, v.pass)
			if sharp {
				v.know(x)
			} else {
				v.sharpen(x)
			}
		}
	}
}

// know makes the utilities of the items x of the pass known.
func (v *index) know(x *mat.Dense) {
	v.z = grow(v.z, len(v.pass))
	v.search.o.exact(v.z, x, &v.g, &v.bounds)
	v.search.norms.Add(int64(len(v.pass)))
	for k, i := range v.pass {
		v.Lower[i], v.Upper[i], v.Known[i] = v.z[k], v.z[k], true
	}
}

// sharpen bounds the items x of the pass by all directions.
func (v *index) sharpen(x *mat.Dense) {
	o := v.search.o
	v.z, v.bounds = grow(v.z, len(v.pass)), grow(v.bounds, len(v.pass))
	g := v.g.reshape(len(v.pass), len(o.w))
	utility.Linearize(o.model, v.z, g, o.w, x)
	v.search.bound.Rows(v.bounds, g)
	for k, i := range v.pass {
		if upper := o.at(v.z[k], gram.Norm(v.bounds[k])); upper < v.Upper[i] {
			v.Upper[i] = upper
		}
		v.sharp[i] = true
	}
}

func growBools(v []bool, n int) []bool {
	if cap(v) < n {
		return make([]bool, n)
	}
	return v[:n]
}
