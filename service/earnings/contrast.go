package earnings

import "vitrine/internal/confseq"

// Contrast compares two ways to decide what to show. Each decision draws the first way with the probability P and the second with
// Q. A decision that earned x is evidence of how much more the first way earns:
//
//	D = (x − m)(A/P − B/Q),   E[D | past] = E[x | first way] − E[x | second way]
//
// where A and B say which way was drawn, and m is any number known before, such as what a decision earned until then. So neither a
// drift of the revenues nor a change of P and Q biases the mean of D, and [confseq.Mean] gives its interval.
type Contrast struct{ P, Q float64 }

// The ways of a contrast.
const (
	Second = -1 + iota
	Neither
	First
)

// Lead returns D of a decision.
func (c Contrast) Lead(way int, x, m float64) float64 {
	switch way {
	case First:
		return (x - m) / c.P
	case Second:
		return -(x - m) / c.Q
	}
	return 0
}

// Add adds D of a decision that earned x of at most bound. m may be larger than all its revenues.
func (c Contrast) Add(to *confseq.Block, way int, x, m, bound float64) {
	to.Add(c.Lead(way, x, m), max(bound, m)/min(c.P, c.Q))
}
