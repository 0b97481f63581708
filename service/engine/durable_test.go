package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/setup"
)

// durable opens a log on disk.
func durable(t testing.TB, dir string) *filelog.Store {
	t.Helper()
	s := fatal.Or(filelog.Open(t.Context(), filelog.Options{Dir: dir}))(t)
	return s
}

// After a restart on a log on disk the state is as before, from the log and from a snapshot.
func TestRestartOnDisk(t *testing.T) {
	dir := t.TempDir()
	store := durable(t, dir)
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: store, Build: setup.NewLearner}))(t)
	put(t, e, "home", shop)
	var early []byte
	for i := range 5 {
		if i == 3 {
			early = snapshot(t, e)
		}
		one(t, e, "home", fmt.Sprint(i), 0.5)
	}
	live := snapshot(t, e)
	e.Close()
	fatal.If(t, store.Close())
	store = durable(t, dir)
	defer store.Close()
	for _, from := range [][]byte{nil, early, live} {
		if string(replayed(t, engine.Options{Store: store, Build: setup.NewLearner, Snapshot: from})) != string(live) {
			t.Error("the state is another one")
		}
	}
}

// BenchmarkDecideOnDisk is decisions and their outcomes by 64 callers, with a log
// that is synced.
func BenchmarkDecideOnDisk(b *testing.B) {
	store := durable(b, b.TempDir())
	defer store.Close()
	e, err := engine.Open(b.Context(), engine.Options{Store: store, Build: setup.NewLearner})
	fatal.If(b, err)
	defer e.Close()
	put(b, e, "home", fmt.Sprintf(`{"max_size":5,"features":%s,"policy":{"name":"onl-mnl","warmup":0}}`, numbers(10)))
	r, _ := newSimulator(1, 100, 10).request(1)
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				a, err := e.Decide(b.Context(), "home", r, 0)
				if err == nil {
					err = e.Outcome(b.Context(), "home", a.Decision, "", 1)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
