package state

import (
	"fmt"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Outcome records a decision's outcome: the items that were taken, if any.
func (b *Batch) Outcome(r *Record, o *offer.Offer, choices []api.Choice, now int64) error {
	end, wrong := o.Outcome(choices)
	if wrong >= 0 {
		return r.notShown(choices[wrong].Item)
	}
	counts := r.Status == Deferred || r.Status == withdrawn || r.Status == evicted // from now on
	switch {
	case (r.Status == chosen || r.Status == late) && (int32(r.choice) != end.Choice ||
		!slices.Equal(r.rare().basket, end.Basket)):
		return fmt.Errorf("decision %q: %w: it has another outcome already; report what was bought or returned "+
			"since as corrections", r.id, ErrConflict)
	case r.Status == chosen:
		return nil
	case r.Status == late:
		return lateOutcome(r)
	}
	for _, t := range (&offer.Closed{Offer: o, Choice: int(end.Choice), Basket: end.Basket}).Takes() {
		if r.Status.Waits() && r.hasPassed(int(t.Place)) {
			return fmt.Errorf("decision %q: %w: a reward has reported that item %q was not taken", r.id, ErrConflict,
				o.IDs()[t.Place-1])
		}
	}
	switch {
	case r.Status.Waits() && !r.isLate(now):
		b.choose(r, o, end, now)
		return nil
	case r.Status.Waits():
		b.expire(r, o, now)
	}
	b.settle(r, o, end, counts, now)
	return lateOutcome(r)
}

func (r *Record) notShown(item string) error {
	return fmt.Errorf("item %q: %w in decision %q: report it for the decision that showed it, if there is one",
		api.Abbreviate(item, 200), ErrNotShown, r.id)
}

func lateOutcome(r *Record) error { return fmt.Errorf("decision %q: %w", r.id, ErrLate) }

// Reward draws the outcome of a decision from rewards, or notes the items that were not taken.
func (b *Batch) Reward(r *Record, o *offer.Offer, rewards []api.Reward, now int64) error {
	value := make([]float64, r.shown) // by place
	reported := &eventlog.ItemsDeclined{Decision: r.id}
	for _, w := range rewards {
		place := o.Place(w.Item)
		if place == 0 {
			return r.notShown(w.Item)
		}
		if !r.hasPassed(place) && !slices.Contains(reported.Items, int32(place)) {
			value[place-1] = w.Value
			reported.Reward += w.Value
			reported.Items = append(reported.Items, int32(place))
		}
	}
	switch {
	case r.Status == evicted:
		return tooSmall(r.placement, r.id)
	case !r.Status.Waits(), len(reported.Items) == 0:
		return nil
	case r.isLate(now):
		b.expire(r, o, now)
		return nil
	}
	before := r.countPassed()
	place := offer.DrawReward(r.placement.Config.Seed, r.id, before, value, r.rare().reported)
	if place == 0 && before+len(reported.Items) < int(r.shown) {
		slices.Sort(reported.Items)
		reported.Reward = min(reported.Reward, 1-r.rare().reported)
		b.note(r, nil, now, reported)
		return nil
	}
	b.choose(r, o, &eventlog.Chosen{Decision: r.id, Choice: place}, now)
	return nil
}

// Activate lets the outcome of a deferred decision come.
func (b *Batch) Activate(placement, decision string, now int64) error {
	r, err := b.decision(placement, decision)
	if err != nil {
		return err
	}
	if r.Status == Deferred && !r.isLate(now) {
		b.note(r, nil, now, &eventlog.Activated{Decision: decision})
		return nil
	}
	switch r.Status {
	case Deferred:
		b.expire(r, nil, now)
	case withdrawn:
	case evicted:
		return tooSmall(r.placement, decision)
	default:
		return nil
	}
	return fmt.Errorf("decision %q: %w", decision, ErrWithdrawn)
}

// decision returns a remembered decision that the batch does not change.
func (b *Batch) decision(placement, id string) (*Record, error) {
	p := b.State.Placements[placement]
	if b.touched[decisionKey{p, id}] {
		return nil, ErrRetryBatch
	}
	if r := b.State.decisions.find(p, id); r != nil {
		return r, nil
	}
	return nil, b.State.Missing(p, id)
}

// choose gives a decision its outcome. A learner without room for the round does not learn from it: its
// slowness is no reason to refuse an outcome.
func (b *Batch) choose(r *Record, o *offer.Offer, end *eventlog.Chosen, now int64) {
	end.Unlearned = !b.room(r, o)
	b.close(r, o, now, end)
}

func (b *Batch) expire(r *Record, o *offer.Offer, now int64) {
	b.close(r, o, now, &eventlog.Expired{Decision: r.id, Unlearned: !b.canExpire(r, o)})
}

// settle applies a late outcome to an ended decision.
func (b *Batch) settle(r *Record, o *offer.Offer, end *eventlog.Chosen, counts bool, now int64) {
	body := r.corrected(o, end.Choice, 0)
	body.Basket, body.Counts, body.Viewed = end.Basket, counts, counts && o.Deferred
	body.Value = (&offer.Closed{Offer: o, Choice: int(end.Choice), Basket: end.Basket}).Earned()
	b.note(r, nil, now, body)
}
