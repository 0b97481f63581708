package choice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/mle"
)

// Several takes from a page fit a table without an option of its own for nothing: the first take is a choice among the
// items and an alternative of zeros, and the further ones are choices among the items only, weighted by their number.
// The estimate and the likelihood are those of package mle. docs/algorithms/baskets.md, "Tables of choices".
func TestBasketsInATable(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 10))
	b := NewBuilder([]string{"a", "b", "c", "nothing"}, []string{"x", "y"}, false)
	b.Clusters = true
	l := mle.NewNewton(1e-9, make([]float64, 2), 1e-18)
	for visit := range 300 {
		x := make([]float64, 6)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		first, number := rng.IntN(4), [3]int{rng.IntN(2), rng.IntN(2), rng.IntN(3)} // of the further takes of each item
		fatal.If(t, b.Add(Case{Alternatives: []int{0, 1, 2, 3}, X: append(append([]float64{}, x...), 0, 0),
			Chosen: first, Cluster: visit}))
		y, more := vitrine.Outside, []vitrine.Choice(nil)
		if first < 3 {
			y = vitrine.Choice(first + 1)
			for item, n := range number {
				for range n {
					more = append(more, vitrine.Choice(item+1))
				}
				if n > 0 {
					fatal.If(t, b.Add(Case{Alternatives: []int{0, 1, 2}, X: x, Chosen: item, Weight: float64(n),
						Cluster: visit}))
				}
			}
		}
		l.Append(make([]float64, 3), mat.NewDense(3, 2, x), y, more...)
	}
	l.Minimize()
	r := fatal.Or(Fit(context.Background(), &Spec{Utility: Utility{Generic: []string{"x", "y"}}}, fatal.Or(b.Data())(t),
		Options{Errors: "clustered"}))(t)
	for j, want := range l.Params() {
		if !near(r.Coefficients[j], want, 1e-6) {
			t.Errorf("coefficient %d is %v, want %v", j, r.Coefficients[j], want)
		}
	}
	if want := -l.Loss().Value(l.Params()); !near(r.LogLikelihood, want, 1e-9) || math.IsNaN(r.StandardErrors()[0]) {
		t.Errorf("log-likelihood %v, want %v", r.LogLikelihood, want)
	}
}
