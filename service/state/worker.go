package state

import (
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// Worker is a placement's learner, with the engine's record of it.
type Worker struct {
	*learner.Learner
	Config *setup.Config // of the placement, while the learner decides
	began  uint64        // the entry that began the learner
}

// NewWorker builds a learner.
func NewWorker(build learner.Build, c *setup.Config) (*Worker, error) {
	l, err := learner.New(build, c)
	if err != nil {
		return nil, err
	}
	return &Worker{Learner: l, Config: c}, nil
}

// begin notes the entry at which the learner begins, before it has learned.
func (w *Worker) begin(sequence uint64) {
	w.began = sequence
	w.Begin(sequence)
}

// rounds is how many rounds a learner has learned or is about to.
func (w *Worker) rounds() uint64 {
	seen := w.Progress()
	return seen.Learned + seen.Lag
}

// all are the learners, the second one, and those of variants.
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

// Wake wakes the learners that have got rounds. Call it after some entries, so that a learner is not woken for
// each of its rounds.
func (s *State) Wake() {
	for _, w := range s.pendingWake {
		w.Wake()
	}
	clear(s.pendingWake)
	s.pendingWake = s.pendingWake[:0]
}

// Reached returns channels that learners close when they have learned what they were given and published their policies.
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

// Unready reports whether the learner that decides must learn before it can: it had retired, or learns from the log.
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
