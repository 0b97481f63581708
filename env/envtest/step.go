package envtest

import "vitrine/env"

// Step is a truth that becomes another one.
type Step struct {
	env.Truth
	After env.Truth
	From  int // the first round of After
}

// At implements [env.MovingTruth].
func (s Step) At(t int) env.Truth {
	if t >= s.From {
		return s.After
	}
	return s.Truth
}
