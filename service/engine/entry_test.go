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

// After a change Entry is the change's entry or a later one, also among others of one append.
func TestEntryAfterAChange(t *testing.T) {
	const callers, rounds = 8, 25
	entries := map[string]uint64{}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy,
		Applied: func(sequence uint64, event *eventlog.Event) {
			switch b := event.Body.(type) {
			case *eventlog.Offered:
				entries["offered "+b.Decision] = sequence
			case *eventlog.Chosen:
				entries["chosen "+b.Decision] = sequence
			}
		}})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	var mu sync.Mutex
	named := map[string]uint64{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("%d-%d", c, i)
				_, err := e.Decide(t.Context(), "home", stock(id, 3), int64(i))
				expect.Error(t, err, nil)
				offered := e.Entry()
				expect.Error(t, e.Outcome(t.Context(), "home", id, "", int64(i)), nil)
				mu.Lock()
				named["offered "+id], named["chosen "+id] = offered, e.Entry()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	e.Close() // no entry is applied from now on
	expect.Equal(t, len(entries), 2*callers*rounds, "the log has n events")
	for what, entry := range entries {
		if named[what] < entry {
			t.Errorf("%s: entry %d after the change of entry %d", what, named[what], entry)
		}
	}
}
