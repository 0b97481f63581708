package catalogue

import (
	"iter"
	"slices"
	"weak"

	"vitrine/service/feature"
)

// Frozen is a snapshot of a catalogue's items at one version, while the catalogue goes on changing. It uses memory only
// for the items that have changed since.
type Frozen struct {
	Version uint64

	items *Catalogue
	n     int
	saved map[int32]string // records before their items changed, by slot
}

// Freeze returns a snapshot of the items. It waits for a change in progress.
func (c *Catalogue) Freeze() *Frozen {
	c.RLock()
	defer c.RUnlock()
	f := &Frozen{Version: c.version, items: c, n: c.Len(), saved: map[int32]string{}}
	c.freezing.Lock()
	defer c.freezing.Unlock()
	isGone := func(f weak.Pointer[Frozen]) bool { return f.Value() == nil }
	c.frozen = append(slices.DeleteFunc(c.frozen, isGone), weak.Make(f))
	return f
}

// save keeps an item's record for the snapshots before the item changes.
func (c *Catalogue) save(slot int32) {
	record := "" // one text shared by all snapshots
	for _, weakly := range c.frozen {
		f := weakly.Value()
		if f == nil || int(slot) >= f.n {
			continue
		}
		if _, ok := f.saved[slot]; !ok {
			if record == "" {
				record = c.record(slot)
			}
			f.saved[slot] = record
		}
	}
}

// Split returns the computation of the items' rows.
func (f *Frozen) Split() *feature.Split { return f.items.Split() }

// Len returns the number of items.
func (f *Frozen) Len() int { return f.n }

// Records returns the records of the items in the order of their slots.
func (f *Frozen) Records() iter.Seq[string] {
	const some = 256 // records per hold of the lock, so that changes go on
	return func(yield func(string) bool) {
		var records []string
		for from := 0; from < f.n; from += some {
			records = f.read(records[:0], from, min(from+some, f.n))
			for _, record := range records {
				if !yield(record) {
					return
				}
			}
		}
	}
}

func (f *Frozen) read(records []string, from, to int) []string {
	f.items.RLock()
	defer f.items.RUnlock()
	for slot := int32(from); slot < int32(to); slot++ {
		records = append(records, f.at(slot))
	}
	return records
}
