package assortment

import "vitrine"

// Limiter is implemented by families that can be limited to their smaller sets.
type Limiter interface {
	vitrine.Constraint

	// Limit returns the family of the sets of at most the given number of items; a
	// negative number is 0. It returns this family if it has no larger sets, and an
	// error if every set has more items.
	Limit(maximum int) (vitrine.Constraint, error)
}
