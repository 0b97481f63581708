package decision

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"unicode/utf8"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// request is an [api.Request] whose values are indexed by the slots of the placement's schema.
type request struct {
	*api.Request
	items   []api.Item // N
	user    api.Values // nil if nothing is known of the user
	revenue []float64  // N, r_i ≥ 0; nil means 1 for every item
	note    string     // the ids of its slots, as in the log; "" if they have none
	now     int64
	stock   candidates
	trial   bool                            // nothing of it is recorded
	said    *offer.FromCatalogue            // of a trial, whose candidates are all its own
	groups  map[catalogue.GroupsBy]grouping // of a trial's candidates, by the attributes and groups that rules limit
	spaced  bool                            // of a logged request: its candidates have their spaces
}

// check reports errors of the request except those of its features, and returns the places of the ids.
func (r *request) check(c *setup.Config, index map[string]int) error {
	if err := setup.CheckDecision(r.Decision); err != nil {
		return err
	}
	for _, list := range []struct {
		field  string
		length int
	}{
		{"/items", len(r.Items)}, {"/include", len(r.Include)}, {"/exclude", len(r.Exclude)}, {"/at_most", len(r.AtMost)}, {"/baseline", len(r.Baseline)}, {"/candidates", len(r.Candidates)},
	} {
		if err := api.CheckLength(list.field, list.length, c.MaxItems); err != nil {
			return err
		}
	}
	for i, v := range r.revenue {
		if !(v >= 0 && v <= vitrine.MaxRevenue) {
			return api.Fieldf(fmt.Sprintf("/items/%d/revenue", i), "%v: must be finite, not negative and at most %v", v, vitrine.MaxRevenue)
		}
	}
	if len(r.Unit) > setup.MaxUnit || !utf8.ValidString(r.Unit) {
		return api.Fieldf("/unit", "%q: must have at most %d bytes of UTF-8", api.Abbreviate(r.Unit, 40), setup.MaxUnit)
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
	if r.Capacity != nil {
		if err := catalogue.CheckSpace("/capacity", *r.Capacity); err != nil {
			return err
		}
	}
	if r.Size != 0 {
		if err := api.InRange("/size", r.Size, 1, c.MaxSize); err != nil {
			return err
		}
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sum returns the SHA-256 of the request's contents, which does not depend on its encoding.
func (r *request) sum() [32]byte {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	b = appendString(b, r.Decision)
	b = binary.AppendUvarint(b, uint64(len(r.Items)))
	for i := range r.Items {
		b = appendString(b, r.Items[i].ID)
		b = appendValues(b, r.items[i].Features)
	}
	b = appendValues(b, r.user)
	b = binary.AppendUvarint(b, uint64(len(r.revenue)))
	for _, v := range r.revenue {
		b = appendFloat(b, v)
	}
	b = binary.AppendUvarint(b, uint64(r.Size))
	b = appendStrings(b, r.Include)
	b = appendStrings(b, r.Exclude)
	b = binary.AppendUvarint(b, uint64(len(r.AtMost)))
	for _, l := range r.AtMost {
		b = appendStrings(b, l.Items)
		b = appendString(b, l.Feature)
		b = binary.AppendUvarint(b, uint64(l.Most))
	}
	b = appendStrings(b, r.Baseline)
	if r.Slots != nil || r.Defer || r.note != "" { // sums of requests without these fields stay the same
		b = appendFlag(b, r.Defer)
		b = appendString(b, r.note)
		b = appendFlag(b, r.Slots != nil)
		b = binary.AppendUvarint(b, uint64(len(r.Slots)))
		for _, s := range r.Slots {
			b = appendStrings(b, s.Exclude)
		}
	}
	if r.asksCatalogue() && (r.Candidates != nil || r.Filter != "" || r.Strict) { // 2 is no flag
		b = append(b, 2)
		b = appendFlag(b, r.Candidates != nil)
		b = appendStrings(b, r.Candidates)
		b = appendString(b, r.Filter)
		b = appendFlag(b, r.Strict)
	}
	if r.Unit != "" {
		b = appendString(append(b, 3), r.Unit)
	}
	for i, l := range r.AtMost {
		if l.Attribute != "" || l.Group != "" {
			b = binary.AppendUvarint(append(b, 4), uint64(i))
			b = appendString(appendString(b, l.Attribute), l.Group)
		}
	}
	if r.Capacity != nil {
		b = appendFloat(append(b, 5), *r.Capacity)
	}
	for i := range r.Items {
		if v := r.Items[i].Space; v != nil {
			b = appendFloat(binary.AppendUvarint(append(b, 6), uint64(i)), *v)
		}
	}
	*buf = b
	return sha256.Sum256(b)
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

func appendStrings(b []byte, v []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	for _, s := range v {
		b = appendString(b, s)
	}
	return b
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
