package catalogue

import (
	"iter"
	"slices"
	"weak"

	"vitrine/service/feature"
)

// Frozen are the items of a catalogue at a version, while the catalogue changes. It takes the memory of those that
// have changed since.
type Frozen struct {
	Version uint64

	items *Catalogue
	n     int
	saved map[int32]string // the records of items that have changed, by slot
}

// Freeze returns the items as they are now. It waits for a change that is being applied.
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

// save saves an item that is about to change for those who have frozen it.
func (c *Catalogue) save(slot int32) {
	record := "" // one text for all
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

// Split returns how the rows of the items are computed.
func (f *Frozen) Split() *feature.Split { return f.items.Split() }

// Len returns the number of items.
func (f *Frozen) Len() int { return f.n }

// Records returns the records of the items in the order of their slots.
func (f *Frozen) Records() iter.Seq[string] {
	const some = 256 // for which the lock is held, so that changes go on
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
