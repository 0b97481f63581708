package assortment

import "vitrine"

// Stabler is implemented by families that can promise to be stable: an answer
// of MaxGain stands when gains of items that it did not take fall. That is, for
// gains g' ≤ g that are g on S = MaxGain(g),
//
//	MaxGain(g') = S
//
// among sets of equal gain too. Oracles that compare single gains in a fixed
// order, as a greedy algorithm does, are stable, and so are those that build
// sums and keep the larger of two, the first of equals, as dynamic programming
// does: rounded addition is increasing, so what lost loses again.
type Stabler interface {
	vitrine.Constraint
	Stable() bool
}

// Stable reports whether a family promises to be stable.
func Stable(c vitrine.Constraint) bool {
	s, ok := c.(Stabler)
	return ok && s.Stable()
}

// Stable implements [Stabler].
func (AtMost) Stable() bool { return true }
