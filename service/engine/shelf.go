package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/earnings"
)

// ShelfQuery asks for a page of items.
type ShelfQuery struct {
	Contains string   // a text that an item mentions, in lower case
	Only     string   // a state, or "shown", "unseen" or "pinned"; "" takes all items
	Sort     string   // "earned", "shown" or ""
	IDs      []string // only these, in this order; nil takes all items
	From     int
	Limit    int
}

// shelfSlice is how many items are looked at before the catalogue's lock is released. Searching as many payloads of 2 kB
// takes one millisecond, or four if they contain escapes.
const shelfSlice = 64

// shelf is a placement's items while a page of them is made.
type shelf struct {
	ShelfQuery
	items *catalogue.Catalogue // nil without one
	sold  earnings.Items
	named map[string]named // pinned and excluded items
	now   int64
}

// named says how a placement's configuration mentions an item.
type named uint8

const (
	pinned named = 1 + iota
	excluded
)

// Shelf returns a page of the items that a placement may show, and then of others that were shown. Errors are
// ErrNotFound and ctx's.
func (e *Engine) Shelf(ctx context.Context, name string, q ShelfQuery, now int64) (*api.Shelf, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	s := &shelf{ShelfQuery: q, items: v.Page.Catalogue, sold: v.Placement.Earnings.Items.Copy(),
		named: map[string]named{}, now: now}
	e.mu.RUnlock()
	for _, id := range v.Config().Include {
		s.named[id] = pinned
	}
	for _, id := range v.Config().Exclude {
		s.named[id] = excluded
	}
	ids, total, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	page := &api.Shelf{Count: total, Items: make([]api.ShelfItem, 0, len(ids)), Complete: s.sold.Dropped == 0}
	s.locked(func() {
		for _, id := range ids {
			page.Items = append(page.Items, s.item(id))
		}
	})
	return page, nil
}

// locked calls look with the catalogue locked, if there is one.
func (s *shelf) locked(look func()) {
	if s.items != nil {
		s.items.RLock()
		defer s.items.RUnlock()
	}
	look()
}

// list returns the ids of a page's items, and how many items the query finds.
func (s *shelf) list(ctx context.Context) (ids []string, total int, err error) {
	if s.IDs != nil {
		return s.IDs, len(s.IDs), nil
	}
	p := &listing{shelf: s}
	others := s.sold.Counted() // that the catalogue may not have
	if s.Sort != "" {
		p.add(s.sorted(others), func(string) bool { return true })
		others = nil
	}
	if err := p.addStock(ctx); err != nil {
		return nil, 0, err
	}
	isForeign := func(id string) bool { _, known := s.slot(id); return !known }
	p.add(others, isForeign)
	var named []string
	for id := range s.named {
		if _, ok := s.sold.Sold(id); !ok {
			named = append(named, id)
		}
	}
	slices.Sort(named)
	p.add(named, isForeign)
	return p.ids, p.total, nil
}

// listing collects the ids of one page of a query.
type listing struct {
	*shelf
	ids   []string
	total int // items found
}

func (p *listing) note(id string) {
	if p.total >= p.From && len(p.ids) < p.Limit {
		p.ids = append(p.ids, strings.Clone(id))
	}
	p.total++
}

// add adds those of the ids that the query finds.
func (p *listing) add(ids []string, may func(id string) bool) {
	p.locked(func() {
		for _, id := range ids {
			if may(id) && p.finds(id) {
				p.note(id)
			}
		}
	})
}

// addStock adds the items of the catalogue that the query finds. It works in slices, and others may write in between.
func (p *listing) addStock(ctx context.Context) error {
	for from, more := int32(0), p.items != nil; more; from += shelfSlice {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.locked(func() {
			end := min(from+shelfSlice, int32(p.items.Len()))
			more = end < int32(p.items.Len())
			if p.Contains == "" && p.Only == "" && p.Sort == "" && (p.total+int(end-from) <= p.From ||
				len(p.ids) == p.Limit) {
				p.total += int(end - from) // an empty range
				return
			}
			for slot := from; slot < end; slot++ {
				id := p.items.ID(slot)
				if _, counts := p.sold.Sold(id); (p.Sort == "" || !counts) && p.finds(id) {
					p.note(id)
				}
			}
		})
	}
	return nil
}

// sorted returns the ids of the counted items in the order of the query.
func (s *shelf) sorted(counted []string) []string {
	if s.Sort == "earned" {
		earns := func(id string) float64 { // at least, if sales vary by chance, so that a lucky item does not come first
			of, _ := s.sold.Sold(id)
			surely := max(0, 1-2/math.Sqrt(float64(of.Taken))) // of the sales: two standard deviations of a Poisson number less
			return surely * of.Revenue.Value() / float64(of.Shown)
		}
		slices.SortStableFunc(counted, func(a, b string) int { return cmp.Compare(earns(b), earns(a)) })
	}
	return counted
}

func (s *shelf) slot(id string) (int32, bool) {
	if s.items == nil {
		return 0, false
	}
	return s.items.Find(id)
}

// state says whether an item may be shown now.
func (s *shelf) state(id string) string {
	slot, ok := s.slot(id)
	switch {
	case s.named[id] == excluded:
		return api.OffShelf
	case !ok:
		return api.NotInStock
	}
	return cmp.Or(s.items.WhyNot(slot, s.now), api.OnShelf)
}

// finds reports whether the query is for an item.
func (s *shelf) finds(id string) bool {
	if s.Contains != "" && !strings.Contains(strings.ToLower(id), s.Contains) {
		if slot, ok := s.slot(id); !ok || !s.items.Mentions(slot, s.Contains) {
			return false
		}
	}
	_, shown := s.sold.Sold(id)
	switch s.Only {
	case "":
		return true
	case "shown":
		return shown
	case "unseen":
		return !shown
	case "pinned":
		return s.named[id] == pinned
	case "unavailable":
		state := s.state(id)
		return state != api.OnShelf && state != api.NotInStock && state != api.OffShelf
	}
	return s.state(id) == s.Only
}

// item returns an item with its sales.
func (s *shelf) item(id string) api.ShelfItem {
	x := api.ShelfItem{Item: api.CatalogueItem{ID: id}, State: s.state(id), Pinned: s.named[id] == pinned}
	if slot, ok := s.slot(id); ok {
		x.Item = s.items.Item(slot)
	}
	if of, ok := s.sold.Sold(id); ok {
		x.Shown, x.Taken, x.Revenue = of.Shown, of.Taken, of.Revenue.Value()
		x.Selling, x.PerShown = new(float64(of.Taken)/float64(of.Shown)), new(of.Revenue.Value()/float64(of.Shown))
	}
	return x
}
