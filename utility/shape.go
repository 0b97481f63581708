package utility

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// checkParams panics unless w has the length d_w of the model.
func checkParams(m Model, w []float64) {
	if len(w) != m.NumParams() {
		panic(fmt.Sprintf("utility: %d parameters, want %d", len(w), m.NumParams()))
	}
}

// checkItems panics unless w has the length d_w and x has d columns. It returns the number of rows of x.
func checkItems(m Model, w []float64, x *mat.Dense) int {
	checkParams(m, w)
	n, d := x.Dims()
	if d != m.NumFeatures() {
		panic(fmt.Sprintf("utility: %d features an item, want %d", d, m.NumFeatures()))
	}
	return n
}

// checkUtilities is checkItems plus a check that u holds one utility per item.
func checkUtilities(m Model, u, w []float64, x *mat.Dense) int {
	n := checkItems(m, w, x)
	if len(u) != n {
		panic(fmt.Sprintf("utility: %d utilities for %d items", len(u), n))
	}
	return n
}

// checkGradients is checkItems plus a check that g holds a row of d_w entries per item.
func checkGradients(m Model, g *mat.Dense, w []float64, x *mat.Dense) int {
	n := checkItems(m, w, x)
	if r, c := g.Dims(); r != n || c != len(w) {
		panic(fmt.Sprintf("utility: gradients are %d×%d, want %d×%d", r, c, n, len(w)))
	}
	return n
}

// checkBackpropagate is checkItems plus a check that dst holds one entry per parameter.
func checkBackpropagate(m Model, dst, w []float64, x *mat.Dense) int {
	n := checkItems(m, w, x)
	if len(dst) != len(w) {
		panic(fmt.Sprintf("utility: gradient of length %d for %d parameters", len(dst), len(w)))
	}
	return n
}
