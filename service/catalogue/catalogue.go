package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// Catalogue has the items of a placement. Each has a slot, from 0 on without a gap. Slots depend only
// on the changes and their order, so that a replay gives the same ones.
//
// It has one writer, who calls Apply. The methods between RLock and Unlock are for readers who hold
// the lock for reading.
type Catalogue struct {
	split atomic.Pointer[feature.Split]

	mu         sync.RWMutex
	version    uint64
	records    []string
	rows       []float64 // Len×Width: the columns of the items
	revenues   []float64
	states     []uint8
	windows    map[int32]window
	index      index
	limited    int            // items that are not available, or only at some times
	earning    int            // items whose revenue is not 1
	attributes map[string]int // in how many items each is
	bytes      int64          // of the records
	fields     fields         // of the record that the writer reads

	filters filters
}

// window is the time in which an item may be shown, Unix nanoseconds.
type window struct{ from, until int64 }

// The states of items.
const (
	unavailable uint8 = 1 << iota
	inWindow          // available in its window only
	unfit             // without the features of the schema
)

// New returns an empty catalogue of items with the features of a schema.
func New(s *feature.Schema) *Catalogue {
	c := &Catalogue{windows: map[int32]window{}, attributes: map[string]int{}}
	c.split.Store(s.Split())
	c.index = newIndex(c.ID)
	return c
}

// Restore returns the catalogue of items in the order of their slots. Items that do not fit the schema
// are not available. The error names one of them if it has the type *[ItemError]; another error is of
// records that no catalogue has had.
func Restore(s *feature.Schema, version uint64, records []string) (c *Catalogue, err error) {
	c = New(s)
	var misfit error
	for ; len(records) > 0; records = records[min(restored, len(records)):] {
		change, err := c.newChange(records[:min(restored, len(records))], nil, true)
		if err != nil {
			return nil, err
		}
		if change.misfit != nil {
			misfit = change.misfit
		}
		if n := len(c.records) + len(change.put); c.LenAfter(change) != n {
			return nil, fmt.Errorf("the catalogue has an item twice among %d", n)
		}
		c.Apply(version, change)
	}
	c.version = version
	return c, misfit
}

const restored = 1 << 12 // items whose rows are computed at a time

// Split returns how the rows of the catalogue's items are computed.
func (c *Catalogue) Split() *feature.Split { return c.split.Load() }

// Change is a change of a catalogue that is ready to be applied.
type Change struct {
	Split   *feature.Split // by which rows were computed: it must still be that of the catalogue
	put     []string
	rows    []float64
	deleted []string
	unfit   map[int]bool // of put
	misfit  error        // of one of them
}

// NewChange returns the change that puts items, which are records, and deletes those of the ids. It
// computes the rows, so that Apply is quick. Errors name what Encode would not have written.
func (c *Catalogue) NewChange(put, deleted []string) (*Change, error) {
	return c.newChange(put, deleted, false)
}

func (c *Catalogue) newChange(put, deleted []string, mayMisfit bool) (*Change, error) {
	split := c.Split()
	s, width := split.Schema(), split.Width()
	change := &Change{Split: split, put: put, deleted: deleted, rows: make([]float64, len(put)*width)}
	ids := make(map[string]bool, len(put)+len(deleted))
	var f fields
	one := make([]api.Item, 1)
	for i, record := range put {
		if err := f.read(record); err != nil {
			return nil, err
		}
		if err := f.verify(s); err != nil {
			return nil, err
		}
		if ids[f.id] {
			return nil, fmt.Errorf("item %q is a duplicate", f.id)
		}
		ids[f.id] = true
		one[0].Features = f.values
		if _, err := split.Items(change.rows[i*width:(i+1)*width], one); err != nil {
			misfit := &ItemError{Index: i, ID: f.id, Err: err}
			if !mayMisfit {
				return nil, misfit
			}
			if change.misfit = misfit; change.unfit == nil {
				change.unfit = map[int]bool{}
			}
			change.unfit[i] = true
		}
	}
	for _, id := range deleted {
		if ids[id] {
			return nil, fmt.Errorf("item %q is a duplicate", id)
		}
		ids[id] = true
	}
	return change, nil
}

// ItemError says which item of a change does not fit the schema.
type ItemError struct {
	Index int
	ID    string
	Err   error // an *api.FieldError of the first of one item
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %q: %v", e.ID, e.Err) }

func (e *ItemError) Unwrap() error { return e.Err }

// Apply makes a change, which version names from then on. It waits for readers.
func (c *Catalogue) Apply(version uint64, change *Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width := c.Split().Width()
	for i, record := range change.put {
		slot, ok := c.index.find(idOf(record))
		if !ok {
			slot = int32(len(c.records))
			c.records, c.revenues, c.states = append(c.records, ""), append(c.revenues, 1), append(c.states, 0)
			c.rows = append(c.rows, change.rows[i*width:(i+1)*width]...)
		} else {
			c.forget(slot)
			copy(c.rows[int(slot)*width:], change.rows[i*width:(i+1)*width])
		}
		c.note(slot, strings.Clone(record), change.unfit[i]) // the change has it in memory with others
	}
	for _, id := range change.deleted {
		if slot, ok := c.index.find(id); ok {
			c.remove(slot)
		}
	}
	c.version = version
}

// note makes a record that of a slot. The row is there already.
func (c *Catalogue) note(slot int32, record string, isUnfit bool) {
	f := &c.fields
	_ = f.read(record) // NewChange has read it
	c.records[slot] = record
	c.index.add(f.id, slot)
	c.revenues[slot] = f.revenue
	if f.revenue != 1 {
		c.earning++
	}
	state := uint8(0)
	if f.flags&isUnavailable != 0 {
		state |= unavailable
	}
	if isUnfit {
		state |= unfit
	}
	if f.flags&(hasFrom|hasUntil) != 0 {
		state |= inWindow
		c.windows[slot] = window{f.from, f.until}
	}
	if c.states[slot] = state; state != 0 {
		c.limited++
	}
	for i := range f.attributes {
		c.attributes[f.attributes[i].Name]++
	}
	c.bytes += int64(len(record))
	c.filters.touch(slot)
}

// forget removes what note has noted of a slot.
func (c *Catalogue) forget(slot int32) {
	f := &c.fields
	_ = f.read(c.records[slot])
	c.index.remove(f.id)
	if f.revenue != 1 {
		c.earning--
	}
	if c.states[slot] != 0 {
		c.limited--
		delete(c.windows, slot)
	}
	for i := range f.attributes {
		name := f.attributes[i].Name
		if c.attributes[name]--; c.attributes[name] == 0 {
			delete(c.attributes, name)
		}
	}
	c.bytes -= int64(len(c.records[slot]))
}

// remove deletes the item of a slot. The last item takes its place.
func (c *Catalogue) remove(slot int32) {
	c.forget(slot)
	last, width := int32(len(c.records)-1), c.Split().Width()
	if slot != last {
		record, state := c.records[last], c.states[last]
		c.forget(last)
		copy(c.rows[int(slot)*width:], c.rows[int(last)*width:(int(last)+1)*width])
		c.note(slot, record, state&unfit != 0)
	}
	c.records[last] = ""
	c.records, c.revenues, c.states, c.rows = c.records[:last], c.revenues[:last], c.states[:last], c.rows[:int(last)*width]
}

// Learn replaces the schema by one that has also learned the given values, and the rows of items with such a value. It
// waits for readers.
func (c *Catalogue) Learn(s *feature.Schema, values []feature.Seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	split := s.Split()
	c.split.Store(split)
	learned := map[int][]string{} // by the slot of a feature of items
	for _, seen := range values {
		if slot, ok := s.Item(seen.Feature); ok {
			learned[slot] = seen.Values
		}
	}
	if len(learned) == 0 {
		return
	}
	f, width, one := &c.fields, split.Width(), make([]api.Item, 1)
	for slot, record := range c.records {
		_ = f.read(record)
		for feature, values := range learned {
			if v := &f.values[feature]; v.Kind == api.Missing || slices.Contains(values, v.Text) { // a default may be one of them
				one[0].Features = f.values
				_, _ = split.Items(c.rows[slot*width:(slot+1)*width], one) // an error is that of before: the item is unfit
				break
			}
		}
	}
}

// WithSchema returns the catalogue with the same items and the features of another schema, by their
// names. Features that the schema does not have are lost. Items that do not fit the schema, because
// they lack a feature or have another type of value, are kept, but are not available. The error names
// one of them.
func (c *Catalogue) WithSchema(s *feature.Schema) (*Catalogue, error) {
	from := c.Split().Schema()
	records, version := c.Records()
	var f fields
	for i, record := range records {
		_ = f.read(record)
		item := f.item(from)
		values := make(api.Values, s.NumItem())
		for _, v := range item.Features {
			if slot, ok := s.Item(v.Name); ok {
				values[slot] = v
			}
		}
		records[i] = encode(&item, values)
	}
	return Restore(s, version, records)
}

// Records returns the items in the order of their slots, and the version.
func (c *Catalogue) Records() (records []string, version uint64) {
	c.RLock()
	defer c.RUnlock()
	return slices.Clone(c.records), c.version
}

// itemBytes is what an item takes beside its record and its row: the places in the slices and in the index.
const itemBytes = 48

// Bytes returns the memory that the catalogue takes.
func (c *Catalogue) Bytes() int64 {
	c.RLock()
	defer c.RUnlock()
	return c.bytes + int64(len(c.records))*(itemBytes+8*int64(c.Split().Width()))
}

// MaxBytes bounds the memory that a change adds.
func (c *Catalogue) MaxBytes(change *Change) int64 {
	bytes := int64(len(change.put)) * (itemBytes + 8*int64(c.Split().Width()))
	for _, record := range change.put {
		bytes += int64(len(record))
	}
	return bytes
}

// LenAfter returns the number of items after a change.
func (c *Catalogue) LenAfter(change *Change) int {
	c.RLock()
	defer c.RUnlock()
	n := len(c.records)
	for _, record := range change.put {
		if _, ok := c.index.find(idOf(record)); !ok {
			n++
		}
	}
	for _, id := range change.deleted {
		if _, ok := c.index.find(id); ok {
			n--
		}
	}
	return n
}

// RLock takes the lock for reading. While a reader has it the catalogue does not change.
func (c *Catalogue) RLock() { c.mu.RLock() }

// RUnlock releases the lock.
func (c *Catalogue) RUnlock() { c.mu.RUnlock() }

// Version returns the entry of the log that changed the catalogue last.
func (c *Catalogue) Version() uint64 { return c.version }

// Len returns the number of items.
func (c *Catalogue) Len() int { return len(c.records) }

// Find returns the slot of an item.
func (c *Catalogue) Find(id string) (slot int32, ok bool) { return c.index.find(id) }

// Has reports whether the catalogue has an item as it is in a record.
func (c *Catalogue) Has(record string) bool {
	slot, ok := c.index.find(idOf(record))
	return ok && c.records[slot] == record
}

// ID returns the id of the item of a slot.
func (c *Catalogue) ID(slot int32) string { return idOf(c.records[slot]) }

func idOf(record string) string {
	r := reader{rest: record}
	r.byte()
	r.uvarint()
	return r.string()
}

// Row returns the columns of an item. They must not be changed.
func (c *Catalogue) Row(slot int32) []float64 {
	width := c.Split().Width()
	return c.rows[int(slot)*width : (int(slot)+1)*width]
}

// Rows returns the columns of all items, Len×Width in row-major order. They must not be changed.
func (c *Catalogue) Rows() []float64 { return c.rows }

// Revenue returns the revenue of an item.
func (c *Catalogue) Revenue(slot int32) float64 { return c.revenues[slot] }

// Revenues returns the revenues of all items, nil if each is 1. They must not be changed.
func (c *Catalogue) Revenues() []float64 {
	if c.earning == 0 {
		return nil
	}
	return c.revenues
}

// Features returns the values of an item's features, by their slots in the schema, without names.
func (c *Catalogue) Features(slot int32) api.Values {
	var f fields
	_ = f.read(c.records[slot])
	return f.values
}

// Item returns the item of a slot.
func (c *Catalogue) Item(slot int32) api.CatalogueItem {
	var f fields
	_ = f.read(c.records[slot])
	return f.item(c.Split().Schema())
}

// Patch returns the record of an item of the catalogue with the fields of a patch. ok is false if the
// catalogue does not have it.
func (c *Catalogue) Patch(patch *api.CatalogueItem, field string) (record string, ok bool, err error) {
	slot, ok := c.index.find(patch.ID)
	if !ok {
		return "", false, checkID(patch.ID, field)
	}
	item := c.Item(slot)
	record, err = Encode(patched(&item, patch), c.Split().Schema(), field)
	return record, true, err
}

// Payload returns the stored payload of an item, "" if it has none.
func (c *Catalogue) Payload(slot int32) string {
	var f fields
	_ = f.read(c.records[slot])
	return f.payload
}

// isOpen reports whether an item may be shown at a time.
func (c *Catalogue) isOpen(slot int32, now int64) bool {
	switch state := c.states[slot]; {
	case state == 0:
		return true
	case state&(unavailable|unfit) != 0:
		return false
	}
	w := c.windows[slot]
	return w.from <= now && now < w.until
}
