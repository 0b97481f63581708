package decision

import (
	"context"
	"maps"
	"slices"

	"vitrine/service/eventlog"
)

// EvictBefore evicts the open decisions whose offers come before an entry, so that these entries can be
// removed from the log, and returns their number. Nothing is learned from them.
func (e *Engine) EvictBefore(ctx context.Context, entry uint64, now int64) (total int, err error) {
	for {
		n := 0 // owned by the writer until submit returns
		err := e.submit(ctx, func(b *batch) error { n = b.evictBefore(entry, now); return nil })
		if total += n; err != nil || n < maxExpiry {
			return total, err
		}
	}
}

func (b *batch) evictBefore(entry uint64, now int64) (n int) {
	for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
		for r := range b.state.placements[name].open.all() {
			if n == maxExpiry {
				return n
			}
			if r.entry > 0 && r.entry < entry && !b.touched[r.key()] {
				b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
				n++
			}
		}
	}
	return n
}
