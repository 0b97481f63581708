package choice

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Rows that the model's conditions leave out, as far as the table has their columns, are not items. The outside option
// is none, and a model that uses an item's place on the page is refused.
func TestLoadItems(t *testing.T) {
	const spec = `
[data]
form = "long"
choice = ["trip"]
alternative = "mode"
chosen = "took"
outside = "explicit"
outside_alternative = "home"
available = "seats > 0"
filter = "year == 1989"
exclude = ["walk"]
weight = "w"
panel = "traveller"
[utility]
generic = ["cost"]
`
	const cost = `generic = ["cost"]`
	const unconditional = "[data]\nform = \"long\"\nchoice = [\"trip\"]\nalternative = \"mode\"\n[utility]\n" + cost + "\n"
	deriving := func(entry string) string {
		return strings.Replace(unconditional, "[utility]", "derive = [\""+entry+"\"]\nfilter = \"derived\"\n[utility]", 1)
	}
	many := "mode,cost\n"
	for k := range maxAlternatives + 1 {
		many += fmt.Sprintf("%d,1\n", k+1)
	}
	for _, c := range []struct{ name, spec, table, want string }{
		{"all", spec, "mode,cost,seats,year\ncar,1,1,1989\nbus,,0,1989\nwalk,0,1,1989\ntrain,2,1,1988\ntram,3,2,1989\n",
			"[true false false false true] [car tram]"},
		{"no conditions", spec, "mode,cost\ncar,1\nbus,2\n", "[true true] [car bus]"},
		{"no labels", replaceLine(spec, `outside_alternative = "home"`, `outside_alternative = "1"`),
			"cost,seats\n1,1\n2,0\n3,1\n", "[true false true] [1 3]"},
		{"none available", spec, "mode,cost,seats\ncar,1,0\nbus,2,0\n",
			"the model's filter, exclude or available leaves out every row"},
		{"outside", spec, "mode,cost\ncar,1\nhome,0\n",
			"line 3: home is the outside option, which every page has: leave the row out"},
		{"outside of a wide table", `
[data]
form = "wide"
names = "{variable}_{alternative}"
chosen = "took"
alternatives = ["a", "none"]
outside = "explicit"
outside_alternative = "none"
[utility]
generic = ["cost"]
`, "alternative,cost\na,1\nnone,0\n", "line 3: none is the outside option"},
		{"position", replaceLine(spec, cost, `generic = ["cost", "position"]`), "mode,cost\ncar,1\n",
			"the model uses position, and the place of an item is not known before the page is chosen"},
		{"derived position", replaceLine(spec, cost, `generic = ["place = log(position)"]`), "mode,cost\ncar,1\n",
			"the model uses position"},
		{"a column position", replaceLine(spec, cost, `generic = ["position"]`), "mode,position\ncar,1\nbus,4\n",
			"[true true] [car bus]"},
		{"label in an expression", replaceLine(spec, cost, `generic = ["cost * (alternative == 'car')"]`),
			"cost\n1\n", `data.alternative: there is no column "mode"`},
		{"label in a condition", replaceLine(spec, `available = "seats > 0"`, `available = "alternative != 'car'"`),
			"mode,cost\ncar,1\nbus,2\n", "[false true] [bus]"},
		{"no label in a condition", replaceLine(spec, `available = "seats > 0"`, `available = "alternative != 'car'"`),
			"cost\n1\n2\n", "[true true] [1 2]"},
		{"10,001 labels", unconditional, many, "true] [1 2"},
		{"some without a label", unconditional, "mode,cost\n,1\nbus,2\n", "[true true] [1 bus]"},
		{"an excluded one without a label", spec, "mode,cost\n,1\nbus,2\n",
			"line 2: column mode is empty: it is the alternative"},
		{"derived position in a condition", deriving("derived = position <= 10"),
			"mode,cost\ncar,1\n", "[true] [car]"},
		{"derived label in a condition", deriving("derived = alternative == 'car'"),
			"cost\n1\n2\n", "[true true] [1 2]"},
		{"derived label in a condition, with labels", deriving("derived = alternative == 'car'"),
			"mode,cost\ncar,1\nbus,2\n", "[true false] [car]"},
		{"derived label in a condition, empty", deriving("derived = alternative == 'car'"),
			"mode,cost\ncar,1\n,2\n", "line 3: column mode is empty"},
		{"a condition derived from a column that is missing", deriving("derived = year > 1980"),
			"mode,cost\ncar,1\n", "[true] [car]"},
		{"a variable derived from a column that is missing", replaceLine(deriving("derived = year > 1980"), cost,
			`generic = ["derived"]`), "mode,cost\ncar,1\n", `data.derive: "year > 1980": there is no column "year"`},
		{"two customers", spec + "[model]\nkind = \"latent\"\nclasses = 2\nmembership = [\"income\"]\n",
			"mode,cost,income,seats\ncar,1,4,1\nbus,1,3,0\ntrain,1,4,1\ntram,1,5,1\n",
			"model.membership: income is 4 in row 1 and 5 in row 4: all items are shown to one customer"},
		{"no label of a constant", replaceLine(replaceLine(spec, cost, "constants = true"), `alternative = "mode"`, ""),
			"cost\n1\n", `data.alternative: there is no column "alternative"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Result{Spec: fatal.Or(ReadSpec("spec.toml", []byte(c.spec)))(t)}
			path := filepath.Join(t.TempDir(), "items.csv")
			fatal.If(t, os.WriteFile(path, []byte(c.table), 0o644))
			d, err := r.LoadItems(t.Context(), path)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(d.Kept, d.Alternatives)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
