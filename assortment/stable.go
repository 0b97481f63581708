package assortment

import "vitrine"

// Stabler is implemented by families that can promise to be stable: the answer of
// MaxGain does not change if the gains of items outside it fall. For gains g' ≤ g that
// equal g on S = MaxGain(g),
//
//	MaxGain(g') = S
//
// also among sets of equal gain. Oracles that compare single gains in a fixed order,
// such as greedy algorithms, are stable. So are those that build sums and keep the
// larger of two, the first of equals, such as dynamic programs: rounded addition is
// increasing, so a set that lost loses again.
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
