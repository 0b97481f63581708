package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Gaussian draws x ~ N(0, I_d), neither clipped nor normalised.
type Gaussian struct{}

// Draw implements [Contexts].
func (Gaussian) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] = rng.NormFloat64()
		}
	}
}

// ClippedGaussian draws x ~ N(0, I_d) and clips each feature at ±Bound > 0. With 1/√d,
// so that ‖x‖ ≤ 1, it is the distribution of the experiments of Lee and Oh (2024) and
// of their published code.
type ClippedGaussian struct{ Bound float64 }

// Draw implements [Contexts]. Under the same rng its features are those of [Gaussian],
// clipped.
func (c ClippedGaussian) Draw(x *mat.Dense, rng *rand.Rand) {
	Gaussian{}.Draw(x, rng)
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j, v := range row {
			row[j] = max(-c.Bound, min(c.Bound, v))
		}
	}
}

// Uniform draws each feature from U[Low, High]; the paper has [−3, 3]. The
// bounds must pass [CheckInterval].
type Uniform struct{ Low, High float64 }

// Draw implements [Contexts].
func (c Uniform) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] = uniform(c.Low, c.High, rng)
		}
	}
}

// StudentT draws each feature from Student's distribution with the given degrees of
// freedom, at least 1, cut off at ±1000: features of shops have tails like these.
type StudentT struct{ Degrees int }

// Draw implements [Contexts].
func (c StudentT) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			z, square := rng.NormFloat64(), 0.0
			for range c.Degrees {
				v := rng.NormFloat64()
				square += float64(v * v)
			}
			row[j] = max(-1000, min(1000, z/math.Sqrt(square/float64(c.Degrees))))
		}
	}
}

// Visits draws standard normal features of which the last is the customer's: it is the
// same for all items of a context.
type Visits struct{}

// Draw implements [Contexts].
func (Visits) Draw(x *mat.Dense, rng *rand.Rand) {
	Gaussian{}.Draw(x, rng)
	n, d := x.Dims()
	for i := 1; i < n; i++ {
		x.Set(i, d-1, x.At(0, d-1))
	}
}
