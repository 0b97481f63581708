package env

import "slices"

// Switches is a truth that changes abruptly: f_t is truths[k] after k of the rounds have begun. There is one more truth
// than rounds.
type Switches struct {
	Truth        // truths[0], before the first round
	rounds []int // increasing
	truths []Truth
}

// NewSwitches returns truths[0] until round rounds[0], truths[1] from then on, and so on. It panics unless the rounds
// increase and there is one more truth than rounds.
func NewSwitches(rounds []int, truths []Truth) *Switches {
	if len(truths) != len(rounds)+1 || !slices.IsSorted(rounds) {
		panic("env: switches need increasing rounds, and one truth more than rounds")
	}
	return &Switches{truths[0], rounds, truths}
}

// At implements [MovingTruth].
func (s *Switches) At(t int) Truth { return s.truths[begun(s.rounds, t)] }
