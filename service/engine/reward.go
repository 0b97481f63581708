package engine

import (
	"context"
	"fmt"
	"math"

	"vitrine/service/api"
	"vitrine/service/state"
)

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
	for k, r := range rewards {
		field := fmt.Sprintf("/rewards/%d/value", k)
		switch {
		case math.IsNaN(r.Value):
			return api.Fieldf(field, "is missing")
		case !(r.Value >= 0 && r.Value <= 1):
			return api.Fieldf(field, "%v: must be in [0, 1]", r.Value)
		}
	}
	return e.forward(ctx, &remoteCall{what: callReward, placement: placement, decision: decision, rewards: rewards}, now, func(now int64) error {
		return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error { return b.Reward(f.Record, f.Offer, rewards, now) })
	})
}
