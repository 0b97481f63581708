package bandit

import (
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/scratch"
)

// learner is the common part of this package's learners. It checks and counts the rounds, keeps a policy until the next
// round, and saves and restores the state. A learner embeds it and is its self.
type learner struct {
	p        Problem
	identity identity
	self     algorithm
	places   places

	rounds int            // observed so far, t − 1
	policy vitrine.Policy // π_t; nil if it must be made again

	rows scratch.Matrix
}

// algorithm is the part of a learner that learns.
type algorithm interface {
	// learn learns from a valid round, which is already counted in rounds. With position effects it includes the
	// features of the places, and only the items shown.
	learn(r vitrine.Round)
	// freeze returns the policy of the coming round. It must not change when the learner learns.
	freeze() vitrine.Policy
	// fields passes over the state after a number of rounds. Reading takes effect only when the returned function is
	// called, which installs the state. It is called only if the snapshot is sound.
	fields(f *fields.Fields, rounds int) (restore func())
}

// standardising are the learners that accept features of any scale.
type standardising interface{ standardises() }

func (*BMA) standardises()     {}
func (*Wide) standardises()    {}
func (*Uniform) standardises() {}

// checkScale returns an error that names the first feature beyond [vitrine.MaxUnscaled].
func checkScale(x *vitrine.Context) error {
	for i := range x.NumItems() {
		for j, v := range x.Features.RawRowView(i) {
			if math.Abs(v) > vitrine.MaxUnscaled {
				return fmt.Errorf("feature %d of item %d is %v, and this learner accepts at most %v in size: "+
					"scale it, or use the policy auto, which does", j, i, v, vitrine.MaxUnscaled)
			}
		}
	}
	return nil
}

// Observe implements vitrine.Learner.
func (l *learner) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.NumFeatures); err != nil {
		return err
	}
	if _, ok := l.self.(standardising); !ok {
		if err := checkScale(r.Context); err != nil {
			return err
		}
	}
	l.rounds++
	l.self.learn(l.places.round(&l.rows, inOrder(r)))
	l.policy = nil
	return nil
}

// inOrder returns the round with its takes in the order of the items. So rounding does not depend on the order in which
// they came.
func inOrder(r vitrine.Round) vitrine.Round {
	if len(r.More) > 0 {
		takes := append([]vitrine.Choice{r.Choice}, r.More...)
		slices.Sort(takes)
		r.Choice, r.More = takes[0], takes[1:]
	}
	return r
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
	f := fields.Snapshot(l.identity.String())
	f.Count(&l.rounds)
	l.self.fields(f, l.rounds)
	return f.Seal()
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. If the snapshot is damaged, or of another problem, utility or
// options, it returns an error and leaves the learner unchanged.
func (l *learner) UnmarshalBinary(data []byte) error {
	f, err := l.identity.open(data)
	if err != nil {
		return err
	}
	rounds := 0
	f.Count(&rounds)
	restore := l.self.fields(f, rounds)
	if err := f.Close(); err != nil {
		return err
	}
	restore()
	l.rounds, l.policy = rounds, nil
	return nil
}
