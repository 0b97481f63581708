package choice

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Items are the distinct rows of the coefficients' variables.
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
	items := fatal.Or(r.Items(d))(t)
	want := &Items{X: [][]float64{{0, -3}, {0, 2}, {1, 1}}, Sets: [][]int32{{1, 2}, {2, 1}, {0, 2}}}
	expect.Equal(t, items, want)
	r.Spec.Model.Kind = "mixed"
	expect.Refused(r.Items(d))(t, "items of a mixed logit")
	expect.Refused(r.Utility())(t, "utility of a mixed logit")
}

// The utility family returned for a model gives the probabilities that the model predicts, with and without a network.
func TestUtilityPredicts(t *testing.T) {
	for _, text := range []string{trips, neuralTrips, replaceLine(neuralTrips, "constants = true", "")} {
		r, d := fitText(t, "testdata/trips.csv", text, Options{})
		items := fatal.Or(r.Items(d))(t)
		m, w, err := r.Utility()
		fatal.If(t, err)
		x := mat.NewDense(len(items.X), m.NumFeatures(), nil)
		for i, row := range items.X {
			x.SetRow(i, row)
		}
		u := make([]float64, len(items.X))
		m.Utilities(u, w, x)
		predictions := fatal.Or(r.Predict(d))(t)
		for s, p := range predictions {
			for i, item := range items.Sets[s] {
				if want := p.Outside * math.Exp(u[item]); !near(p.Probabilities[i], want, 1e-12) {
					t.Fatalf("%v, choice %d: probability %v, want %v", m, s, p.Probabilities[i], want)
				}
			}
		}
	}
}

// The items' utilities in a model's classes give the probabilities that the model predicts for a customer who sees the
// items together.
func TestClassesPredict(t *testing.T) {
	const shown = "trip,traveller,district,mode,chosen,available,cost,time,income,weight\n" +
		"1,1,n,bike,1,1,0,32,4,1\n1,1,n,bus,0,1,1.2,46,4,1\n1,1,n,car,0,1,4.1,15,4,1\n1,1,n,train,0,1,3,26,4,1\n"
	for _, text := range []string{trips, neuralTrips, nestedTrips, mixedTrips, correlatedTrips, latentTrips} {
		r, _ := fitText(t, "testdata/trips.csv", text, Options{})
		path := filepath.Join(t.TempDir(), "items.csv")
		fatal.If(t, os.WriteFile(path, []byte(shown), 0o644))
		together := fatal.Or(Load(context.Background(), path, r.Spec, nil))(t)
		d := fatal.Or(r.LoadItems(context.Background(), path))(t)
		shares, u, err := r.Classes(d)
		fatal.If(t, err)
		of, lambda, err := r.Nests(d)
		fatal.If(t, err)
		if (of == nil) != (r.Kind() != "nested logit") ||
			of != nil && (!slices.Equal(of, []int{1, 0, 0, 1}) || len(lambda) != 2 || lambda[0] != r.Coefficients[8]) {
			t.Errorf("%s: nests %v, %v", r.Kind(), of, lambda)
		}
		got := make([]float64, 4)
		for c, share := range shares {
			sum := 1.0
			for _, v := range u[c] {
				sum += math.Exp(v)
			}
			for i, v := range u[c] {
				got[i] += share * math.Exp(v) / sum
			}
		}
		predictions := fatal.Or(r.Predict(together))(t)
		for _, p := range predictions {
			if of != nil { // by hand: nest 0 is the road, nest 1 the rest
				inclusive := []float64{0, 0}
				for i, v := range u[0] {
					inclusive[of[i]] += math.Exp(v / lambda[of[i]])
				}
				sum := 1.0
				for k, v := range inclusive {
					sum += math.Pow(v, lambda[k])
				}
				for i, v := range u[0] {
					k := of[i]
					got[i] = math.Exp(v/lambda[k]) / inclusive[k] * math.Pow(inclusive[k], lambda[k]) / sum
				}
			}
			for i, want := range p.Probabilities {
				if !near(got[i], want, 1e-10) {
					t.Errorf("%s: item %d has probability %v, want %v", r.Kind(), i, got[i], want)
				}
			}
		}
	}
}
