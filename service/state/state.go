package state

import (
	"fmt"
	"maps"
	"runtime"
	"sync/atomic"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// State is the fold of the log's entries. Only its single writer may call methods that change it. Readers take its
// lock, or use the published views.
type State struct {
	Build      func(setup.Spec) (vitrine.Learner, error)
	Published  atomic.Pointer[map[string]*Placement] // placements, for callers without the engine's lock
	Position   eventlog.Position                     // after the last entry applied
	machines   []string                              // kinds of machines that learned it, sorted: see SnapshotMachines
	BeginAgain bool                                  // learners with an unreadable saved state begin again
	Placements map[string]*Placement
	decisions  index              // the remembered decisions of all placements
	Offers     offer.Recent       // of the last of them
	run        func(learn func()) // starts a learner, which learns until it is stopped
	Log        Log                // from which second learners learn; nil in audits
	relearned  []relearned        // the second learners that there were

	Size        func(setup.Spec) (setup.Size, error) // of a learner; nil is unknown
	Budget      *budget.Budget
	Ready       *Prepared         // prepared for the next PlacementPut; if nil, put prepares it
	Refit       *catalogue.Refit  // made for the next change of features
	Lost        bool              // whether the log lacks entries that the next RelearningBegun reads
	Staged      *catalogue.Staged // the next ItemsChanged, already applied to the catalogue; if nil, Apply applies it
	pendingWake []*Worker         // workers with new rounds that have not been woken yet
}

// NewState returns the state before the first entry. run starts a learner, which learns until it is stopped.
func NewState(build func(setup.Spec) (vitrine.Learner, error), run func(learn func())) *State {
	s := &State{Build: build, run: run, machines: []string{runtime.GOARCH}, Placements: map[string]*Placement{},
		decisions: index{}}
	s.PublishAll()
	return s
}

// isAudit reports whether the state belongs to an [Audit]. It sees no rounds, so its alarms do not pause learning.
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

// Wake wakes the learners with new rounds. Call it after several entries, not for each round.
func (s *State) Wake() {
	for _, w := range s.pendingWake {
		w.Wake()
	}
	clear(s.pendingWake)
	s.pendingWake = s.pendingWake[:0]
}

// Reached returns channels that learners close once they have learned everything given and published their policies.
func (s *State) Reached(which func(p *Placement, w *Worker) bool) (all []<-chan struct{}) {
	for _, p := range s.Placements {
		for _, w := range p.all() {
			if which(p, w) {
				all = append(all, w.Reached())
			}
		}
	}
	return all
}

// Unready reports whether a learner must learn before it can decide: it had retired, or learns from the log.
func Unready(p *Placement, w *Worker) bool {
	return w == p.Worker && (w.Current().Policy == nil || w.Replaying().From > 0)
}

// Stop stops all learners.
func (s *State) Stop() {
	for _, p := range s.Placements {
		for _, w := range p.all() {
			w.Stop()
		}
	}
}

// publish makes the placement's state the view of later decisions. An alarm can change the view after any event.
func (s *State) publish(p *Placement) {
	v := View{
		Placement: p, Changed: p.Changed, Worker: p.Worker, fallback: p.fallsBack(),
		Page: page.View{Name: p.Name, Born: p.born, Config: p.Config, Catalogue: s.ItemsOf(p),
			Policy: page.Policy{Config: p.Worker.Config}},
	}
	v.Page.ByBaseline = v.fallback == api.FallbackBaseline
	v.Page.Holdout, v.Page.Routes = p.routes()
	if x := p.Experiment; x != nil {
		v.Challengers, v.took = x.workers, x.took
	}
	before := p.View.Load()
	if before == nil || before.Changed != v.Changed || before.Worker != v.Worker || before.fallback != v.fallback ||
		before.Page.Config != v.Page.Config || before.Page.Catalogue != v.Page.Catalogue ||
		before.Page.Holdout != v.Page.Holdout || before.Page.Routes != v.Page.Routes {
		p.View.Store(new(v))
	}
}

// PublishAll publishes all placements, and the list of placements.
func (s *State) PublishAll() {
	for _, p := range s.Placements {
		s.publish(p)
	}
	s.Published.Store(new(maps.Clone(s.Placements)))
}
