package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// Catalogue holds the items of a placement in slots numbered from 0 without gaps. Slots depend only on the changes and
// their order, so a replay assigns the same ones.
//
// A single writer calls Apply. The methods between RLock and Unlock are for readers that hold the read lock.
type Catalogue struct {
	split atomic.Pointer[feature.Split]

	mu         sync.RWMutex
	version    uint64
	kept       pages     // see keep
	rows       []float64 // Len×Width: the columns of the items
	revenues   []float64
	states     []uint8
	index      index
	limited    int            // items that are unavailable or available only at some times
	earning    int            // items whose revenue is not 1
	attributes map[string]int // attributes map each name to the number of items that carry it
	unlearned  map[value]map[int32]bool
	fields     fields // scratch for the item that the writer reads
	head       atomic.Pointer[Head]

	large    chan struct{} // see Enter
	changes  changes
	moves    changes // slots that their items have left
	lists    lists
	freezing sync.Mutex
	frozen   []weak.Pointer[Frozen] // snapshots that are still being read
}

// value is a value of a category.
type value struct{ feature, text string }

// Head describes a catalogue without taking its lock.
type Head struct {
	Version uint64 // log entry that last changed the catalogue
	Items   int
}

// Head returns the version and the number of items. It is safe to call while the catalogue changes.
func (c *Catalogue) Head() Head { return *c.head.Load() }

// The states of items.
const (
	unavailable uint8 = 1 << iota
	inWindow          // available only in its window
	unfit             // lacks features that the schema requires
)

// New returns an empty catalogue of items with the features of a schema.
func New(s *feature.Schema) *Catalogue {
	c := &Catalogue{large: make(chan struct{}, largeAtOnce), attributes: map[string]int{},
		unlearned: map[value]map[int32]bool{}}
	c.split.Store(s.Split())
	c.head.Store(&Head{})
	c.index = newIndex(c.ID)
	return c
}

// Restore rebuilds a catalogue from records in slot order. Items that do not fit the schema are unavailable, and the
// error, an *[ItemError], names one of them. Any other error means that the records do not form a catalogue.
func Restore(s *feature.Schema, version uint64, records iter.Seq[string]) (c *Catalogue, err error) {
	c = New(s)
	var misfit error
	for some := range chunks(records, restored) {
		change, err := c.newChange(some, nil, true)
		if err != nil {
			return nil, err
		}
		if change.misfit != nil {
			misfit = change.misfit
		}
		if n := c.Len() + len(change.put); c.LenAfter(change) != n {
			return nil, fmt.Errorf("the catalogue has an item twice among %d", n)
		}
		c.Apply(version, change)
	}
	c.setVersion(version)
	return c, misfit
}

const restored = 1 << 12 // items per batch of rows

// chunks yields up to n texts at a time and reuses the slice.
func chunks(texts iter.Seq[string], n int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		some := make([]string, 0, n)
		for text := range texts {
			if some = append(some, text); len(some) == n {
				if !yield(some) {
					return
				}
				some = some[:0]
			}
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// Split returns the computation of the items' rows.
func (c *Catalogue) Split() *feature.Split { return c.split.Load() }

// Change is a catalogue change that is ready to be applied.
type Change struct {
	Split   *feature.Split // computed the rows; must still be the catalogue's when the change is applied
	Clipped int            // number of values beyond their features' bounds
	put     []putItem
	rows    []float64
	bytes   int // size of the records
	deleted []string
	misfit  error // why one of the put items does not fit
}

type putItem struct {
	id, kept string
	revenue  float64
	unfit    bool
	unseen   []feature.Seen // values that the schema has room for but has not learned
}

// NewChange returns the change that puts the items in the records put and deletes the ids in deleted. It computes the
// rows in advance, so that Apply is quick. A record that Encode cannot have written is an error.
func (c *Catalogue) NewChange(put, deleted []string) (*Change, error) {
	return c.newChange(put, deleted, false)
}

func (c *Catalogue) newChange(put, deleted []string, mayMisfit bool) (*Change, error) {
	split := c.Split()
	s, width := split.Schema(), split.Width()
	learns := s.LearnsItems()
	change := &Change{Split: split, put: make([]putItem, len(put)), deleted: deleted,
		rows: make([]float64, len(put)*width)}
	ids := make(map[string]bool, len(put)+len(deleted))
	var f fields
	var kept []byte
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
		change.bytes += len(record)
		item := putItem{id: f.id, revenue: f.revenue}
		one[0].Features = f.values
		row := change.rows[i*width : (i+1)*width]
		clipped, err := split.Items(row, one)
		change.Clipped += clipped
		if err != nil {
			misfit := &ItemError{Index: i, ID: f.id, Err: err}
			if !mayMisfit {
				return nil, misfit
			}
			change.misfit, item.unfit = misfit, true
		}
		if learns {
			item.unseen = s.Unseen(nil, one)
		}
		kept = f.keep(kept[:0], split, row)
		item.kept = string(kept)
		change.put[i] = item
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
	Err   error // an *api.FieldError for the item's first error
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %q: %v", e.ID, e.Err) }

func (e *ItemError) Unwrap() error { return e.Err }

// Apply makes a change after waiting for readers. The version becomes the change's log entry.
func (c *Catalogue) Apply(version uint64, change *Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width := c.Split().Width()
	for i := range change.put {
		item, row := &change.put[i], change.rows[i*width:(i+1)*width]
		slot, ok := c.index.find(item.id)
		if !ok {
			slot = int32(c.Len())
			c.kept.add(item.kept)
			c.index.add(item.id, slot)
			c.revenues, c.states = append(c.revenues, item.revenue), append(c.states, 0)
			c.rows = append(grown(c.rows, width), row...)
		} else {
			c.save(slot)
			c.forget(slot)
			c.kept.set(slot, item.kept)
			c.revenues[slot] = item.revenue
			copy(c.rows[int(slot)*width:], row)
		}
		c.note(slot, item.unfit)
		for _, seen := range item.unseen {
			if _, ok := c.Split().Schema().Item(seen.Feature); ok {
				for _, text := range seen.Values {
					c.mark(value{seen.Feature, text}, slot)
				}
			}
		}
	}
	for _, id := range change.deleted {
		if slot, ok := c.index.find(id); ok {
			c.remove(slot)
		}
	}
	c.setVersion(version)
}

func (c *Catalogue) setVersion(version uint64) {
	c.version = version
	c.head.Store(&Head{Version: version, Items: c.Len()})
}

// mark notes that the item in a slot may carry a value that the schema has not learned. The mark stays when the item
// changes.
func (c *Catalogue) mark(v value, slot int32) {
	if c.unlearned[v] == nil {
		c.unlearned[v] = map[int32]bool{}
	}
	c.unlearned[v][slot] = true
}

// grown returns v with room for n more numbers and at most a sixteenth in reserve: the rows are most of a large
// catalogue's memory.
func grown(v []float64, n int) []float64 {
	if len(v)+n <= cap(v) {
		return v
	}
	return append(make([]float64, 0, len(v)+max(n, len(v)/16)), v...)
}

// note counts an item's attributes, revenue and limits, and sets its state.
func (c *Catalogue) note(slot int32, isUnfit bool) {
	f := c.count(slot, 1)
	state := uint8(0)
	if f.flags&isUnavailable != 0 {
		state |= unavailable
	}
	if isUnfit {
		state |= unfit
	}
	if f.flags&(hasFrom|hasUntil) != 0 {
		state |= inWindow
	}
	if c.states[slot] = state; state != 0 {
		c.limited++
	}
	c.changes.add(slot)
}

func (c *Catalogue) forget(slot int32) {
	c.count(slot, -1)
	if c.states[slot] != 0 {
		c.limited--
	}
}

// count adds by to the counts of an item's attributes and, if it sets a revenue, to the items with revenue. It returns
// the item without its numbers.
func (c *Catalogue) count(slot int32, by int) *fields {
	f := &c.fields
	f.unkeep(c.kept.at(slot), c.Split(), nil, 0, untilRest)
	if c.revenues[slot] != 1 {
		c.earning += by
	}
	for i := range f.attributes {
		name := f.attributes[i].Name
		if c.attributes[name] += by; c.attributes[name] == 0 {
			delete(c.attributes, name)
		}
	}
	return f
}

// remove deletes the item in a slot and moves the last item there.
func (c *Catalogue) remove(slot int32) {
	c.save(slot)
	c.forget(slot)
	c.index.remove(c.ID(slot))
	last, width := int32(c.Len()-1), c.Split().Width()
	if slot != last {
		c.save(last)
		id, kept := c.ID(last), c.kept.at(last)
		c.index.remove(id)
		c.kept.set(slot, kept)
		c.index.add(id, slot)
		c.revenues[slot], c.states[slot] = c.revenues[last], c.states[last]
		copy(c.rows[int(slot)*width:], c.rows[int(last)*width:(int(last)+1)*width])
		c.changes.add(slot)
		c.moves.add(slot)
		for v, slots := range c.unlearned {
			if slots[last] {
				c.mark(v, slot)
			}
		}
	}
	c.moves.add(last)
	c.kept.drop()
	c.revenues, c.states, c.rows = c.revenues[:last], c.states[:last], c.rows[:int(last)*width]
}

// Learn switches to a schema that has also learned the given values, and recomputes the rows of items that carry one.
// Only items put before their values were learned can do so. If there are no such items, both schemas give the same
// rows, and Learn does not wait for readers.
func (c *Catalogue) Learn(s *feature.Schema, values []feature.Seen) {
	var stale []int32
	for _, seen := range values {
		for _, text := range seen.Values {
			stale = slices.AppendSeq(stale, maps.Keys(c.unlearned[value{seen.Feature, text}]))
			delete(c.unlearned, value{seen.Feature, text})
		}
	}
	split := s.Split()
	if stale == nil {
		c.split.Store(split)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.split.Store(split)
	f, one := &c.fields, make([]api.Item, 1)
	for _, slot := range stale {
		if int(slot) < c.Len() {
			c.read(f, slot)
			one[0].Features = f.values
			_, _ = split.Items(c.Row(slot), one) // an error leaves the item unfit, as before
		}
	}
}

// WithSchema returns a catalogue of the same items for another schema, with features matched by name. The new schema
// has also learned the items' values, as if they were put again. Features that the schema lacks are lost. Items that do
// not fit, because a feature is missing or a value is of another type, are kept but unavailable, and misfit names one
// of them. When ctx ends, WithSchema stops with its error.
func (c *Catalogue) WithSchema(ctx context.Context, s *feature.Schema) (moved *Catalogue, misfit, err error) {
	w := workOf(ctx)
	leave, err := w.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	frozen := c.Freeze()
	from := c.Split().Schema()
	records := func(yield func(string) bool) {
		var f fields
		for record := range frozen.Records() {
			if err = ctx.Err(); err != nil {
				return
			}
			w.Charge(1 + s.NumItem())
			_ = f.read(record)
			item := f.item(from)
			values := make(api.Values, s.NumItem())
			for _, v := range item.Features {
				if slot, ok := s.Item(v.Name); ok {
					values[slot] = v
				}
			}
			if !yield(encode(&item, values)) {
				return
			}
		}
	}
	learned, wrong := learn(s, records)
	if wrong == nil && err == nil {
		moved, misfit = Restore(learned, frozen.Version, records)
	}
	return moved, misfit, cmp.Or(err, wrong)
}

// learn returns the schema after it has learned the values of the records.
func learn(s *feature.Schema, records iter.Seq[string]) (*feature.Schema, error) {
	var f fields
	one := make([]api.Item, 1)
	for record := range records {
		if !s.LearnsItems() {
			break
		}
		if err := f.read(record); err != nil {
			return nil, err
		}
		one[0].Features = f.values
		var err error
		if s, err = s.Learn(s.Unseen(nil, one)...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// itemBytes is an item's memory beyond its page and row: its revenue, state and index entry, and its share of the page
// list.
const itemBytes = 22

// Bytes returns the catalogue's memory.
func (c *Catalogue) Bytes() int64 {
	c.RLock()
	defer c.RUnlock()
	return c.kept.bytes + int64(c.Len())*(itemBytes+8*int64(c.Split().Width()))
}

// MaxBytes bounds the memory that a change adds.
func (c *Catalogue) MaxBytes(change *Change) int64 {
	const length = 3 // a length's bytes in the page
	s := c.Split()
	return int64(change.bytes) + int64(len(change.put))*int64(length+(s.Schema().NumItem()+7)/8+itemBytes+8*s.Width())
}

// LenAfter returns the number of items after a change.
func (c *Catalogue) LenAfter(change *Change) int {
	c.RLock()
	defer c.RUnlock()
	n := c.Len()
	for i := range change.put {
		if _, ok := c.index.find(change.put[i].id); !ok {
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

// RLock takes the read lock. The catalogue does not change until RUnlock.
func (c *Catalogue) RLock() { c.mu.RLock() }

// RUnlock releases the lock.
func (c *Catalogue) RUnlock() { c.mu.RUnlock() }

// Version returns the log entry that last changed the catalogue.
func (c *Catalogue) Version() uint64 { return c.version }

// Len returns the number of items.
func (c *Catalogue) Len() int { return c.kept.n }

// Find returns the slot of an item.
func (c *Catalogue) Find(id string) (slot int32, ok bool) { return c.index.find(id) }

func idOf(record string) string {
	r := reader{rest: record}
	r.byte()
	r.uvarint()
	return r.string()
}

// Has reports whether the catalogue holds exactly this record.
func (c *Catalogue) Has(record string) bool {
	slot, ok := c.index.find(idOf(record))
	return ok && c.record(slot) == record
}

// ID returns the id of the item of a slot.
func (c *Catalogue) ID(slot int32) string {
	var f fields
	f.begin(c.kept.at(slot))
	return f.id
}

func (c *Catalogue) read(f *fields, slot int32) { c.readTo(f, slot, untilRest) }

// readTo reads the item in a slot up to a depth.
func (c *Catalogue) readTo(f *fields, slot int32, to depth) {
	f.unkeep(c.kept.at(slot), c.Split(), c.Row(slot), c.revenues[slot], to)
}

func (c *Catalogue) record(slot int32) string {
	var f fields
	c.read(&f, slot)
	return f.record()
}

// Row returns an item's columns, which callers must not change.
func (c *Catalogue) Row(slot int32) []float64 {
	width := c.Split().Width()
	return c.rows[int(slot)*width : (int(slot)+1)*width]
}

// Rows returns the columns of all items, Len×Width in row-major order. Callers must not change them.
func (c *Catalogue) Rows() []float64 { return c.rows }

// Space returns the space of an item.
func (c *Catalogue) Space(slot int32) float64 {
	var f fields
	f.begin(c.kept.at(slot))
	return f.space
}

// Revenue returns the revenue of an item.
func (c *Catalogue) Revenue(slot int32) float64 { return c.revenues[slot] }

// Revenues returns the revenues of all items, or nil if every revenue is 1. Callers must not change them.
func (c *Catalogue) Revenues() []float64 {
	if c.earning == 0 {
		return nil
	}
	return c.revenues
}

// Features returns an item's feature values in the order of the schema's slots, without names.
func (c *Catalogue) Features(slot int32) api.Values {
	var f fields
	c.read(&f, slot)
	return f.values
}

// Item returns the item of a slot.
func (c *Catalogue) Item(slot int32) api.CatalogueItem {
	var f fields
	c.read(&f, slot)
	return f.item(c.Split().Schema())
}

// Patch returns an item's record after merging a patch into it. ok is false if the catalogue lacks the item.
func (c *Catalogue) Patch(patch *api.CatalogueItem, field string) (record string, ok bool, err error) {
	slot, ok := c.index.find(patch.ID)
	if !ok {
		return "", false, checkID(patch.ID, field)
	}
	item := c.Item(slot)
	record, err = Encode(patched(&item, patch), c.Split().Schema(), field)
	return record, true, err
}

// Position is a point in a catalogue's sequence of changes.
type Position struct{ changes, moves uint64 }

// Position returns the current position.
func (c *Catalogue) Position() Position { return Position{c.changes.end(), c.moves.end()} }

// Untouched reports whether the items in the slots did not change between two positions and are still in their slots.
func (c *Catalogue) Untouched(from, to Position, slots []int32) bool {
	touched := func(slot int32) bool { return slices.Contains(slots, slot) }
	if from.changes < c.changes.first || from.moves < c.moves.first {
		return false
	}
	return !slices.ContainsFunc(c.changes.slots[from.changes-c.changes.first:to.changes-c.changes.first], touched) &&
		!slices.ContainsFunc(c.moves.slots[from.moves-c.moves.first:], touched)
}

// Payload returns an item's stored payload, or "".
func (c *Catalogue) Payload(slot int32) string {
	var f fields
	c.read(&f, slot)
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
	var f fields
	f.begin(c.kept.at(slot))
	return f.from <= now && now < f.until
}

// Refit is a catalogue prepared for a change of features, so that the writer need not make it.
type Refit struct {
	before  *Catalogue
	version uint64 // of before
	schema  *feature.Schema
	After   *Catalogue
}

// NewRefit makes the catalogue for a schema's features. misfit is the reason why an item lacks them.
func NewRefit(ctx context.Context, before *Catalogue, schema *feature.Schema) (m *Refit, misfit, err error) {
	m = &Refit{before: before, version: before.Head().Version, schema: schema}
	m.After, misfit, err = before.WithSchema(ctx, schema)
	return m, misfit, err
}

// Fits reports whether the catalogue is still the one to make for a placement with the features of a schema.
func (m *Refit) Fits(before *Catalogue, schema *feature.Schema) bool {
	return m != nil && m.before == before && m.version == before.Head().Version && m.schema.Same(schema)
}

// Staged is a change with computed rows, so that the writer need not compute them.
type Staged struct {
	Items   *Catalogue
	Change  *Change
	Held    int64 // bytes reserved in the budget
	claimed atomic.Bool
}

// Claim gives the change to its first caller: the writer, or the change's maker if the writer did not take it.
func (s *Staged) Claim() bool { return s.claimed.CompareAndSwap(false, true) }
