package state

import (
	"fmt"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/page"
)

// ImportedEvents are a decision and its outcome, and their entries.
type ImportedEvents struct {
	Offer   *offer.Offer
	Events  [2]*eventlog.Event
	Entries [2][]byte
}

// Imported adds decisions and their outcomes, all or none.
func (b *Batch) Imported(v *View, list []ImportedEvents) error {
	p := v.Placement
	if b.State.Placements[p.Name] != p || p.Changed != v.Changed {
		return page.ErrStale
	}
	rounds := 0
	for _, i := range list {
		switch id := i.Offer.Decision; {
		case b.touched[decisionKey{p, id}]:
			return ErrRetryBatch
		case b.State.decisions.find(p, id) != nil:
			return fmt.Errorf("decision id %q: %w: the placement has a decision of this id", id, ErrConflict)
		}
		rounds += learner.RoundBytes(i.Offer)
	}
	if !p.Worker.HasRoom(b.rounds[p], rounds) {
		return ErrBehind
	}
	b.rounds[p] += rounds
	for _, i := range list {
		b.touched[decisionKey{p, i.Offer.Decision}] = true
		b.add(i.Events[0], i.Entries[0], nil)
		b.add(i.Events[1], i.Entries[1], i.Offer)
	}
	return nil
}
