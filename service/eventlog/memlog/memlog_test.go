package memlog_test

import (
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/memlog"
)

func TestContract(t *testing.T) {
	logtest.Run(t, open)
}

func BenchmarkAppend(b *testing.B)  { logtest.BenchmarkAppend(b, open) }
func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, open) }

func open(testing.TB, string) eventlog.Log { return new(memlog.Store) }
