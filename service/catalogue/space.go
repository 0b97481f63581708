package catalogue

import (
	"math"

	"vitrine/service/api"
)

// DefaultSpace is an item's space if it sets none.
const DefaultSpace = 1

const (
	unitsOfSpace = 1_000_000 // in a space of 1
	maxSpace     = 1_000_000_000
)

// SpaceUnits converts a space or a capacity to millionths. ok is false if it is negative, more than 10⁹, or not a
// multiple of a millionth, up to the rounding of decimal sums such as 0.1 + 0.2.
func SpaceUnits(space float64) (units int64, ok bool) {
	const (
		rounding    = 1e-14
		maxRounding = 0.2 // in units: a float64 near 10⁹ is less exact
	)
	v := space * unitsOfSpace
	whole := math.Round(v)
	return int64(whole), space >= 0 && space <= maxSpace && math.Abs(v-whole) <= min(rounding*v, maxRounding)
}

// SpaceOf converts millionths to a space.
func SpaceOf(units int64) float64 { return float64(units) / unitsOfSpace }

// CheckSpace returns an error about the field if SpaceUnits rejects its value.
func CheckSpace(field string, space float64) error {
	if !(space >= 0 && !math.IsInf(space, 0)) {
		return api.Fieldf(field, "%v: must be finite and not negative", space)
	}
	if space > maxSpace {
		return api.Fieldf(field, "%v: must be at most 10⁹", space)
	}
	if _, ok := SpaceUnits(space); !ok {
		return api.Fieldf(field,
			"%v: must have at most 6 decimals, so that spaces can be summed exactly: round a space up, a capacity down",
			space)
	}
	return nil
}
