package fields_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
)

func snapshot() []byte {
	f, r := fields.Snapshot("sample"), full()
	r.fields(f)
	data, err := f.Seal()
	if err != nil {
		panic(err)
	}
	return data
}

func TestSnapshot(t *testing.T) {
	f := fatal.Or(fields.OpenKind("sample", snapshot()))(t)
	out := empty()
	fatal.If(t, out.fields(f))
	expect.Equal(t, *out, full())
}

// Writing a snapshot in parts gives the same bytes.
func TestSnapshotTo(t *testing.T) {
	many := make([]float64, 100_000)
	for i := range many {
		many[i] = float64(i)
	}
	var out bytes.Buffer
	whole, parts := fields.Snapshot("many"), fields.SnapshotTo(&out, "many")
	for _, f := range []*fields.Fields{whole, parts} {
		for range 3 {
			f.Floats(&many)
		}
	}
	if n := len(parts.Rest()); n > 1<<16 || out.Len() < 3*800_000-n {
		t.Errorf("%d bytes are not written", n)
	}
	want := fatal.Or(whole.Seal())(t)
	fatal.Or(parts.Seal())(t)
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%d bytes in parts differ from %d at once", out.Len(), len(want))
	}
}

// Readers reject numbers that are not finite, so writers refuse to write them.
func TestSnapshotsHaveFiniteNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		f := fields.Snapshot("sample")
		f.Floats(&[]float64{1, v})
		expect.Part(f.Seal())(t, "must be finite", v)
	}
}

func TestDamageIsNamed(t *testing.T) {
	data := snapshot()
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
		expect.Part(fields.OpenKind(c.kind, c.data))(t, c.want, c.name)
	}
}

// A reader never panics, and never allocates much more memory than its input. Half of the inputs get a correct
// checksum, since otherwise the fuzzer would never reach the fields. A record that can be read is written as the same
// bytes.
func FuzzSnapshot(f *testing.F) {
	f.Add(snapshot(), true)
	f.Add([]byte("vitrine\x01"), false)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal && len(data) >= 4 {
			body := data[:len(data)-4]
			data = binary.LittleEndian.AppendUint32(bytes.Clone(body),
				crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		}
		kind, r, err := fields.Open(data)
		if err != nil {
			return
		}
		out := empty()
		if out.fields(r) != nil {
			return
		}
		w := fields.Snapshot(kind)
		out.fields(w)
		if again := fatal.Or(w.Seal())(t); !bytes.Equal(again, data) {
			t.Errorf("%x is read, and written as %x", data, again)
		}
	})
}
