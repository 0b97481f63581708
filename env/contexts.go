package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Gaussian draws x ~ N(0, I_d), as drawn: neither clipped nor normalised.
type Gaussian struct{}

// Draw implements Contexts.
func (Gaussian) Draw(x *mat.Dense, rng *rand.Rand) {
	data := x.RawMatrix().Data
	for i := range data {
		data[i] = rng.NormFloat64()
	}
}

// Uniform draws each feature from U[Low, High]; the paper has [−3, 3].
type Uniform struct{ Low, High float64 }

// Draw implements Contexts.
func (c Uniform) Draw(x *mat.Dense, rng *rand.Rand) {
	data := x.RawMatrix().Data
	for i := range data {
		data[i] = uniform(c.Low, c.High, rng)
	}
}
