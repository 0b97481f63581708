package state

import (
	"slices"

	"vitrine/service/learner"
	"vitrine/service/setup"
)

// NewWorker builds a learner.
func NewWorker(build learner.Build, c *setup.Config) (*Worker, error) {
	l, err := learner.New(build, c)
	if err != nil {
		return nil, err
	}
	return &Worker{Learner: l, Config: c}, nil
}

// begin notes the entry at which the learner begins.
func (w *Worker) begin(sequence uint64) {
	w.began = sequence
	w.Begin(sequence)
}

// rounds counts the rounds that a learner has learned or will learn.
func (w *Worker) rounds() uint64 {
	seen := w.Progress()
	return seen.Learned + seen.Lag + seen.Waiting
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

// all returns the placement's learner, its second learner and the variants' learners.
func (p *Placement) all() []*Worker { return append(p.lasting(), p.challengers()...) }

// lasting are the learners, and the second one.
func (p *Placement) lasting() []*Worker {
	if p.Relearning != nil {
		return append(p.Learners(), p.Relearning.Worker)
	}
	return p.Learners()
}

// Learners are the one that decides, and the former ones.
func (p *Placement) Learners() []*Worker { return append([]*Worker{p.Worker}, p.former...) }

// deciders are the placement's learner and the variants' own.
func (p *Placement) deciders() []*Worker { return append([]*Worker{p.Worker}, p.challengers()...) }

// challengers are the variants' own learners.
func (p *Placement) challengers() (list []*Worker) {
	if p.Experiment == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Experiment.workers), func(w *Worker) bool { return w == nil })
}

func (s *State) start(p *Placement, w *Worker) {
	log, name := s.Log, p.Name
	s.run(func() { w.Run(log, name) })
}

// isAudit reports whether the state belongs to an [Audit]. It sees no rounds, so its alarms do not pause learning.
func (s *State) isAudit() bool { return s.Log == nil }
