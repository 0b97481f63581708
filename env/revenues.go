package env

import "math/rand/v2"

// One gives every item a revenue of 1, as in the paper's experiments: policies maximise the probability of a sale.
type One struct{}

// Draw implements [Revenues].
func (One) Draw(int, *rand.Rand) []float64 { return nil }

// UniformRevenue draws each item's revenue from U[Low, High], 0 ≤ Low, in every round. The bounds must pass
// [CheckInterval].
type UniformRevenue struct{ Low, High float64 }

// Draw implements [Revenues].
func (r UniformRevenue) Draw(n int, rng *rand.Rand) []float64 {
	dst := make([]float64, n)
	for i := range dst {
		dst[i] = uniform(r.Low, r.High, rng)
	}
	return dst
}
