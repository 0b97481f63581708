package catalogue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	codec "vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// A record is an item in bytes:
//
//	version     1 byte   1
//	flags       uvarint  of what comes at the end: 1 revenue, 2 space, 4 valid from, 8 valid until, 16 groups,
//	                     32 attributes, 64 payload; and 128: not available
//	id          string
//	features    uvarint n, n values in the order of the schema
//	revenue, space               8 bytes each, a float
//	valid from, valid until      8 bytes each, Unix nanoseconds, signed
//	groups      uvarint n > 0, n strings
//	attributes  uvarint n > 0; n times a name, which is a string, and a value. Names increase
//	payload     string
//
// A value starts with a byte for its kind: 0 is missing; 1 a float; 2 a string; 3 a string that holds JSON. Attributes
// also use 4 for false and 5 for true, but not 0 and 3. A string is its length as a uvarint, then its bytes. Integers
// are little endian. Equal items give equal records.
const recordVersion = 1

const (
	hasRevenue = 1 << iota
	hasSpace
	hasFrom
	hasUntil
	hasGroups
	hasAttributes
	hasPayload
	isUnavailable
	unusedFlag
)

// Value kinds that only attributes use.
const (
	isFalse api.ValueKind = 4
	isTrue  api.ValueKind = 5
)

// encode returns the record of a validated item; values holds its features by slot.
func encode(item *api.CatalogueItem, values api.Values) string {
	f := fields{id: item.ID, values: values, groups: item.Groups, payload: string(item.Payload)}
	for _, field := range []struct {
		has  bool
		flag uint64
	}{
		{item.Revenue != nil, hasRevenue}, {item.Space != nil, hasSpace}, {item.ValidFrom != nil, hasFrom},
		{item.ValidUntil != nil, hasUntil},
		{len(item.Groups) > 0, hasGroups}, {len(item.Attributes) > 0, hasAttributes},
		{len(item.Payload) > 0, hasPayload},
		{item.Available != nil && !*item.Available, isUnavailable},
	} {
		if field.has {
			f.flags |= field.flag
		}
	}
	if item.Revenue != nil {
		f.revenue = *item.Revenue
	}
	if item.Space != nil {
		f.space = *item.Space
	}
	if item.ValidFrom != nil {
		f.from = item.ValidFrom.UnixNano()
	}
	if item.ValidUntil != nil {
		f.until = item.ValidUntil.UnixNano()
	}
	for _, name := range slices.Sorted(maps.Keys(item.Attributes)) {
		v := api.Value{Name: name, Kind: isFalse}
		switch a := item.Attributes[name].(type) {
		case float64:
			v = api.Number(name, a)
		case string:
			v = api.Text(name, a)
		case bool:
			if a {
				v.Kind = isTrue
			}
		}
		f.attributes = append(f.attributes, v)
	}
	return f.record()
}

func (f *fields) record() string {
	b := binary.AppendUvarint(append(make([]byte, 0, 128), recordVersion), f.flags)
	b = appendString(b, f.id)
	b = binary.AppendUvarint(b, uint64(len(f.values)))
	for i := range f.values {
		b = f.values[i].Append(b)
	}
	if f.flags&hasRevenue != 0 {
		b = appendFloat(b, f.revenue)
	}
	if f.flags&hasSpace != 0 {
		b = appendFloat(b, f.space)
	}
	return string(f.appendRest(f.appendTimes(b)))
}

func (f *fields) appendTimes(b []byte) []byte {
	if f.flags&hasFrom != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(f.from))
	}
	if f.flags&hasUntil != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(f.until))
	}
	return b
}

func (f *fields) appendRest(b []byte) []byte {
	if f.flags&hasGroups != 0 {
		b = binary.AppendUvarint(b, uint64(len(f.groups)))
		for _, g := range f.groups {
			b = appendString(b, g)
		}
	}
	if f.flags&hasAttributes != 0 {
		b = binary.AppendUvarint(b, uint64(len(f.attributes)))
		for i := range f.attributes {
			b = f.attributes[i].Append(appendString(b, f.attributes[i].Name))
		}
	}
	if f.flags&hasPayload != 0 {
		b = appendString(b, f.payload)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// fields holds a decoded record. Strings point into the record, and slices are reused.
type fields struct {
	flags       uint64
	id          string
	values      api.Values // by slot, without names
	revenue     float64    // 1 by default
	space       float64
	from, until int64 // the widest bounds by default
	groups      []string
	attributes  api.Values // by name, sorted
	payload     string

	names []string    // attributes that a filter reads, and no others; nil reads them all
	named []api.Value // their values, without names
	past  feature.Past
}

var errRecord = errors.New("the record of an item ends early or has a number in a longer form")

// read decodes a record. It accepts any bytes, since records come from the log.
func (f *fields) read(record string) error {
	r := reader{rest: record}
	if v := r.byte(); v != recordVersion && r.err == nil {
		return codec.UnknownFormat("the record of an item", v, recordVersion)
	}
	f.flags = r.uvarint()
	f.id = r.string()
	f.values = f.values[:0]
	for range r.count() {
		f.values = append(f.values, r.value(api.IsObject))
	}
	f.revenue, f.space = 1, DefaultSpace
	if f.flags&hasRevenue != 0 {
		f.revenue = math.Float64frombits(r.fixed64())
	}
	if f.flags&hasSpace != 0 {
		f.space = math.Float64frombits(r.fixed64())
	}
	f.readTimes(&r)
	f.readRest(&r)
	if r.err == nil && r.rest != "" {
		r.err = fmt.Errorf("the record of item %q has %d bytes too many", f.id, len(r.rest))
	}
	return r.err
}

func (f *fields) readTimes(r *reader) {
	f.from, f.until = math.MinInt64, math.MaxInt64
	if f.flags&hasFrom != 0 {
		f.from = int64(r.fixed64())
	}
	if f.flags&hasUntil != 0 {
		f.until = int64(r.fixed64())
	}
}

func (f *fields) readRest(r *reader) {
	f.groups, f.attributes, f.payload = f.groups[:0], f.attributes[:0], ""
	if f.flags&hasGroups != 0 {
		for range r.count() {
			f.groups = append(f.groups, r.string())
		}
	}
	if f.flags&hasAttributes != 0 {
		for range r.count() {
			name := r.string()
			v := r.value(isTrue)
			if f.names != nil {
				if at := slices.Index(f.names, name); at >= 0 {
					f.named[at] = v
				}
				continue
			}
			v.Name = name
			f.attributes = append(f.attributes, v)
		}
	}
	if f.flags&hasPayload != 0 {
		f.payload = r.string()
	}
}

// verify rejects fields that Encode would not have written.
func (f *fields) verify(s *feature.Schema) error {
	switch {
	case f.flags >= unusedFlag:
		return fmt.Errorf("the record of item %q has the flags %d, which this program does not know", f.id, f.flags)
	case f.id == "" || len(f.id) > maxID:
		return fmt.Errorf("the record of an item has the id %q", api.Abbreviate(f.id, 40))
	case len(f.values) != s.NumItem():
		return fmt.Errorf("the record of item %q has %d features, want %d", f.id, len(f.values), s.NumItem())
	case !(f.revenue >= 0 && f.revenue <= vitrine.MaxRevenue):
		return fmt.Errorf("the record of item %q has the revenue %v", f.id, f.revenue)
	case !(f.space >= 0 && !math.IsInf(f.space, 0)):
		return fmt.Errorf("the record of item %q has the space %v", f.id, f.space)
	case f.flags&hasGroups != 0 && len(f.groups) == 0, f.flags&hasAttributes != 0 && len(f.attributes) == 0,
		f.flags&hasPayload != 0 && !jsontext.Value(f.payload).IsValid():
		return fmt.Errorf("the record of item %q has a list without elements, or a payload that is not JSON", f.id)
	}
	last := ""
	for i := range f.attributes {
		a := &f.attributes[i]
		if a.Name <= last || !isName(a.Name) || a.Kind == api.Missing || a.Kind == api.IsObject ||
			math.IsNaN(a.Number) || math.IsInf(a.Number, 0) {
			return fmt.Errorf("the record of item %q has the attribute %q of kind %d after %q",
				f.id, api.Abbreviate(a.Name, 40), a.Kind, last)
		}
		last = a.Name
	}
	return nil
}

// item returns the encoded item, with names from the schema.
func (f *fields) item(s *feature.Schema) api.CatalogueItem {
	item := api.CatalogueItem{ID: f.id, Groups: slices.Clone(f.groups)}
	for slot, v := range f.values {
		if v.Kind != api.Missing {
			v.Name = s.ItemName(slot)
			item.Features = append(item.Features, v)
		}
	}
	if f.flags&hasRevenue != 0 {
		item.Revenue = new(f.revenue)
	}
	if f.flags&hasSpace != 0 {
		item.Space = new(f.space)
	}
	if f.flags&isUnavailable != 0 {
		item.Available = new(false)
	}
	if f.flags&hasFrom != 0 {
		item.ValidFrom = new(time.Unix(0, f.from).UTC())
	}
	if f.flags&hasUntil != 0 {
		item.ValidUntil = new(time.Unix(0, f.until).UTC())
	}
	for i := range f.attributes {
		if item.Attributes == nil {
			item.Attributes = map[string]any{}
		}
		switch a := &f.attributes[i]; a.Kind {
		case api.IsNumber:
			item.Attributes[a.Name] = a.Number
		case api.IsText:
			item.Attributes[a.Name] = a.Text
		default:
			item.Attributes[a.Name] = a.Kind == isTrue
		}
	}
	if f.payload != "" {
		item.Payload = jsontext.Value(f.payload)
	}
	return item
}

// reader takes fields off a record. After its first error, reads return zeros.
type reader struct {
	rest string
	err  error
}

func (r *reader) fail() {
	r.rest = ""
	if r.err == nil {
		r.err = errRecord
	}
}

func (r *reader) take(n int) string {
	if n > len(r.rest) {
		r.fail()
		return ""
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (r *reader) fixed64() (v uint64) {
	b := r.take(8)
	for i := range len(b) {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

func (r *reader) uvarint() (v uint64) {
	for shift := 0; shift < 63; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if b == 0 && shift > 0 {
				r.fail()
			}
			return v
		}
	}
	r.fail()
	return 0
}

// count reads a number of elements; each takes at least one byte.
func (r *reader) count() int {
	v := r.uvarint()
	if v > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) string() string { return r.take(r.count()) }

func (r *reader) value(maximum api.ValueKind) (v api.Value) {
	switch v.Kind = api.ValueKind(r.byte()); {
	case v.Kind > maximum:
		r.fail()
	case v.Kind == api.IsNumber:
		v.Number = math.Float64frombits(r.fixed64())
	case v.Kind == api.IsText, v.Kind == api.IsObject:
		v.Text = r.string()
	}
	return v
}
