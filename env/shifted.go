package env

import "gonum.org/v1/gonum/mat"

// Shifted is a truth with a constant added to all utilities. Since only differences count in MNL, an outside
// option of utility v is a shift by −v.
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
