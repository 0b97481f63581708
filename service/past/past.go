// Package past remembers what the shoppers of a placement have seen and bought.
package past

import (
	"cmp"
	"container/list"
	"errors"
	"slices"
	"strings"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/shoppers"
)

// Memory is a placement's memory of its shoppers, whom it knows by their names in the log. It is part of the fold, so
// all processes and replays remember the same. If it is full, it forgets the shoppers who came longest ago. A nil Memory
// notes no visit and knows no shopper.
type Memory struct {
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
	idBytes      = 16  // more than the id's own, as by an allocator
	maxVisits    = 500 // of a shopper
)

func (h *shopper) bytes() int {
	n := shopperBytes
	for i := range h.items {
		n += visitBytes + idBytes + len(h.items[i].ID)
	}
	return n
}

// New returns a memory of at most the given bytes. It forgets items that a shopper has not seen for the time keep, and
// shoppers who did not come for as long.
func New(keep time.Duration, size int) *Memory {
	return &Memory{keep: int64(keep), size: size, byName: map[string]*shopper{}}
}

// Note notes that a shopper came, and adds to how often the shopper has seen and bought some items.
func (m *Memory) Note(name string, now int64, ids []string, seen, bought int) {
	if m == nil || name == "" {
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
	known := len(items)
	for _, id := range ids {
		at, found := slices.BinarySearchFunc(items[:known], id, func(v visit, id string) int {
			return strings.Compare(v.ID, id)
		})
		if !found && bought < 0 {
			continue
		}
		if !found {
			at = len(items)
			items = append(items, visit{Past: feature.Past{ID: strings.Clone(id)}})
		}
		v := &items[at]
		v.last, v.Seen, v.Bought = max(v.last, now), v.Seen+uint32(seen), uint32(max(0, int(v.Bought)+bought))
	}
	if len(items) > maxVisits { // those bought stay longest
		slices.SortFunc(items, func(a, b visit) int {
			if order := cmp.Or(cmp.Compare(min(b.Bought, 1), min(a.Bought, 1)),
				cmp.Compare(b.last, a.last)); order != 0 {
				return order
			}
			return strings.Compare(b.ID, a.ID)
		})
		items = items[:maxVisits]
	}
	slices.SortFunc(items, func(a, b visit) int { return strings.Compare(a.ID, b.ID) })
	h.items = slices.Clip(items)
	m.bytes += h.bytes()
	m.trim(now)
}

// trim forgets the shoppers who came too long ago, and those for whom there is no memory.
func (m *Memory) trim(now int64) {
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

// Of returns a shopper's past as of a time.
func (m *Memory) Of(name string, now int64) (list []feature.Past) {
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

// Limit changes both limits.
func (m *Memory) Limit(keep time.Duration, size int) {
	m.keep, m.size = int64(keep), size
	if e := m.order.Back(); e != nil {
		m.trim(e.Value.(*shopper).last)
	}
}

// Knows reports whether a shopper is remembered.
func (m *Memory) Knows(name string) bool { return m != nil && m.byName[name] != nil }

// Len returns the number of shoppers that are remembered.
func (m *Memory) Len() int {
	if m == nil {
		return 0
	}
	return len(m.byName)
}

// Stats returns nil without a memory.
func (m *Memory) Stats() *api.ShopperStats {
	if m == nil {
		return nil
	}
	return &api.ShopperStats{Remembered: len(m.byName), Bytes: m.bytes, Forgotten: m.forgotten}
}

// Frozen is a Memory at an entry.
type Frozen struct {
	forgotten uint64
	shoppers  []shopper
}

// Freeze returns a copy that does not change, nil without a memory.
func (m *Memory) Freeze() *Frozen {
	if m == nil {
		return nil
	}
	f := &Frozen{forgotten: m.forgotten, shoppers: make([]shopper, 0, len(m.byName))}
	for e := m.order.Front(); e != nil; e = e.Next() {
		f.shoppers = append(f.shoppers, *e.Value.(*shopper))
	}
	return f
}

// Fields passes over the shoppers in a snapshot.
func (m *Frozen) Fields(f *fields.Fields) {
	f.Uvarint(&m.forgotten)
	fields.List(f, &m.shoppers, func(h *shopper, f *fields.Fields) {
		f.String(&h.name)
		f.Int64(&h.last)
		fields.List(f, &h.items, func(v *visit, f *fields.Fields) {
			offer.PastFields(&v.Past, f)
			f.Int64(&v.last)
		})
		fields.Ascending(f, "items of a shopper", h.items, func(v *visit) string { return v.ID })
		f.Check(len(h.name) == shoppers.NameSize && len(h.items) <= maxVisits, "a shopper has a name of %d bytes "+
			"and %d items", len(h.name), len(h.items))
	})
}

// Thaw adds the shoppers of a frozen memory to an empty one.
func (m *Memory) Thaw(f *Frozen) error {
	m.forgotten = f.forgotten
	for i := range f.shoppers {
		h := &f.shoppers[i]
		if m.byName[h.name] != nil {
			return errors.New("a shopper is remembered twice")
		}
		h.at = m.order.PushBack(h)
		m.byName[h.name] = h
		m.bytes += h.bytes()
	}
	return nil
}
