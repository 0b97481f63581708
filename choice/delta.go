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
// disliked ones such as time, where one unit less is worth the opposite. The ratio of an alternative's constant to the
// price is the value of the alternative itself.
//
// WillingnessToPay returns an error if a coefficient is missing, is lognormal or belongs neither to a variable nor to a
// constant, if the price is a constant or varies between decision makers, if the two belong to different classes, or if
// another term changes with one of them, as cost * income does with cost.
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
		inClass := names[at[k]%len(names)]
		if at[k] >= len(names)*max(1, r.Spec.Model.Classes) || name == price && !slices.ContainsFunc(terms,
			func(t Term) bool { return t.Name == inClass && t.Variable != "1" }) {
			return Estimate{}, fmt.Errorf("%s is not the coefficient of a variable", name)
		}
		if other, variable := r.changesWith(inClass, terms); other != "" {
			return Estimate{}, fmt.Errorf("%s also changes with %s, so the willingness to pay is not a ratio of two "+
				"coefficients", other, variable)
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

// changesWith returns another term of the utilities that changes whenever a term of the coefficient does, and the latter's
// variable, or "". A variable that is computed from one column changes with it; a condition does not.
func (r *Result) changesWith(name string, terms []Term) (other, variable string) {
	for _, v := range r.Spec.Utility.Network.variables() {
		terms = append(terms, Term{"the network", v, nil})
	}
	for _, t := range terms {
		if t.Name != name || t.Variable == "1" {
			continue
		}
		moving := []string{t.Variable}
		if columns, isCondition := r.columns(t.Variable); len(columns) == 1 && !isCondition {
			moving = append(moving, columns...)
		}
		for _, o := range terms {
			if o.Name == name || t.Alternatives != nil && o.Alternatives != nil && !anyOf(t.Alternatives, o.Alternatives) {
				continue
			}
			if o.Variable == t.Variable {
				return o.Name, t.Variable
			}
			if _, isCondition := r.columns(o.Variable); !isCondition && anyOf(r.reached(o.Variable), moving) {
				return o.Variable, t.Variable
			}
		}
	}
	return "", ""
}

// columns returns the columns of the table in a variable, and whether the variable is a condition.
func (r *Result) columns(variable string) (columns []string, isCondition bool) {
	columns, isCondition = r.reached(variable), !slices.Contains(r.Columns, variable) && condition(variable)
	for _, entry := range r.Spec.Data.Derive {
		name, source, _ := derived(entry)
		columns = slices.DeleteFunc(columns, func(c string) bool { return c == name })
		isCondition = isCondition || variable == name && condition(source)
	}
	return columns, isCondition
}
