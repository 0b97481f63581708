package natslog_test

import (
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

func open(t testing.TB, dir string) eventlog.Store {
	t.Helper()
	s, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	logtest.Run(t, open)
	logtest.RunDurable(t, open)
}

func BenchmarkSync(b *testing.B)   { logtest.BenchmarkSync(b) }
func BenchmarkAppend(b *testing.B) { logtest.BenchmarkAppend(b, open) }

// What syncing costs: the same without it, which loses acknowledged entries with
// the power.
func BenchmarkAppendUnsynced(b *testing.B) {
	natslog.SetSync(false)
	defer natslog.SetSync(true)
	logtest.BenchmarkAppend(b, open)
}

// Opening a log verifies every record: here 100 MB.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	e := make([]byte, 900_000)
	for range 111 {
		if _, err := s.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
	b.SetBytes(100e6)
	for b.Loop() {
		open(b, dir).Close()
	}
}

// BenchmarkTruncate measures the removal of entries from a log of frames of 3 entries of 1 KB: where, by a
// time and by a size with 10 MB before it, and removing them.
func BenchmarkTruncate(b *testing.B) {
	natslog.SetSync(false)
	s := connect(b, natslog.Options{Dir: b.TempDir()})
	natslog.SetSync(true)
	e := make([]byte, 1024)
	for range 60_000 {
		if _, err := s.Append(b.Context(), e, e, e); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("since", func(b *testing.B) {
		for b.Loop() {
			asked := 0
			if _, err := s.FirstSince(b.Context(), func([]byte) (bool, error) { asked++; return asked%2 == 0, nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	within := func() (first uint64) {
		x, err := s.Extent(b.Context())
		if err == nil {
			first, err = s.FirstWithin(b.Context(), x.Bytes-min(x.Bytes, 10e6))
		}
		if err != nil {
			b.Fatal(err)
		}
		return first
	}
	b.Run("within", func(b *testing.B) {
		for b.Loop() {
			within()
		}
	})
	b.Run("remove", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			first := within()
			b.StartTimer()
			if err := s.TruncateBefore(b.Context(), first); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, open) }
