package earnings

import "vitrine/internal/confseq"

// Contrast compares two ways of deciding. Each decision uses the first way with probability P and the second with Q. A
// decision that earned x is evidence of how much more the first way earns:
//
//	D = (x − m)(A/P − B/Q),   E[D | past] = E[x | first way] − E[x | second way]
//
// where A and B indicate the way that was drawn, and m is any number known in advance, such as the mean earnings so
// far. Therefore neither drifting revenues nor a change of P and Q biases the mean of D, and [confseq.Mean] gives its
// interval.
type Contrast struct{ P, Q float64 }

// The two ways of a contrast, and a decision made in neither.
const (
	Second = -1 + iota
	Neither
	First
)

// Lead returns a decision's D.
func (c Contrast) Lead(way int, x, m float64) float64 {
	switch way {
	case First:
		return (x - m) / c.P
	case Second:
		return -(x - m) / c.Q
	}
	return 0
}

// Add adds D for a decision that earned x, which is at most bound. m may exceed every revenue.
func (c Contrast) Add(to *confseq.Block, way int, x, m, bound float64) {
	to.Add(c.Lead(way, x, m), max(bound, m)/min(c.P, c.Q))
}

// factor returns the factor by which D may exceed a revenue.
func (c Contrast) factor() float64 { return 1 / min(c.P, c.Q) }

// Widen takes the bound of a decision that was added with a smaller one.
func (c Contrast) Widen(in *confseq.Mean, bound float64) { in.Widen(bound / min(c.P, c.Q)) }

// Replace replaces the D of a decision that earned before, and now after.
func (c Contrast) Replace(in *confseq.Mean, way int, before, after, m float64) {
	in.Replace(c.Lead(way, before, m), c.Lead(way, after, m), 0)
}
