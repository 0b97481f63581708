package utility_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

// The networks and batch sizes of the paper's panels: N = 100 items a round, and 250 to 2500 rows for the pilot.
func BenchmarkMLP(b *testing.B) {
	for _, hidden := range []int{3, 15} {
		for _, rows := range []int{100, 250, 2500} {
			m := utility.NewMLP(3, []int{hidden}, utility.Sigmoid)
			rng := rand.New(rand.NewPCG(1, 2))
			w, x := gaussian(rng, m.NumParams()), mat.NewDense(rows, 3, gaussian(rng, rows*3))
			u, g, gradient := make([]float64, rows), mat.NewDense(rows, len(w), nil), make([]float64, len(w))
			loss := func(cotangent, u []float64) float64 { copy(cotangent, u); return 0 }
			for _, bench := range []struct {
				name string
				call func()
			}{
				{"Utilities", func() { m.Utilities(u, w, x) }},
				{"Linearize", func() { m.Linearize(u, g, w, x) }},
				{"Backpropagate", func() { m.Backpropagate(gradient, w, x, loss) }},
			} {
				b.Run(fmt.Sprintf("%s/hidden=%d/rows=%d", bench.name, hidden, rows), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						bench.call()
					}
				})
			}
		}
	}
}
