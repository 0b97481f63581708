// Package fields is the binary encoding of what an event log has: one description of a record both writes and reads it.
//
//	uvarint  an unsigned LEB128 integer, in its shortest form
//	float    8 bytes, little endian
//	string   its length as a uvarint, and its bytes
package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Fields passes over the fields of a record in their order. It appends them to buf, and does not write to them, or takes them
// off it. The first error of reading stays, and every later field is zero.
type Fields struct {
	buf   []byte
	reads bool
	err   error
}

// Writer appends to dst.
func Writer(dst []byte) Fields { return Fields{buf: dst} }

// Reader reads data.
func Reader(data []byte) Fields { return Fields{buf: data, reads: true} }

// Reads reports whether the fields are read.
func (f *Fields) Reads() bool { return f.reads }

// Rest returns what was written, or what is still to be read.
func (f *Fields) Rest() []byte { return f.buf }

// Err returns the first error.
func (f *Fields) Err() error { return f.err }

// Close returns the first error, or reports that something is left to be read.
func (f *Fields) Close() error {
	if f.reads && len(f.buf) > 0 {
		f.Fail(fmt.Errorf("the entry has %d bytes too many", len(f.buf)))
	}
	return f.err
}

// Fail records an error, unless there is an earlier one.
func (f *Fields) Fail(err error) {
	if f.err == nil && err != nil {
		f.err, f.buf = err, nil
	}
}

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

// Byte is a byte.
func (f *Fields) Byte(v *byte) {
	if !f.reads {
		f.buf = append(f.buf, *v)
	} else if b := f.take(1); b != nil {
		*v = b[0]
	}
}

// Fixed64 is an integer of 8 bytes, little endian.
func (f *Fields) Fixed64(v *uint64) {
	if !f.reads {
		f.buf = binary.LittleEndian.AppendUint64(f.buf, *v)
	} else if b := f.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

// Float is a float.
func (f *Fields) Float(v *float64) {
	bits := math.Float64bits(*v)
	if f.Fixed64(&bits); f.reads {
		*v = math.Float64frombits(bits)
	}
}

// Sum is 32 bytes.
func (f *Fields) Sum(v *[32]byte) {
	if !f.reads {
		f.buf = append(f.buf, v[:]...)
	} else {
		copy(v[:], f.take(len(v)))
	}
}

// Uvarint is a uvarint.
func (f *Fields) Uvarint(v *uint64) {
	if !f.reads {
		f.buf = binary.AppendUvarint(f.buf, *v)
		return
	}
	read, size, err := Uvarint(f.buf)
	if err != nil {
		f.Fail(err)
		return
	}
	*v, f.buf = read, f.buf[size:]
}

// Bounded returns v, or the number that is read, which is at most maximum.
func (f *Fields) Bounded(v, maximum int) int {
	n := uint64(v)
	if f.Uvarint(&n); f.reads {
		if f.err != nil {
			return 0
		}
		if n > uint64(maximum) {
			f.Fail(fmt.Errorf("the entry counts %d, at most %d are possible", n, maximum))
			return 0
		}
	}
	return int(n)
}

// String is a string.
func (f *Fields) String(v *string) {
	n := f.Length(len(*v), 1)
	if !f.reads {
		f.buf = append(f.buf, *v...)
	} else {
		*v = string(f.take(n))
	}
}

// Bytes are a string.
func (f *Fields) Bytes(v *[]byte) {
	n := f.Length(len(*v), 1)
	if !f.reads {
		f.buf = append(f.buf, *v...)
	} else {
		*v = append([]byte(nil), f.take(n)...)
	}
}

// Strings are the lengths of n strings, and then their bytes. Reading allocates once besides the slice.
func (f *Fields) Strings(v *[]string, n int) {
	if !f.reads {
		for _, s := range *v {
			f.buf = binary.AppendUvarint(f.buf, uint64(len(s)))
		}
		for _, s := range *v {
			f.buf = append(f.buf, s...)
		}
		return
	}
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

// Floats are the numbers of rows of a width.
func (f *Fields) Floats(v *[]float64, rows, width int) {
	if !f.reads {
		for _, x := range *v {
			f.buf = binary.LittleEndian.AppendUint64(f.buf, math.Float64bits(x))
		}
		return
	}
	if uint64(rows)*uint64(width) > uint64(len(f.buf)/8) {
		f.Fail(errEarly)
		return
	}
	n := rows * width
	b := f.take(8 * n)
	if len(b) == 0 {
		return
	}
	*v = make([]float64, n)
	for i := range *v {
		(*v)[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// Rows are rows of a width: for each row a bit for every column, set if its number differs from the number in the row above, and
// then these numbers. Above the first row all numbers are 0.
func (f *Fields) Rows(v *[]float64, rows, width int) {
	size := (width + 7) / 8
	if f.reads {
		if uint64(rows)*uint64(size) > uint64(len(f.buf)) {
			f.Fail(errEarly)
			return
		}
		if rows*width > 0 {
			*v = make([]float64, rows*width)
		}
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
					f.Float(&row[k])
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
				if f.Float(&row[k]); math.Float64bits(row[k]) == math.Float64bits(above[k]) {
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

var errEarly = errors.New("the entry ends early")

// Count is a number that is at most 2³¹ − 1.
func (f *Fields) Count(v *int) {
	if n := f.Bounded(*v, math.MaxInt32); f.reads {
		*v = n
	}
}

// Place is a count.
func (f *Fields) Place(v *int32) {
	if n := f.Bounded(int(*v), math.MaxInt32); f.reads {
		*v = int32(n)
	}
}

// Length returns the length n of a list, or the one that is read. Elements have at least size bytes.
func (f *Fields) Length(n, size int) int { return f.Bounded(n, len(f.buf)/size) }

// Places are the n elements of a list.
func (f *Fields) Places(v *[]int32, n int) {
	if f.reads && n > 0 {
		*v = make([]int32, n)
	}
	for k := range *v {
		f.Place(&(*v)[k])
	}
}

// Uvarint reads an unsigned varint, which must be in its shortest form, and returns it with its size.
func Uvarint(data []byte) (value uint64, size int, err error) {
	value, size = binary.Uvarint(data)
	if size <= 0 || size > 1 && data[size-1] == 0 {
		return 0, 0, errors.New("not an unsigned varint in its shortest form")
	}
	return value, size, nil
}
