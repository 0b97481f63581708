package natslog_test

import (
	"testing"

	"vitrine/eventlog"
	"vitrine/eventlog/logtest"
	"vitrine/eventlog/natslog"
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

func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, open) }
