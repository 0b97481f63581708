package env

import (
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
