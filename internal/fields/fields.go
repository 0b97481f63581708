// Package fields is the binary encoding of everything that is stored or sent. A single description of a record both
// encodes and decodes it.
//
//	byte     1 byte; a flag is 0 or 1
//	uvarint  an unsigned LEB128 integer, in its shortest form; counts and lengths are uvarints
//	fixed    8 bytes, little endian, of an integer or a float
//	string   its length, and its bytes
//	list     its length, and its elements
//
// A type describes itself in a method that visits its fields in order:
//
//	func (s *Sold) fields(f *fields.Fields) {
//		f.Uvarint(&s.Shown, &s.Taken)
//		f.Float(&s.Revenue)
//	}
//
// Reading allocates at most a small multiple of its input, and always allocates new slices. A reader may therefore fill
// a shallow copy of a value without changing the value.
package fields

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Fields visits the fields of a record in order. A writer appends them to buf and leaves them unchanged; a reader
// consumes them from buf. The first error sticks, and all later fields read as zero.
type Fields struct {
	buf    []byte
	reads  bool
	finite bool // whether floats must be finite
	err    error
	part   string // named in errors
	to     *stream
}

// Writer appends to dst.
func Writer(dst []byte) Fields { return Fields{buf: dst} }

// Reader reads data. The values it reads share no memory with data.
func Reader(data []byte) Fields { return Fields{buf: data, reads: true} }

// Reads reports whether f is a reader.
func (f *Fields) Reads() bool { return f.reads }

// Rest returns the bytes written so far, or still to be read.
func (f *Fields) Rest() []byte { return f.buf }

// Err returns the first error.
func (f *Fields) Err() error { return f.err }

// Close returns the first error, or an error if unread bytes remain.
func (f *Fields) Close() error {
	if f.reads && len(f.buf) > 0 {
		f.Fail(fmt.Errorf("%d bytes too many", len(f.buf)))
	}
	return f.err
}

// In names the part of the record that follows, for errors.
func (f *Fields) In(part string) { f.part = part }

// Fail records an error, unless there already is one.
func (f *Fields) Fail(err error) {
	if f.err != nil || err == nil {
		return
	}
	if f.buf = nil; f.part != "" {
		err = fmt.Errorf("%s: %w", f.part, err)
	}
	f.err = err
}

// Check records an error if a value just read is invalid.
func (f *Fields) Check(valid bool, format string, args ...any) {
	if f.reads && !valid && f.err == nil {
		f.Fail(fmt.Errorf(format, args...))
	}
}

var errEarly = errors.New("the bytes end early")

// take returns the next n bytes.
func (f *Fields) take(n int) []byte {
	if n > len(f.buf) {
		f.Fail(errEarly)
		return nil
	}
	taken := f.buf[:n]
	f.buf = f.buf[n:]
	return taken
}

// Byte encodes a byte.
func (f *Fields) Byte(v *byte) {
	if !f.reads {
		f.buf = append(f.buf, *v)
	} else if b := f.take(1); b != nil {
		*v = b[0]
	} else {
		*v = 0
	}
}

// Version encodes a format version as a byte. If the byte read differs, the error is [UnknownFormat].
func (f *Fields) Version(what string, version byte) {
	have := version
	if f.Byte(&have); have != version && f.err == nil {
		f.buf, f.err = nil, UnknownFormat(what, have, version)
	}
}

// Flag encodes booleans as bytes 0 or 1.
func (f *Fields) Flag(v ...*bool) {
	for _, v := range v {
		b := byte(0)
		if *v {
			b = 1
		}
		if f.Byte(&b); f.reads {
			f.Check(b <= 1, "%d where there is 0 or 1", b)
			*v = b == 1
		}
	}
}

// Fixed64 encodes an integer in 8 bytes.
func (f *Fields) Fixed64(v *uint64) {
	if !f.reads {
		f.buf = binary.LittleEndian.AppendUint64(f.buf, *v)
	} else if b := f.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	} else {
		*v = 0
	}
}

// Int64 encodes integers in 8 bytes each. They may be negative.
func (f *Fields) Int64(v ...*int64) {
	for _, v := range v {
		bits := uint64(*v)
		if f.Fixed64(&bits); f.reads {
			*v = int64(bits)
		}
	}
}

// Time encodes a time in UTC, in nanoseconds since 1970.
func (f *Fields) Time(v *time.Time) {
	at := v.UnixNano()
	if f.Int64(&at); f.reads {
		*v = time.Unix(0, at).UTC()
	}
}

// Float encodes floats. In a snapshot they must be finite.
func (f *Fields) Float(v ...*float64) {
	for _, v := range v {
		f.float(v)
	}
}

func (f *Fields) float(v *float64) {
	bits := math.Float64bits(*v)
	if f.Fixed64(&bits); f.reads {
		*v = math.Float64frombits(bits)
	}
	if f.finite && *v-*v != 0 {
		f.Fail(fmt.Errorf("a number is %v, and must be finite", *v))
	}
}

// Sum encodes 32 bytes.
func (f *Fields) Sum(v *[32]byte) { f.Raw(v[:]) }

// Raw encodes the bytes of v.
func (f *Fields) Raw(v []byte) {
	if !f.reads {
		f.buf = append(f.buf, v...)
	} else {
		copy(v, f.take(len(v)))
	}
}

// Uvarint encodes uvarints.
func (f *Fields) Uvarint(v ...*uint64) {
	for _, v := range v {
		f.uvarint(v)
	}
}

func (f *Fields) uvarint(v *uint64) {
	if !f.reads {
		f.buf = binary.AppendUvarint(f.buf, *v)
		return
	}
	read, size, err := Uvarint(f.buf)
	if err != nil {
		f.Fail(err)
		*v = 0
		return
	}
	*v, f.buf = read, f.buf[size:]
}

// Uvarint reads an unsigned varint, which must be in its shortest form, and returns it with its size.
func Uvarint(data []byte) (value uint64, size int, err error) {
	value, size = binary.Uvarint(data)
	if size <= 0 || size > 1 && data[size-1] == 0 {
		return 0, 0, errVarint
	}
	return value, size, nil
}

var errVarint = errors.New("not an unsigned varint in its shortest form")

// Bounded encodes v. A reader returns the number read instead, which must not exceed maximum.
func (f *Fields) Bounded(v, maximum int) int {
	n := uint64(v)
	f.uvarint(&n)
	if f.reads && n > uint64(maximum) {
		f.Fail(fmt.Errorf("a count of %d where at most %d are possible", n, maximum))
		return 0
	}
	return int(n)
}

// maxCount leaves room for counting on.
const maxCount = min(1<<48, math.MaxInt/2)

// Count encodes numbers from 0 to 2⁴⁸, or to 2³⁰ if an int is 32 bits wide.
func (f *Fields) Count(v ...*int) {
	for _, v := range v {
		if n := f.Bounded(*v, maxCount); f.reads {
			*v = n
		}
	}
}

// Place encodes a number from 0 to 2³¹ − 1.
func (f *Fields) Place(v *int32) {
	if n := f.Bounded(int(*v), math.MaxInt32); f.reads {
		*v = int32(n)
	}
}

// Length encodes the length n of a list with elements of at least size bytes. A reader returns the length read.
func (f *Fields) Length(n, size int) int { return f.Bounded(n, len(f.buf)/size) }

// String encodes strings.
func (f *Fields) String(v ...*string) {
	for _, v := range v {
		if n := f.Length(len(*v), 1); !f.reads {
			f.buf = append(f.buf, *v...)
		} else {
			*v = string(f.take(n))
		}
	}
}

// Bytes encodes bytes as a string.
func (f *Fields) Bytes(v *[]byte) {
	if n := f.Length(len(*v), 1); !f.reads {
		f.buf = append(f.buf, *v...)
	} else {
		*v = append([]byte(nil), f.take(n)...)
	}
}

// Strings encodes a list of strings: their lengths, followed by their bytes. A reader allocates once besides the slice,
// and reads an empty list as nil.
func (f *Fields) Strings(v *[]string) {
	n := f.Length(len(*v), 1)
	if !f.reads {
		for _, s := range *v {
			f.buf = binary.AppendUvarint(f.buf, uint64(len(s)))
		}
		for _, s := range *v {
			f.buf = append(f.buf, s...)
		}
		return
	}
	*v = nil
	if n == 0 {
		return
	}
	lengths, total := Reader(f.buf), 0
	for range n {
		if total += f.Length(0, 1); total > len(f.buf) {
			f.Fail(errEarly)
		}
	}
	all := string(f.take(total))
	if f.err != nil {
		return
	}
	*v = make([]string, n)
	for i := range *v {
		size := lengths.Bounded(0, len(all))
		(*v)[i], all = all[:size], all[size:]
	}
}

// Floats encodes a list. An empty list is read as nil.
func (f *Fields) Floats(v *[]float64) {
	n := f.Length(len(*v), 8)
	f.floats(v, n)
}

// Vector encodes as many floats as v contains, without their number, which both sides know.
func (f *Fields) Vector(v ...*[]float64) {
	for _, v := range v {
		if n := len(*v); n > 0 {
			f.floats(v, n)
		}
	}
}

func (f *Fields) floats(v *[]float64, n int) {
	if f.reads {
		*v = nil
		if n > len(f.buf)/8 {
			f.Fail(errEarly)
		}
		if n == 0 || f.err != nil {
			return
		}
		*v = make([]float64, n)
	}
	for i := range *v {
		if f.float(&(*v)[i]); f.to != nil {
			f.Flush()
		}
	}
}

// Rows encodes rows of the given width. Each row starts with one bit per column, set if the number differs from the row
// above, followed by the numbers that differ. Above the first row all numbers count as 0.
func (f *Fields) Rows(v *[]float64, rows, width int) {
	size := (width + 7) / 8
	if f.reads {
		*v = nil
		if uint64(rows)*uint64(size) > uint64(len(f.buf)) {
			f.Fail(errEarly)
		}
	}
	if rows*width == 0 || f.err != nil {
		return
	}
	if f.reads {
		*v = make([]float64, rows*width)
	}
	above := make([]float64, width)
	for i := range rows {
		row := (*v)[i*width : (i+1)*width]
		if !f.reads {
			bits := len(f.buf)
			f.buf = append(f.buf, make([]byte, size)...)
			for k, x := range row {
				if math.Float64bits(x) != math.Float64bits(above[k]) {
					f.buf[bits+k/8] |= 1 << (k % 8)
					f.float(&row[k])
				}
			}
			above = row
			continue
		}
		bits := f.take(size)
		if copy(row, above); f.err == nil && width%8 != 0 && bits[size-1]>>(width%8) != 0 {
			f.Fail(errRows)
		}
		for k := range row {
			if f.err == nil && bits[k/8]>>(k%8)&1 == 1 {
				if f.float(&row[k]); math.Float64bits(row[k]) == math.Float64bits(above[k]) {
					f.Fail(errRows)
				}
			}
		}
		if f.err != nil {
			*v = nil
			return
		}
		above = row
	}
}

var errRows = errors.New("a row repeats a number of the row above, or has more bits than columns")

// integer lists the element types of integer lists.
type integer interface {
	~int | ~int16 | ~int32 | ~uint32 | ~uint64
}

// Integers encodes a list of nonnegative integers as uvarints. An empty list is read as nil.
func Integers[T integer](f *Fields, v *[]T) {
	n := f.Length(len(*v), 1)
	if f.reads {
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	Elements(f, *v)
}

// Elements encodes as many integers as v contains, without their number. A reader changes them in place.
func Elements[T integer](f *Fields, v []T) {
	for k := range v {
		x := uint64(v[k])
		if f.uvarint(&x); T(x) < 0 || uint64(T(x)) != x {
			f.Fail(fmt.Errorf("the number %d is too large", x))
			x = 0
		}
		if f.reads {
			v[k] = T(x)
		}
	}
}

// List encodes a list. The function element visits the fields of one element.
func List[T any](f *Fields, v *[]T, element func(*T, *Fields)) {
	n := f.Length(len(*v), 1)
	if f.reads {
		*v = nil
	}
	for i := 0; i < n && f.err == nil; i++ {
		if f.reads {
			var zero T
			*v = append(*v, zero)
		}
		element(&(*v)[i], f)
		f.Flush()
	}
}

// Pointers encodes a list of pointers like [List].
func Pointers[T any](f *Fields, v *[]*T, element func(*T, *Fields)) {
	List(f, v, func(e **T, f *Fields) {
		if f.reads {
			*e = new(T)
		}
		element(*e, f)
	})
}

// Map encodes a map as a list of its keys in increasing order, each with its value.
func Map[T any](f *Fields, v *map[string]*T, value func(*T, *Fields)) {
	keys := slices.Sorted(maps.Keys(*v))
	if f.reads {
		*v = map[string]*T{}
	}
	List(f, &keys, func(key *string, f *Fields) {
		if f.String(key); f.reads {
			(*v)[*key] = new(T)
		}
		value((*v)[*key], f)
	})
	Ascending(f, "keys", keys, func(key *string) string { return *key })
}

// Optional encodes a flag, followed by *v unless *v is nil.
func Optional[T any](f *Fields, v **T, value func(*T, *Fields)) {
	has := *v != nil
	if f.Flag(&has); f.reads {
		if *v = nil; has {
			*v = new(T)
		}
	}
	if has {
		value(*v, f)
	}
}

// Ascending records an error if the keys of a list just read do not increase.
func Ascending[T any, K cmp.Ordered](f *Fields, what string, v []T, key func(*T) K) {
	for i := range v {
		if f.reads && f.err == nil && i > 0 && !(key(&v[i-1]) < key(&v[i])) {
			f.Fail(fmt.Errorf("%s are not in order: %v comes after %v", what, key(&v[i]), key(&v[i-1])))
		}
	}
}
