package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Sawtooth is a truth that climbs and falls off again and again along one direction,
//
//	f(x) = 3 (xᵀw* − ⌊xᵀw*⌋) − 2
type Sawtooth struct{ w []float64 }

// NewSawtooth draws w* from U[−1, 1]^d.
func NewSawtooth(d int, rng *rand.Rand) *Sawtooth { return &Sawtooth{direction(d, rng)} }

// NumFeatures implements [Truth].
func (s *Sawtooth) NumFeatures() int { return len(s.w) }

// Utilities implements [Truth].
func (s *Sawtooth) Utilities(dst []float64, x *mat.Dense) {
	checkShape("sawtooth", len(s.w), dst, x)
	for i := range dst {
		v := floats.Dot(x.RawRowView(i), s.w)
		dst[i] = float64(3*(v-math.Floor(v))) - 2
	}
}

// Params implements [Truth].
func (s *Sawtooth) Params() []float64 { return s.w }
