package choice

import (
	"context"
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

func TestText(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", trips, Options{})
	// The numbers come from the second implementation.
	want := `multinomial logit: 240 choices, 846 rows, 4 alternatives and an outside option

alternative  offered  chosen   share
bike           274.5    52.5  0.1913
bus            274.5    28.5  0.1038
car              207      73  0.2659
train          213.5      54  0.1967
(outside)      274.5    66.5  0.2423

coefficient        estimate  std. error      z       p      2.5%     97.5%
constant[bus]     -1.002683      0.6087  -1.65  0.0995    -2.196    0.1903
constant[car]    0.01022455      0.6317   0.02  0.9871    -1.228     1.248
constant[train]   0.9130172      0.5662   1.61  0.1068   -0.1967     2.023
cost             -0.2536508     0.08377  -3.03  0.0025   -0.4178  -0.08947
time / 60        -0.6125489      0.2624  -2.33  0.0196    -1.127  -0.09827
income[bus]       0.2771460      0.1502   1.84  0.0650  -0.01727    0.5716
income[car]       0.5340395      0.1236   4.32  0.0000    0.2918    0.7763
income[train]     0.1481355      0.1271   1.17  0.2437   -0.1009    0.3972

log-likelihood  -370.438912
at random       -411.696913 (rho² 0.1002, adjusted 0.0808)
constants       -388.966091 (rho² 0.0476)
AIC, BIC        756.88, 784.72
Standard errors are classic.
Converged after 5 steps.
`
	expect.Equal(t, r.Text(), want)
}

func TestLaTeX(t *testing.T) {
	r := &Result{Spec: &Spec{}, Names: []string{"pow(x_1, 2) & 5%", "b<c"},
		Coefficients: []float64{-1234.5, 0.000012345},
		Covariance:   mat.NewSymDense(2, []float64{100, 0, 0, 1e-10}), LogLikelihood: -10, Null: -20,
		ConstantsOnly: math.NaN(),
		Choices:       100, Errors: "robust", Steps: 3, Decrement: 0.5}
	want := `\begin{tabular}{lrrrr}
\toprule
 & estimate & std.\ error & $z$ & $p$ \\
\midrule
pow(x\_1, 2) \& 5\% & $-1234$ & $10.0$ & $-123.45$ & $0.0000$ \\
b$<$c & $0.00001234$ & $0.0000100$ & $1.23$ & $0.2170$ \\
\midrule
log-likelihood & \multicolumn{4}{r}{-10.000000} \\
at random & \multicolumn{4}{r}{-20.000000 (rho$^2$ 0.5000, adjusted 0.4000)} \\
AIC, BIC & \multicolumn{4}{r}{24.00, 29.21} \\
\bottomrule
\end{tabular}
% Standard errors are robust.
% Not converged after 3 steps: the log-likelihood may still rise by about 0.25.
`
	expect.Equal(t, r.LaTeX(), want)
	r.Separated = slices.Repeat([]string{"b<c"}, 22)
	if why := r.Separation(); strings.Count(why, "b<c") != 20 || !strings.Contains(why, " and 2 more:") {
		t.Error(why)
	}
	r.Separated = []string{"b<c"}
	if text := r.LaTeX(); !strings.HasPrefix(text,
		"% there is no finite estimate of b<c: some combination of their variables predicts choices perfectly; leave variables out.\n") ||
		!strings.Contains(text, "b$<$c &  &  &  &  \\\\\n") {
		t.Error(text)
	}
}

func TestModelFile(t *testing.T) {
	r, d := fitText(t, "testdata/trips.csv", trips, Options{Errors: "robust"})
	path := filepath.Join(t.TempDir(), "model.json")
	fatal.If(t, r.Write(path))
	again := fatal.Or(ReadModel(path))(t)
	expect.Equal(t, again.Text(), r.Text())
	if !mat.Equal(r.Covariance, again.Covariance) {
		t.Error("the covariance has changed")
	}
	want := fatal.Or(r.Shares(d))(t)
	expect.Equal(t, fatal.Or(again.Shares(d))(t), want, "shares")
	text := fatal.Or(os.ReadFile(path))(t)
	for _, c := range []struct{ old, new, want string }{
		{"vitrine choice model", "a model", "it is not a model that vitrine fit wrote"},
		{`"version": 1`, `"version": 2`,
			"the model is in format 2, and this program reads format 1: use the release of vitrine that wrote it"},
		{`"name": "cost"`, `"name": "price"`, "its coefficients are"},
		{`"form": "long"`, `"form": "tall"`, `data.form is "tall"`},
		{`"covariance": [`, `"covariance": [[1],`, "the covariance is not of 8 coefficients"},
		{`"rows"`, `"lines"`, "lines"},
		{`"choices": "`, `"choices": "", "panels": "`, "it holds no checksums of its data: fit the model again"},
		{string(text[len(text)/2:]), "", "it is not a model that vitrine fit wrote"},
	} {
		expect.Part(decodeModel([]byte(strings.Replace(string(text), c.old, c.new, 1))))(t, c.want, c.new, c.old)
	}
	expect.Refused(ReadModel(path+"x"))(t, "a file that is not there")
}

// A model with infinite estimates lacks a covariance, and still writes valid JSON.
func TestModelFileWithoutCovariance(t *testing.T) {
	r := &Result{Spec: &Spec{Data: Layout{Form: "long", Choice: []string{"id"}, Chosen: "y"},
		Utility: Utility{Generic: []string{"x"}}}, Alternatives: []string{"a"},
		Names: []string{"x"}, Coefficients: []float64{20}, Covariance: mat.NewSymDense(1, []float64{math.NaN()}),
		ConstantsOnly: math.NaN(), Null: -1, Choices: 2, Decrement: math.NaN(), Checksums: Checksums{Choices: "0"}}
	text := fatal.Or(r.JSON())(t)
	again := fatal.Or(decodeModel(text))(t)
	if !math.IsNaN(again.Covariance.At(0, 0)) || !math.IsNaN(again.ConstantsOnly) || !math.IsNaN(again.Decrement) ||
		again.Coefficients[0] != 20 {
		t.Errorf("%+v", again)
	}
}

// Choices with one alternative have a log-likelihood of 0 in any model: ρ² is 0/0, which JSON cannot express.
func TestModelFileWithoutAlternatives(t *testing.T) {
	b := NewBuilder([]string{"a"}, []string{"x"}, false)
	for x := range 3 {
		fatal.If(t, b.Add(Case{Alternatives: []int{0}, X: []float64{float64(x)}}))
	}
	d := fatal.Or(b.Data())(t)
	spec := &Spec{Data: Layout{Form: "long", Choice: []string{"id"}, Chosen: "y"},
		Utility: Utility{Network: &Network{Variables: []string{"x"}, Hidden: []int{1}, Starts: 1}}}
	r := fatal.Or(Fit(t.Context(), spec, d, Options{}))(t)
	if text, err := r.JSON(); err != nil || !strings.Contains(string(text), `"rho_squared": null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// By hand: the correlation is −1.5/(2·3).
func TestMatrix(t *testing.T) {
	r := &Result{Spec: &Spec{}, Names: []string{"price", "quality"},
		Covariance: mat.NewSymDense(2, []float64{4, -1.5, -1.5, 9})}
	for correlation, want := range map[bool]string{
		false: "covariance       1      2\n1 price      4.000\n2 quality   -1.500  9.000\n",
		true:  "correlation        1       2\n1 price       1.0000\n2 quality    -0.2500  1.0000\n",
	} {
		expect.Equal(t, r.Matrix(correlation), want)
	}
}

// The report begins with alternatives that were never chosen. Their coefficients appear without numbers, both in the
// table and in JSON. Models that contain MNL have no finite estimate either.
func TestNeverChosen(t *testing.T) {
	path := realData(t, "fishing/Fishing.csv")
	text := strings.Replace(fishing, "[utility]", "filter = \"mode != 'pier'\"\n[utility]",
		1) + "constants = true\ngeneric = [\"price\"]\n"
	r, d := fitText(t, path, text, Options{})
	const reason = `pier is never chosen, so there is no finite estimate of constant[pier]: exclude = ["pier"] in [data] leaves it out`
	if table := r.Text(); !strings.HasPrefix(table, reason+".\n") || !strings.Contains(table, "\nconstant[pier]\n") ||
		!strings.Contains(table, "\npier            1004       0  0.0000\n") {
		t.Error(table)
	}
	file, err := r.JSON()
	if err != nil || !strings.Contains(string(file),
		"\"name\": \"constant[pier]\",\n      \"estimate\": null,\n      \"standard_error\": null,") {
		t.Errorf("%s, %v", file, err)
	}
	expect.Message(decodeModel(file))(t, "there is no finite estimate of constant[pier]")
	for _, m := range []Model{
		{Kind: "nested", Nests: []Nest{{Name: "boats", Alternatives: []string{"boat", "charter"}}}},
		{Kind: "mixed", Random: []Random{{Coefficient: "price"}}},
		{Kind: "latent", Classes: 2},
	} {
		spec := *r.Spec
		spec.Model = m
		expect.Message(Fit(t.Context(), &spec, d, Options{}))(t, reason, m.Kind)
	}
}

// A model file that can be read can be printed, and rewritten without change.
func FuzzModelFile(f *testing.F) {
	for _, text := range []string{trips, mixedTrips, nestedTrips, latentTrips} {
		spec := fatal.Or(ReadSpec("spec.toml", []byte(text)))(f)
		d := fatal.Or(Load(f.Context(), "testdata/trips.csv", spec, nil))(f)
		r, l, err := begin(context.Background(), spec, d)
		fatal.If(f, err)
		n := len(l.names())
		r.Coefficients, r.Covariance = make([]float64, n), mat.NewSymDense(n, nil)
		r.Offered, r.Chosen = frequencies(d)
		r.Null = null(d)
		file := fatal.Or(r.JSON())(f)
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeModel(text)
		if err != nil {
			return
		}
		_, _, _ = r.Text(), r.LaTeX(), r.Matrix(true)
		file := fatal.Or(r.JSON())(t)
		again := fatal.Or(decodeModel(file))(t)
		expect.Equal(t, again.Text(), r.Text())
	})
}

// The notes say when errors rest on few clusters or draws, and when a nest contradicts utility maximisation.
func TestNotes(t *testing.T) {
	notes := func(spec string, o Options) (*Result, string) {
		r, _ := fitText(t, "testdata/trips.csv", spec, o)
		return r, strings.Join(r.notes(), "\n")
	}
	few, text := notes(trips, Options{Errors: "clustered"})
	if !strings.HasPrefix(text, "Standard errors are clustered, by 4 clusters: with fewer than 20 they are too small") {
		t.Errorf("4 clusters: %s", text)
	}
	text = string(fatal.Or(few.JSON())(t))
	if again := fatal.Or(decodeModel([]byte(text)))(t); again.Clusters != 4 {
		t.Errorf("%d clusters after reading", again.Clusters)
	}
	if _, text = notes(replaceLine(trips, `cluster = "district"`, ""), Options{Errors: "clustered"}); !strings.HasPrefix(text,
		"Standard errors are clustered, by 60 clusters.\n") {
		t.Errorf("60 panels: %s", text)
	}
	small, _ := fitText(t, "testdata/trips.csv", replaceLine(replaceLine(trips,
		`individual = ["income"]`, ""), `generic = ["cost", "time / 60"]`, ""), Options{})
	lines := fatal.Or(few.Against("small.json", small))(t)
	expect.Equal(t, lines[1], "No Wald test of cost, time / 60, income[bus], income[car], income[train]: 4 clusters are "+
		"too few to test 5 coefficients together.")
	_, text = notes(replaceLine(mixedTrips, "draws = 40", "draws = 49"), Options{})
	if !strings.Contains(text, "\nWith fewer than 50 draws, estimates depend on their number: take more.\n") {
		t.Errorf("49 draws: %s", text)
	}
	nested, text := notes(nestedTrips, Options{})
	j := slices.Index(nested.Names, "dissimilarity[rest]")
	if strings.Contains(text, "contradicts") {
		t.Errorf("dissimilarities %v: %s", nested.Coefficients[j-1:], text)
	}
	nested.Covariance.SetSym(j, j, 1e-6)
	if text = nested.Text(); !strings.Contains(text, "\ndissimilarity[rest] is significantly above 1: the model contradicts "+
		"utility maximisation there, so try other nests.\n") || strings.Count(text, "contradicts") != 1 {
		t.Errorf("a large dissimilarity: %s", text)
	}
}
