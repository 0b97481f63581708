package choice

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"
)

// Items are the distinct rows of the variables of the coefficients.
func TestItems(t *testing.T) {
	d := mustLoad(t, "table.csv", []byte("id,alt,y,x\n1,a,1,2\n1,b,0,1\n2,b,1,1\n2,a,0,2\n3,a,1,-3\n3,b,0,1\n"), `
[data]
form = "long"
choice = ["id"]
alternative = "alt"
chosen = "y"
[utility]
constants = true
generic = ["x"]
`)
	r := &Result{Spec: &Spec{Utility: Utility{Constants: true, Generic: []string{"x"}}}, Alternatives: d.Alternatives}
	items, err := r.Items(d)
	if err != nil {
		t.Fatal(err)
	}
	want := &Items{X: [][]float64{{0, -3}, {0, 2}, {1, 1}}, Sets: [][]int32{{1, 2}, {2, 1}, {0, 2}}}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Spec.Model.Kind = "mixed"
	if _, err := r.Items(d); err == nil {
		t.Error("items of a mixed logit")
	}
	if _, _, err := r.Utility(); err == nil {
		t.Error("utility of a mixed logit")
	}
}

// The family of a model has the utilities whose probabilities the model predicts, with and without a
// network.
func TestUtilityPredicts(t *testing.T) {
	for _, text := range []string{trips, neuralTrips, replaceLine(neuralTrips, "constants = true", "")} {
		r, d := fitText(t, "testdata/trips.csv", text, Options{})
		items, err := r.Items(d)
		if err != nil {
			t.Fatal(err)
		}
		m, w, err := r.Utility()
		if err != nil {
			t.Fatal(err)
		}
		x := mat.NewDense(len(items.X), m.NumFeatures(), nil)
		for i, row := range items.X {
			x.SetRow(i, row)
		}
		u := make([]float64, len(items.X))
		m.Utilities(u, w, x)
		predictions, err := r.Predict(d)
		if err != nil {
			t.Fatal(err)
		}
		for s, p := range predictions {
			for i, item := range items.Sets[s] {
				if want := p.Outside * math.Exp(u[item]); !near(p.Probabilities[i], want, 1e-12) {
					t.Fatalf("%v, choice %d: probability %v, want %v", m, s, p.Probabilities[i], want)
				}
			}
		}
	}
}
