package page

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/minio/highwayhash"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/setup"
)

// Read returns a request with its values in schema order, in d's memory.
func (d *Decider) Read(v *View, r *api.Request) (*Request, error) {
	s := v.Config.Schema()
	q := &Request{Request: r}
	n := len(r.Items)
	d.items = slices.Grow(d.items[:0], n)[:n]
	d.placer.Reset()
	for i := range r.Items {
		values, err := d.placer.Item(r.Items[i].Features, s, func() string {
			return fmt.Sprintf("/items/%d/features/", i)
		})
		if err != nil {
			return nil, err
		}
		d.items[i] = api.Item{ID: r.Items[i].ID, Features: values}
		if v := r.Items[i].Revenue; v != nil {
			if q.revenue == nil {
				d.revenue = resize(d.revenue, n)
				q.revenue = d.revenue
				for j := range q.revenue {
					q.revenue[j] = 1
				}
			}
			q.revenue[i] = *v
		}
	}
	q.items = d.items
	if r.User != nil {
		user, err := d.placer.User(r.User, s)
		if err != nil {
			return nil, err
		}
		q.user = user
	}
	return q, q.nameSlots()
}

const (
	maxSlotID = 1024    // bytes
	maxNote   = 1 << 14 // total length of the ids of all slots
)

// nameSlots notes the slots' ids. Either all slots name one, or no slot does.
func (r *Request) nameSlots() error {
	if len(r.Slots) == 0 {
		return nil
	}
	ids := make([]string, len(r.Slots))
	for k, s := range r.Slots {
		field := fmt.Sprintf("/slots/%d/id", k)
		switch {
		case (s.ID == "") != (r.Slots[0].ID == ""):
			return api.Fieldf(field, "all slots have an id, or none has")
		case len(s.ID) > maxSlotID || !utf8.ValidString(s.ID):
			return api.Fieldf(field, "must have at most %d bytes of UTF-8", maxSlotID)
		case s.ID != "" && slices.Contains(ids[:k], s.ID):
			return api.Fieldf(field, "%q is the id of an earlier slot too", s.ID)
		}
		ids[k] = s.ID
	}
	if ids[0] == "" {
		return nil
	}
	note, err := json.Marshal(ids)
	if len(note) > maxNote {
		return api.Fieldf("/slots", "the ids take more than %d bytes", maxNote)
	}
	r.note = string(note)
	return err
}

// check validates everything but the features, and indexes the items by id.
func (r *Request) check(c *setup.Config, index map[string]int) error {
	if err := setup.CheckDecision("/decision_id", r.Decision); err != nil {
		return err
	}
	brought := len(r.Items)
	if r.said != nil { // the rest comes from the catalogue, which no list bounds
		brought = 0
	}
	for _, list := range []struct {
		field  string
		length int
	}{
		{"/items", brought}, {"/include", len(r.Include)}, {"/exclude", len(r.Exclude)},
		{"/limits", len(r.Limits)}, {"/baseline", len(r.Baseline)}, {"/candidates", len(r.Candidates)},
	} {
		if err := api.CheckLength(list.field, list.length, c.MaxItems); err != nil {
			return err
		}
	}
	if err := setup.CheckShopper(r.ShopperID); err != nil {
		return err
	}
	if err := r.checkItems(index); err != nil {
		return err
	}
	if r.Capacity != nil {
		if err := catalogue.CheckSpace("/capacity", *r.Capacity); err != nil {
			return err
		}
	}
	if r.MaxSize != 0 {
		if err := api.InRange("/max_size", r.MaxSize, 1, c.MaxSize); err != nil {
			return err
		}
	}
	if maximum := cmp.Or(r.MaxSize, c.MaxSize); r.MinSize < 0 || r.MinSize > maximum {
		return api.InRange("/min_size", r.MinSize, 0, maximum)
	}
	return nil
}

// checkItems validates the items that the request brings, but for their features, and indexes them by id.
func (r *Request) checkItems(index map[string]int) error {
	if len(r.Items) == 0 && r.said == nil && !r.AsksCatalogue() {
		return errNoItems
	}
	for i, v := range r.revenue {
		if !(v >= 0 && v <= api.MaxAmount) {
			return api.CheckAmount(fmt.Sprintf("/items/%d/revenue", i), v, 0)
		}
	}
	for i := range r.Items {
		id := r.Items[i].ID
		if id == "" || len(id) > setup.MaxID || !utf8.ValidString(id) {
			return api.Fieldf(fmt.Sprintf("/items/%d/id", i), "must have from 1 to %d bytes of UTF-8", setup.MaxID)
		}
		if j, twice := index[id]; twice {
			return api.Fieldf(fmt.Sprintf("/items/%d/id", i), "%q is the id of item %d too", id, j)
		}
		index[id] = i
		if v := r.Items[i].Space; v != nil {
			if err := catalogue.CheckSpace(fmt.Sprintf("/items/%d/space", i), *v); err != nil {
				return err
			}
		}
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Sum returns the HighwayHash-256 of the request's content under a key of zeros, with the shopper's name in place of
// shopper_id: the log holds the sum, and whoever reads the log could test ids by it. Requests that differ in any other
// field get different sums, except by chance. The JSON encoding makes no difference.
func (r *Request) Sum(shopper string) [32]byte {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	b = appendString(b, r.Decision)
	b = appendLength(b, len(r.Items), r.Items == nil)
	for i := range r.Items {
		b = appendString(b, r.Items[i].ID)
		b = appendValues(b, r.items[i].Features)
		b = appendOptional(b, r.Items[i].Space)
	}
	b = appendValues(b, r.user)
	b = binary.AppendUvarint(b, uint64(len(r.revenue)))
	for _, v := range r.revenue {
		b = appendFloat(b, v)
	}
	b = binary.AppendUvarint(b, uint64(r.MaxSize))
	b = binary.AppendUvarint(b, uint64(r.MinSize))
	b = appendStrings(b, r.Include)
	b = appendStrings(b, r.Exclude)
	b = appendLength(b, len(r.Limits), r.Limits == nil)
	for _, l := range r.Limits {
		b = appendStrings(b, l.Items)
		b = appendString(b, l.Feature)
		b = appendString(b, l.Attribute)
		b = appendString(b, l.Group)
		b = binary.AppendUvarint(b, uint64(l.Min))
		if b = appendFlag(b, l.Max != nil); l.Max != nil {
			b = binary.AppendUvarint(b, uint64(*l.Max))
		}
	}
	b = appendOptional(b, r.Capacity)
	b = appendLength(b, len(r.Slots), r.Slots == nil)
	for _, s := range r.Slots {
		b = appendString(b, s.ID)
		b = appendStrings(b, s.Exclude)
	}
	b = appendStrings(b, r.Baseline)
	b = appendString(b, shopper)
	b = appendFlag(b, r.Defer)
	b = appendStrings(b, r.Candidates)
	b = appendString(b, r.Filter)
	b = appendFlag(b, r.Strict)
	b = appendFlag(b, r.Payload)
	*buf = b
	var key [highwayhash.Size]byte
	return highwayhash.Sum(b, key[:])
}

func appendFlag(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendLength appends a list's length plus one, or 0 for an omitted list, which differs from an empty one.
func appendLength(b []byte, n int, isMissing bool) []byte {
	if isMissing {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func appendStrings(b []byte, v []string) []byte {
	b = appendLength(b, len(v), v == nil)
	for _, s := range v {
		b = appendString(b, s)
	}
	return b
}

func appendOptional(b []byte, v *float64) []byte {
	if v == nil {
		return append(b, 0)
	}
	return appendFloat(append(b, 1), *v)
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendValues(b []byte, values []api.Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i := range values {
		b = values[i].Append(b)
	}
	return b
}

func resize(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}
