package eventlog

import (
	"encoding/binary"
	"fmt"
	"math"
)

// fields passes over the fields of an entry in their order. It appends them to buf, and does not write to them, or takes them
// off it. The first error of reading stays, and every later field is zero.
type fields struct {
	buf   []byte
	reads bool
	err   error
}

func (f *fields) fail(err error) {
	if f.err == nil && err != nil {
		f.err, f.buf = err, nil
	}
}

// take returns the next n bytes.
func (f *fields) take(n int) []byte {
	if n > len(f.buf) {
		f.fail(errEarly)
		return nil
	}
	taken := f.buf[:n]
	f.buf = f.buf[n:]
	return taken
}

func (f *fields) byte(v *byte) {
	if !f.reads {
		f.buf = append(f.buf, *v)
	} else if b := f.take(1); b != nil {
		*v = b[0]
	}
}

func (f *fields) fixed64(v *uint64) {
	if !f.reads {
		f.buf = binary.LittleEndian.AppendUint64(f.buf, *v)
	} else if b := f.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (f *fields) float(v *float64) {
	bits := math.Float64bits(*v)
	if f.fixed64(&bits); f.reads {
		*v = math.Float64frombits(bits)
	}
}

func (f *fields) sum(v *[32]byte) {
	if !f.reads {
		f.buf = append(f.buf, v[:]...)
	} else {
		copy(v[:], f.take(len(v)))
	}
}

func (f *fields) uvarint(v *uint64) {
	if !f.reads {
		f.buf = binary.AppendUvarint(f.buf, *v)
		return
	}
	read, size, err := uvarint(f.buf)
	if err != nil {
		f.fail(err)
		return
	}
	*v, f.buf = read, f.buf[size:]
}

// bounded returns v, or the number that is read, which is at most maximum.
func (f *fields) bounded(v, maximum int) int {
	n := uint64(v)
	if f.uvarint(&n); f.reads {
		if f.err != nil {
			return 0
		}
		if n > uint64(maximum) {
			f.fail(fmt.Errorf("the entry counts %d, at most %d are possible", n, maximum))
			return 0
		}
	}
	return int(n)
}

func (f *fields) string(v *string) {
	n := f.length(len(*v), 1)
	if !f.reads {
		f.buf = append(f.buf, *v...)
	} else {
		*v = string(f.take(n))
	}
}

func (f *fields) bytes(v *[]byte) {
	n := f.length(len(*v), 1)
	if !f.reads {
		f.buf = append(f.buf, *v...)
	} else {
		*v = append([]byte(nil), f.take(n)...)
	}
}

// strings are the lengths of n strings, and then their bytes. Reading allocates once besides the slice.
func (f *fields) strings(v *[]string, n int) {
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
	lengths, total := fields{buf: f.buf, reads: true}, 0
	for range n {
		if total += f.length(0, 1); total > len(f.buf) {
			f.fail(errEarly)
		}
	}
	all := string(f.take(total))
	if f.err != nil {
		return
	}
	*v = make([]string, n)
	for i := range *v {
		size := lengths.bounded(0, len(all))
		(*v)[i], all = all[:size], all[size:]
	}
}

// floats are n numbers; the caller has checked that the buffer holds those that are read.
func (f *fields) floats(v *[]float64, n int) {
	if !f.reads {
		for _, x := range *v {
			f.buf = binary.LittleEndian.AppendUint64(f.buf, math.Float64bits(x))
		}
		return
	}
	b := f.take(8 * n)
	if len(b) == 0 {
		return
	}
	*v = make([]float64, n)
	for i := range *v {
		(*v)[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}
