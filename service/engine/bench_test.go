package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// devNull is a log that drops its entries.
type devNull struct {
	*memlog.Store
	last uint64
}

func (s *devNull) Append(_ context.Context, entries ...[]byte) (uint64, error) {
	s.last += uint64(len(entries))
	return s.last, nil
}

func wide(t testing.TB, policy string, record string) (*engine.Engine, *api.Request) {
	store := &devNull{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store, Build: setup.NewLearner})
	put(t, e, "home", fmt.Sprintf(`{"max_size":5,"features":%s,"policy":%s,"log_items":%q,"memory_bytes":64000000}`,
		numbers(10), policy, record))
	s := newSimulator(1, 100, 10)
	r, _ := s.request(1)
	return e, r
}

// BenchmarkDecide is a decision among 100 items of 10 features by ONL-MNL in Phase II, with the writer and a log
// without cost.
func BenchmarkDecide(b *testing.B) {
	for _, record := range []string{"shown", "all"} {
		b.Run(record, func(b *testing.B) {
			e, r := wide(b, `{"name":"onl-mnl","warmup":0}`, record)
			b.ReportAllocs()
			for b.Loop() {
				fatal.Or(e.Decide(b.Context(), "home", r, 0))(b)
			}
		})
	}
}

// BenchmarkReplay replays rounds of 5 shown items of 10 features, each two entries, and
// learns from them.
func BenchmarkReplay(b *testing.B) {
	const rounds = 20_000
	for name, policy := range map[string]string{
		"linear":  `{"name":"onl-mnl"}`,
		"mlp":     `{"name":"onl-mnl","pilot":"map","utility":{"kind":"mlp","hidden":[3]}}`,
		"uniform": `{"name":"uniform"}`,
	} {
		b.Run(name, func(b *testing.B) {
			store := new(memlog.Store)
			e := opened(b, engine.Options{Store: store, Build: setup.NewLearner})
			put(b, e, "home", fmt.Sprintf(`{"max_size":5,"features":%s,"policy":%s}`, numbers(10), policy))
			s := newSimulator(1, 20, 10)
			for t := range rounds {
				r, _ := s.request(t + 1)
				a, err := e.Decide(b.Context(), "home", r, 0)
				fatal.If(b, err)
				item, _ := s.choose(a)
				for e.Outcome(b.Context(), "home", a.Decision, item, 1) != nil {
					wait(b, e)
				}
			}
			wait(b, e)
			b.ResetTimer()
			for b.Loop() {
				e, err := engine.Open(b.Context(), engine.Options{Store: store, Build: setup.NewLearner})
				fatal.If(b, err)
				fatal.If(b, e.Wait(b.Context()))
				e.Close()
			}
			b.ReportMetric(rounds*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
		})
	}
}

// The allocations of a decision do not grow with the items: 100 of them of 10 features.
func TestDecideAllocates(t *testing.T) {
	e, r := wide(t, `{"name":"ucb-mnl"}`, "shown")
	decide := func() {
		decide(t, e, "home", r, 0)
	}
	if n := testing.AllocsPerRun(200, decide); n > 80 {
		t.Errorf("%v allocations a decision, at most 80 were wanted", n)
	}
}

// BenchmarkFollow follows a log to which 16 entries at a time are appended: rounds of 5 shown items of 10 features,
// each two entries.
func BenchmarkFollow(b *testing.B) {
	const rounds = 20_000
	store := new(memlog.Store)
	e := opened(b, engine.Options{Store: store, Build: setup.NewLearner})
	put(b, e, "home", fmt.Sprintf(`{"max_size":5,"features":%s,"policy":{"name":"onl-mnl"}}`, numbers(10)))
	s := newSimulator(1, 20, 10)
	for t := range rounds {
		r, _ := s.request(t + 1)
		a, err := e.Decide(b.Context(), "home", r, int64(t))
		fatal.If(b, err)
		item, _ := s.choose(a)
		for e.Outcome(b.Context(), "home", a.Decision, item, int64(t)) != nil {
			wait(b, e)
		}
	}
	var entries [][]byte
	for entry, err := range store.Entries(b.Context(), 1) {
		fatal.If(b, err)
		entries = append(entries, entry)
	}
	b.ReportAllocs()
	for b.Loop() {
		log := new(memlog.Store)
		f := follower(b, engine.Options{Store: log, Build: setup.NewLearner})
		last := uint64(0)
		for some := range slices.Chunk(entries, 16) {
			var err error
			if last, err = log.Append(b.Context(), some...); err != nil {
				b.Fatal(err)
			}
			reach(b, f, last)
		}
		wait(b, f)
		f.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*rounds), "µs/round")
}
