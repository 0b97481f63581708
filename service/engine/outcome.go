package engine

import (
	"context"
	"fmt"
	"math"

	"vitrine/service/api"
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
// log, before it is learned.
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
		now)
}

// Reward reports the outcome of a placement's decision as rewards of some or all items shown, for callers that observe
// no choice. A choice is drawn from the rewards,
//
//	P(item k is chosen) = v_k / max(1, Σ v)
//
// with a draw that follows from the placement's seed and the decision's id, so that an import of the same rewards draws
// the same choice. If no item is chosen and some items have no reward yet, the decision stays open for these, with the
// remaining probability,
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
		now)
}

// Correct corrects the outcome of a placement's decision, for as long as the placement remembers the decision. It
// returns when the correction is in the log. Sums of earnings change, at the time of the decision; learners, the guard and
// the intervals of experiments do not. An item that the outcome lacks counts as taken from now on.
//
// Repeating a correction under its id is a no-op. Reusing the id for a different correction returns ErrConflict, as
// does withdrawing an item that was not taken, or correcting a withdrawn sale. Other errors are *api.FieldError, ErrNotFound,
// ErrNotShown, ErrStopped and ctx's; after the last two send the correction again.
func (e *Engine) Correct(ctx context.Context, placement, decision string, c api.Correction, now int64) error {
	if err := checkCorrection(&c); err != nil {
		return err
	}
	return e.forward(ctx, &remoteCall{what: callCorrect, placement: placement, decision: decision, correction: c},
		now)
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
	if c.Value == nil {
		return nil
	}
	return api.CheckAmount("/value", *c.Value, -api.MaxAmount)
}

// Activate records that the items of a deferred decision were shown, so that its outcome can come. Activating a
// decision twice, or one that is not deferred, is a no-op. The attribution window begins with the decision: after it the
// decision is withdrawn, teaches nothing, and Activate returns ErrWithdrawn. Other errors are ErrEvicted, ErrNotFound,
// ErrStopped and ctx's.
//
// An outcome also activates a deferred decision.
func (e *Engine) Activate(ctx context.Context, placement, decision string, now int64) error {
	return e.forward(ctx, &remoteCall{what: callActivate, placement: placement, decision: decision}, now)
}

// Measure reports values of an experiment's metrics for a decision that waits for its outcome. Values of other names
// are ignored. A value may be reported again, and another value replaces it. After the outcome Measure
// returns ErrConflict. Other errors are *api.FieldError, ErrNotFound, ErrStopped or ctx's; after the last report
// them again.
func (e *Engine) Measure(ctx context.Context, placement, decision string, metrics map[string]float64, now int64) error {
	for name, v := range metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return api.Fieldf("/metrics/"+name, "%v: must be finite", v)
		}
	}
	return e.forward(ctx, &remoteCall{what: callMeasure, placement: placement, decision: decision, metrics: metrics},
		now)
}

// perform makes the change that a call is for, if this engine leads.
func (e *Engine) perform(ctx context.Context, c *remoteCall, now int64) error {
	if c.what == callActivate {
		return e.submit(ctx, func(b *state.Batch) error { return b.Activate(c.placement, c.decision, now) })
	}
	return e.concerning(ctx, c.placement, c.decision, func(b *state.Batch, f *state.Lookup) error {
		switch c.what {
		case callOutcome:
			return b.Outcome(f.Record, f.Offer, c.choices, now)
		case callReward:
			return b.Reward(f.Record, f.Offer, c.rewards, now)
		case callCorrect:
			return b.Correct(f.Record, f.Offer, &c.correction, now)
		}
		return b.Measure(f.Record, c.metrics, now)
	})
}
