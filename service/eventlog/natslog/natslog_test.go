package natslog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// streams opens logs on a server, with one stream per directory.
func streams(t testing.TB) logtest.Open {
	url := natstest.URL(t)
	return func(t testing.TB, dir string) eventlog.Log {
		stream := strings.NewReplacer("/", "_", ".", "_", " ", "_", ",", "_").Replace(dir)
		return connect(t, natslog.Options{URL: url, Stream: stream})
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	open := streams(t)
	logtest.Run(t, open)
	logtest.RunDurable(t, open)
}

func BenchmarkAppend(b *testing.B)  { logtest.BenchmarkAppend(b, streams(b)) }
func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, streams(b)) }

func entry(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte{byte(i)}, 10*i), "entry %d", i) }

func numbered(first, last int) (all [][]byte) {
	for i := first; i <= last; i++ {
		all = append(all, entry(i))
	}
	return all
}

func fill(t testing.TB, s eventlog.Log, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		if have, err := s.Append(t.Context(), entry(i)); err != nil || have != uint64(i) {
			t.Fatalf("entry %d has the sequence %d, %v", i, have, err)
		}
	}
}
