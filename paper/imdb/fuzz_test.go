package imdb

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// An accepted line keeps its meaning when it is written and read again.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"split":"train","label":1,"id":0,"rating":9,"text":"Good.<br />"}`,
		`{"split":"test","label":0,"id":12499,"rating":1,"text":"\ud83d\ude00 \u2028 \ufffd","more":[{}]}`,
		`{"split":"test","label":0,"id":1e3,"rating":1,"text":"\ud83d"}`,
		`{"split":"val","label":2,"id":-1,"rating":11}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		want, err := parseLine(line)
		if err != nil {
			return
		}
		expect.Equal(t, fatal.Or(parseLine(asLines([]Review{want})))(t), want)
		_ = want.Key()
	})
}

func FuzzTar(f *testing.F) {
	// Small archives, because the fuzzer is slow on large inputs.
	f.Add(tarOf([2]string{"test/pos/3_8.txt", "Good."}))
	f.Add(tarOf([2]string{"README", "read me"}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		want, err := readTar(bytes.NewReader(content), "archive")
		if err != nil {
			return
		}
		expect.Equal(t, fatal.Or(readTar(bytes.NewReader(asTar(want)), "archive"))(t), want)
	})
}

// The checksum is corrected, so that the fuzzer gets past it.
func FuzzCache(f *testing.F) {
	m := newModel(Dim)
	d := &Dataset{
		Features: mat.NewDense(2, Dim, nil),
		Params:   make([]float64, m.NumParams()),
		Report:   Report{SingularValues: make([]float64, Dim)},
	}
	good := encoded(f, d, "key")
	f.Add(good[:len(good)-4])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		content := binary.LittleEndian.AppendUint32(slices.Clone(body),
			crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		d, err := decode(content, "key")
		if err != nil {
			return
		}
		if !bytes.Equal(encoded(t, d, "key"), content) {
			t.Error("another dataset when written again")
		}
	})
}

// encoded returns the cache's content for a dataset.
func encoded(t testing.TB, d *Dataset, key string) []byte {
	t.Helper()
	return fatal.Or(d.encode(key))(t)
}
