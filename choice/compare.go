package choice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/hint"
)

// Test is a test result: under the hypothesis, the statistic follows a χ² distribution in large samples.
type Test struct {
	Statistic float64
	Freedom   int     // degrees of freedom
	P         float64 // probability of a statistic at least as large
}

func (t Test) String() string {
	return fmt.Sprintf("%.4f on %s of freedom, p %.4f", t.Statistic, hint.Count(t.Freedom, "degree"), t.P)
}

func newTest(statistic float64, freedom int) Test {
	return Test{statistic, freedom, distuv.ChiSquared{K: float64(freedom)}.Survival(statistic)}
}

// LikelihoodRatio tests whether a special case of the model, with fewer coefficients, fits as well,
//
//	2(LL − LL₀) ~ χ²(K − K₀)
//
// The caller must know that it is a special case. A spread of 0 is at the edge of its range, so the true P of a test of
// spreads is smaller. LikelihoodRatio returns an error if the models were fitted to different data, as far as
// [Checksums] tell, or if their ratio does not follow a χ² distribution: for models with a network, because their
// likelihood is penalised, and for models that differ in the number of latent classes or in their panels.
func (r *Result) LikelihoodRatio(special *Result) (Test, error) {
	if err := r.sameData(special); err != nil {
		return Test{}, err
	}
	panels, others := r.Checksums.Panels, special.Checksums.Panels
	switch ratio, freedom := 2*(r.LogLikelihood-special.LogLikelihood), len(r.Names)-len(special.Names); {
	case r.Spec.Utility.Network != nil || special.Spec.Utility.Network != nil:
		return Test{}, errors.New("the likelihood of a model with a network is penalised, so its ratio is no test")
	case r.Spec.Model.Classes != special.Spec.Model.Classes:
		return Test{}, errors.New("models with other numbers of latent classes are compared by BIC: the ratio of " +
			"their likelihoods has no χ² distribution")
	case panels != "" && others != "" && panels != others:
		return Test{}, errors.New("the models group the choices into other panels: fit both with one data.panel")
	case freedom <= 0:
		return Test{}, fmt.Errorf("a special case has fewer coefficients: these models have %d and %d",
			len(r.Names), len(special.Names))
	case ratio < -1e-6: // beyond the minimiser's error
		return Test{}, fmt.Errorf("the model with fewer coefficients has the larger likelihood, %.6f against "+
			"%.6f: it is not a special case", special.LogLikelihood, r.LogLikelihood)
	default:
		return newTest(max(ratio, 0), freedom), nil
	}
}

// sameData returns an error if the models were fitted to different choices or weights, or to other values of a variable
// that both define alike.
func (r *Result) sameData(other *Result) error {
	if r.Checksums.Choices != other.Checksums.Choices {
		return fmt.Errorf("the models have other choices or weights: %d choices, %d rows and log-likelihood %.4f at "+
			"random, and %d, %d and %.4f: fit both to the same choices in one order", r.Choices, r.Rows, r.Null, other.Choices,
			other.Rows, other.Null)
	}
	if !r.means(other, "variable ") {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Checksums.Variables)) {
		if sum, both := other.Checksums.Variables[name]; both && sum != r.Checksums.Variables[name] {
			return fmt.Errorf("the models have other values of the variable %s: fit both to the same table", name)
		}
	}
	return nil
}

// Checksums identify the data that a model was fitted to, whatever the names and the order of the alternatives. The order
// of the choices matters.
type Checksums struct {
	Choices string `json:"choices"` // which alternatives each choice offers and takes, and its weight
	// which choices belong to one decision maker; "" if the model does not depend on it
	Panels string `json:"panels,omitempty"`
	// values by variable of the model; names of those for some alternatives only contain the labels
	Variables map[string]string `json:"variables"`
}

// newChecksums returns the checksums of the data of a model. An alternative is known by the choices that offer and take it.
func newChecksums(s *Spec, d *Data) Checksums {
	c := Checksums{Variables: map[string]string{}}
	var choices, panels checksum
	alternatives := make([]checksum, len(d.Alternatives))
	choices.add(uint64(indicator(d.Outside)))
	for _, b := range d.blocks {
		for s := range b.end {
			lo, hi := b.span(s)
			for i, a := range b.alt[lo:hi] {
				alternatives[a].add(uint64(b.first+s) + 1)
				alternatives[a].add(uint64(indicator(int(b.chosen[s]) == lo+i)))
			}
			choices.add(math.Float64bits(b.weightOf(s)))
		}
		units(b, func(u unit) { panels.add(uint64(u.to - u.from)) })
	}
	choices.addAll(alternatives)
	c.Choices = choices.String()
	if s.Model.Kind == "mixed" || s.Model.Kind == "latent" {
		c.Panels = panels.String()
	}
	for _, v := range s.Variables() {
		var sum checksum
		values := slices.Clone(alternatives)
		for _, b := range d.blocks {
			for i, x := range b.x[slices.Index(d.Variables, v.Expression)] {
				values[b.alt[i]].add(math.Float64bits(x))
			}
		}
		sum.addAll(values)
		if v.Alternatives != nil {
			v.Expression += fmt.Sprintf(" of %q", slices.Compact(slices.Sorted(slices.Values(v.Alternatives))))
		}
		c.Variables[v.Expression] = sum.String()
	}
	return c
}

// checksum is a hash of a sequence of numbers.
type checksum uint64

// addAll adds hashes in any order and skips 0.
func (c *checksum) addAll(hashes []checksum) {
	sum := uint64(0)
	for _, h := range hashes {
		h.add(0) // so that sums of hashes do not cancel out
		sum += uint64(h)
	}
	c.add(sum)
}

// add takes the step of FNV-1a for a word instead of a byte, and folds the upper half into the lower one.
func (c *checksum) add(x uint64) {
	*c = (*c ^ checksum(x)) * 1099511628211
	*c ^= *c >> 32
}

func (c checksum) String() string { return fmt.Sprintf("%016x", uint64(c)) }

// Wald tests whether the named coefficients θ are 0 (dissimilarities: 1), given the covariance V of their estimates,
//
//	(θ − θ₀)ᵀ V⁻¹ (θ − θ₀) ~ χ²(K)
//
// Near a spread of 0 the estimate is not normal, and the true P is larger: without weights and with classic errors, prefer
// [Result.LikelihoodRatio] for spreads.
// Wald returns an error if a coefficient or the covariance does not exist.
func (r *Result) Wald(names []string) (Test, error) {
	away := make([]float64, len(names))
	v := mat.NewSymDense(max(len(names), 1), nil)
	for i, name := range names {
		a, err := r.index(name)
		if err != nil {
			return Test{}, err
		}
		away[i] = r.Coefficients[a] - usual(name)
		for j, other := range names[:i+1] {
			v.SetSym(i, j, r.Covariance.At(a, slices.Index(r.Names, other)))
		}
	}
	if n := r.Clusters; n > 0 && n <= len(names) { // the scores of the clusters sum to 0
		return Test{}, fmt.Errorf("%d clusters are too few to test %d coefficients together", n, len(names))
	}
	statistic, ok := quadratic(v, away)
	if !ok {
		return Test{}, fmt.Errorf("the covariance of %q is not positive definite: name other coefficients, each once", names)
	}
	return newTest(statistic, len(names)), nil
}

// quadratic returns vᵀM⁻¹v, and false if M is not positive definite.
func quadratic(m *mat.SymDense, v []float64) (float64, bool) {
	inv, ok := inverse(m)
	if !ok || len(v) == 0 {
		return 0, false
	}
	x := mat.NewVecDense(len(v), v)
	return mat.Inner(x, inv, x), true
}

// CheckHausmanMcFadden returns an error if the test is not for models of this kind with standard errors of this kind,
// or not for this alternative of the data.
func (s *Spec) CheckHausmanMcFadden(d *Data, drop, standardErrors string) error {
	u := &s.Utility
	switch {
	case !s.Model.plain() || s.Utility.Network != nil || standardErrors != "" && standardErrors != "classic":
		return errors.New("the test of Hausman and McFadden is for a multinomial logit with classic errors")
	case !slices.Contains(d.Alternatives, drop):
		return fmt.Errorf("alternative %q: %w", drop, unknownAlternative(d.Alternatives))
	case u.reference(d.Alternatives, d.Outside) == drop && (u.Constants || len(u.Individual) > 0):
		return fmt.Errorf("%s is the reference: set utility.reference to an alternative that stays", drop)
	}
	return nil
}

// HausmanMcFadden tests the independence of irrelevant alternatives: if it holds, dropping an alternative and the
// choices that took it leaves the other coefficients unchanged. Let θ and V be the estimates of the common coefficients
// and their covariance, with index 1 for the model without the alternative. Then
//
//	(θ₁ − θ)ᵀ (V₁ − V)⁻¹ (θ₁ − θ) ~ χ²(K)
//
// V₁ is the inverse of the information that the model expects from the choices that do not take the alternative, so V₁ ≥
// V. With the information of the choices that took another one, V₁ − V may be nearly singular by chance: of 500 simulated
// samples of 250 choices the test then rejected 11% at the level 1%, in place of 2%. d holds the choices that the model
// was fitted to. HausmanMcFadden returns an error for the reference alternative, for models other than the multinomial
// logit with classic errors, and if the remaining alternatives do not determine the coefficients. Source: Hausman and
// McFadden (1984), Econometrica 52:1219–1240.
func (r *Result) HausmanMcFadden(ctx context.Context, d *Data, drop string) (Test, error) {
	if err := r.Spec.CheckHausmanMcFadden(d, drop, r.Errors); err != nil {
		return Test{}, err
	}
	without, err := r.refitWithout(ctx, d, drop)
	if err != nil {
		return Test{}, err
	}
	var away []float64
	var here, there []int
	for j, name := range r.Names {
		if k := slices.Index(without.Names, name); k >= 0 {
			here, there = append(here, j), append(there, k)
			away = append(away, without.Coefficients[k]-r.Coefficients[j])
		}
	}
	covariance, err := r.expectedWithout(ctx, d, drop, without, here, there)
	if err != nil {
		return Test{}, err
	}
	statistic, ok := 0.0, false
	if len(here) > 0 {
		statistic, ok = quadratic(symOf(len(here), func(a, b int) float64 {
			return covariance.At(there[a], there[b]) - r.Covariance.At(here[a], here[b])
		}), away)
	}
	if !ok {
		return Test{}, fmt.Errorf("the choices of %s tell nothing about some of the other coefficients, so the test has "+
			"no answer", drop)
	}
	return newTest(statistic, len(away)), nil
}

// refitWithout fits the model again without an alternative and the choices that took it.
func (r *Result) refitWithout(ctx context.Context, d *Data, drop string) (*Result, error) {
	dropped := slices.Index(d.Alternatives, drop)
	spec := *r.Spec
	u := &spec.Utility
	u.Reference = u.reference(r.Alternatives, r.Outside)
	u.Terms = nil
	for _, t := range r.Spec.Utility.Terms {
		all := t.Alternatives == nil
		t.Alternatives = slices.DeleteFunc(slices.Clone(t.Alternatives), func(a string) bool { return a == drop })
		if all || len(t.Alternatives) > 0 {
			u.Terms = append(u.Terms, t)
		}
	}
	rest, err := d.reduce(func(a int) bool { return a == dropped }, func(s int) float64 {
		alternatives, chosen := d.Choice(s)
		return indicator(chosen == none || alternatives[chosen] != dropped)
	})
	if err != nil {
		return nil, fmt.Errorf("without %s %w", drop, err)
	}
	without, err := Fit(ctx, &spec, rest, Options{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("without %s %w", drop, err)
	case without.Separated != nil:
		return nil, fmt.Errorf("without %s %s", drop, without.Separation())
	case !without.Converged:
		return nil, fmt.Errorf("without %s the fit did not converge after %d steps", drop, without.Steps)
	}
	return without, nil
}

// expectedWithout returns the inverse of the information that the model expects from the choices that do not take an
// alternative, for the coefficients of the fit without it. The model's coefficient here[k] is that fit's coefficient
// there[k].
func (r *Result) expectedWithout(ctx context.Context, d *Data, drop string, without *Result,
	here, there []int) (*mat.SymDense, error) {
	predictions, err := r.Predict(d)
	if err != nil {
		return nil, err
	}
	p := make([]float64, d.Choices)
	for s, q := range predictions {
		for i, a := range q.Alternatives {
			if d.Alternatives[a] == drop {
				p[s] = q.Probabilities[i]
			}
		}
	}
	all, err := d.reduce(func(a int) bool { return d.Alternatives[a] == drop }, func(s int) float64 { return 1 - p[s] })
	if err != nil {
		return nil, err
	}
	theta := slices.Clone(without.Coefficients)
	for k, j := range here {
		theta[there[k]] = r.Coefficients[j]
	}
	l, err := without.likelihoodOn(ctx, all)
	if err != nil {
		return nil, err
	}
	o := newObjective(l, all, 0)
	at, err := o.at(ctx, theta, second)
	if err != nil {
		return nil, err
	}
	covariance, ok := inverse(symmetric(at.hessian, o.dim))
	if !ok {
		return nil, fmt.Errorf("the choices without %s do not determine the coefficients", drop)
	}
	return covariance, nil
}

// Compare returns text with models side by side: estimates with standard errors, likelihoods and criteria.
func Compare(names []string, models []*Result) string {
	var coefficients []string
	for _, r := range models {
		for _, name := range r.Names[:r.Listed()] {
			if !slices.Contains(coefficients, name) {
				coefficients = append(coefficients, name)
			}
		}
	}
	row := func(name string, cell func(r *Result) string) []string {
		line := []string{name}
		for _, r := range models {
			line = append(line, cell(r))
		}
		return line
	}
	rows := [][]string{append([]string{""}, names...)}
	for _, name := range coefficients {
		rows = append(rows, row(name, func(r *Result) string {
			value, se, ok := r.Coefficient(name)
			if !ok || slices.Contains(r.Separated, name) {
				return ""
			}
			return fmt.Sprintf("%s (%s)", digits(value, 4), digits(se, 3))
		}))
	}
	return align(append(rows,
		row("log-likelihood", func(r *Result) string { return fmt.Sprintf("%.4f", r.LogLikelihood) }),
		row("coefficients", func(r *Result) string { return fmt.Sprint(len(r.Names)) }),
		row("adjusted rho²", func(r *Result) string {
			if r.Null == 0 {
				return ""
			}
			return fmt.Sprintf("%.4f", r.AdjustedRhoSquared())
		}),
		row("AIC", func(r *Result) string { return fmt.Sprintf("%.2f", r.AIC()) }),
		row("BIC", func(r *Result) string { return fmt.Sprintf("%.2f", r.BIC()) })))
}

// Against returns the tests that compare two models, as lines of text. It returns an error if the models were fitted to
// different data.
func (r *Result) Against(name string, other *Result) (lines []string, err error) {
	if err := r.sameData(other); err != nil {
		return nil, err
	}
	large, special, which := r, other, name+" is"
	if len(r.Names) < len(other.Names) {
		large, special, which = other, r, "this model is"
	}
	// The restriction is known if the larger model contains every coefficient of the special case, with one meaning.
	var more []string
	for _, name := range large.Names {
		if !slices.Contains(special.Names, name) {
			more = append(more, name)
		}
	}
	known := len(large.Names)-len(more) == len(special.Names) && large.means(special, "")
	ratio, err := large.LikelihoodRatio(special)
	if err != nil {
		return []string{fmt.Sprintf("No likelihood ratio test against %s: %v.", name, err)}, nil
	}
	line := fmt.Sprintf("Likelihood ratio test against %s: %v", name, ratio)
	if !known {
		return []string{line + ", if " + which + " a special case of the other."}, nil
	}
	lines = []string{line + "."}
	list := strings.Join(more, ", ")
	if wald, err := large.Wald(more); err != nil {
		lines = append(lines, fmt.Sprintf("No Wald test of %s: %v.", list, err))
	} else {
		lines = append(lines, fmt.Sprintf("Wald test of %s: %v.", list, wald))
	}
	if slices.ContainsFunc(more, func(s string) bool { return strings.HasPrefix(s, "spread[") }) {
		advice := "A spread of 0 is at the edge of its range: the Wald test's true p is larger"
		if large.Spec.Data.Weight == "" && special.Spec.Data.Weight == "" && (large.Errors == "" || large.Errors == "classic") {
			advice += ", and the likelihood ratio test's is smaller, so prefer the likelihood ratio"
		}
		lines = append(lines, advice+".")
	}
	return lines, nil
}

// means reports whether no name in both models differs in its terms, or as a derived variable, nest or random
// coefficient. It looks only at kinds of names with a prefix, such as "variable ".
func (r *Result) means(other *Result, prefix string) bool {
	meanings, also := r.meanings(), other.meanings()
	for name, list := range meanings {
		if with, both := also[name]; both && strings.HasPrefix(name, prefix) && !slices.Equal(list, with) {
			return false
		}
	}
	return true
}

// meanings returns the sorted definitions of each name.
func (r *Result) meanings() map[string][]string {
	by := map[string][]string{}
	add := func(name, variable string, alternatives []string) {
		by[name] = append(by[name], fmt.Sprintf("%q %q", variable, slices.Sorted(slices.Values(alternatives))))
		slices.Sort(by[name])
	}
	terms, _ := r.Spec.Utility.terms(r.Alternatives, r.Outside)
	for _, t := range terms {
		add("coefficient "+t.Name, t.Variable, t.Alternatives)
	}
	for _, entry := range r.Spec.Data.Derive {
		name, _, _ := derived(entry)
		add("variable "+name, entry, nil)
	}
	for _, n := range r.Spec.Model.Nests {
		add("nest "+n.Name, "", n.Alternatives)
	}
	for _, c := range r.Spec.Model.Random {
		add("random "+c.Coefficient, c.Distribution, nil)
	}
	return by
}
