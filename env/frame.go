package env

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

// frame draws k orthonormal vectors of d ≥ k entries, uniformly: it draws Gaussian vectors, makes each orthogonal to
// the ones before it (twice, because of rounding), and scales each to length 1.
func frame(k, d int, rng *rand.Rand) [][]float64 {
	q := make([][]float64, k)
	for i := range q {
		q[i] = make([]float64, d)
		for j := range q[i] {
			q[i][j] = rng.NormFloat64()
		}
		for range 2 {
			for _, p := range q[:i] {
				floats.AddScaled(q[i], -floats.Dot(p, q[i]), p)
			}
			floats.Scale(1/floats.Norm(q[i], 2), q[i])
		}
	}
	return q
}
