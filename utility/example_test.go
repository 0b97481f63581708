package utility_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

// Two items with two features each, under the linear utility x_1 − 2x_2 + ½.
func Example() {
	model := utility.NewLinear(2, true)
	w := []float64{1, -2, 0.5} // the slopes, and the intercept
	x := mat.NewDense(2, 2, []float64{
		1, 0,
		0, 1,
	})
	u := make([]float64, 2)
	model.Utilities(u, w, x)
	fmt.Println(u)
	// Output: [1.5 -1.5]
}

// A network of 2 features with 8 hidden units has a parameter for each weight and each bias.
func ExampleNewMLP() {
	model := utility.NewMLP(2, []int{8}, utility.Sigmoid)
	fmt.Println(model, "has", model.NumParams(), "parameters")
	// Output: sigmoid 2-8-1 has 33 parameters
}
