package engine

import (
	"context"
	"math"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Correct corrects the outcome of a placement's decision, for as long as the placement remembers the decision. It
// returns when the correction is in the log. Sums of earnings change, in the era and at the time of the decision;
// learners, the guard and the intervals of experiments do not. An empty placement means the result of Find, with its
// errors.
//
// Repeating a correction under its id is a no-op. Reusing the id for a different correction returns ErrConflict, as
// does correcting an item that was not taken, or a withdrawn sale. Other errors are *api.FieldError, ErrNotFound,
// ErrNotShown, ErrStopped and ctx's; after the last two send the correction again.
func (e *Engine) Correct(ctx context.Context, placement, decision string, c api.Correction, now int64) error {
	if err := checkCorrection(&c); err != nil {
		return err
	}
	return e.forward(ctx, &remoteCall{what: callCorrect, placement: placement, decision: decision, correction: c}, now, func(now int64) error {
		return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error { return b.Correct(f.Record, f.Offer, &c, now) })
	})
}

func checkCorrection(c *api.Correction) error {
	if c.ID == "" {
		return api.Fieldf("/id", "is missing: it makes sure that a correction that is sent twice counts once")
	}
	if err := setup.CheckDecision("/id", c.ID); err != nil {
		return err
	}
	if v := c.Value; v != nil && !(math.Abs(*v) <= vitrine.MaxRevenue) {
		return api.Fieldf("/value", "%v: must be from %v to %v", *v, -vitrine.MaxRevenue, vitrine.MaxRevenue)
	}
	return nil
}
