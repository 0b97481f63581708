package fields_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/fatal"
	"vitrine/internal/fields"
)

// record has a field of every kind.
type record struct {
	Byte    byte
	Fixed   uint64
	Uvarint uint64
	Float   float64
	Sum     [32]byte
	String  string
	Bytes   []byte
	Strings []string
	Floats  []float64
	Rows    []float64
	Count   int
	Places  []int32
}

func (r *record) fields(f *fields.Fields) error {
	f.Byte(&r.Byte)
	f.Fixed64(&r.Fixed)
	f.Uvarint(&r.Uvarint)
	f.Float(&r.Float)
	f.Sum(&r.Sum)
	f.String(&r.String)
	f.Bytes(&r.Bytes)
	f.Strings(&r.Strings, f.Length(len(r.Strings), 1))
	f.Floats(&r.Floats, f.Length(len(r.Floats)/2, 8), 2)
	f.Rows(&r.Rows, f.Length(len(r.Rows)/3, 1), 3)
	f.Count(&r.Count)
	f.Places(&r.Places, f.Length(len(r.Places), 1))
	return f.Close()
}

// What is written is read again, and no part of it, and nothing longer.
func TestFields(t *testing.T) {
	in := record{7, 1 << 60, 300, math.Pi, [32]byte{1, 2}, "é", []byte{0, 9}, []string{"", "ab", "c"}, []float64{1, -2, 3, 4}, []float64{0, 1, 2, 0, 1, 3, 0, 1, 3, math.Copysign(0, -1), 0, 3}, math.MaxInt32, []int32{5, 0}}
	w := fields.Writer(nil)
	fatal.If(t, in.fields(&w))
	data := w.Rest()
	var out record
	r := fields.Reader(data)
	fatal.If(t, out.fields(&r))
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	for n := range data {
		r := fields.Reader(data[:n:n])
		if new(record).fields(&r) == nil {
			t.Errorf("%d of %d bytes are read", n, len(data))
		}
	}
	longer := fields.Reader(append(data, 0))
	if new(record).fields(&longer) == nil {
		t.Error("a byte more is read")
	}
}

// Rows have one form, and equal numbers of neighbours take a bit each.
func TestRows(t *testing.T) {
	w := fields.Writer(nil)
	rows := []float64{1, 0, 2, 1, 5, 2}
	w.Rows(&rows, 2, 3)
	if n := len(w.Rest()); n != 2+3*8 {
		t.Errorf("%d bytes", n)
	}
	for name, data := range map[string][]byte{"a number that does not differ": {1, 0, 0, 0, 0, 0, 0, 0, 0}, "a bit without a column": {8}, "no bits": {}} {
		var v []float64
		r := fields.Reader(data)
		if r.Rows(&v, 1, 3); r.Err() == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// An integer has one form, and counts are bounded.
func TestIntegers(t *testing.T) {
	for _, data := range [][]byte{{0x80, 0}, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}} {
		if v, _, err := fields.Uvarint(data); err == nil {
			t.Errorf("%x is %d", data, v)
		}
	}
	f := fields.Writer(nil)
	large := uint64(math.MaxInt32 + 1)
	f.Uvarint(&large)
	var n int
	r := fields.Reader(f.Rest())
	if r.Count(&n); r.Err() == nil {
		t.Errorf("the count %d is read", n)
	}
	for _, rows := range []int{2, 1 << 30} {
		var v []float64
		r := fields.Reader(make([]byte, 8))
		if r.Floats(&v, rows, 1<<31-1); r.Err() == nil || v != nil {
			t.Errorf("%d numbers of 8 bytes are read", len(v))
		}
	}
}
