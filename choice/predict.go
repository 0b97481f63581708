package choice

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"vitrine/internal/scratch"
)

// Prediction is the prediction for a choice.
type Prediction struct {
	Alternatives  []int     // indices of the available ones in Data.Alternatives
	Probabilities []float64 // by alternative
	Outside       float64   // probability of the outside option; 0 without one
	Chosen        int       // index into Alternatives, or -1 for the outside option
	Weight        float64
	Logsum        float64 // expected largest utility, up to Euler's constant
}

// LogLikelihood returns the logarithm of the probability of the actual choice.
func (p *Prediction) LogLikelihood() float64 {
	if p.Chosen == none {
		return math.Log(p.Outside)
	}
	return math.Log(p.Probabilities[p.Chosen])
}

// Predict returns the model's predictions for the choices in data, which need not be the data of the fit, along with
// the number of the choice. A prediction is valid until the next one. The error names the columns that the data lack.
func (r *Result) Predict(d *Data) (iter.Seq2[int, *Prediction], error) {
	l, err := r.likelihood(d)
	if err != nil {
		return nil, err
	}
	return func(yield func(int, *Prediction) bool) {
		w := l.worker()
		var p, out, logsum []float64
		var q Prediction
		for _, b := range d.blocks {
			p = scratch.Grow(p, b.rows())
			scratch.GrowAll(b.choices(), &out, &logsum)
			w.probabilities(p, out, logsum, b, r.Coefficients)
			for s := range b.end {
				lo, hi := b.span(s)
				q = Prediction{Alternatives: q.Alternatives[:0], Probabilities: p[lo:hi], Outside: out[s],
					Chosen: none, Weight: b.weightOf(s), Logsum: logsum[s]}
				for _, a := range b.alt[lo:hi] {
					q.Alternatives = append(q.Alternatives, int(a))
				}
				if c := int(b.chosen[s]); c != none {
					q.Chosen = c - lo
				}
				if !yield(b.first+s, &q) {
					return
				}
			}
		}
	}, nil
}

// Score measures how well a model predicts choices that it was not fitted to.
type Score struct {
	LogLikelihood float64
	PerChoice     float64 // LogLikelihood divided by the sum of the weights
	Null          float64 // log-likelihood of random choices
	Hits          float64 // weighted share of choices that took the most probable alternative
	Choices       int
}

// Score measures how well the model predicts data, with weights.
func (r *Result) Score(d *Data) (Score, error) {
	if d.Unobserved {
		return Score{}, fmt.Errorf("the data do not say what was chosen")
	}
	predictions, err := r.Predict(d)
	if err != nil {
		return Score{}, err
	}
	s := Score{Null: null(d), Choices: d.Choices}
	weights := 0.0
	for _, p := range predictions {
		s.LogLikelihood += p.Weight * p.LogLikelihood()
		weights += p.Weight
		best, largest := none, p.Outside
		for i, v := range p.Probabilities {
			if v > largest {
				best, largest = i, v
			}
		}
		if best == p.Chosen {
			s.Hits += p.Weight
		}
	}
	s.PerChoice, s.Hits = s.LogLikelihood/weights, s.Hits/weights
	return s, nil
}

// Shares returns the predicted market shares: the weighted mean probability of each alternative and, last, of the
// outside option if there is one.
func (r *Result) Shares(d *Data) ([]float64, error) {
	predictions, err := r.Predict(d)
	if err != nil {
		return nil, err
	}
	shares := make([]float64, len(d.Alternatives)+1)
	weights := 0.0
	for _, p := range predictions {
		weights += p.Weight
		for i, a := range p.Alternatives {
			shares[a] += p.Weight * p.Probabilities[i]
		}
		shares[len(d.Alternatives)] += p.Weight * p.Outside
	}
	for a := range shares {
		shares[a] /= weights
	}
	if !d.Outside {
		shares = shares[:len(d.Alternatives)]
	}
	return shares, nil
}

// Elasticities returns the aggregate elasticities of the market shares in a variable,
//
//	E_ij = Σ_s w_s ∂P_si/∂ln x_sj / Σ_s w_s P_si
//
// the relative change in the share of alternative i per relative change in the variable of alternative j. If the variable
// is the decision maker's (see [Data.Common]), it changes for all alternatives at once, and there is one column. The last
// row belongs to the outside option, if there is one. The variable is one of Data.Variables, or a coefficient, which stands
// for the variables in its terms. If one of these is a column, and another variable is computed from it, as cost *
// income is from cost, Elasticities returns an error. The derivatives are central differences, accurate to about eight
// digits. Source: Train (2009), Section 3.6.2.
func (r *Result) Elasticities(d *Data, variable string) ([][]float64, error) {
	terms, err := r.Spec.Utility.terms(r.Alternatives, r.Outside)
	if err != nil {
		return nil, err
	}
	if slices.Contains(d.Variables, variable) {
		terms = []Term{{variable, variable, nil}}
	} else {
		terms = slices.DeleteFunc(terms, func(t Term) bool { return t.Name != variable || t.Variable == "1" })
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%q is neither a variable nor the coefficient of one: the variables are %q",
			variable, d.Variables)
	}
	var changed []string
	for _, t := range terms {
		changed = append(changed, t.Variable)
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	if other := r.movesWith(changed); other != "" {
		return nil, fmt.Errorf("%q also changes with %s: compare the shares of the data with those of a copy in which "+
			"%[2]s is one percent larger", other, strings.Join(changed, " and "))
	}
	shares, err := r.Shares(d)
	if err != nil {
		return nil, err
	}
	columns, common := len(d.Alternatives), d.Common(variable)
	if common {
		columns = 1
	}
	e := make([][]float64, len(shares))
	for i := range e {
		e[i] = make([]float64, columns)
	}
	const h = 1e-4
	for j := range columns {
		var v []int
		for _, t := range terms {
			if t.Alternatives == nil || slices.Contains(t.Alternatives, d.Alternatives[j]) {
				v = append(v, slices.Index(d.Variables, t.Variable))
			}
		}
		slices.Sort(v)
		v = slices.Compact(v) // a variable of two terms changes once
		alternative := j
		if common {
			alternative = -1
		}
		up, err := r.Shares(d.multiplied(v, alternative, math.Exp(h)))
		if err != nil {
			return nil, err
		}
		down, err := r.Shares(d.multiplied(v, alternative, math.Exp(-h)))
		if err != nil {
			return nil, err
		}
		for i := range e {
			e[i][j] = (up[i] - down[i]) / (2 * h * shares[i])
		}
	}
	return e, nil
}

// movesWith returns another variable of the model that is computed from some variables, or "".
func (r *Result) movesWith(variables []string) string {
	for _, v := range r.Spec.expressions() {
		if !slices.Contains(variables, v) && anyOf(r.reached(v), variables) {
			return v
		}
	}
	return ""
}

// reached returns the names of the columns, also of derived ones, that a variable is computed from.
func (r *Result) reached(variable string) (names []string) {
	for _, source := range r.Spec.Data.reached(variable) {
		if slices.Contains(r.Columns, source) {
			names = append(names, source)
		} else {
			names = append(names, inputs(source)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Common reports whether a variable is the decision maker's: in each choice its value is the same for all alternatives,
// so that it changes for all at once.
func (d *Data) Common(variable string) bool {
	v := slices.Index(d.Variables, variable)
	if v < 0 {
		return false
	}
	for _, b := range d.blocks {
		for s := range b.end {
			lo, hi := b.span(s)
			for _, x := range b.x[v][lo+1 : hi] {
				if x != b.x[v][lo] {
					return false
				}
			}
		}
	}
	return true
}

// changed returns d with changed copies of its blocks.
func (d *Data) changed(change func(b *block)) *Data {
	copied := *d
	copied.blocks = make([]*block, len(d.blocks))
	for i, b := range d.blocks {
		c := *b
		change(&c)
		copied.blocks[i] = &c
	}
	return &copied
}

// multiplied returns d after multiplying variables of one alternative, or of all if it is below 0, by a number.
func (d *Data) multiplied(variables []int, alternative int, by float64) *Data {
	return d.changed(func(b *block) {
		b.x = slices.Clone(b.x)
		for _, v := range variables {
			b.x[v] = slices.Clone(b.x[v])
			for k, a := range b.alt {
				if alternative < 0 || int(a) == alternative {
					b.x[v][k] *= by
				}
			}
		}
	})
}
