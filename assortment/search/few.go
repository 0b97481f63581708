package search

import (
	"vitrine"
	"vitrine/assortment"
	"vitrine/utility"
)

// few finds the best set within a quota for unequal revenues among a few items, at first size of them: see
// [assortment.Few].
func (s *search) few(o *Optimistic, sketcher utility.Sketcher, q assortment.Quota, size int, x *vitrine.Context, workers int) (best vitrine.Assortment, ok bool) {
	largest := s.top(o, sketcher, x.Features, assortment.Quota{Size: size}, workers)
	return s.fewItems.Maximize(q, x.Revenue, largest, size, func(items []int) []float64 {
		s.some = o.utilities(s, s.some, &vitrine.Context{Features: s.rows.Rows(x.Features, items)})
		return s.some
	})
}

// shelf is few for a shelf, of any revenues.
func (s *search) shelf(o *Optimistic, sketcher utility.Sketcher, c *assortment.Shelf, size int, x *vitrine.Context, workers int) (best vitrine.Assortment, ok bool) {
	largest := s.top(o, sketcher, x.Features, c.Screen(size), workers)
	return s.fewItems.MaximizeShelf(c, x.Revenue, largest, size, func(items []int) []float64 {
		s.some = o.utilities(s, s.some, &vitrine.Context{Features: s.rows.Rows(x.Features, items)})
		return s.some
	})
}
