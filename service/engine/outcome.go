package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Outcome is Choose for one unit of one item at its revenue. item is "" if no item was taken.
func (e *Engine) Outcome(ctx context.Context, placement, decision, item string, now int64) error {
	var choices []api.Choice
	if item != "" {
		choices = []api.Choice{{Item: item}}
	}
	return e.Choose(ctx, placement, decision, choices, now)
}

// Choose reports the outcome of a placement's decision: the items taken, or none. It returns when the outcome is in the
// log, before it is learned. An empty placement means the result of Find, with its errors.
//
// Reporting the same outcome twice is a no-op; a different one returns ErrConflict. If the decision ended without an
// outcome, because its attribution window is over or because it left memory, the outcome is recorded and its revenue
// counts, for as long as the placement remembers the decision. The learner does not learn from it, and Choose returns
// ErrLate to say so. For an evicted and forgotten decision it returns ErrEvicted. Other errors are *api.FieldError,
// ErrNotFound, ErrNotShown, ErrStopped and ctx's; after the last two report the outcome again.
func (e *Engine) Choose(ctx context.Context, placement, decision string, choices []api.Choice, now int64) error {
	if err := setup.CheckChoices(choices); err != nil {
		return err
	}
	return e.forward(ctx, &remoteCall{what: callOutcome, placement: placement, decision: decision, choices: choices},
		now, func(now int64) error {
			return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error {
				return b.Outcome(f.Record, f.Offer, choices, now)
			})
		})
}

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
		if err = e.submit(ctx, func(b *state.Batch) error {
			n = b.ExpireDue(name, late, now, urgent)
			return nil
		}); err != nil {
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

// Reward reports the outcome of a placement's decision as rewards of some or all items shown, for callers that observe
// no choice. An empty placement means the result of Find, with its errors. A choice is drawn from the rewards,
//
//	P(item k is chosen) = v_k / max(1, Σ v)
//
// with a draw that follows from the placement's seed and the decision's id, so that an import of the same rewards draws
// the same choice. The choice equals the rewards in expectation, and rewards of 0 and 1 are exact. If no item is chosen
// and some items have no reward yet, the decision stays open for these, with the remaining probability,
//
//	P(item k is chosen | none of the m reported before) = v_k / max(1 − v_1 − … − v_m, Σ v)
//
// with Σ over the items of this call. Only an item's first reward counts. Rewards after the outcome or the attribution
// window change nothing. Errors are *api.FieldError for a value, ErrNotFound, ErrNotShown, ErrEvicted, ErrStopped and
// ctx's; after the last two report the rewards again.
func (e *Engine) Reward(ctx context.Context, placement, decision string, rewards []api.Reward, now int64) error {
	if len(rewards) > setup.MaxSize {
		return api.Fieldf("/rewards", "has %d rewards, and a page shows at most %d items: report each item once",
			len(rewards), setup.MaxSize)
	}
	for k, r := range rewards {
		field := fmt.Sprintf("/rewards/%d/value", k)
		switch {
		case math.IsNaN(r.Value):
			return api.Fieldf(field, "is missing")
		case !(r.Value >= 0 && r.Value <= 1):
			return api.Fieldf(field, "%v: must be in [0, 1]", r.Value)
		}
	}
	return e.forward(ctx, &remoteCall{what: callReward, placement: placement, decision: decision, rewards: rewards},
		now, func(now int64) error {
			return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error {
				return b.Reward(f.Record, f.Offer, rewards, now)
			})
		})
}

// Correct corrects the outcome of a placement's decision, for as long as the placement remembers the decision. It
// returns when the correction is in the log. Sums of earnings change, in the era and at the time of the decision;
// learners, the guard and the intervals of experiments do not. An item that the outcome lacks counts as taken from now on.
// An empty placement means the result of Find, with its errors.
//
// Repeating a correction under its id is a no-op. Reusing the id for a different correction returns ErrConflict, as
// does withdrawing an item that was not taken, or correcting a withdrawn sale. Other errors are *api.FieldError, ErrNotFound,
// ErrNotShown, ErrStopped and ctx's; after the last two send the correction again.
func (e *Engine) Correct(ctx context.Context, placement, decision string, c api.Correction, now int64) error {
	if err := checkCorrection(&c); err != nil {
		return err
	}
	return e.forward(ctx, &remoteCall{what: callCorrect, placement: placement, decision: decision, correction: c}, now,
		func(now int64) error {
			return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error {
				return b.Correct(f.Record, f.Offer, &c, now)
			})
		})
}

func checkCorrection(c *api.Correction) error {
	if c.ID == "" {
		return api.Fieldf("/id", "is missing: it makes sure that a correction that is sent twice counts once")
	}
	if c.Item == "" {
		return api.Fieldf("/item", "is missing: the id of the item that was bought or returned")
	}
	if err := setup.CheckDecision("/id", c.ID); err != nil {
		return err
	}
	if v := c.Value; v != nil && !(math.Abs(*v) <= vitrine.MaxRevenue) {
		return api.Fieldf("/value", "%v: must be from %v to %v", *v, -vitrine.MaxRevenue, vitrine.MaxRevenue)
	}
	return nil
}

// Activate records that the items of a deferred decision were shown, so that its outcome can come. An empty placement
// means the result of Find, with its errors. Activating a decision twice, or one that is not deferred, is a no-op. The
// attribution window begins with the decision: after it the decision is withdrawn, teaches nothing, and Activate
// returns ErrWithdrawn. Other errors are ErrEvicted, ErrNotFound, ErrStopped and ctx's.
//
// An outcome also activates a deferred decision.
func (e *Engine) Activate(ctx context.Context, placement, decision string, now int64) error {
	return e.forward(ctx, &remoteCall{what: callActivate, placement: placement, decision: decision}, now,
		func(now int64) error {
			placement, err := e.placementOf(ctx, placement, decision)
			if err != nil {
				return err
			}
			return e.submit(ctx, func(b *state.Batch) error { return b.Activate(placement, decision, now) })
		})
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
