package engine

import (
	"context"
	"errors"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Outcome reports the outcome of a decision of a placement: the id of the item that was taken, or "" for
// none. It returns when the outcome is in the log, before it is learned. An empty placement means the one
// that Find returns, with its errors.
//
// Reporting the same outcome twice is a no-op; a different one returns ErrConflict. If the decision has ended without an outcome,
// because its attribution window is over or because it left memory, the outcome is recorded and its revenue counts, for as long as
// the placement remembers the decision. Nothing is learned from it, and Outcome returns ErrLate to say so. ErrEvicted is returned
// for an evicted decision that is forgotten. Other errors are ErrNotFound, ErrNotShown, ErrStopped or that of ctx; after the last
// two report the outcome again.
func (e *Engine) Outcome(ctx context.Context, placement, decision, item string, now int64) error {
	return e.ask(ctx, &remoteCall{what: callOutcome, placement: placement, decision: decision, item: item}, func() error {
		return e.concerning(ctx, placement, decision, func(b *batch, f *found) error { return b.outcome(f.record, f.offer, item, now) })
	})
}

func (b *batch) outcome(r *record, o *offer.Offer, item string, now int64) error {
	choice := 0
	if item != "" {
		if choice = o.Place(item); choice == 0 {
			return fmt.Errorf("item %q: %w in decision %q", api.Abbreviate(item, setup.MaxID), ErrNotShown, r.id)
		}
	}
	counts := r.status == deferred || r.status == withdrawn || r.status == evicted // from now on
	switch {
	case (r.status == chosen || r.status == late) && int(r.choice) != choice:
		return fmt.Errorf("decision %q: %w: it has another outcome already", r.id, ErrConflict)
	case r.status == chosen:
		return nil
	case r.status == late:
		return lateOutcome(r)
	case r.status.waits() && choice > 0 && r.hasPassed(choice):
		return fmt.Errorf("decision %q: %w: a reward has reported that item %q was not taken", r.id, ErrConflict, item)
	case r.status.waits() && !r.isLate(now):
		b.choose(r, o, int32(choice), now)
		return nil
	case r.status.waits():
		b.expire(r, o, now)
	}
	b.settle(r, o, int16(choice), counts, now)
	return lateOutcome(r)
}

func lateOutcome(r *record) error { return fmt.Errorf("decision %q: %w", r.id, ErrLate) }

// decision returns a remembered decision that the batch does not change.
func (b *batch) decision(placement, id string) (*record, error) {
	p := b.state.placements[placement]
	if b.touched[decisionKey{p, id}] {
		return nil, errLater
	}
	if r := b.state.decisions.find(p, id); r != nil {
		return r, nil
	}
	return nil, b.state.missing(p, id)
}

const (
	maxExpiry = 1000    // maximal number of decisions that expire in one proposal
	maxAhead  = 8 << 20 // maximal bytes of their rounds, which are read before
)

// Expire ends the wait for outcomes whose attribution window is over, in all placements, and evicts decisions
// of placements whose memory was lowered. It returns their number. Call it now and then. Decisions of a
// learner with a full queue wait for the next call. Errors are ErrUnread, ErrStopped or that of ctx.
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
		n := 0 // the writer's until submit has its answer
		if err = e.submit(ctx, func(b *batch) error { n = b.expireDue(name, late, now, urgent); return nil }); err != nil {
			return total, err
		}
		if total += n; n == 0 || n < len(late) {
			return total, nil
		}
	}
}

// late returns decisions of a placement whose window is over, in order, and whether its memory is exceeded.
func (e *Engine) late(name string, now int64) (late []*found, over bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p := e.state.placements[name]
	if p == nil {
		return nil, false
	}
	for r := range p.open.all() {
		if !r.isLate(now) || len(late) == maxExpiry {
			break
		}
		late = append(late, &found{record: r, was: *r, offer: e.state.offers.of(r.entry)})
	}
	return late, p.open.bytes > p.config.MemoryBytes
}

// readAhead reads the offers of decisions, from the first on, as many as one proposal takes. Deferred
// decisions need none, and a decision whose entry was removed has none.
func (e *Engine) readAhead(ctx context.Context, late []*found) ([]*found, error) {
	bytes := 0
	for i, f := range late {
		if f.was.status == deferred {
			continue
		}
		if err := f.read(ctx, e.store); err != nil && !errors.Is(err, eventlog.ErrRemoved) {
			return nil, err
		}
		if f.offer != nil {
			bytes += learner.RoundBytes(f.offer)
		}
		if bytes > maxAhead {
			return late[:i+1], nil
		}
	}
	return late, nil
}

// expireDue expires late decisions, and evicts decisions that exceed the placement's memory, in the order of
// their expiry.
func (b *batch) expireDue(name string, late []*found, now int64, urgent bool) int {
	p := b.state.placements[name]
	if p == nil {
		return 0
	}
	n := 0
	for _, f := range late {
		r := f.record
		switch {
		case b.touched[r.key()] || b.state.decisions.find(p, r.id) != r || !r.status.waits() || !r.isLate(now):
		case f.offer == nil && r.status != deferred: // the items shown are unknown
			b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
			n++
		case urgent || b.canExpire(r, f.offer):
			b.expire(r, f.offer, now)
			n++
		}
	}
	made, _ := b.makeRoom(p, p.open.bytes+b.open[p]-p.config.MemoryBytes, now, maxExpiry)
	return n + made
}
