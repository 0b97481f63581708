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
// memory. It is the one of pick. ok is false if there are few items, the family has no quota, places sell differently, or
// a slot has no item of a utility above −∞.
//
// A slot takes the item of its largest sampled utility that may stand beside those of the slots before. That item is in the
// slot's own best set within the quota: else each better item of that set that might take its place would be shown
// already, and there is always one more in the set that may be added (Edmonds 1971).
func (o *mixture) largest(w *mixtureScratch, family vitrine.Constraint, x *vitrine.Context) (s vitrine.Assortment, ok bool) {
	q, ok := assortment.QuotaOf(family)
	if !ok || o.places > 0 || w.n < search.MinSlots || !assortment.EqualRevenues(x.Revenue) {
		return nil, false
	}
	z := o.standardisation(x.Features)
	slots := len(w.expert)
	each := q
	each.Size = min(q.Size, slots)
	best := search.Slots(w.n, slots, each, func() (values func(dst []float64, from, to int), done func()) {
		own := mixtures.Get().(*mixtureScratch)
		return func(dst []float64, from, to int) {
			items := o.standardised(&own.items, z, own.view.View(x.Features, from, to))
			o.fillBlock(own, w, items, 0, slots, func(k int) []float64 { return dst[k*(to-from):][:to-from] })
		}, func() { mixtures.Put(own) }
	})
	s = make(vitrine.Assortment, 0, each.Size)
	for _, b := range best[:each.Size] {
		next, maximum := -1, math.Inf(-1)
		for j, i := range b.Items {
			if v := b.Values[j]; (v > maximum || v == maximum && i < next) && !slices.Contains(s, i) && q.Allows(append(s, i)) {
				next, maximum = i, v
			}
		}
		if next < 0 {
			return nil, false
		}
		s = append(s, next)
	}
	slices.Sort(s)
	return s, true
}

// affineRows makes standardised rows of x = M a + c from short rows a. M has few entries that are not 0.
type affineRows struct {
	fixed   []float64 // the row of a = 0, standardised
	columns []affineColumn
}

// affineColumn is a column of x that depends on a.
type affineColumn struct {
	at              int
	c, shift, scale float64
	terms           []affineTerm
}

type affineTerm struct {
	column int // of a
	m      float64
}

func newAffineRows(m *mat.Dense, c []float64, z standardisation) *affineRows {
	rows := &affineRows{fixed: make([]float64, len(c))}
	for j, v := range c {
		rows.fixed[j] = (v - z.shift[j]) / z.scale[j]
		column := affineColumn{at: j, c: v, shift: z.shift[j], scale: z.scale[j]}
		for k, v := range m.RawRowView(j) {
			if v != 0 {
				column.terms = append(column.terms, affineTerm{k, v})
			}
		}
		if column.terms != nil {
			rows.columns = append(rows.columns, column)
		}
	}
	return rows
}

// of stores the rows of short rows a in the first columns of dst.
func (r *affineRows) of(dst, a *mat.Dense) {
	n, _ := a.Dims()
	for i := range n {
		from, to := a.RawRowView(i), dst.RawRowView(i)
		copy(to, r.fixed)
		for k := range r.columns {
			column := &r.columns[k]
			v := column.c
			for _, t := range column.terms {
				v += float64(t.m * from[t.column])
			}
			to[column.at] = (v - column.shift) / column.scale
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
	given.rows = newAffineRows(m, c, o.z)
	_, given.p.Features = m.Dims()
	return &given
}
