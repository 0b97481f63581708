package decision

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// Outcome says what became of a decision of a placement: the id of the item that was taken, or
// "" for none. Once it is in the log it returns, before it is learned. An empty placement is the one that Find
// returns, with its errors.
//
// The same outcome again is nil again, and another one is ErrConflict. After the
// attribution window the round has counted as the outside option, or for nothing where
// the decision was deferred, and an item is ErrLate. Of a decision that memory had no room for the error is
// ErrEvicted. Other errors are ErrNotFound, ErrNotShown, ErrBehind, ErrStopped or that of ctx,
// after which it is to be told again.
func (e *Engine) Outcome(ctx context.Context, placement, decision, item string, now int64) error {
	placement, err := e.placementOf(placement, decision)
	if err != nil {
		return err
	}
	return e.submit(ctx, func(b *batch) error { return b.outcome(placement, decision, item, now) })
}

func (b *batch) outcome(placement, decision, item string, now int64) error {
	r, err := b.decision(placement, decision)
	if err != nil {
		return err
	}
	choice := int32(0)
	if item != "" {
		choice = int32(slices.Index(r.shown, item) + 1)
		if choice == 0 {
			return fmt.Errorf("item %q: %w in decision %q", api.Abbreviate(item, largestID), ErrNotShown, decision)
		}
	}
	switch {
	case r.status == chosen && r.choice != choice:
		return fmt.Errorf("decision %q: %w: it has another outcome already", decision, ErrConflict)
	case (r.status == expired || r.status == withdrawn) && item != "":
		return fmt.Errorf("decision %q: %w: its outcome came too late", decision, ErrLate)
	case r.status == evicted:
		return tooSmall(r.placement, decision)
	case !r.status.waits():
		return nil
	case choice > 0 && r.hasPassed(choice):
		return fmt.Errorf("decision %q: %w: a reward told that item %q was not taken", decision, ErrConflict, item)
	case r.isLate(now) && !b.canExpire(r), !r.isLate(now) && !b.room(r):
		return behind(r.placement)
	case r.isLate(now):
		b.expire(r, now)
		if item == "" {
			return nil
		}
		return fmt.Errorf("decision %q: %w: its outcome came too late", decision, ErrLate)
	}
	b.close(r, now, &eventlog.Chosen{Decision: decision, Choice: choice})
	return nil
}

// decision returns a decision that is remembered, and that nothing in the batch is about.
func (b *batch) decision(placement, id string) (*record, error) {
	p := b.state.placements[placement]
	if b.touched[decisionKey{p, id}] {
		return nil, errLater
	}
	if r := b.state.decisions.find(p, id); r != nil {
		return r, nil
	}
	if b.state.evicted.has(p, id) {
		return nil, tooSmall(p, id)
	}
	return nil, unknownDecision(id)
}

func unknownDecision(id string) error {
	return fmt.Errorf("decision %q: %w", api.Abbreviate(id, largestDecision), ErrNotFound)
}

// largestExpiry is how many decisions expire in one proposal.
const largestExpiry = 1000

// Expire ends the wait for outcomes whose attribution window is over, and of those that a placement
// whose memory was made smaller has no room for, in all placements, and returns their number.
// Call it now and then. Decisions of a learner without room wait for the next call.
func (e *Engine) Expire(ctx context.Context, now int64) (int, error) {
	total := 0
	for {
		n := 0 // the writer's until submit has its answer
		err := e.submit(ctx, func(b *batch) error { n = b.expireDue(now); return nil })
		if err != nil {
			return total, err
		}
		if total += n; n < largestExpiry {
			return total, nil
		}
	}
}

// expireDue ends the wait of the decisions of each placement whose window is over, and of those that its memory has no
// room for the oldest.
func (b *batch) expireDue(now int64) int {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
		p := b.state.placements[name]
		for _, r := range p.due.late(now, largestExpiry-n) {
			if !b.touched[r.key()] && b.canExpire(r) {
				b.expire(r, now)
				n++
			}
		}
		for r := p.open.first; r != nil && n < largestExpiry && p.open.bytes+b.open[p] > p.config.Memory; r = r.next {
			if b.touched[r.key()] {
				continue
			}
			if !b.makeRoom(r, now) {
				break
			}
			n++
		}
	}
	return n
}
