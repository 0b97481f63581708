package engine

import (
	"context"
	"errors"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/state"
)

// Outcome reports the outcome of a placement's decision: the id of the item taken, or "" if no item was taken. It
// returns when the outcome is in the log, before it is learned. An empty placement means the result of Find, with its
// errors.
//
// Reporting the same outcome twice is a no-op; a different one returns ErrConflict. If the decision ended without an
// outcome, because its attribution window is over or because it left memory, the outcome is recorded and its revenue
// counts, for as long as the placement remembers the decision. The learner does not learn from it, and Outcome returns
// ErrLate to say so. For an evicted and forgotten decision it returns ErrEvicted. Other errors are ErrNotFound,
// ErrNotShown, ErrStopped and ctx's; after the last two report the outcome again.
func (e *Engine) Outcome(ctx context.Context, placement, decision, item string, now int64) error {
	return e.forward(ctx, &remoteCall{what: callOutcome, placement: placement, decision: decision, item: item}, now, func(now int64) error {
		return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error { return b.Outcome(f.Record, f.Offer, item, now) })
	})
}

// maxAhead is the maximal number of bytes of their rounds, which are read before.
const maxAhead = 8 << 20

// Expire ends the wait for outcomes in all placements once the attribution window is over, and evicts decisions of
// placements with lowered memory. It returns their number. Call it now and then. If a learner's queue is full, its
// decisions wait for the next call. It returns ErrUnread, ErrStopped or ctx's error.
func (e *Engine) Expire(ctx context.Context, now int64) (int, error) {
	select {
	case <-e.stopped:
		return 0, e.stop()
	default:
	}
	total := 0
	for _, name := range e.Placements() {
		n, err := e.expire(ctx, name, now, false)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// expire is Expire for one placement. If it is urgent, decisions do not wait for their learner: it does not
// learn from them.
func (e *Engine) expire(ctx context.Context, name string, now int64, urgent bool) (total int, err error) {
	for {
		late, over := e.late(name, now)
		if len(late) == 0 && !over {
			return total, nil
		}
		if late, err = e.readAhead(ctx, late); err != nil {
			return total, err
		}
		n := 0 // owned by the writer until submit returns
		if err = e.submit(ctx, func(b *state.Batch) error { n = b.ExpireDue(name, late, now, urgent); return nil }); err != nil {
			return total, err
		}
		if total += n; n == 0 || n < len(late) {
			return total, nil
		}
	}
}

// late returns a placement's overdue decisions, in order, and whether its memory is exceeded.
func (e *Engine) late(name string, now int64) (late []*state.Lookup, over bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Late(name, now)
}

// readAhead reads the offers of the first decisions, as many as one proposal takes. Deferred decisions need no offer,
// and decisions whose entry was removed lost theirs.
func (e *Engine) readAhead(ctx context.Context, late []*state.Lookup) ([]*state.Lookup, error) {
	bytes := 0
	for i, f := range late {
		if f.Was.Status == state.Deferred {
			continue
		}
		if err := f.Read(ctx, e.store); err != nil && !errors.Is(err, eventlog.ErrRemoved) {
			return nil, err
		}
		if f.Offer != nil {
			bytes += learner.RoundBytes(f.Offer)
		}
		if bytes > maxAhead {
			return late[:i+1], nil
		}
	}
	return late, nil
}
