package mle_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/mle"
	"vitrine/utility"
)

// Three of four customers take the only item, with feature 1. So exp(w)/(1 + exp(w)) = 3/4, and w = log 3.
func Example() {
	choices := mle.NewChoices(1)
	item := mat.NewDense(1, 1, []float64{1})
	for _, taken := range []vitrine.Choice{1, 1, vitrine.Outside, 1} {
		choices.AppendRows(item, taken)
	}
	loss := &mle.NLL{Model: utility.NewLinear(1, false), Choices: choices}
	w := []float64{0}
	minimum, err := mle.LevenbergMarquardt{Steps: 100, Tolerance: 1e-12}.Minimize(loss, w)
	if err != nil {
		panic(err)
	}
	fmt.Printf("w = %.4f, −log likelihood = %.4f\n", w[0], minimum.Value)
	// Output: w = 1.0986, −log likelihood = 2.2493
}
