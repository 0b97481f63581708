package engine

import (
	"context"
	"maps"
	"slices"

	"vitrine/service/eventlog"
)

// EvictBefore evicts the open decisions whose offers come before an entry, and whose attribution windows began before
// the time since, so that these entries can be removed from the log. It returns their number. Nothing is learned from them.
func (e *Engine) EvictBefore(ctx context.Context, entry uint64, since, now int64) (total int, err error) {
	for {
		n := 0 // owned by the writer until submit returns
		err := e.submit(ctx, func(b *batch) error { n = b.evictBefore(entry, since, now); return nil })
		if total += n; err != nil || n < maxExpiry {
			return total, err
		}
	}
}

func (b *batch) evictBefore(entry uint64, since, now int64) (n int) {
	for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
		for r := range b.state.placements[name].open.all() {
			if n == maxExpiry {
				return n
			}
			if r.entry < entry && r.since() < since && !b.touched[r.key()] {
				b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
				n++
			}
		}
	}
	return n
}
