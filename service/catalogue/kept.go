package catalogue

import (
	"encoding/binary"
	"math"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// In memory, an item omits the values that its row and the catalogue's slices already hold:
//
//	flags        uvarint  as in the record
//	valid from, valid until, space   8 bytes each, as in the record
//	id           string
//	in the row   a bit for each feature, in the order of the schema: the row gives back its number, bit for bit
//	features     the other values, in the same order
//	groups, attributes, payload      as in the record

// keep appends the form in memory of an item with a row.
func (f *fields) keep(b []byte, split *feature.Split, row []float64) []byte {
	b = binary.AppendUvarint(b, f.flags)
	b = f.appendTimes(b)
	if f.flags&hasSpace != 0 {
		b = appendFloat(b, f.space)
	}
	b = appendString(b, f.id)
	bits := len(b)
	for range (len(f.values) + 7) / 8 {
		b = append(b, 0)
	}
	for slot := range f.values {
		v := &f.values[slot]
		if v.Kind == api.IsNumber && hasNumber(split, row, slot, v.Number) {
			b[bits+slot/8] |= 1 << (slot % 8)
		} else {
			b = v.Append(b)
		}
	}
	return f.appendRest(b)
}

// depth limits how far an item is read: a filter that compares only ids or prices skips the rest.
type depth uint8

const (
	untilID depth = iota
	untilFeatures
	untilRest
)

// unkeep reads the form that keep appends. If row is nil, the numbers stored in the row are missing.
func (f *fields) unkeep(kept string, split *feature.Split, row []float64, revenue float64, to depth) {
	r := f.begin(kept)
	f.revenue = revenue
	if to == untilID {
		return
	}
	bits := r.take((split.Schema().NumItem() + 7) / 8)
	f.values = f.values[:0]
	for slot := range split.Schema().NumItem() {
		switch inRow := bits[slot/8]&(1<<(slot%8)) != 0; {
		case !inRow:
			f.values = append(f.values, r.value(api.IsObject))
		case row == nil:
			f.values = append(f.values, api.Value{})
		default:
			v, _ := split.Number(row, slot)
			f.values = append(f.values, api.Number("", v))
		}
	}
	if to == untilRest {
		f.readRest(&r)
	}
}

// begin reads the fields before the features, and returns a reader for the rest.
func (f *fields) begin(kept string) reader {
	r := reader{rest: kept}
	f.flags = r.uvarint()
	f.readTimes(&r)
	f.space = DefaultSpace
	if f.flags&hasSpace != 0 {
		f.space = math.Float64frombits(r.fixed64())
	}
	f.id = r.string()
	return r
}

// hasNumber reports whether the row reproduces a number.
func hasNumber(split *feature.Split, row []float64, slot int, number float64) bool {
	v, ok := split.Number(row, slot)
	return ok && math.Float64bits(v) == math.Float64bits(number)
}
