package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// A change names its log entry, also among others of one append; repeated, it names that entry or a later one.
func TestWithEntry(t *testing.T) {
	const callers, rounds = 8, 25
	entries := map[uint64]string{}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy,
		Applied: func(sequence uint64, event *eventlog.Event) {
			switch b := event.Body.(type) {
			case *eventlog.Offered:
				entries[sequence] = "offered " + b.Decision
			case *eventlog.Chosen:
				entries[sequence] = "chosen " + b.Decision
			}
		}})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	var mu sync.Mutex
	named := map[string]uint64{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range rounds {
				var offered, again, chosen, twice uint64
				id := fmt.Sprintf("%d-%d", c, i)
				for _, entry := range []*uint64{&offered, &again} {
					if _, err := e.Decide(engine.WithEntry(t.Context(), entry), "home", stock(id, 3),
						int64(i)); err != nil {
						t.Error(err)
					}
				}
				for _, entry := range []*uint64{&chosen, &twice} {
					expect.Error(t, e.Outcome(engine.WithEntry(t.Context(), entry), "home", id, "", int64(i)), nil)
				}
				if again != offered || twice < chosen {
					t.Errorf("%s: repeated, entries %d and %d, want %d and at least %d", id, again, twice, offered,
						chosen)
				}
				mu.Lock()
				named["offered "+id], named["chosen "+id] = offered, chosen
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	e.Close() // no entry is applied from now on
	expect.Equal(t, len(entries), 2*callers*rounds, "the log has n events")
	for entry, what := range entries {
		expect.Equal(t, named[what], entry, what, "entry")
	}
}
