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

func BenchmarkSync(b *testing.B)    { logtest.BenchmarkSync(b) }
func BenchmarkAppend(b *testing.B)  { logtest.BenchmarkAppend(b, open) }
func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, open) }
