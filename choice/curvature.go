package choice

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// symOf returns the symmetric d×d matrix with the entries (i, j), i ≤ j, given by a function.
func symOf(d int, entry func(i, j int) float64) *mat.SymDense {
	m := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			m.SetSym(i, j, entry(i, j))
		}
	}
	return m
}

// symmetric unpacks a packed upper triangle.
func symmetric(packed []float64, d int) *mat.SymDense {
	return symOf(d, func(i, j int) float64 { return packed[packedAt(i, j, d)] })
}

// scaled returns D^−½ M D^−½ for the diagonal matrix D of positive numbers d.
func scaled(m *mat.SymDense, d []float64) *mat.SymDense {
	return symOf(len(d), func(i, j int) float64 {
		if p := d[i] * d[j]; p > 1e-290 && p < 1e290 {
			return m.At(i, j) / math.Sqrt(p)
		}
		return m.At(i, j) / math.Sqrt(d[i]) / math.Sqrt(d[j]) // the product would overflow, or lose digits
	})
}

// diagonal returns the diagonal of m, with 1 in place of entries that are not positive.
func diagonal(m *mat.SymDense) []float64 {
	d := make([]float64, m.SymmetricDim())
	for i := range d {
		d[i] = m.At(i, i)
	}
	return makePositive(d)
}

// makePositive puts 1 in place of entries of v that are not positive, and returns v.
func makePositive(v []float64) []float64 {
	for i := range v {
		if !(v[i] > 0) {
			v[i] = 1
		}
	}
	return v
}

// descent stores the Newton step M⁻¹g in step, and returns its decrement² gᵀM⁻¹g. If the Hessian M is not positive
// definite, its eigenvalues count with their absolute values, and directions without curvature are skipped. The result
// does not depend on the parameters' units.
func descent(step []float64, hessian *mat.SymDense, gradient []float64) float64 {
	n := len(gradient)
	d := diagonal(hessian)
	g := mat.NewVecDense(n, nil)
	for j := range d {
		g.SetVec(j, gradient[j]/math.Sqrt(d[j]))
	}
	var v mat.VecDense
	unit := scaled(hessian, d)
	var c mat.Cholesky
	if c.Factorize(unit) && c.Cond() < 1e12 {
		if err := c.SolveVecTo(&v, g); err != nil {
			panic(err) // the condition was checked
		}
	} else {
		var e mat.EigenSym
		if !e.Factorize(unit, true) {
			return math.NaN()
		}
		var q mat.Dense
		e.VectorsTo(&q)
		var along mat.VecDense
		along.MulVec(q.T(), g)
		for j, lambda := range e.Values(nil) {
			if curvature := math.Abs(lambda); curvature > flat {
				along.SetVec(j, along.AtVec(j)/curvature)
			} else {
				along.SetVec(j, 0)
			}
		}
		v.MulVec(&q, &along)
	}
	for j := range step {
		step[j] = v.AtVec(j) / math.Sqrt(d[j])
	}
	return kernel.Dot(gradient, step)
}

// flat is the curvature below which a direction counts as flat, relative to 1 along each parameter.
const flat = 1e-12

// flatDirections returns, as rows, the eigenvectors of M that belong to eigenvalues within rounding of 0. The
// eigenvectors are computed in units in which the moments are 1, and returned in M's units.
func flatDirections(m *mat.SymDense, moment []float64) [][]float64 {
	d := makePositive(slices.Clone(moment))
	var e mat.EigenSym
	if !e.Factorize(scaled(m, d), true) {
		return nil
	}
	var q mat.Dense
	e.VectorsTo(&q)
	var list [][]float64
	for k, lambda := range e.Values(nil) {
		if lambda >= flat {
			continue
		}
		v := make([]float64, len(d))
		for j := range v {
			v[j] = q.At(j, k) / math.Sqrt(d[j])
		}
		list = append(list, v)
	}
	return list
}

// inverse returns M⁻¹, and false if M is not positive definite.
func inverse(m *mat.SymDense) (*mat.SymDense, bool) {
	d := diagonal(m)
	var c mat.Cholesky
	if !c.Factorize(scaled(m, d)) {
		return nil, false
	}
	var inv mat.SymDense
	if err := c.InverseTo(&inv); err != nil && !isCondition(err) {
		return nil, false
	}
	return scaled(&inv, d), true
}

func isCondition(err error) bool { _, ok := err.(mat.Condition); return ok }
