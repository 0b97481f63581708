package decision

import (
	"context"
	"fmt"
	"slices"

	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// Reward is what an item that was shown has earned, as a share of a choice.
type Reward struct {
	Item  string
	Value float64 // in [0, 1]
}

// Reward tells the outcome of a decision of a placement by rewards of items shown, all of them or
// some, for those who have no choices to tell of. An empty placement is the one that Find returns, with its errors. They become a choice by chance,
//
//	P(item k is chosen) = v_k / max(1, Σ v)
//
// with a draw of the decision's own: the choice is the rewards in expectation,
// and rewards of 0 and 1 are exact. Where none is chosen, and nothing was told yet of
// some items, the decision stays open for these, of which the share that is left
// can be earned,
//
//	P(item k is chosen | none of the m told before) = v_k / max(1 − v_1 − … − v_m, Σ v)
//
// with Σ over those of this call. The first reward of an item counts. Those that come
// after the outcome, or after the attribution window, change nothing. Errors are
// *api.FieldError for a value, ErrNotFound, ErrNotShown, ErrEvicted, ErrBehind, ErrStopped or that of
// ctx, after which it is to be told again.
func (e *Engine) Reward(ctx context.Context, placement, decision string, rewards []Reward, now int64) error {
	for k, r := range rewards {
		if !(r.Value >= 0 && r.Value <= 1) {
			return api.Fieldf(fmt.Sprintf("/%d/value", k), "%v: must be in [0, 1]", r.Value)
		}
	}
	placement, err := e.placementOf(placement, decision)
	if err != nil {
		return err
	}
	return e.submit(ctx, func(b *batch) error { return b.reward(placement, decision, rewards, now) })
}

func (b *batch) reward(placement, decision string, rewards []Reward, now int64) error {
	r, err := b.decision(placement, decision)
	if err != nil {
		return err
	}
	value := make([]float64, len(r.shown)) // by place
	told := &eventlog.Passed{Decision: decision}
	for _, w := range rewards {
		at := slices.Index(r.shown, w.Item)
		if at < 0 {
			return fmt.Errorf("item %q: %w in decision %q", api.Abbreviate(w.Item, largestID), ErrNotShown, decision)
		}
		if place := int32(at + 1); !r.hasPassed(place) && !slices.Contains(told.Items, place) {
			value[at] = w.Value
			told.Reward += w.Value
			told.Items = append(told.Items, place)
		}
	}
	switch {
	case r.status == evicted:
		return tooSmall(r.placement, decision)
	case !r.status.waits(), len(told.Items) == 0:
		return nil
	case r.isLate(now) && !b.canExpire(r), !r.isLate(now) && !b.room(r):
		return behind(r.placement)
	case r.isLate(now):
		b.expire(r, now)
		return nil
	}
	before := r.countPassed()
	place := r.draw(before, value, told.Reward)
	if place == 0 && before+len(told.Items) < len(r.shown) {
		slices.Sort(told.Items)
		told.Reward = min(told.Reward, 1-r.told)
		b.touched[r.key()] = true
		b.encode(&eventlog.Event{Time: now, Placement: r.placement.name, Body: told})
		return nil
	}
	b.close(r, now, &eventlog.Chosen{Decision: decision, Choice: place})
	return nil
}

// draw returns the place that is chosen, 0 for none, of rewards with the given
// sum. It is the draw after those for so many items before.
func (r *record) draw(before int, value []float64, sum float64) int32 {
	rng := stream.New(r.placement.config.Seed, int(r.number), stream.Rewards)
	for range before {
		rng.Float64()
	}
	left := rng.Float64() * max(1-r.told, sum)
	last := int32(0)
	for at, v := range value {
		if v == 0 {
			continue
		}
		last = int32(at + 1)
		if left -= v; left < 0 {
			return last
		}
	}
	if sum >= 1-r.told { // but for rounding it would have been one of them
		return last
	}
	return 0
}

// hasPassed reports whether it was told that the item at a place, from 1 on, was not taken.
func (r *record) hasPassed(place int32) bool { return r.passed != nil && r.passed[place-1] }

func (r *record) countPassed() (n int) {
	for _, p := range r.passed {
		if p {
			n++
		}
	}
	return n
}

// pass notes items that were not taken. Some must be left that can be.
func (r *record) pass(p *eventlog.Passed) error {
	told := r.told + p.Reward
	if told > 1 || r.countPassed()+len(p.Items) >= len(r.shown) {
		return fmt.Errorf("of the %d items of decision %q %v are passed with a reward of %v, after %d with %v", len(r.shown), r.id, p.Items, p.Reward, r.countPassed(), r.told)
	}
	for _, place := range p.Items {
		if int(place) > len(r.shown) || r.hasPassed(place) {
			return fmt.Errorf("item %d of the %d of decision %q is not there to be passed", place, len(r.shown), r.id)
		}
	}
	if r.passed == nil {
		r.passed = make([]bool, len(r.shown))
	}
	for _, place := range p.Items {
		r.passed[place-1] = true
	}
	r.told = told
	r.status = open
	return nil
}
