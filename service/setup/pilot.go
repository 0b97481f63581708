package setup

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/choice"
	"vitrine/internal/hint"
	"vitrine/service/api"
)

// Pilot returns the configuration in text with a policy that uses the given weights and their covariance, row after
// row, as pilot estimate or prior: onl-mnl, or greedy or auto if the configuration names it. If it does not learn, or
// is pessimistic by a number of standard errors, the policy is greedy and its estimate stays. covariance may be nil,
// unless pessimism or auto needs it.
func Pilot(text []byte, weights, covariance []float64, noLearning bool, pessimism float64) ([]byte, error) {
	var place map[string]any
	if err := json.Unmarshal(text, &place); err != nil {
		return nil, err
	}
	policy, _ := place["policy"].(map[string]any)
	given := map[string]any{"utility": map[string]any{"kind": "linear", "intercept": true}, "pilot": "given",
		"pilot_weights": weights}
	name := policy["name"]
	if covariance == nil && (pessimism > 0 || name == "auto" && !noLearning) {
		return nil, errors.New("the model has no covariance, which --pessimistic and the prior of auto need: " +
			"leave out --pessimistic and name the policy onl-mnl, or fit the model again to data that tell all " +
			"coefficients apart")
	}
	switch {
	case noLearning || pessimism > 0:
		policy = map[string]any{"name": "greedy", "update": "none"}
		if pessimism > 0 {
			policy["pessimism"], policy["pilot_covariance"] = pessimism, covariance
		}
	case name == "auto":
		given = map[string]any{"prior_mean": weights, "prior_covariance": covariance}
	case name != "greedy" && name != "onl-mnl":
		policy = map[string]any{"name": "onl-mnl"}
	}
	maps.Copy(policy, given)
	place["policy"] = policy
	out, err := json.Marshal(place, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err == nil {
		_, err = Parse(bytes.Clone(out))
	}
	return out, err
}

// Weights converts a model's utility into the linear utility of a placement's rows. It returns its parameters, with an
// intercept, and their covariance, row after row, or nil if the model lacks one. Rows of parameters that the model
// lacks are 0.
func (c *Config) Weights(r *choice.Result) (w, covariance []float64, err error) {
	switch {
	case r.Kind() != "multinomial logit" || r.Listed() < len(r.Names):
		return nil, nil, fmt.Errorf("it is a %s: only a multinomial logit without a network has utilities that "+
			"are linear in the features", r.Kind())
	case !r.Outside:
		return nil, nil, hint.New(errors.New(
			"it has no outside option, so its utilities say nothing of who buys nothing"),
			"fit it with data.outside, to data that have customers who took nothing")
	}
	n, k := c.Schema().Width()+1, len(r.Names)
	w = make([]float64, n)
	effect := mat.NewDense(n, k, nil) // of a coefficient on a parameter
	column := make([]float64, n)
	constant := false
	for j, name := range r.Names {
		clear(column)
		if err := c.weigh(column, name, r.Spec); err != nil {
			return nil, nil, err
		}
		floats.AddScaled(w, r.Coefficients[j], column)
		constant = constant || slices.IndexFunc(column, func(v float64) bool { return v != 0 }) == n-1
		effect.SetCol(j, column)
	}
	if !constant { // without a constant in the model, the centres of features mean nothing
		effect.SetRow(n-1, make([]float64, k))
	}
	var product, all mat.Dense
	product.Mul(effect, r.Covariance)
	all.Mul(&product, effect.T())
	covariance = all.RawMatrix().Data
	if sum := floats.Sum(covariance); sum-sum != 0 || mat.Trace(r.Covariance) == 0 {
		return w, nil, nil
	}
	return w, covariance, nil
}

// valueOf is a condition on a category.
var valueOf = regexp.MustCompile(`^\s*(\w+)\s*==\s*("(?:[^"\\]|\\.)*")\s*$`)

// weigh adds the effect of a coefficient of 1 on the parameters. A number's column is (v − center)/scale.
func (c *Config) weigh(w []float64, name string, spec *choice.Spec) error {
	variable := name
	if i := slices.IndexFunc(spec.Utility.Terms, func(t choice.Term) bool { return t.Name == name }); i >= 0 {
		t := spec.Utility.Terms[i]
		if t.Alternatives != nil {
			return fmt.Errorf("coefficient %s applies only to the alternatives %q: a placement's items have no "+
				"alternatives", name, t.Alternatives)
		}
		variable = t.Variable
	}
	if variable == "1" {
		w[len(w)-1]++
		return nil
	}
	value := ""
	if m := valueOf.FindStringSubmatch(variable); m != nil {
		text, err := strconv.Unquote(m[2])
		if err != nil {
			return fmt.Errorf("coefficient %s: %w", name, err)
		}
		variable, value = m[1], text
	}
	i := slices.IndexFunc(c.Features, func(f api.Feature) bool { return f.Name == variable })
	if i < 0 {
		return fmt.Errorf("coefficient %s: the placement has no feature %q", name, variable)
	}
	f := c.Features[i]
	from, _, _ := c.schema.Columns(f.Name)
	switch k := slices.Index(f.Values, value); {
	case f.Kind == "number" && value == "":
		w[from] += *f.Scale
		w[len(w)-1] += f.Center
	case f.Kind == "category" && value != "" && k >= 0:
		w[from+k]++
	default:
		return fmt.Errorf("coefficient %s: the feature %q is a %s: want a number, or a value of a category that "+
			"lists its values", name, f.Name, f.Kind)
	}
	return nil
}
