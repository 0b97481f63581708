package env

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// uniform draws from U[low, high].
func uniform(low, high float64, rng *rand.Rand) float64 {
	return low + float64((high-low)*rng.Float64())
}

// CheckInterval returns an error if the bounds of a uniform distribution are not finite, not in order, or further apart
// than the largest float64.
func CheckInterval(low, high float64) error {
	switch {
	case math.IsNaN(low) || math.IsInf(low, 0):
		return fmt.Errorf("low = %v: must be finite", low)
	case math.IsNaN(high) || math.IsInf(high, 0):
		return fmt.Errorf("high = %v: must be finite", high)
	case low > high:
		return fmt.Errorf("low = %v: must not exceed high = %v", low, high)
	case math.IsInf(high-low, 1):
		return fmt.Errorf("low = %v: too far below high = %v", low, high)
	}
	return nil
}
