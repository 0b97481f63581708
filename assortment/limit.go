package assortment

import "vitrine"

// Limiter is implemented by families that can leave out their larger sets.
type Limiter interface {
	vitrine.Constraint

	// Limit returns the family of those sets that have at most so many items, or none
	// where that is negative: this one if it has no others. It reports that no set is left, because more
	// items are demanded.
	Limit(most int) (vitrine.Constraint, error)
}
