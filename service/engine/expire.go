package engine

import (
	"context"
	"errors"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// maxAhead bounds the bytes of the rounds that are read before they are proposed.
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
		n, err := e.expire(ctx, name, now)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// expire is Expire for one placement.
func (e *Engine) expire(ctx context.Context, name string, now int64) (total int, err error) {
	for {
		n, more, err := e.expireSome(ctx, name, now, false, state.MaxExpiry)
		if total += n; !more || err != nil {
			return total, err
		}
	}
}

// expireSome expires at most a number of a placement's decisions, and reports whether to go on. If it is urgent,
// decisions do not wait for their learner: it does not learn from them.
func (e *Engine) expireSome(ctx context.Context, name string, now int64, urgent bool, most int) (n int, more bool,
	err error) {
	late, over := e.late(name, now, most, 0)
	if len(late) == 0 && !over {
		return 0, false, nil
	}
	if late, err = e.readAhead(ctx, late); err != nil {
		return 0, false, err
	}
	made := 0 // owned by the writer until submit returns
	if err = e.submit(ctx, func(b *state.Batch) error {
		made = b.ExpireDue(name, late, now, urgent)
		return nil
	}); err != nil {
		return 0, false, err
	}
	return made, made > 0 && made >= len(late), nil
}

// late returns the first of a placement's overdue decisions, in order, and whether its memory lacks room for the bytes.
func (e *Engine) late(name string, now int64, most, bytes int) (late []*state.Lookup, over bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Late(name, now, most, bytes)
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

// crowding is a decision that does not fit into its placement's memory before overdue ones expire.
type crowding struct {
	placement string
	now       int64
	urgent    bool
	done      chan relief
}

// relief says whether there is room now, as far as one pass made it.
type relief struct {
	made bool
	err  error
}

// maxRelief is the number of decisions that expire for one that needs room.
const maxRelief = 64

// awaitRoom expires some of a placement's overdue decisions, unless there is room by then, and returns false if it
// could do neither. Decisions that find the memory full at the same time wait in line: otherwise each would read the
// same offers.
func (e *Engine) awaitRoom(ctx context.Context, placement string, now int64, urgent bool) (made bool, err error) {
	c := &crowding{placement, now, urgent, make(chan relief, 1)}
	select {
	case e.crowded <- c:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-e.stopped:
		return false, e.stop()
	}
	select {
	case r := <-c.done:
		return r.made, r.err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-e.stopped:
		return false, e.stop()
	}
}

// relieve serves awaitRoom until the engine stops.
func (e *Engine) relieve(ctx context.Context) {
	for {
		select {
		case c := <-e.crowded:
			if _, isFull := e.late(c.placement, c.now, 0, setup.MaxRecordBytes); !isFull { // an earlier call made room
				c.done <- relief{made: true}
				continue
			}
			n, _, err := e.expireSome(ctx, c.placement, c.now, c.urgent, maxRelief)
			if ctx.Err() != nil { // Close cancelled it, not the caller
				err = ErrStopped
			}
			c.done <- relief{n > 0, err}
		case <-e.stopped:
			return
		}
	}
}

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
