package gram_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/gram"
)

// The norm of g under TᵀV⁻¹T equals the norm of Tg under V⁻¹.
func TestCongruent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	normal := func(rows, columns int) *mat.Dense {
		m := mat.NewDense(rows, columns, nil)
		m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
		return m
	}
	v := gram.New(6, 2)
	for range 10 {
		v.Add(1, normal(1, 6).RawRowView(0))
	}
	to, g := normal(6, 4), normal(20, 4)
	var mapped mat.Dense
	mapped.Mul(g, to.T())
	got, want := make([]float64, 20), make([]float64, 20)
	v.Inverse().Congruent(to).Norms(got, g)
	v.Inverse().Norms(want, &mapped)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12*want[i] {
			t.Errorf("norm %d is %v, want %v", i, got[i], want[i])
		}
	}
}
