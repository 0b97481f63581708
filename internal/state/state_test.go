package state_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/state"
)

func sample() []byte {
	e := state.NewEncoder("sample")
	e.Int(-7)
	e.Float(math.Pi)
	e.Floats([]float64{1, math.Inf(-1), math.Copysign(0, -1)})
	return e.Bytes()
}

func TestRoundTrip(t *testing.T) {
	d, err := state.NewDecoder("sample", sample())
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Int(); got != -7 {
		t.Errorf("Int = %d, want -7", got)
	}
	if got := d.Float(); got != math.Pi {
		t.Errorf("Float = %v, want π", got)
	}
	if diff := cmp.Diff([]float64{1, math.Inf(-1), math.Copysign(0, -1)}, d.FloatSlice()); diff != "" {
		t.Errorf("FloatSlice (-want +got):\n%s", diff)
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
		{"too few read", "too many", func(d *state.Decoder) { d.Int() }},
		{"wrong length", "of another configuration", func(d *state.Decoder) { d.Int(); d.Float(); d.Floats(make([]float64, 2)) }},
		{"past the end", "ends early", func(d *state.Decoder) { d.Int(); d.Float(); d.FloatSlice(); d.Int() }},
		{"not a length", "ends early", func(d *state.Decoder) { d.FloatSlice() }},
	} {
		d, err := state.NewDecoder("sample", sample())
		if err != nil {
			t.Fatal(err)
		}
		c.read(d)
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

// A decoder never panics, and never asks for more memory than its input.
func FuzzDecoder(f *testing.F) {
	f.Add(sample())
	f.Add([]byte("vitrine\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := state.NewDecoder("sample", data)
		if err != nil {
			return
		}
		d.Int()
		d.FloatSlice()
		d.Floats(make([]float64, 3))
		_ = d.Close()
	})
}
