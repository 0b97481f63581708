package state_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/fatal"
	"vitrine/internal/state"
)

func sample() []byte {
	data, err := encode().Bytes()
	if err != nil {
		panic(err)
	}
	return data
}

func encode() *state.Encoder {
	e := state.NewEncoder("sample")
	e.Count(7)
	e.Float(math.Pi)
	e.Floats([]float64{1, -math.MaxFloat64, math.Copysign(0, -1)})
	e.Uint64(math.MaxUint64)
	return e
}

// What a decoder would refuse is not written in the first place.
func TestNumbersThatAreNotFiniteAreRefused(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		e := state.NewEncoder("sample")
		e.Floats([]float64{1, v})
		if _, err := e.Bytes(); err == nil || !strings.Contains(err.Error(), "the state has the number") {
			t.Errorf("%v: error %v", v, err)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	d := fatal.Or(state.NewDecoder("sample", sample()))(t)
	if got := d.Count(); got != 7 {
		t.Errorf("Count = %d, want 7", got)
	}
	if got := d.Float(); got != math.Pi {
		t.Errorf("Float = %v, want π", got)
	}
	if diff := cmp.Diff([]float64{1, -math.MaxFloat64, math.Copysign(0, -1)}, d.FloatSlice()); diff != "" {
		t.Errorf("FloatSlice (-want +got):\n%s", diff)
	}
	if got := d.Uint64(); got != math.MaxUint64 {
		t.Errorf("Uint64 = %d, want 2⁶⁴ − 1", got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	data := sample()
	flipped := append([]byte(nil), data...)
	flipped[20] ^= 1
	for _, c := range []struct {
		name, kind, want string
		data             []byte
	}{
		{"empty", "sample", "truncated", nil},
		{"truncated", "sample", "damaged or truncated", data[:len(data)-3]},
		{"one bit", "sample", "damaged or truncated", flipped},
		{"another kind", "other", `is of "sample", want "other"`, data},
		{"not a snapshot", "sample", "not a snapshot", []byte("something quite different")},
	} {
		if _, err := state.NewDecoder(c.kind, c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

func TestFieldsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, want string
		read       func(d *state.Decoder)
	}{
		{"too few read", "too many", func(d *state.Decoder) { d.Count() }},
		{"wrong length", "made with another configuration", func(d *state.Decoder) { d.Count(); d.Float(); d.Floats(make([]float64, 2)) }},
		{"past the end", "ends early", func(d *state.Decoder) { d.Count(); d.Float(); d.FloatSlice(); d.Uint64(); d.Count() }},
		{"a length without its data", "ends early", func(d *state.Decoder) { d.FloatSlice() }},
		{"not a count", "count of -1", func(d *state.Decoder) { d.Count(); d.Float(); d.FloatSlice(); d.Count() }},
		{"a count too large", "too large", func(d *state.Decoder) { d.Count(); d.Count() }},
		{"not a number", "has the number NaN", func(d *state.Decoder) { d.Count(); d.Float(); d.FloatSlice(); d.Float() }},
	} {
		d := fatal.Or(state.NewDecoder("sample", sample()))(t)
		c.read(d)
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

// A decoder never panics, and never asks for more memory than its input. Half
// of the inputs get a right checksum, or nothing would reach the fields.
func FuzzDecoder(f *testing.F) {
	f.Add(sample(), true)
	f.Add([]byte("vitrine\x01"), false)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal && len(data) >= 4 {
			body := data[:len(data)-4]
			data = binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		}
		d, err := state.NewDecoder("sample", data)
		if err != nil {
			return
		}
		if n := d.Count(); n < 0 {
			t.Errorf("Count = %d", n)
		}
		d.Float()
		if n := len(d.FloatSlice()); n > len(data)/8 {
			t.Errorf("%d numbers in %d bytes", n, len(data))
		}
		d.Floats(make([]float64, 3))
		_ = d.Close()
	})
}
