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

// begin notes the entry at which the learner begins.
func (w *Worker) begin(sequence uint64) {
	w.began = sequence
	w.Begin(sequence)
}

// rounds counts the rounds that a learner has learned or will learn soon.
func (w *Worker) rounds() uint64 {
	seen := w.Progress()
	return seen.Learned + seen.Lag
}
