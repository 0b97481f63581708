package figure_test

import (
	"bytes"
	"fmt"

	"vitrine/figure"
)

// Regret of two policies on two seeds, over three rounds.
func Example() {
	panel := figure.Panel{Title: "A small world", Curves: []figure.Curve{
		{Policy: "onl-mnl", Regret: [][]float64{{0.5, 0.8, 0.9}, {0.4, 0.6, 0.7}}},
		{Policy: "uniform", Regret: [][]float64{{0.5, 1.0, 1.5}, {0.6, 1.2, 1.8}}},
	}}
	var svg bytes.Buffer
	figure.WriteSVG(&svg, panel.With(figure.Look{Band: figure.SD}))
	fmt.Println(bytes.Contains(svg.Bytes(), []byte("A small world")))
	// Output: true
}
