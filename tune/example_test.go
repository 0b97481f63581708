package tune_test

import (
	"fmt"

	"vitrine/tune"
)

// Nine settings compete on eight seeds. Setting 4 has the smallest regret.
func ExampleSearch() {
	play := func(settings []int, seeds []uint64) ([][][]float64, error) {
		regret := make([][][]float64, len(settings))
		for i, s := range settings {
			panel := make([]float64, len(seeds)) // for the only panel
			for k, seed := range seeds {
				panel[k] = float64((s-4)*(s-4)) + float64(seed)
			}
			regret[i] = [][]float64{panel}
		}
		return regret, nil
	}
	halving := tune.Halving{First: 2, Factor: 3}
	scores, err := tune.Search(9, []uint64{1, 2, 3, 4, 5, 6, 7, 8}, halving, play)
	if err != nil {
		panic(err)
	}
	fmt.Println(halving.Rungs(9, 8))
	fmt.Println("setting", scores[0].Setting, "has the regret", scores[0].Estimate().Mean)
	// Output:
	// [{9 2} {3 6} {1 8}]
	// setting 4 has the regret 4.5
}
