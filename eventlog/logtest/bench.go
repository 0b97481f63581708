package logtest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkAppend measures appends of 1 KB entries by 1, 64 and 256 callers.
func BenchmarkAppend(b *testing.B, open Open) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, b.TempDir())
			defer s.Close()
			e := make([]byte, 1024)
			var left atomic.Int64
			left.Store(int64(b.N))
			var group sync.WaitGroup
			b.ResetTimer()
			for range callers {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.Append(b.Context(), e); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkEntries measures reading a log of 100 000 entries of 1 KB, written
// by 8 at a time: a pass is an operation.
func BenchmarkEntries(b *testing.B, open Open) {
	const entries, group = 100_000, 8
	s := open(b, b.TempDir())
	defer s.Close()
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			e := make([][]byte, group)
			for i := range e {
				e[i] = make([]byte, 1024)
			}
			for range entries / group / 64 {
				if _, err := s.Append(b.Context(), e...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	n := 0
	for b.Loop() {
		for _, err := range s.Entries(b.Context(), 1) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkSync measures what a disk needs for the smallest commit: a write of
// 1 KB at the end of a file, and fsync.
func BenchmarkSync(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 1024)
	for b.Loop() {
		if _, err := file.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
