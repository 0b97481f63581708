package earnings

import (
	"fmt"
	"sync/atomic"

	"vitrine/service/offer"
)

// Soundness counts signs of an unsound policy: predictions that are not finite, and outcomes that it considered almost
// impossible. It counts from the start of the process, and is not part of the state.
type Soundness struct {
	Clipped   atomic.Uint64 // clipped feature values
	senseless atomic.Int64  // consecutive decisions without predictions

	impossible [surpriseRounds]bool // for the last outcomes, whether the policy's probability was below surprise
	next       int
	surprises  int
}

const (
	surprise       = 1e-6
	surpriseRounds = 100
	maxSurprises   = 5 // in these rounds: a correct policy with 20 items exceeds it once in 10¹⁵ times
	maxSenseless   = 20
)

// Predicted records whether a decision came with usable predictions.
func (s *Soundness) Predicted(ok bool) {
	if ok {
		s.senseless.Store(0)
	} else {
		s.senseless.Add(1)
	}
}

// Closed records the outcome of a decision with predictions.
func (s *Soundness) Closed(o *offer.Closed) {
	if !o.Predicted {
		return
	}
	p := o.Outside
	if o.Choice > 0 {
		p = o.Probability[o.Choice-1]
	}
	if s.impossible[s.next] {
		s.surprises--
	}
	if s.impossible[s.next] = p < surprise; s.impossible[s.next] {
		s.surprises++
	}
	s.next = (s.next + 1) % surpriseRounds
}

// Forget resets the counts when a learner restarts or rolls back.
func (s *Soundness) Forget() {
	s.senseless.Store(0)
	s.impossible, s.next, s.surprises = [surpriseRounds]bool{}, 0, 0
}

// Problem describes the problem, or returns "".
func (s *Soundness) Problem() string {
	switch {
	case s.senseless.Load() >= maxSenseless:
		return "the utilities that the policy predicts are not finite, or beyond ±700: roll back to a version, or " +
			"put the placement with another seed and reset=true, so that its learner begins again; min and max of " +
			"its features keep extreme values out"
	case s.surprises >= maxSurprises:
		return fmt.Sprintf("%d of the last %d outcomes had a probability below %v by the policy's predictions: "+
			"roll back to a version, or put the placement with another seed and reset=true, so that its learner "+
			"begins again; min and max of its features keep extreme values out",
			s.surprises, surpriseRounds, surprise)
	}
	return ""
}
