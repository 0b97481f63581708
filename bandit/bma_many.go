package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/search"
)

// largest returns the offer of the slots' draws for equal revenues among many items, without the utilities of all of them in
// memory. It is the one of pick. ok is false if there are few items, the family is not AtMost, places sell differently, or
// a slot has no item of a utility above −∞.
func (o *mixture) largest(w *mixtureScratch, family vitrine.Constraint, x *vitrine.Context) (s vitrine.Assortment, ok bool) {
	k, ok := family.(assortment.AtMost)
	if !ok || o.places > 0 || w.n < search.MinSlots || !assortment.EqualRevenues(x.Revenue) {
		return nil, false
	}
	z := o.standardisation(x.Features)
	slots := len(w.expert)
	best := search.Slots(w.n, slots, slots, func() (values func(dst []float64, from, to int), done func()) {
		own := mixtures.Get().(*mixtureScratch)
		return func(dst []float64, from, to int) {
			items := o.standardised(&own.items, z, own.view.View(x.Features, from, to))
			o.fillBlock(own, w, items, 0, slots, func(k int) []float64 { return dst[k*(to-from):][:to-from] })
		}, func() { mixtures.Put(own) }
	})
	for _, b := range best[:max(0, min(int(k), slots))] {
		next, maximum := -1, math.Inf(-1)
		for j, i := range b.Items {
			if v := b.Values[j]; (v > maximum || v == maximum && i < next) && !slices.Contains(s, i) {
				next, maximum = i, v
			}
		}
		if next < 0 {
			return nil, false
		}
		s = append(s, next)
	}
	slices.Sort(s)
	return append(vitrine.Assortment{}, s...), true
}

// affineRows makes rows x = M a + c of short rows a. M has few entries that are not 0.
type affineRows struct {
	c     []float64
	terms [][]affineTerm // of each column of x
}

type affineTerm struct {
	column int // of a
	m      float64
}

func newAffineRows(m *mat.Dense, c []float64) *affineRows {
	rows := &affineRows{c: slices.Clone(c), terms: make([][]affineTerm, len(c))}
	for j := range c {
		for k, v := range m.RawRowView(j) {
			if v != 0 {
				rows.terms[j] = append(rows.terms[j], affineTerm{k, v})
			}
		}
	}
	return rows
}

// of stores the rows x of short rows a in the first columns of dst.
func (r *affineRows) of(dst, a *mat.Dense) {
	n, _ := a.Dims()
	for i := range n {
		from, to := a.RawRowView(i), dst.RawRowView(i)
		for j, v := range r.c {
			for _, t := range r.terms[j] {
				v += float64(t.m * from[t.column])
			}
			to[j] = v
		}
	}
}

// Given returns the policy for short rows, as that of [optimistic] does. It makes the whole rows of a few items at a time. It
// returns nil before the first round, where the policy takes the moments of whole rows.
func (o *mixture) Given(m *mat.Dense, c []float64) vitrine.Policy {
	if o.z.shift == nil {
		return nil
	}
	given := *o
	given.rows = newAffineRows(m, c)
	_, given.p.Features = m.Dims()
	return &given
}
