package extsort_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"vitrine/internal/extsort"
	"vitrine/internal/fatal"
)

// Records come in the order of slices.SortFunc, in memory and in runs of any size, and no file stays.
func TestSorter(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, memory := range []int{0, 100, 1000, 1 << 20} {
		s := &extsort.Sorter{Memory: memory}
		var want, got [][]byte
		for range 300 {
			record := fmt.Appendf(nil, "%x", make([]byte, rng.IntN(20)))
			record = append(record, byte(rng.IntN(256)))
			want = append(want, record)
			fatal.If(t, s.Add(bytes.Clone(record)))
		}
		slices.SortFunc(want, bytes.Compare)
		fatal.If(t, s.Each(func(record []byte) error { got = append(got, bytes.Clone(record)); return nil }))
		if !slices.EqualFunc(want, got, bytes.Equal) {
			t.Errorf("with %d bytes of memory: %q, want %q", memory, got, want)
		}
		fatal.If(t, s.Close())
		if left := fatal.Or(os.ReadDir(dir))(t); len(left) > 0 {
			t.Errorf("%d bytes of memory leave %v", memory, left)
		}
	}
}
