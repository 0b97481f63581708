package utility_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

func BenchmarkMLP(b *testing.B) {
	for _, h := range []int{3, 15} {
		for _, n := range []int{100, 250, 2500} {
			m := utility.NewMLP(3, []int{h}, utility.Sigmoid)
			rng := rand.New(rand.NewPCG(1, 2))
			w := make([]float64, m.NumParams())
			m.Init(w, rng)
			x := mat.NewDense(n, 3, nil)
			for i := range n {
				for j := range 3 {
					x.Set(i, j, rng.NormFloat64())
				}
			}
			u := make([]float64, n)
			g := mat.NewDense(n, len(w), nil)
			dw := make([]float64, len(w))
			loss := func(c, u []float64) float64 { copy(c, u); return 0 }
			for name, f := range map[string]func(){
				"Utilities":     func() { m.Utilities(u, w, x) },
				"Linearize":     func() { m.Linearize(u, g, w, x) },
				"Backpropagate": func() { m.Backpropagate(dw, w, x, loss) },
			} {
				b.Run(fmt.Sprintf("%s/hidden=%d/rows=%d", name, h, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						f()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*h), "ns/row/unit")
				})
			}
		}
	}
}
