package fields_test

import (
	"math"
	"runtime"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
)

// record contains a field of every kind.
type record struct {
	Byte     byte
	Flag     bool
	Fixed    uint64
	Int64    int64
	Uvarint  uint64
	Float    float64
	Sum      [32]byte
	String   string
	Bytes    []byte
	Strings  []string
	Floats   []float64
	Vector   []float64
	Rows     []float64
	Count    int
	Place    int32
	Integers []int32
	Elements [2]uint64
	List     []part
	Pointers []*part
	Map      map[string]*part
	Optional *part
}

type part struct{ N uint64 }

func (p *part) fields(f *fields.Fields) { f.Uvarint(&p.N) }

func (r *record) fields(f *fields.Fields) error {
	f.Byte(&r.Byte)
	f.Version("the record", 1)
	f.Flag(&r.Flag)
	f.Fixed64(&r.Fixed)
	f.Int64(&r.Int64)
	f.Uvarint(&r.Uvarint)
	f.Float(&r.Float)
	f.Sum(&r.Sum)
	f.String(&r.String)
	f.Bytes(&r.Bytes)
	f.Strings(&r.Strings)
	f.Floats(&r.Floats)
	f.Vector(&r.Vector)
	f.Rows(&r.Rows, f.Length(len(r.Rows)/3, 1), 3)
	f.Count(&r.Count)
	f.Place(&r.Place)
	fields.Integers(f, &r.Integers)
	fields.Elements(f, r.Elements[:])
	fields.List(f, &r.List, (*part).fields)
	fields.Pointers(f, &r.Pointers, (*part).fields)
	fields.Map(f, &r.Map, (*part).fields)
	fields.Optional(f, &r.Optional, (*part).fields)
	return f.Close()
}

func full() record {
	return record{
		Byte: 7, Flag: true, Fixed: 1 << 60, Int64: -5, Uvarint: 300,
		Float: math.Pi, Sum: [32]byte{1, 2}, String: "é", Bytes: []byte{0, 9},
		Strings: []string{"", "ab", "c"}, Floats: []float64{1, -2, 3}, Vector: []float64{8, 9},
		Rows:  []float64{0, 1, 2, 0, 1, 3, 0, 1, 3, math.Copysign(0, -1), 0, 3},
		Count: 1 << 29, Place: 9, Integers: []int32{5, 0}, Elements: [2]uint64{1 << 63, 4},
		List: []part{{1}, {2}}, Pointers: []*part{{3}}, Map: map[string]*part{"b": {4}, "a": {5}}, Optional: &part{6},
	}
}

// empty returns a record to read into, with the length of its vector set.
func empty() *record { return &record{Vector: make([]float64, 2)} }

// A record survives a round trip. A truncated or extended encoding does not parse.
func TestFields(t *testing.T) {
	in := full()
	w := fields.Writer(nil)
	fatal.If(t, in.fields(&w))
	data := w.Rest()
	r, out := fields.Reader(data), empty()
	fatal.If(t, out.fields(&r))
	expect.Equal(t, out, &in)
	for n := range data {
		r := fields.Reader(data[:n:n])
		if empty().fields(&r) == nil {
			t.Errorf("%d of %d bytes are read", n, len(data))
		}
	}
	longer := fields.Reader(append(data, 0))
	if empty().fields(&longer) == nil {
		t.Error("a byte more is read")
	}
}

// A reader allocates new slices, so it may read into a copy of a value.
func TestReadingChangesNoSlice(t *testing.T) {
	in := full()
	w := fields.Writer(nil)
	fatal.If(t, in.fields(&w))
	data := w.Rest()
	for i, b := range data { // corrupt one byte; some records still parse
		data[i] = b ^ 1
		shared, r := in, fields.Reader(data)
		shared.fields(&r)
		data[i] = b
	}
	in.Elements = full().Elements
	expect.Equal(t, in, full())
}

// Errors name the part of the record and the mistake.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		data       []byte
		read       func(f *fields.Fields)
	}{
		{"flag", "seen: 2 where there is 0 or 1", []byte{2}, func(f *fields.Fields) { f.Flag(new(false)) }},
		{"version", "the record is in format 2, and this program reads format 1", []byte{2}, func(f *fields.Fields) {
			f.Version("the record", 1)
		}},
		{"end", "seen: the bytes end early", []byte{2}, func(f *fields.Fields) { f.Fixed64(new(uint64(0))) }},
		{"length", "seen: a count of 9 where at most 2 are possible",
			[]byte{9, 1}, func(f *fields.Fields) { f.String(new("")) }},
		{"integer", "seen: the number 32768 is too large", []byte{1, 0x80, 0x80, 2}, func(f *fields.Fields) {
			fields.Integers(f, new([]int16(nil)))
		}},
		{"keys", "seen: keys are not in order: a comes after b", []byte{2, 1, 'b', 0, 1, 'a', 0},
			func(f *fields.Fields) { fields.Map(f, new(map[string]*part{}), (*part).fields) }},
		{"left", "seen: 1 bytes too many", []byte{0, 1}, func(f *fields.Fields) { f.Byte(new(byte(0))) }},
		{"check", "seen: 3 is odd", []byte{3}, func(f *fields.Fields) { f.Check(false, "%d is odd", 3) }},
	} {
		f := fields.Reader(c.data)
		f.In("seen")
		if c.read(&f); f.Close() == nil || f.Err().Error()[:len(c.want)] != c.want {
			t.Errorf("%s: error %q, want %q", c.name, f.Err(), c.want)
		}
	}
}

// Neither the width of a record without rows nor lengths without elements cause allocations.
func TestForgedSizesAllocateNothing(t *testing.T) {
	const huge = math.MaxInt >> 16
	w := fields.Writer(nil)
	w.Count(new(huge))
	data := w.Rest()
	for name, read := range map[string]func(f *fields.Fields){
		"rows":     func(f *fields.Fields) { f.Rows(new([]float64(nil)), 0, huge) },
		"a row":    func(f *fields.Fields) { f.Rows(new([]float64(nil)), 1, huge) },
		"floats":   func(f *fields.Fields) { f.Floats(new([]float64(nil))) },
		"strings":  func(f *fields.Fields) { f.Strings(new([]string(nil))) },
		"integers": func(f *fields.Fields) { fields.Integers(f, new([]int(nil))) },
		"list":     func(f *fields.Fields) { fields.List(f, new([]part(nil)), (*part).fields) },
		"map":      func(f *fields.Fields) { fields.Map(f, new(map[string]*part(nil)), (*part).fields) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := fields.Reader(data)
		read(&f)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 10_000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

// Rows are encoded in one way only. A number equal to its neighbour above takes one bit.
func TestRows(t *testing.T) {
	w := fields.Writer(nil)
	rows := []float64{1, 0, 2, 1, 5, 2}
	w.Rows(&rows, 2, 3)
	expect.Equal(t, len(w.Rest()), 2+3*8, "bytes")
	for name, data := range map[string][]byte{
		"a number that does not differ": {1, 0, 0, 0, 0, 0, 0, 0, 0}, "a bit without a column": {8}, "no bits": {},
	} {
		var v []float64
		r := fields.Reader(data)
		if r.Rows(&v, 1, 3); r.Err() == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// Integers are encoded in one way only, and counts are bounded.
func TestIntegers(t *testing.T) {
	for _, data := range [][]byte{{0x80, 0}, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}} {
		if v, _, err := fields.Uvarint(data); err == nil {
			t.Errorf("%x is %d", data, v)
		}
	}
	f := fields.Writer(nil)
	f.Uvarint(new(uint64(1<<48 + 1)))
	var n int
	if r := fields.Reader(f.Rest()); true {
		if r.Count(&n); r.Err() == nil {
			t.Errorf("the count %d is read", n)
		}
	}
	var place int32
	if r := fields.Reader(f.Rest()); true {
		if r.Place(&place); r.Err() == nil {
			t.Errorf("the place %d is read", place)
		}
	}
}
