package catalogue

import (
	"encoding/binary"
	"errors"
	"iter"

	"vitrine/service/api"
)

// UndoOf returns the entries that [Frozen.Revert] needs to undo a change that puts records and deletes ids: one for
// each record, followed by one for each id. The entry of
//
//	a new item           is empty
//	an item put again    is its slot, prefix and suffix as uvarints, and bytes: its old record is the first prefix bytes of the new
//	                     record, the bytes, and the last suffix bytes of the new record
//	a deleted item       is its slot as a uvarint, and its record
//
// UndoOf returns nil if the catalogue lacks an id. The caller holds the catalogue's lock.
func (c *Catalogue) UndoOf(put, deleted []string) []string {
	undo := make([]string, 0, len(put)+len(deleted))
	n := int32(c.Len())
	moved, ids := map[string]int32{}, map[int32]string{} // slots of new items, and ids in deleted items' slots
	move := func(id string, slot int32) { moved[id], ids[slot] = slot, id }
	for _, record := range put {
		slot, ok := c.index.find(idOf(record))
		if !ok {
			move(idOf(record), n)
			n++
			undo = append(undo, "")
			continue
		}
		before := c.record(slot)
		prefix, suffix := common(before, record)
		b := binary.AppendUvarint(nil, uint64(slot))
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(prefix)), uint64(suffix))
		undo = append(undo, string(append(b, before[prefix:len(before)-suffix]...)))
	}
	for _, id := range deleted {
		had, ok := c.index.find(id)
		if !ok {
			return nil
		}
		slot, ok := moved[id]
		if !ok {
			slot = had
		}
		n--
		last, ok := ids[n]
		if !ok {
			last = c.ID(n)
		}
		move(last, slot)
		undo = append(undo, string(binary.AppendUvarint(nil, uint64(slot)))+c.record(had))
	}
	return undo
}

// Size returns the bytes of an item's record, which bound those of undoing its change, or 0 for an unknown item. The
// caller holds the catalogue's lock.
func (c *Catalogue) Size(id string) int {
	slot, ok := c.index.find(id)
	if !ok {
		return 0
	}
	return len(c.record(slot))
}

// common returns the lengths of the common prefix and of the common suffix after it.
func common(a, b string) (prefix, suffix int) {
	most := min(len(a), len(b))
	for prefix < most && a[prefix] == b[prefix] {
		prefix++
	}
	for suffix < most-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	return prefix, suffix
}

var errUndo = errors.New("the undo data of a catalogue change does not match the catalogue")

// Revert undoes the last change, given its entries from [Catalogue.UndoOf]. before is the version that the change
// replaced. After an error the items are unusable.
func (f *Frozen) Revert(before uint64, put, deleted, undo []string) error {
	f.items.RLock()
	defer f.items.RUnlock()
	if len(undo) != len(put)+len(deleted) {
		return errUndo
	}
	for k := len(undo) - 1; k >= 0; k-- {
		r := reader{rest: undo[k]}
		slot := 0
		if k >= len(put) || undo[k] != "" {
			slot = int(r.uvarint())
		}
		switch {
		case k >= len(put):
			if slot < 0 || slot > f.n || r.err != nil || idOf(r.rest) != deleted[k-len(put)] {
				return errUndo
			}
			if slot < f.n { // the last item had moved there
				f.saved[int32(f.n)] = f.at(int32(slot))
			}
			f.saved[int32(slot)] = r.rest
			f.n++
		case undo[k] == "":
			f.n--
			if f.n < 0 || idOf(f.at(int32(f.n))) != idOf(put[k]) {
				return errUndo
			}
		default:
			prefix, suffix := r.uvarint(), r.uvarint()
			if n := uint64(len(put[k])); r.err != nil || slot < 0 || slot >= f.n || prefix > n || suffix > n-prefix {
				return errUndo
			}
			f.saved[int32(slot)] = put[k][:prefix] + r.rest + put[k][len(put[k])-int(suffix):]
		}
	}
	f.Version = before
	return nil
}

// at returns a slot's record. The caller holds the lock.
func (f *Frozen) at(slot int32) string {
	if record, ok := f.saved[slot]; ok {
		return record
	}
	return f.items.record(slot)
}

// Some returns the records in the given slots.
func (f *Frozen) Some(slots iter.Seq[int32]) (records []string) {
	f.items.RLock()
	defer f.items.RUnlock()
	for slot := range slots {
		records = append(records, f.at(slot))
	}
	return records
}

// Each calls each with the id, columns and revenue of the items in the given slots. each must not change or keep the
// columns. An item that does not fit the schema is an error.
func (f *Frozen) Each(slots iter.Seq[int32], each func(id string, columns []float64, revenue float64)) error {
	f.items.RLock()
	defer f.items.RUnlock()
	split := f.items.Split()
	var of fields
	one, columns := make([]api.Item, 1), make([]float64, split.Width())
	for slot := range slots {
		record, ok := f.saved[slot]
		if !ok {
			each(f.items.ID(slot), f.items.Row(slot), f.items.Revenue(slot))
			continue
		}
		if err := of.read(record); err != nil {
			return err
		}
		one[0].Features = of.values
		if _, err := split.Items(columns, one); err != nil {
			return err
		}
		each(of.id, columns, of.revenue)
	}
	return nil
}
