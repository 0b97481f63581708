package state

import (
	"fmt"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Apply applies the event of the next entry to the state. Only Apply changes the state, for live traffic and in a
// replay alike. An event that is impossible in this state is an error and changes nothing.
//
// It hands rounds to the placement's learner, blocking only while the learner's queue is full.
//
// A round is made from the decision's offer, which the caller must have read back for an event that closes reports.
// Without the offer the decision is counted, but not learned.
func (s *State) Apply(entry []byte, e *eventlog.Event, o *offer.Offer) error {
	next := s.Position.After(entry)
	if err := s.applyBody(next.Sequence, e, o); err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", next.Sequence, e.Placement, err)
	}
	s.Position = next
	if p := s.Placements[e.Placement]; p != nil {
		s.restock(p)
		for _, c := range p.comparisons() {
			if c != nil {
				c.Advance(e.Time, p.Earnings.Guard.Watch.Cohort())
			}
		}
		s.advance(p, e.Time, next.Sequence)
		p.follow(next.Sequence, e)
	}
	return nil
}

func (s *State) applyBody(sequence uint64, e *eventlog.Event, o *offer.Offer) error {
	if put, ok := e.Body.(*eventlog.PlacementPut); ok {
		return s.put(sequence, e.Time, e.Placement, put.Config)
	}
	p := s.Placements[e.Placement]
	if p == nil {
		return fmt.Errorf("the placement: %w", ErrNotFound)
	}
	at := e.Time
	switch b := e.Body.(type) { // a table of events
	case *eventlog.PlacementDeleted:
		s.delete(p)
		return nil
	case *eventlog.Offered:
		return s.offer(p, sequence, at, b, o)
	case *eventlog.Chosen:
		return s.chosen(p, sequence, at, b, o)
	case *eventlog.Expired:
		return s.expired(p, sequence, at, b, o)
	case *eventlog.Evicted:
		return s.evicted(p, b)
	case *eventlog.Activated:
		return s.activated(p, b)
	case *eventlog.ItemsDeclined:
		return s.declined(p, b)
	case *eventlog.Measured:
		return s.measured(p, b)
	case *eventlog.ClockMoved:
		return s.clockMoved(p, sequence, at, b)
	case *eventlog.Corrected:
		return s.correct(p, at, b)
	case *eventlog.ItemsChanged:
		return s.changeItems(p, sequence, b)
	case *eventlog.CategoryValuesAdded:
		return s.addValues(p, b)
	case *eventlog.VersionSaved:
		return s.keepAt(p, b.Version, version{time: at, note: b.Note, routine: b.Note == ""})
	case *eventlog.AlarmCleared:
		return s.alarmCleared(p, sequence, b)
	case *eventlog.LearnerRolledBack:
		return s.rollBack(p, sequence, at, b)
	case *eventlog.LearnerAdopted:
		return s.adopt(p, sequence, at, b)
	case *eventlog.LearnerReset:
		return s.reset(p, sequence, at, b)
	case *eventlog.RelearningBegun:
		return s.beginRelearning(p, sequence, at, b)
	case *eventlog.LearnerSwapped:
		return s.swap(p, sequence, at, b)
	case *eventlog.RelearningEnded:
		return s.relearningEnded(p)
	}
	return fmt.Errorf("an event of type %T", e.Body)
}

// PublishAfter publishes the placements that an event may have changed. A replay publishes only once, at its end.
func (s *State) PublishAfter(e *eventlog.Event) {
	switch e.Body.(type) {
	case *eventlog.Offered, *eventlog.Chosen, *eventlog.Expired, *eventlog.Evicted, *eventlog.Activated,
		*eventlog.ItemsDeclined, *eventlog.Measured, *eventlog.Corrected, *eventlog.ItemsChanged:
		s.publish(s.Placements[e.Placement])
	default:
		s.PublishAll()
	}
}
