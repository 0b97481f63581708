package bandit

import (
	"vitrine"
	"vitrine/internal/scratch"
	"vitrine/internal/state"
)

// learner is what the learners of this package share. It checks and counts the rounds, keeps a policy
// until the next round, and saves and restores the state. A learner embeds it and is its self.
type learner struct {
	p        Problem
	identity identity
	self     algorithm
	places   places

	rounds int            // observed so far, t − 1
	policy vitrine.Policy // π_t; nil if it must be made again

	rows scratch.Matrix
}

// algorithm is what a learner makes of its rounds.
type algorithm interface {
	// learn learns from a valid round, which is already counted in rounds. With position effects it
	// has the features of the places, and only the items shown.
	learn(r vitrine.Round)
	// freeze returns the policy of the coming round. It must not change when the learner learns.
	freeze() vitrine.Policy
	// encode appends the state to a snapshot.
	encode(e *state.Encoder)
	// decode reads a state, saved after a number of rounds. It changes
	// nothing: the function that it returns makes the state that of the learner, and is called only
	// if the snapshot has no errors. They are reported to d.
	decode(d *state.Decoder, rounds int) (restore func())
}

// Observe implements vitrine.Learner.
func (l *learner) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.Features); err != nil {
		return err
	}
	l.rounds++
	l.self.learn(l.places.round(&l.rows, r))
	l.policy = nil
	return nil
}

// Policy implements vitrine.Learner.
func (l *learner) Policy() vitrine.Policy {
	if l.policy == nil {
		l.policy = l.self.freeze()
	}
	return l.policy
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (l *learner) MarshalBinary() ([]byte, error) {
	e := state.NewEncoder(l.identity.String())
	e.Count(l.rounds)
	l.self.encode(e)
	return e.Bytes()
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It returns an error, and leaves the learner
// unchanged, if the snapshot is damaged or has another problem, utility or options.
func (l *learner) UnmarshalBinary(data []byte) error {
	d, err := l.identity.open(data)
	if err != nil {
		return err
	}
	rounds := d.Count()
	restore := l.self.decode(d, rounds)
	if err := d.Close(); err != nil {
		return err
	}
	restore()
	l.rounds, l.policy = rounds, nil
	return nil
}
