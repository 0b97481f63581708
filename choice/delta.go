package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
// disliked ones such as time, where one unit less is worth the opposite. The attribute may be a constant: then it is the
// value of the alternative itself. WillingnessToPay returns an error that names a coefficient that is missing, is not a
// variable's, is lognormal or belongs to another class, a price that varies between decision makers, and a variable that
// changes with the attribute or the price, as cost * income does with cost.
func (r *Result) WillingnessToPay(attribute, price string) (Estimate, error) {
	terms, err := r.Spec.Utility.terms(r.Alternatives, r.Outside)
	if err != nil {
		return Estimate{}, err
	}
	var names []string // of one class
	for _, t := range terms {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	var at [2]int
	for k, name := range []string{attribute, price} {
		if at[k], err = r.index(name); err != nil {
			return Estimate{}, err
		}
		if slices.Contains(r.Spec.Model.Random, Random{name, "lognormal"}) {
			return Estimate{}, fmt.Errorf("%s is lognormal, so its estimate describes its logarithm: compare the "+
				"coefficients of each decision maker (vitrine predict --individual)", name)
		}
		var variables []string
		for _, t := range terms {
			if t.Name == names[at[k]%len(names)] && t.Variable != "1" {
				variables = append(variables, t.Variable)
			}
		}
		if at[k] >= len(names)*max(1, r.Spec.Model.Classes) || name == price && variables == nil {
			return Estimate{}, fmt.Errorf("%s is not the coefficient of a variable", name)
		}
		if other := r.changesWith(variables); other != "" {
			return Estimate{}, fmt.Errorf("%s also changes with %s, so the willingness to pay depends on their values and "+
				"is not a ratio of two coefficients", other, strings.Join(variables, " and "))
		}
	}
	if at[0]/len(names) != at[1]/len(names) {
		return Estimate{}, fmt.Errorf("%s and %s belong to two classes: name coefficients of one class", attribute, price)
	}
	if slices.ContainsFunc(r.Spec.Model.Random, func(v Random) bool { return v.Coefficient == price }) {
		return Estimate{}, fmt.Errorf("%s varies between decision makers: the ratio of two means is not the mean "+
			"willingness to pay, which may not even exist. Fit a fixed price coefficient", price)
	}
	return r.Delta(func(theta []float64) float64 { return -theta[at[0]] / theta[at[1]] }), nil
}

// changesWith returns what else in the utilities changes with some variables, or "". A variable that is computed from
// one column changes with it.
func (r *Result) changesWith(variables []string) string {
	for _, v := range r.Spec.Utility.Network.variables() {
		if slices.Contains(variables, v) {
			return "the network"
		}
	}
	var columns []string
	for _, v := range variables {
		if used := inputs(v); len(used) == 1 {
			columns = append(columns, used...)
		}
	}
	return r.movesWith(variables, columns...)
}
