package state

import (
	"cmp"
	"container/list"
	"errors"
	"slices"
	"strings"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// memory is a placement's memory of its shoppers, whom it knows by their names in the log. It is part of the fold, so
// all processes and replays remember the same. If it is full, it forgets the shoppers who came longest ago.
type memory struct {
	keep      int64 // nanoseconds
	size      int   // max bytes
	byName    map[string]*shopper
	order     list.List // of *shopper, who came longest ago first
	bytes     int
	forgotten uint64 // shoppers, because it was full
}

type shopper struct {
	name  string
	last  int64   // when the shopper came last
	items []visit // sorted by id; replaced at each change, so that readers need no copy
	at    *list.Element
}

// visit counts how often a shopper saw and bought an item.
type visit struct {
	feature.Past
	last int64
}

const (
	shopperBytes = 320 // with the places in the list and the index, and the key in its store
	visitBytes   = 48
	maxVisits    = 500 // of a shopper
)

func (h *shopper) bytes() int {
	n := shopperBytes
	for i := range h.items {
		n += visitBytes + idBytes(h.items[i].ID)
	}
	return n
}

// note adds to how often a shopper has seen and bought some items.
func (m *memory) note(name string, now int64, ids []string, seen, bought int) {
	if m == nil || name == "" || len(ids) == 0 {
		return
	}
	h := m.byName[name]
	switch {
	case h == nil && bought < 0:
		return
	case h == nil:
		h = &shopper{name: strings.Clone(name)}
		h.at = m.order.PushBack(h)
		m.byName[h.name] = h
	default:
		m.bytes -= h.bytes()
		m.order.MoveToBack(h.at)
	}
	h.last = max(h.last, now)
	items := slices.DeleteFunc(slices.Clone(h.items), func(v visit) bool { return now-v.last > m.keep })
	for _, id := range ids {
		at, found := slices.BinarySearchFunc(items, id, func(v visit, id string) int { return strings.Compare(v.ID, id) })
		if !found && bought < 0 {
			continue
		}
		if !found {
			items = slices.Insert(items, at, visit{Past: feature.Past{ID: strings.Clone(id)}})
		}
		v := &items[at]
		v.last, v.Seen, v.Bought = max(v.last, now), v.Seen+uint32(seen), uint32(max(0, int(v.Bought)+bought))
	}
	for len(items) > maxVisits { // those bought stay longest
		oldest := slices.MinFunc(items, func(a, b visit) int {
			return cmp.Or(cmp.Compare(min(a.Bought, 1), min(b.Bought, 1)), cmp.Compare(a.last, b.last), strings.Compare(a.ID, b.ID))
		})
		items = slices.DeleteFunc(items, func(v visit) bool { return v.ID == oldest.ID })
	}
	h.items = slices.Clip(items)
	m.bytes += h.bytes()
	m.trim(now)
}

// trim forgets the shoppers who came too long ago, and those for whom there is no memory.
func (m *memory) trim(now int64) {
	for e := m.order.Front(); e != nil; e = m.order.Front() {
		h := e.Value.(*shopper)
		switch {
		case now-h.last > m.keep:
		case m.bytes > m.size:
			m.forgotten++
		default:
			return
		}
		m.order.Remove(e)
		delete(m.byName, h.name)
		m.bytes -= h.bytes()
	}
}

// past returns a shopper's past as of a time.
func (m *memory) past(name string, now int64) (list []feature.Past) {
	if m == nil || m.byName[name] == nil {
		return nil
	}
	for _, v := range m.byName[name].items {
		if now-v.last <= m.keep && v.Seen+v.Bought > 0 {
			list = append(list, v.Past)
		}
	}
	return list
}

// remember begins or ends the memory of a placement's shoppers, as its configuration says.
func (p *Placement) remember(c *setup.Config) {
	h := c.ShopperHistory
	switch {
	case h == nil:
		p.memory = nil
		return
	case p.memory == nil:
		p.memory = &memory{byName: map[string]*shopper{}}
	}
	p.memory.keep, p.memory.size = int64(c.KeepShoppers()), h.MemoryBytes
	if e := p.memory.order.Back(); e != nil {
		p.memory.trim(e.Value.(*shopper).last)
	}
}

// noteOffer notes that a shopper saw the items of an offer.
func (p *Placement) noteOffer(o *offer.Offer, now int64) {
	if p.memory != nil {
		p.memory.note(o.Shopper, now, o.IDs(), 1, 0)
	}
}

// noteOutcome notes which items a shopper took. The items of a deferred offer were shown by then.
func (p *Placement) noteOutcome(c *offer.Closed, now int64) {
	if c.Deferred {
		p.noteOffer(c.Offer, now)
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
	p.memory.note(shopper, now, ids, 0, change)
}

// PastOf returns the past of a placement's shopper as of a time.
func (s *State) PastOf(placement, shopper string, now int64) []feature.Past {
	if p := s.Placements[placement]; p != nil {
		return p.memory.past(shopper, now)
	}
	return nil
}

// Remembers reports whether a placement remembers the shopper with a key.
func (s *State) Remembers(k shoppers.Key) bool {
	for name, p := range s.Placements {
		if p.memory != nil && p.memory.byName[k.Name(name)] != nil {
			return true
		}
	}
	return false
}

// report returns nil without a memory.
func (m *memory) report() *api.ShopperStats {
	if m == nil {
		return nil
	}
	return &api.ShopperStats{Remembered: len(m.byName), Bytes: m.bytes, Forgotten: m.forgotten}
}

// frozenMemory is a memory at an entry.
type frozenMemory struct {
	forgotten uint64
	shoppers  []shopper
}

func (m *memory) freeze() *frozenMemory {
	if m == nil {
		return nil
	}
	f := &frozenMemory{forgotten: m.forgotten, shoppers: make([]shopper, 0, len(m.byName))}
	for e := m.order.Front(); e != nil; e = e.Next() {
		f.shoppers = append(f.shoppers, *e.Value.(*shopper))
	}
	return f
}

func (m *frozenMemory) fields(f *fields.Fields) {
	f.Uvarint(&m.forgotten)
	fields.List(f, &m.shoppers, func(h *shopper, f *fields.Fields) {
		f.String(&h.name)
		f.Int64(&h.last)
		fields.List(f, &h.items, func(v *visit, f *fields.Fields) {
			offer.PastFields(&v.Past, f)
			f.Int64(&v.last)
		})
		fields.Ascending(f, "items of a shopper", h.items, func(v *visit) string { return v.ID })
		f.Check(len(h.name) == shoppers.NameSize && len(h.items) <= maxVisits, "a shopper has a name of %d bytes and %d items", len(h.name), len(h.items))
	})
}

// thawMemory restores the memory of a placement's shoppers.
func (p *Placement) thawMemory(f *frozenMemory) error {
	p.remember(p.Config)
	if f == nil {
		return nil
	}
	p.memory.forgotten = f.forgotten
	for i := range f.shoppers {
		h := &f.shoppers[i]
		if p.memory.byName[h.name] != nil {
			return errors.New("a shopper is remembered twice")
		}
		h.at = p.memory.order.PushBack(h)
		p.memory.byName[h.name] = h
		p.memory.bytes += h.bytes()
	}
	return nil
}
