package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Reward reports the outcome of a decision of a placement as rewards of some or all items shown, for callers
// that observe no choice. An empty placement means the one that Find returns, with its errors. A choice is
// drawn from the rewards,
//
//	P(item k is chosen) = v_k / max(1, Σ v)
//
// with a draw that follows from the placement's seed and the decision's id, so that an import of the same rewards
// draws the same choice. The choice equals the rewards in expectation, and rewards of 0 and 1 are exact. If no item is chosen and some items have no reward yet, the decision stays open for these,
// with the remaining probability,
//
//	P(item k is chosen | none of the m reported before) = v_k / max(1 − v_1 − … − v_m, Σ v)
//
// with Σ over the items of this call. Only the first reward of an item counts. Rewards after the outcome or
// the attribution window change nothing. Errors are *api.FieldError for a value, ErrNotFound, ErrNotShown,
// ErrEvicted, ErrStopped or that of ctx; after the last two report the rewards again.
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
	return e.ask(ctx, &remoteCall{what: callReward, placement: placement, decision: decision, rewards: rewards}, func() error {
		return e.concerning(ctx, placement, decision, func(b *batch, f *found) error { return b.reward(f.record, f.offer, rewards, now) })
	})
}

func (b *batch) reward(r *record, o *offer.Offer, rewards []api.Reward, now int64) error {
	value := make([]float64, r.shown) // by place
	reported := &eventlog.ItemsDeclined{Decision: r.id}
	for _, w := range rewards {
		place := o.Place(w.Item)
		if place == 0 {
			return fmt.Errorf("item %q: %w in decision %q", api.Abbreviate(w.Item, setup.MaxID), ErrNotShown, r.id)
		}
		if !r.hasPassed(place) && !slices.Contains(reported.Items, int32(place)) {
			value[place-1] = w.Value
			reported.Reward += w.Value
			reported.Items = append(reported.Items, int32(place))
		}
	}
	switch {
	case r.status == evicted:
		return tooSmall(r.placement, r.id)
	case !r.status.waits(), len(reported.Items) == 0:
		return nil
	case r.isLate(now):
		b.expire(r, o, now)
		return nil
	}
	before := r.countPassed()
	place := offer.DrawReward(r.placement.config.Seed, r.id, before, value, r.reported())
	if place == 0 && before+len(reported.Items) < int(r.shown) {
		slices.Sort(reported.Items)
		reported.Reward = min(reported.Reward, 1-r.reported())
		b.touched[r.key()] = true
		b.encode(&eventlog.Event{Time: now, Placement: r.placement.name, Body: reported}, nil)
		return nil
	}
	b.choose(r, o, place, now)
	return nil
}
