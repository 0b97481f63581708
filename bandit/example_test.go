package bandit_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/utility"
)

// A shelf of 3 out of 20 items. Customers like items with a first feature near 1, which no linear utility can express.
func Example() {
	rng := rand.New(rand.NewPCG(1, 2))
	problem := bandit.Problem{NumFeatures: 2, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	model := utility.NewMLP(2, []int{8}, utility.Sigmoid)
	options := bandit.DefaultONLOptions()
	options.Warmup, options.Pilot, options.Update = 100, "map", "online"
	learner, err := bandit.NewONL(problem, model, options, rng)
	if err != nil {
		panic(err)
	}

	sales := [2]int{} // in the first hundred rounds, and in the last
	for t := range problem.Rounds {
		x := &vitrine.Context{Features: mat.NewDense(20, 2, nil)}
		utilities := make([]float64, 20)
		for i := range utilities {
			x.Features.SetRow(i, []float64{rng.NormFloat64(), rng.NormFloat64()})
			utilities[i] = 1 - 4*math.Pow(x.Features.At(i, 0)-1, 2)
		}

		offer := learner.Policy().Offer(x, rng) // decide
		shock := make([]float64, 21)
		vitrine.DrawShocks(shock, rng)
		choice := vitrine.Choose(offer.Assortment, utilities, shock) // the customer
		err := learner.Observe(vitrine.Round{Context: x, Offer: offer, Choice: choice})
		if err != nil {
			panic(err)
		}

		if choice != vitrine.Outside && (t < 100 || t >= 900) {
			sales[t/900]++
		}
	}
	fmt.Println("more sales after learning:", sales[1] > sales[0]+20)
	// Output: more sales after learning: true
}
