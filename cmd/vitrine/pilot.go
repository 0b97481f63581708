package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
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
	"vitrine/service/feature"
	"vitrine/service/setup"
)

type pilotCmd struct {
	Model       string  `arg:"" help:"A model that vitrine fit wrote with --out."`
	Placement   string  `arg:"" help:"The configuration of a placement, as PUT takes it."`
	NoLearning  bool    `help:"Show the model's best page in every request, and learn nothing."`
	Pessimistic float64 `placeholder:"ERRORS" help:"Show the best page under utilities lowered by ERRORS standard errors, and learn nothing; 0 turns this off."`
}

// Help is the tail of the command's help.
func (pilotCmd) Help() string {
	return `It prints the placement with the policy onl-mnl (or greedy, if the placement names it), whose pilot estimate is the model: the first page is already the model's best one, and no page is drawn for a warm-up. If the placement names the policy auto, the model and its covariance become the prior of auto.

The model is a multinomial logit with an outside option. A coefficient belongs to a number of the placement's features of its name, or to a value of a category that is spelled as an expression of the specification, brand == "acme". A term of the variable "1" in all utilities is the intercept.

With --no-learning the policy is greedy with update = "none", whose estimate stays the model.

With --pessimistic 1 the policy is also greedy with update = "none", but maximizes a lower bound of the revenue: before it compares pages, it lowers each item's utility by one standard error, computed from the model's covariance. It avoids items that look good only because the log barely shows any like them. Use it if the log's pages were good already and few of them were drawn by chance; otherwise it saves nothing and may cost revenue.

` + examples("vitrine pilot model.json home.json > warm.json", "vitrine pilot model.json home.json --no-learning > fixed.json",
		"vitrine pilot model.json home.json --pessimistic 1 > careful.json")
}

// Run prints the placement.
func (c pilotCmd) Run(t terminal) error {
	if !(c.Pessimistic >= 0 && c.Pessimistic <= math.MaxFloat64) {
		return usageError{fmt.Errorf("--pessimistic %v: must be a number of standard errors, at least 0", c.Pessimistic)}
	}
	r, err := choice.ReadModel(c.Model)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Placement)
	if err != nil {
		return err
	}
	config, err := setup.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Placement, err)
	}
	weights, covariance, err := modelWeights(r, config)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	var place map[string]any
	if err := json.Unmarshal(text, &place); err != nil {
		return fmt.Errorf("%s: %w", c.Placement, err)
	}
	policy, _ := place["policy"].(map[string]any)
	given := map[string]any{"utility": map[string]any{"kind": "linear", "intercept": true}, "pilot": "given", "pilot_weights": weights}
	name := policy["name"]
	if covariance == nil && (c.Pessimistic > 0 || name == "auto" && !c.NoLearning) {
		return fmt.Errorf("%s: it has no covariance, which --pessimistic and the prior of auto need: leave out --pessimistic and name the policy onl-mnl, or fit the model again to data that tell all coefficients apart", c.Model)
	}
	switch {
	case c.NoLearning || c.Pessimistic > 0:
		policy = map[string]any{"name": "greedy", "update": "none"}
		if c.Pessimistic > 0 {
			policy["pessimism"], policy["pilot_covariance"] = c.Pessimistic, covariance
		}
	case name == "auto":
		given = map[string]any{"prior_mean": weights, "prior_covariance": covariance}
	case name != "greedy" && name != "onl-mnl":
		policy = map[string]any{"name": "onl-mnl"}
	}
	maps.Copy(policy, given)
	place["policy"] = policy
	out, err := json.Marshal(place, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if _, err := setup.Parse(bytes.Clone(out)); err != nil {
		return fmt.Errorf("%s: %w", c.Placement, err)
	}
	_, err = fmt.Fprintf(t.out, "%s\n", out)
	return err
}

// modelWeights returns the parameters, with an intercept, of the linear utility of a placement's rows
// that is the utility of a model, and their covariance, row after row; nil if the model has none. The rows of
// parameters that the model does not have are 0.
func modelWeights(r *choice.Result, c *setup.Config) (w, covariance []float64, err error) {
	switch {
	case r.Kind() != "multinomial logit" || r.Listed() < len(r.Names):
		return nil, nil, fmt.Errorf("it is a %s: only a multinomial logit without a network has utilities that are linear in the features", r.Kind())
	case !r.Outside:
		return nil, nil, hint.New(errors.New("it has no outside option, so its utilities say nothing of who buys nothing"), "fit it with data.outside, to data that have customers who took nothing")
	}
	n, k := c.Schema().Width()+1, len(r.Names)
	w = make([]float64, n)
	effect := mat.NewDense(n, k, nil) // of a coefficient on a parameter
	column := make([]float64, n)
	constant := false
	for j, name := range r.Names {
		if err := addWeight(w, name, r.Coefficients[j], r.Spec, c.Features, c.Schema()); err != nil {
			return nil, nil, err
		}
		clear(column)
		if err := addWeight(column, name, 1, r.Spec, c.Features, c.Schema()); err != nil {
			return nil, nil, err
		}
		constant = constant || slices.IndexFunc(column, func(v float64) bool { return v != 0 }) == n-1
		effect.SetCol(j, column)
	}
	if !constant { // the centres of features tell nothing of a constant that the model does not have
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

// addWeight adds a coefficient. A number's column is (v − center)/scale.
func addWeight(w []float64, name string, b float64, spec *choice.Spec, features []api.Feature, s *feature.Schema) error {
	variable := name
	if i := slices.IndexFunc(spec.Utility.Terms, func(t choice.Term) bool { return t.Name == name }); i >= 0 {
		t := spec.Utility.Terms[i]
		if t.Alternatives != nil {
			return fmt.Errorf("coefficient %s applies only to the alternatives %q: a placement's items have no alternatives", name, t.Alternatives)
		}
		variable = t.Variable
	}
	if variable == "1" {
		w[len(w)-1] += b
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
	i := slices.IndexFunc(features, func(f api.Feature) bool { return f.Name == variable })
	if i < 0 {
		return fmt.Errorf("coefficient %s: the placement has no feature %q", name, variable)
	}
	f := features[i]
	from, _, _ := s.Columns(f.Name)
	switch k := slices.Index(f.Values, value); {
	case f.Kind == "number" && value == "":
		w[from] += b * f.Scale
		w[len(w)-1] += b * f.Center
	case f.Kind == "category" && value != "" && k >= 0:
		w[from+k] += b
	default:
		return fmt.Errorf("coefficient %s: the feature %q is a %s: want a number, or a value of a category that lists its values", name, f.Name, f.Kind)
	}
	return nil
}
