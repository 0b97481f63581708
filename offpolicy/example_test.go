package offpolicy_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/offpolicy"
)

// A log of uniformly drawn pages with two of four items; customers like the last items. How much would a page with the
// last two have earned?
func Example() {
	rng := rand.New(rand.NewPCG(1, 1))
	features := mat.NewDense(4, 1, []float64{-1, 0, 1, 2})
	var rounds []offpolicy.Round
	var pages []vitrine.Assortment
	for range 2000 {
		i, j := rng.IntN(4), rng.IntN(3)
		if j >= i {
			j++
		}
		page := vitrine.Assortment{min(i, j), max(i, j)}
		shock := make([]float64, 5)
		vitrine.DrawShocks(shock, rng)
		rounds = append(rounds, offpolicy.Round{
			Context:     &vitrine.Context{Features: features},
			Items:       []string{"a", "b", "c", "d"},
			Shown:       page,
			Choice:      vitrine.Choose(page, features.RawMatrix().Data, shock), // the feature is the utility
			SamplingLaw: offpolicy.EpsilonPages(1, 4, 2, nil),
		})
		pages = append(pages, vitrine.Assortment{2, 3})
	}
	log, err := offpolicy.NewLog(context.Background(), rounds, offpolicy.Options{Seed: 1})
	if err != nil {
		panic(err)
	}
	report, err := log.Evaluate("the last two", pages)
	if err != nil {
		panic(err)
	}
	truth := vitrine.ExpectedRevenue(vitrine.Assortment{2, 3}, []float64{-1, 0, 1, 2}, nil)
	e := report.Estimate("dr-pi")
	fmt.Printf("estimated %.2f ± %.2f, true %.2f\n", e.Value, e.StandardError, truth)
	// Output: estimated 0.91 ± 0.02, true 0.91
}
