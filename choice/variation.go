package choice

import "math"

// Variation describes how a coefficient in a correlated mixed logit varies between decision makers: the standard
// deviation of b + Σ_m L_m η_m (a lognormal coefficient is its exponential), and its correlations with earlier
// coefficients.
type Variation struct {
	Coefficient  string
	SD           Estimate
	Correlations []Correlation
}

// Correlation is a correlation with another coefficient.
type Correlation struct {
	With string
	Estimate
}

// Variations describes how the coefficients of a correlated mixed logit vary, with standard errors by the delta method.
// It returns nil for other models, where spreads are themselves coefficients.
func (r *Result) Variations() (list []Variation) {
	m := &r.Spec.Model
	if !m.Correlated {
		return nil
	}
	// The rows of L are at the end of the coefficients, one after the other.
	n := len(m.Random)
	first := len(r.Names) - n*(n+1)/2
	covariance := func(theta []float64, a, b int) (sum float64) {
		rowA, rowB := theta[first+a*(a+1)/2:], theta[first+b*(b+1)/2:]
		for k := range min(a, b) + 1 {
			sum += rowA[k] * rowB[k]
		}
		return sum
	}
	for a, random := range m.Random {
		v := Variation{Coefficient: random.Coefficient}
		v.SD = r.Delta(func(theta []float64) float64 { return math.Sqrt(covariance(theta, a, a)) })
		for b, other := range m.Random[:a] {
			v.Correlations = append(v.Correlations,
				Correlation{other.Coefficient, r.Delta(func(theta []float64) float64 {
					return covariance(theta, a, b) / math.Sqrt(covariance(theta, a, a)*covariance(theta, b, b))
				})})
		}
		list = append(list, v)
	}
	return list
}
