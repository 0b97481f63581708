package setup_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/choice"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/setup"
	"vitrine/utility"
)

// The utility of a placement's row under the weights equals the model's for the request's values.
func TestModelWeights(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"age","kind":"number","from":"shopper","center":40,"scale":20},{"name":"brand","kind":"category","values":["acme","zeta"],"allow_other":true},{"name":"price","kind":"number","center":10,"scale":5},{"name":"word","kind":"text","columns":3,"default":""}]}`)))(t)
	names := []string{"price", `brand == "zeta"`, "age", "constant"}
	r := &choice.Result{Outside: true, Names: names, Coefficients: []float64{-0.3, 0.7, 0.02, 1.5},
		Covariance: mat.NewSymDense(4, []float64{0.04, 0, 0, 0.01, 0, 0.09, 0, 0, 0, 0, 0.0001, 0, 0.01, 0, 0, 0.25}),
		Spec: &choice.Spec{Utility: choice.Utility{Generic: names[:3],
			Terms: []choice.Term{{Name: "constant", Variable: "1"}}}}}
	w, covariance, err := c.Weights(r)
	fatal.If(t, err)
	for _, v := range []struct {
		brand            string
		price, age, want float64
	}{{"acme", 7, 30, -0.3*7 + 0.02*30 + 1.5}, {"zeta", 12, 55, -0.3*12 + 0.7 + 0.02*55 + 1.5},
		{"other", 10, 40, -3 + 0.8 + 1.5}} {
		row := make([]float64, c.Schema().Width())
		items := []api.Item{{ID: "i", Features: api.Values{api.Text("brand", v.brand), api.Number("price", v.price),
			api.Value{Name: "word"}}}}
		fatal.Or(c.Schema().Rows(row, api.Values{api.Number("age", v.age)}, items))(t)
		u := make([]float64, 1)
		utility.NewLinear(len(row), true).Utilities(u, w, mat.NewDense(1, len(row), row))
		if math.Abs(u[0]-v.want) > 1e-9 {
			t.Errorf("%+v: the utility is %v", v, u[0])
		}
		row = append(row, 1)
		of := mat.NewVecDense(len(row), row)
		zeta := 0.0
		if v.brand == "zeta" {
			zeta = 0.09
		}
		want := 0.04*v.price*v.price + zeta + 0.0001*v.age*v.age + 0.25 + 2*0.01*v.price
		if got := mat.Inner(of, mat.NewDense(len(row), len(row), covariance), of); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: the variance is %v, want %v", v, got, want)
		}
	}
	for want, change := range map[string]func(r *choice.Result){
		"it has no outside option": func(r *choice.Result) { r.Outside = false },
		"it is a nested logit": func(r *choice.Result) {
			r.Spec.Model.Kind = "nested"
		},
		`coefficient cost: the placement has no feature "cost"`:                                     func(r *choice.Result) { r.Names[0] = "cost" },
		`coefficient brand: the feature "brand" is a category`:                                      func(r *choice.Result) { r.Names[1] = "brand" },
		`coefficient brand == "none": the feature "brand" is a category: want a number, or a value`: func(r *choice.Result) { r.Names[1] = `brand == "none"` },
		`coefficient word: the feature "word" is a text`:                                            func(r *choice.Result) { r.Names[2] = "word" },
		`coefficient constant applies only to the alternatives ["bus"]`:                             func(r *choice.Result) { r.Spec.Utility.Terms[0].Alternatives = []string{"bus"} },
	} {
		bad := *r
		spec := *r.Spec
		spec.Utility.Terms = slices.Clone(spec.Utility.Terms)
		bad.Names, bad.Spec = slices.Clone(names), &spec
		change(&bad)
		expect.Part(c.Weights(&bad))(t, want)
	}
}
