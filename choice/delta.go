package choice

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Estimate is a number with its standard error.
type Estimate struct {
	Value, StandardError float64
}

// Delta returns f at the estimated coefficients, with a standard error by the delta method: f is replaced by its linear
// approximation, with the gradient from central differences.
func (r *Result) Delta(f func(theta []float64) float64) Estimate {
	theta := slices.Clone(r.Coefficients)
	gradient := mat.NewVecDense(len(theta), nil)
	se := r.StandardErrors()
	for j, at := range r.Coefficients {
		h := 1e-4 * se[j]
		theta[j] = at + h
		up := f(theta)
		theta[j] = at - h
		gradient.SetVec(j, (up-f(theta))/(2*h))
		theta[j] = at
	}
	return Estimate{f(theta), math.Sqrt(mat.Inner(gradient, r.Covariance, gradient))}
}

// WillingnessToPay returns the value of one more unit of an attribute, in units of the price,
//
//	−θ_attribute / θ_price
//
// with a standard error by the delta method. If θ_price < 0, it is positive for liked attributes and negative for
// disliked ones such as time, where one unit less is worth the opposite. The error names a coefficient that the model
// lacks, or that is lognormal, or a price that varies between decision makers.
func (r *Result) WillingnessToPay(attribute, price string) (Estimate, error) {
	a, p := slices.Index(r.Names, attribute), slices.Index(r.Names, price)
	for _, name := range []string{attribute, price} {
		if !slices.Contains(r.Names, name) {
			return Estimate{}, fmt.Errorf("there is no coefficient %q: there are %q", name, r.Names)
		}
		if slices.Contains(r.Spec.Model.Random, Random{name, "lognormal"}) {
			return Estimate{}, fmt.Errorf("%s is lognormal, so its estimate describes its logarithm: compare the "+
				"coefficients of each decision maker (vitrine predict --individual)", name)
		}
	}
	if slices.ContainsFunc(r.Spec.Model.Random, func(v Random) bool { return v.Coefficient == price }) {
		return Estimate{}, fmt.Errorf("%s varies between decision makers: the ratio of two means is not the mean "+
			"willingness to pay, which may not even exist. Fit a fixed price coefficient", price)
	}
	return r.Delta(func(theta []float64) float64 { return -theta[a] / theta[p] }), nil
}
