package logtest

import (
	"fmt"
	"sync"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
)

// BenchmarkAppend measures one caller that appends single entries of 1 KB.
func BenchmarkAppend(b *testing.B, open Open) {
	s := open(b, b.TempDir())
	defer s.Close()
	e := make([]byte, 1024)
	for b.Loop() {
		fatal.Or(s.Append(b.Context(), e))(b)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkEntries measures reading a log of 1 KB entries, in large frames and in frames of 3, which occur at 3000
// entries a second with a commit each millisecond. One operation is one pass.
func BenchmarkEntries(b *testing.B, open Open) {
	for _, c := range []struct {
		callers, each, group int
	}{{64, 1500, 8}, {1, 3000, 3}} {
		b.Run(fmt.Sprintf("callers=%d/group=%d", c.callers, c.group), func(b *testing.B) {
			s := open(b, b.TempDir())
			defer s.Close()
			fill(b, s, c.callers, c.each/c.group, c.group)
			n := 0
			for b.Loop() {
				for _, err := range s.Entries(b.Context(), 1) {
					fatal.If(b, err)
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// fill appends groups of 1 KB entries, several times from each of several callers.
func fill(b *testing.B, s eventlog.Log, callers, times, group int) {
	var writers sync.WaitGroup
	for range callers {
		writers.Go(func() {
			entries := make([][]byte, group)
			for i := range entries {
				entries[i] = make([]byte, 1024)
			}
			for range times {
				if _, err := s.Append(b.Context(), entries...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
}
