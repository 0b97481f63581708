package state

import (
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/past"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// remember begins or ends the memory of a placement's shoppers, as its configuration says.
func (p *Placement) remember(c *setup.Config) {
	switch h := c.ShopperHistory; {
	case h == nil:
		p.memory = nil
	case p.memory == nil:
		p.memory = past.New(c.KeepShoppers(), h.MemoryBytes)
	default:
		p.memory.Limit(c.KeepShoppers(), h.MemoryBytes)
	}
}

// noteOffer notes that a shopper saw the items of an offer. If they will only be shown later, the shopper came: otherwise
// the key that leads to the shopper could be gone by then.
func (p *Placement) noteOffer(o *offer.Offer, now int64) {
	switch {
	case p.memory == nil:
	case o.Deferred:
		p.memory.Note(o.Shopper, now, nil, 0, 0)
	default:
		p.memory.Note(o.Shopper, now, o.IDs(), 1, 0)
	}
}

// noteOutcome notes which items a shopper took. The items of a deferred offer were shown by then.
func (p *Placement) noteOutcome(c *offer.Closed, now int64) {
	if p.memory != nil && c.Deferred {
		p.memory.Note(c.Shopper, now, c.IDs(), 1, 0)
	}
	p.noteTakes(c.Shopper, c.IDs, c.Takes(), 1, now)
}

// noteTakes notes that a shopper took items, or that their sale was withdrawn, if change is −1.
func (p *Placement) noteTakes(shopper string, shown func() []string, takes eventlog.Basket, change int, now int64) {
	if p.memory == nil || shopper == "" || change == 0 || len(takes) == 0 {
		return
	}
	all := shown()
	ids := make([]string, len(takes))
	for k, t := range takes {
		ids[k] = all[t.Place-1]
	}
	p.memory.Note(shopper, now, ids, 0, change)
}

// PastOf returns the past of a placement's shopper as of a time.
func (s *State) PastOf(placement, shopper string, now int64) []feature.Past {
	if p := s.Placements[placement]; p != nil {
		return p.memory.Of(shopper, now)
	}
	return nil
}

// Remembered returns the number of shoppers that the placements remember.
func (s *State) Remembered() (n int) {
	for _, p := range s.Placements {
		n += p.memory.Len()
	}
	return n
}

// Remembers reports whether a placement remembers the shopper with a key.
func (s *State) Remembers(k shoppers.Key) bool {
	for name, p := range s.Placements {
		if p.memory.Knows(k.Name(name)) {
			return true
		}
	}
	return false
}

func (p *Placement) thawMemory(f *past.Frozen) error {
	p.remember(p.Config)
	if f == nil {
		return nil
	}
	return p.memory.Thaw(f)
}
