package gram

import "gonum.org/v1/gonum/mat"

// NewBound returns the bound by any values and vectors.
func NewBound(p *mat.SymDense, mu []float64, q *mat.Dense, m int) *Bound {
	return newBound(p, mu, q, m)
}
