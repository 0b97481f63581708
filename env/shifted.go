package env

import "gonum.org/v1/gonum/mat"

// Shifted is a truth with a constant added to all utilities.
type Shifted struct {
	Truth
	By float64
}

// Utilities implements [Truth].
func (s Shifted) Utilities(dst []float64, x *mat.Dense) {
	s.Truth.Utilities(dst, x)
	for i := range dst {
		dst[i] += s.By
	}
}
