package env

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Segments is a truth of two segments of customers with different tastes. The last
// feature c is the customer's, and the segment is its sign:
//
//	f(x) = 2 xᵀw_1 − ½ if c < 0,   2 xᵀw_2 − ½ otherwise
//
// where the last entries of w_1 and w_2 are 0.
type Segments struct{ w [2][]float64 }

// NewSegments draws w_1 and w_2 from U[−1, 1]^{d−1}, or w_2 = −w_1 if the segments are
// opposed. It panics unless d ≥ 2.
func NewSegments(d int, opposed bool, rng *rand.Rand) *Segments {
	if d < 2 {
		panic("env: Segments needs at least 2 features")
	}
	s := new(Segments)
	for k := range s.w {
		s.w[k] = direction(d, rng)
		s.w[k][d-1] = 0
	}
	if opposed {
		floats.ScaleTo(s.w[1], -1, s.w[0])
	}
	return s
}

// NumFeatures implements [Truth].
func (s *Segments) NumFeatures() int { return len(s.w[0]) }

// Utilities implements [Truth].
func (s *Segments) Utilities(dst []float64, x *mat.Dense) {
	d := s.NumFeatures()
	checkShape("segments", d, dst, x)
	for i := range dst {
		row, w := x.RawRowView(i), s.w[1]
		if row[d-1] < 0 {
			w = s.w[0]
		}
		dst[i] = float64(2*floats.Dot(row, w)) - 0.5
	}
}

// Params implements [Truth]: w_1 and w_2.
func (s *Segments) Params() []float64 { return slices.Concat(s.w[0], s.w[1]) }
