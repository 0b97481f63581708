package engine

import (
	"context"

	"vitrine/service/state"
)

// EvictBefore evicts the open decisions that were offered before an entry and began their attribution windows before
// the time since, so that these entries can be removed from the log. They teach nothing. It returns their number.
func (e *Engine) EvictBefore(ctx context.Context, entry uint64, since, now int64) (total int, err error) {
	for {
		n := 0 // owned by the writer until submit returns
		err := e.submit(ctx, func(b *state.Batch) error { n = b.EvictBefore(entry, since, now); return nil })
		if total += n; err != nil || n < state.MaxExpiry {
			return total, err
		}
	}
}
