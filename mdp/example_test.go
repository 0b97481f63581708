package mdp_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/assortment"
	"vitrine/mdp"
)

// A session of two pages. A customer who takes the cheap item on the first page returns as a regular, and regulars buy
// the expensive one. Taken alone, the best first page shows the expensive item.
func ExampleWorld_Solve() {
	const newcomer = 0 // 1 is a regular
	w := &mdp.World{
		Problem: mdp.Problem{
			Horizon:  2,
			Features: []*mat.Dense{mat.NewDense(2, 1, []float64{1, 2}), mat.NewDense(2, 1, []float64{1, 2})},
			Feasible: assortment.AtMost(1),
		},
		Start:   newcomer,
		Utility: [][]float64{{1, -1}, {-1, 2}},             // of the cheap and of the expensive item
		Reward:  [][]float64{{0, 0.1, 0.5}, {0, 0.1, 0.5}}, // of no item, the cheap and the expensive one
		Next: [][][]float64{
			{{1, 0}, {0, 1}, {1, 0}}, // a newcomer becomes a regular with the cheap item
			{{0, 1}, {0, 1}, {0, 1}},
		},
	}
	if err := w.Check(); err != nil {
		fmt.Println(err)
		return
	}
	best, values := w.Solve()
	myopic := w.Myopic()
	fmt.Printf("first page %v earns %.2f, the myopic page %v earns %.2f\n", best[0][newcomer], values[0][newcomer],
		myopic[0][newcomer], w.Value(myopic)[0][newcomer])
	// Output: first page [0] earns 0.43, the myopic page [1] earns 0.27
}
