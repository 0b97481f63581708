package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Gaussian draws x ~ N(0, I_d), as drawn: neither clipped nor normalised.
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
