package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Abs is a truth with two kinks,
//
//	f(x) = |xᵀw*| − |x_1 − x_2|
type Abs struct{ w []float64 }

// NewAbs draws w* from U[−1, 1]^d. It panics unless d ≥ 2.
func NewAbs(d int, rng *rand.Rand) *Abs {
	if d < 2 {
		panic("env: Abs needs at least 2 features")
	}
	return &Abs{direction(d, rng)}
}

// NumFeatures implements [Truth].
func (a *Abs) NumFeatures() int { return len(a.w) }

// Utilities implements [Truth].
func (a *Abs) Utilities(dst []float64, x *mat.Dense) {
	checkShape("abs", len(a.w), dst, x)
	for i := range dst {
		row := x.RawRowView(i)
		dst[i] = math.Abs(floats.Dot(row, a.w)) - math.Abs(row[0]-row[1])
	}
}

// Params implements [Truth].
func (a *Abs) Params() []float64 { return a.w }
