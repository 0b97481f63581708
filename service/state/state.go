package state

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"vitrine"
	"vitrine/service/budget"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// State is the fold of the log's entries. It has one writer, which alone calls its methods that change it. Readers lock it out, or read
// the published views.
type State struct {
	Build      func(setup.Spec) (vitrine.Learner, error)
	Published  atomic.Pointer[map[string]*Placement] // placements, for callers without the engine's lock
	Position   eventlog.Position                     // after the last entry applied
	machines   []string                              // kinds of machines that have learned, sorted: see SnapshotMachines
	BeginAgain bool                                  // learners whose saved state cannot be read
	Placements map[string]*Placement
	decisions  index              // the remembered decisions of all placements
	Offers     recentOffers       // of the last of them
	run        func(learn func()) // starts a learner, which learns until it is stopped
	Log        Log                // from which second learners learn; nil in audits
	relearned  []relearned        // the second learners that there were

	Size        func(setup.Spec) (setup.Size, error) // of a learner; nil is unknown
	Budget      *budget.Budget
	Ready       *Prepared // prepared for the next PlacementPut; if nil, put prepares it
	Refit       *Refit    // made for the next change of features
	Staged      *Staged   // the next ItemsChanged, which the engine has applied to the catalogue; nil applies it
	pendingWake []*Worker // workers with new rounds that have not been woken yet
}

// NewState returns the state before the first entry. run starts a learner, which learns until it is stopped.
func NewState(build func(setup.Spec) (vitrine.Learner, error), run func(learn func())) *State {
	s := &State{Build: build, run: run, machines: []string{runtime.GOARCH}, Placements: map[string]*Placement{}, decisions: index{}}
	s.PublishAll()
	return s
}

// isAudit reports whether the state is that of an [Audit], which has no rounds and so no alarms.
func (s *State) isAudit() bool { return s.Log == nil }

// Named returns the placement of a name, or ErrNotFound.
func (s *State) Named(name string) (*Placement, error) {
	if p := s.Placements[name]; p != nil {
		return p, nil
	}
	return nil, UnknownPlacement(name)
}

// UnknownPlacement returns the error of a placement that is not there.
func UnknownPlacement(name string) error { return fmt.Errorf("placement %q: %w", name, ErrNotFound) }

// Apply applies the event of the next entry to the state. Only apply changes the state, both for live traffic
// and for a replay. An event that is impossible in this state is an error and changes nothing.
//
// It passes rounds to the placement's learner. It waits for room in the learner's queue, but not for the
// learning.
//
// A round is made from the decision's offer, which the caller has read back for an event that closes reports.
// Without the offer nothing is learned, and only decisions are counted.
func (s *State) Apply(entry []byte, e *eventlog.Event, o *offer.Offer) error {
	next := s.Position.After(entry)
	if err := s.applyBody(next.Sequence, e, o); err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", next.Sequence, e.Placement, err)
	}
	s.Position = next
	if p := s.Placements[e.Placement]; p != nil {
		s.restock(p)
		if p.Experiment != nil {
			p.Experiment.Advance(e.Time, p.Earnings.Guard.Watch.Cohort())
		}
		s.advance(p, e.Time, next.Sequence)
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
		return s.passed(p, b)
	case *eventlog.ClockMoved:
		return s.clockMoved(p, sequence, at, b)
	case *eventlog.Corrected:
		return s.correct(p, b)
	case *eventlog.ItemsChanged:
		return s.changeItems(p, sequence, b)
	case *eventlog.CategoryValuesAdded:
		return s.valuesSeen(p, b)
	case *eventlog.SnapshotTaken:
		return s.keepAt(p, b.Version, version{time: at, routine: true})
	case *eventlog.VersionSaved:
		return s.keepAt(p, b.Version, version{time: at, note: b.Note})
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
		return s.exchange(p, sequence, at, b)
	case *eventlog.RelearningEnded:
		return s.relearningEnded(p)
	}
	return fmt.Errorf("an event of type %T", e.Body)
}

// Log is an event log that also reads single entries.
type Log interface {
	eventlog.Store
	eventlog.Reader
}

// ContinueNumbers gives new decisions numbers after those in the log.
func (s *State) ContinueNumbers() {
	for _, p := range s.Placements {
		p.LastIssued.Store(p.lastLogged)
	}
}
