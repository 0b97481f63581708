package mle

import (
	"vitrine"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
)

// ExpectedTakes stores in dst[0] the probability of the outside option for a page of items with utilities u, and in
// dst[k] the expected takes of the k-th item by a visitor who takes something from S∪{0} and then, if further > 0, as
// many items more from S:
//
//	dst[0] = p(0 | S),   dst[k] = p(k | S) + further · p(k | S) / (1 − p(0 | S))
//
// Without further takes these are the choice probabilities of [vitrine.Probabilities]. dst must be of length len(u) + 1, and
// u must not be empty if further > 0.
func ExpectedTakes(dst, u []float64, further int) {
	if further == 0 {
		vitrine.Probabilities(dst, u)
		return
	}
	copy(dst[1:], u)
	logOutside, _ := kernel.Takes(dst[1:], further)
	dst[0] = portable.Exp(logOutside)
}
