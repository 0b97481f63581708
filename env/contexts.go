package env

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Gaussian draws x ~ N(0, I_d), neither clipped nor normalised.
type Gaussian struct{}

// Draw implements [Contexts].
func (Gaussian) Draw(x *mat.Dense, rng *rand.Rand) { fill(x, rng.NormFloat64) }

// Normal draws each feature from N(Mean, Deviation²).
type Normal struct{ Mean, Deviation float64 }

// Draw implements [Contexts]. Under the same rng its features are the scaled and shifted features of [Gaussian].
func (c Normal) Draw(x *mat.Dense, rng *rand.Rand) {
	fill(x, func() float64 { return c.Mean + float64(c.Deviation*rng.NormFloat64()) })
}

// Shifts draws standard normal features until the distribution changes abruptly: it is laws[k] after k+1 of the rounds
// have begun.
type Shifts struct {
	Gaussian // before the first of the rounds
	rounds   []int
	laws     []Normal
}

// NewShifts returns contexts drawn from laws[0] from round rounds[0] on, from laws[1] from rounds[1] on, and so on. It
// panics unless the rounds increase and there are as many laws as rounds.
func NewShifts(rounds []int, laws []Normal) *Shifts {
	if len(laws) != len(rounds) || !slices.IsSorted(rounds) {
		panic("env: shifts need increasing rounds, and a law for each")
	}
	return &Shifts{rounds: rounds, laws: laws}
}

// At implements [MovingContexts].
func (s *Shifts) At(t int) Contexts {
	for k := len(s.rounds) - 1; k >= 0; k-- {
		if s.rounds[k] <= t {
			return s.laws[k]
		}
	}
	return s.Gaussian
}

// ClippedGaussian draws x ~ N(0, I_d) and clips each feature at ±Bound > 0. With Bound = 1/√d, so that ‖x‖ ≤ 1, it is
// the distribution used by the experiments of Lee and Oh (2024) and by their published code.
type ClippedGaussian struct{ Bound float64 }

// Draw implements [Contexts]. Under the same rng its features are the clipped features of [Gaussian].
func (c ClippedGaussian) Draw(x *mat.Dense, rng *rand.Rand) {
	fill(x, func() float64 { return max(-c.Bound, min(c.Bound, rng.NormFloat64())) })
}

// Uniform draws each feature from U[Low, High]; the paper uses [−3, 3]. The bounds must pass [CheckInterval].
type Uniform struct{ Low, High float64 }

// Draw implements [Contexts].
func (c Uniform) Draw(x *mat.Dense, rng *rand.Rand) {
	fill(x, func() float64 { return uniform(c.Low, c.High, rng) })
}

// StudentT draws each feature from Student's distribution with the given degrees of freedom, at least 1, cut off at
// ±1000. Features in real shops show similar tails.
type StudentT struct {
	Degrees int `toml:"degrees" range:"[1, 1000]" doc:"the degrees of freedom"`
}

// Draw implements [Contexts].
func (c StudentT) Draw(x *mat.Dense, rng *rand.Rand) {
	fill(x, func() float64 {
		z, square := rng.NormFloat64(), 0.0
		for range c.Degrees {
			v := rng.NormFloat64()
			square += float64(v * v)
		}
		return max(-1000, min(1000, z/math.Sqrt(square/float64(c.Degrees))))
	})
}

// Visits draws standard normal features, the last of them the customer's: they are the
// same for all items of a context.
type Visits struct {
	Customer int `toml:"customer" range:"[1, 1e4]" doc:"how many features are the customer's"`
}

// Draw implements [Contexts].
func (v Visits) Draw(x *mat.Dense, rng *rand.Rand) {
	Gaussian{}.Draw(x, rng)
	n, d := x.Dims()
	for i := 1; i < n; i++ {
		copy(x.RawRowView(i)[d-v.Customer:], x.RawRowView(0)[d-v.Customer:])
	}
}

// fill draws the entries of x, item by item.
func fill(x *mat.Dense, draw func() float64) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] = draw()
		}
	}
}
