package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/search"
	"vitrine/internal/kernel"
	"vitrine/utility"
)

// many returns pick's offer from the slots' draws among many items, without holding all utilities in memory. ok is
// false if there are few items, the family is not ranked, places sell differently, or a slot finds no set.
func (o *mixture) many(w *mixtureScratch, family vitrine.Constraint,
	x *vitrine.Context) (s vitrine.Assortment, ok bool) {
	q, ok := assortment.Ranked(family)
	if !ok || q.Max == 0 || o.places > 0 || w.n < search.MinSlots {
		return nil, false
	}
	z := o.standardisation(x.Features)
	if assortment.EqualRevenues(x.Revenue) {
		return o.largest(w, q, z, x.Features)
	}
	if w.n < gainingShare*numGaining(q) {
		return nil, false
	}
	return o.earning(w, family, q, z, x)
}

// largest is many for equal revenues. ok is false if a slot finds only items of utility −∞.
//
// A slot takes the item of its largest sampled utility that may stand next to the earlier slots' items. That item is in
// the slot's own best set. Otherwise every better item of that set that may be added would be shown already; but the
// set always contains one more that may be added (Edmonds 1971).
func (o *mixture) largest(w *mixtureScratch, q assortment.Rules, z standardisation,
	x *mat.Dense) (s vitrine.Assortment, ok bool) {
	each := q
	if each.Max = min(q.Max, len(w.expert)); each.Max < q.Max && len(q.Include) > 0 {
		return nil, false
	}
	best := o.rank(w, look{end: len(w.expert), every: 1, rules: each}, z, x)
	s = make(vitrine.Assortment, 0, each.Max)
	for k, b := range best[:each.Max] {
		if len(q.Include) > 0 {
			b.Items = append(b.Items, q.Include...)
			b.Values = append(b.Values, o.slotUtilities(w.sampled, w, k, q.Include, z, x)...)
		}
		next, maximum := -1, math.Inf(-1)
		for j, i := range b.Items {
			if v := b.Values[j]; (v > maximum || v == maximum && i < next) && !slices.Contains(s, i) &&
				q.Allows(append(s, i)) {
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

// look describes the values to rank.
type look struct {
	first, end int // slots
	every      int // of this many blocks of items, one
	rules      assortment.Rules
	gains      func(slot int, u []float64, from int) // turns the utilities of the items from one on into values; nil leaves them
	least      []float64                             // for each slot, the value that items must exceed; or nil
}

// rank returns each slot's best items that the rules allow, by sampled utilities or by the values that gains makes of
// these.
func (o *mixture) rank(w *mixtureScratch, l look, z standardisation, x *mat.Dense) []search.Best {
	n := w.n
	if l.every > 1 {
		n = n / (l.every * search.BlockRows) * search.BlockRows
	}
	at := func(i int) int { return i - i%search.BlockRows }
	best := search.Slots(n, l.end-l.first, l.rules, l.least, func() (values func(dst []float64, from, to int),
		done func()) {
		own := mixtures.Get().(*mixtureScratch)
		return func(dst []float64, from, to int) {
			size := to - from
			from += (l.every - 1) * at(from)
			of := func(k int) []float64 { return dst[(k-l.first)*size:][:size] }
			o.fillBlock(own, w, z, own.view.View(x, from, from+size), l.first, l.end, of)
			for k := l.first; k < l.end && l.gains != nil; k++ {
				l.gains(k, of(k), from)
			}
		}, func() { mixtures.Put(own) }
	})
	for _, b := range best {
		for j, i := range b.Items {
			b.Items[j] = i + (l.every-1)*at(i)
		}
	}
	return best
}

// affineRows makes standardised items of x = M a + c from short rows a,
//
//	(M_j a + c_j − m_j) / s_j = (M_j / s_j) a + (c_j − m_j) / s_j
//
// M is sparse.
type affineRows struct {
	fixed []float64 // the item of a = 0
	terms []affineTerm
}

// affineTerm is an entry of M, divided by the scale of its row.
type affineTerm struct {
	to, from int
	m        float64
}

func newAffineRows(m *mat.Dense, c []float64, z standardisation) *affineRows {
	rows := &affineRows{fixed: make([]float64, len(c))}
	for j, v := range c {
		rows.fixed[j] = (v - z.shift[j]) / z.scale[j]
		for k, v := range m.RawRowView(j) {
			if v != 0 {
				rows.terms = append(rows.terms, affineTerm{j, k, v / z.scale[j]})
			}
		}
	}
	return rows
}

// of sets items to the items of short rows a. It uses short.
func (r *affineRows) of(items, short *utility.Columns, a *mat.Dense) {
	short.SetRows(a)
	n, _ := a.Dims()
	items.Reset(n, len(r.fixed))
	for j, v := range r.fixed {
		kernel.Combine(items.Feature(j), v, nil, 1, nil, 0)
	}
	for _, t := range r.terms {
		kernel.Axpy(items.Feature(t.to), t.m, short.Feature(t.from))
	}
}

// Given returns the policy for short rows, like [optimistic]'s. It makes the whole rows of a few items at a time. It
// returns nil before the first round, when the policy takes the moments of whole rows.
func (o *mixture) Given(m *mat.Dense, c []float64) vitrine.Policy {
	if o.views[0].z.shift == nil {
		return nil
	}
	given := *o
	given.views = slices.Clone(o.views)
	for k := range given.views {
		given.views[k].rows = newAffineRows(m, c, given.views[k].z)
	}
	_, given.p.NumFeatures = m.Dims()
	return &given
}
