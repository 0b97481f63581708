package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Result is an estimated model.
type Result struct {
	Spec         *Spec
	Alternatives []string // from the fitted data
	Outside      bool     // whether the fitted data include an outside option
	Scale        *Scale   // for the network's variables; nil without a network
	// random coefficients of a mixed logit with draws of the opposite sign, which makes their spreads positive
	Mirrored []string
	// columns of the table with names that look like expressions, such as walk-time
	Columns []string

	Names        []string  // of the coefficients
	Coefficients []float64 // θ̂
	Covariance   *mat.SymDense
	Errors       string // kind of covariance: "classic" (""), "robust" or "clustered"
	Clusters     int    // number of clusters, if the covariance is clustered

	LogLikelihood float64
	Null          float64 // log-likelihood of random choices
	ConstantsOnly float64 // log-likelihood with a constant per alternative; NaN beyond 100 alternatives

	// Offered and Chosen are, by alternative, the weights of the choices that offered it and took it. The outside
	// option, if there is one, comes last.
	Offered, Chosen []float64

	Choices, Rows int
	ZeroWeight    int       // number of choices with weight 0
	Checksums     Checksums // of the fitted data
	Steps         int       // number of minimiser steps, on samples and on all data
	Decrement     float64   // gᵀH⁻¹g before the last step
	Converged     bool
	// coefficients without a finite estimate, because their variables predict choices perfectly, and dissimilarities at
	// their bounds
	Separated []string
}

// Kind returns the model's name.
func (r *Result) Kind() string {
	if r.Spec.Utility.Network != nil {
		return "neural multinomial logit"
	}
	return r.Spec.Model.name()
}

// StandardErrors returns the coefficients' standard errors.
func (r *Result) StandardErrors() []float64 {
	se := make([]float64, len(r.Names))
	for j := range se {
		se[j] = math.Sqrt(r.Covariance.At(j, j))
	}
	return se
}

// usual returns the value of a coefficient without effect: 0, and 1 for a dissimilarity.
func usual(name string) float64 { return indicator(strings.HasPrefix(name, "dissimilarity[")) }

// Z returns how far the coefficients are from 0 (dissimilarities: from 1), in units of their standard errors.
func (r *Result) Z() []float64 {
	z := r.StandardErrors()
	for j, se := range z {
		z[j] = (r.Coefficients[j] - usual(r.Names[j])) / se
	}
	return z
}

// P returns, for each coefficient, the probability of a |z| at least as large under the normal distribution if the
// coefficient is 0, or 1 for a dissimilarity. For a spread the true probability is larger: see [Result.Wald].
func (r *Result) P() []float64 {
	p := r.Z()
	for j, z := range p {
		p[j] = math.Erfc(math.Abs(z) / math.Sqrt2)
	}
	return p
}

// Intervals returns normal confidence intervals at a level such as 0.95. It panics unless 0 ≤ level ≤ 1.
func (r *Result) Intervals(level float64) (low, high []float64) {
	z := distuv.UnitNormal.Quantile((1 + level) / 2)
	for j, se := range r.StandardErrors() {
		low = append(low, r.Coefficients[j]-z*se)
		high = append(high, r.Coefficients[j]+z*se)
	}
	return low, high
}

// RhoSquared returns McFadden's 1 − LL/LL(0), relative to random choices.
func (r *Result) RhoSquared() float64 { return 1 - r.LogLikelihood/r.Null }

// AdjustedRhoSquared returns 1 − (LL − K)/LL(0) for K coefficients.
func (r *Result) AdjustedRhoSquared() float64 {
	return 1 - (r.LogLikelihood-float64(len(r.Names)))/r.Null
}

// RhoSquaredConstants returns McFadden's 1 − LL/LL(c), relative to a constant per alternative.
func (r *Result) RhoSquaredConstants() float64 { return 1 - r.LogLikelihood/r.ConstantsOnly }

// AIC returns Akaike's criterion 2K − 2LL.
func (r *Result) AIC() float64 { return 2*float64(len(r.Names)) - 2*r.LogLikelihood }

// BIC returns Schwarz's criterion K log n − 2LL for n choices with a positive weight.
func (r *Result) BIC() float64 {
	return float64(len(r.Names))*math.Log(float64(r.Choices-r.ZeroWeight)) - 2*r.LogLikelihood
}

// Listed returns the number of coefficients in tables and figures: all but a network's parameters, which come last.
func (r *Result) Listed() int { return len(r.Names) - r.Spec.Utility.Network.numParams() }

// Coefficient returns a named coefficient with its standard error, and whether it exists.
func (r *Result) Coefficient(name string) (value, se float64, ok bool) {
	j := slices.Index(r.Names, name)
	if j < 0 {
		return 0, 0, false
	}
	return r.Coefficients[j], math.Sqrt(r.Covariance.At(j, j)), true
}

// index returns the index of a named coefficient.
func (r *Result) index(name string) (int, error) {
	if j := slices.Index(r.Names, name); j >= 0 {
		return j, nil
	}
	return 0, fmt.Errorf("there is no coefficient %q: there are %q", name, r.Names)
}

// NeverChosen returns the alternatives that were offered but never chosen.
func (r *Result) NeverChosen() (list []string) {
	for a, label := range r.Alternatives {
		if a < len(r.Chosen) && r.Chosen[a] == 0 && r.Offered[a] > 0 {
			list = append(list, label)
		}
	}
	return list
}

// Separation says why some coefficients lack a finite estimate, and how to go on. It is "" if all are finite.
func (r *Result) Separation() string {
	if r.Separated == nil {
		return ""
	}
	const most = 20
	names, never := strings.Join(r.Separated[:min(len(r.Separated), most)], ", "), r.NeverChosen()
	if more := len(r.Separated) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	terms, _ := r.Spec.Utility.terms(r.Alternatives, r.Outside)
	if slices.ContainsFunc(terms, func(t Term) bool {
		return t.Alternatives == nil && slices.Contains(r.Separated, t.Name)
	}) {
		never = nil // alternatives that stay predict the choices, too
	}
	if r.Spec.Model.Kind == "latent" && slices.Contains(r.Names, r.Separated[0]) { // not found by MNL already
		return fmt.Sprintf("there is no finite estimate of %s: in some class they predict the choices or the members "+
			"perfectly, or the class is almost empty: fit fewer classes, or leave variables out", names)
	}
	if slices.ContainsFunc(r.Separated, func(name string) bool {
		k := slices.Index(r.Names, name)
		return slices.Contains(r.Spec.Model.Random, Random{name, "lognormal"}) && k < len(r.Coefficients) &&
			r.Coefficients[k] < 0
	}) {
		return fmt.Sprintf("there is no finite estimate of %s: a lognormal coefficient is above 0, and goes to 0 here: if "+
			"people dislike its variable, negate the variable", names)
	}
	has := func(prefix string) bool {
		return slices.ContainsFunc(r.Separated, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	switch {
	case r.Spec.Model.Kind == "nested" && has("dissimilarity["):
		return fmt.Sprintf("%s is at its bound, %v or %v: near 0 the variables predict choices within the nest all but "+
			"perfectly, far above 1 the alternatives do not form a nest; leave variables out or take the nest apart", names,
			minDissimilarity, maxDissimilarity)
	case r.Spec.Model.Kind == "mixed" && has("spread["):
		return fmt.Sprintf("there is no finite estimate of %s: large values, different among decision makers, predict "+
			"their choices perfectly; make fewer coefficients random, or leave variables out", names)
	}
	if r.Outside && r.Chosen[len(r.Alternatives)] == 0 && slices.Contains(r.Separated, "constant["+r.Alternatives[0]+"]") {
		return fmt.Sprintf("the outside option is never chosen, so there is no finite estimate of %s: leave outside "+
			"out of [data]", names)
	}
	switch len(never) {
	case 0:
		return fmt.Sprintf("there is no finite estimate of %s: some combination of their variables predicts "+
			"choices perfectly; leave variables out", names)
	case 1:
		return fmt.Sprintf("%s is never chosen, so there is no finite estimate of %s: exclude = [%q] in [data] "+
			"leaves it out", never[0], names, never[0])
	}
	return fmt.Sprintf("%s are never chosen, so there is no finite estimate of %s: exclude in [data] leaves them out",
		strings.Join(never, ", "), names)
}
