package choice

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Statistics and p for the income coefficients in trips agree with a second implementation in NumPy and SciPy.
func TestLikelihoodRatioAndWald(t *testing.T) {
	special, _ := fitText(t, "testdata/trips.csv", replaceLine(trips, `individual = ["income"]`, ""), Options{})
	incomes := []string{"income[bus]", "income[car]", "income[train]"}
	for kind, want := range map[string]Test{"classic": {19.461953860928883, 3, 0.000219395898687267},
		"robust": {15.762900889394151, 3, 0.0012682277638228362}} {
		r, _ := fitText(t, "testdata/trips.csv", trips, Options{Errors: kind})
		ratio, err := r.LikelihoodRatio(special)
		if err != nil || ratio.Freedom != 3 || !near(ratio.Statistic, 21.32808570992563, 1e-8) ||
			!near(ratio.P, 8.998563764004812e-05, 1e-8) {
			t.Errorf("likelihood ratio %+v, %v", ratio, err)
		}
		wald, err := r.Wald(incomes)
		if err != nil || wald.Freedom != 3 || !near(wald.Statistic, want.Statistic, 1e-7) ||
			!near(wald.P, want.P, 1e-7) {
			t.Errorf("%s: Wald %+v, %v, want %+v", kind, wald, err, want)
		}
		// Useless coefficients leave the likelihoods equal, up to the minimiser's error.
		equal := *special
		equal.LogLikelihood = r.LogLikelihood + 1e-9
		if ratio, err := r.LikelihoodRatio(&equal); err != nil || ratio != (Test{0, 3, 1}) {
			t.Errorf("likelihood ratio %+v, %v of equal likelihoods", ratio, err)
		}
		// The order does not matter: the model with fewer coefficients is the special case.
		lines, err := special.Against("all.json", r)
		if err != nil || len(lines) != 2 ||
			lines[0] != "Likelihood ratio test against all.json: 21.3281 on 3 degrees of freedom, p 0.0001." ||
			!strings.HasPrefix(lines[1], "Wald test of income[bus], income[car], income[train]: ") {
			t.Errorf("lines %q, %v", lines, err)
		}
	}
	// A dissimilarity is compared with 1.
	nested, _ := fitText(t, "testdata/trips.csv", nestedTrips, Options{})
	wald, err := nested.Wald([]string{"dissimilarity[road]"})
	value, se, _ := nested.Coefficient("dissimilarity[road]")
	if err != nil || !near(wald.Statistic, (value-1)*(value-1)/(se*se), 1e-12) {
		t.Errorf("Wald %+v, %v", wald, err)
	}
	mixed, _ := fitText(t, "testdata/trips.csv", mixedTrips, Options{})
	base, _ := fitText(t, "testdata/trips.csv", unweighted, Options{})
	expect.Equal(t, (Test{1, 1, 0.5}).String(), "1.0000 on 1 degree of freedom, p 0.5000")
	if lines, err := mixed.Against("mnl.json", base); err != nil || len(lines) != 3 ||
		lines[2] != "A spread of 0 is at the edge of its range: the true p is smaller." {
		t.Errorf("lines %q, %v", lines, err)
	}
}

func TestComparisonErrors(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", unweighted, Options{})
	weighted, d := fitText(t, "testdata/trips.csv", trips, Options{})
	latent, _ := fitText(t, "testdata/trips.csv", latentTrips, Options{})
	of := func(_ Test, err error) error { return err }
	without := func(r *Result, drop string) error {
		_, _, err := r.HausmanMcFadden(t.Context(), d, drop)
		return err
	}
	robust := *weighted
	robust.Errors = "robust"
	for want, err := range map[string]error{
		"the models have other choices: 240 choices, 846 rows and log-likelihood -359.5360 at random, and 240, " +
			"846 and -411.6969": of(r.LikelihoodRatio(weighted)),
		"a special case has fewer coefficients: these models have 8 and 8": of(
			r.LikelihoodRatio(r)),
		"models with other numbers of latent classes are compared by BIC": of(
			r.LikelihoodRatio(latent)),
		`there is no coefficient "speed"`: of(
			r.Wald([]string{"speed"})),
		`the covariance of [] is not positive definite: name`: of(r.Wald(nil)),
		`alternative "tram": the alternatives of the data are`: without(
			weighted, "tram"),
		"bike is the reference: set utility.reference to an alternative that stays": without(
			weighted, "bike"),
		"the test of Hausman and McFadden is for a multinomial logit with classic errors": without(
			&robust, "bus"),
		"the test of Hausman and McFadden is for a multinomial logit with classic errors (latent class)": without(
			latent, "bus"),
	} {
		want, _, _ = strings.Cut(want, " (latent")
		expect.Prefix(err)(t, want)
	}
}

// The statistics agree with a second implementation in NumPy. Without the bus V₁ − V is positive definite; without the
// car or the train it is not.
func TestHausmanMcFadden(t *testing.T) {
	text := replaceLine(trips, `weight = "weight"`, "")
	r, d := fitText(t, "testdata/trips.csv", text, Options{})
	for _, c := range []struct {
		drop     string
		want     float64
		expected bool
	}{{"bus", 12.92658072362718, false}, {"car", 6.346504482784886, true}, {"train", 5.017976324046101, true}} {
		test, expected, err := r.HausmanMcFadden(t.Context(), d, c.drop)
		if err != nil || expected != c.expected || test.Freedom != 6 || !near(test.Statistic, c.want, 1e-6) {
			t.Errorf("without %s: %+v, expected %v, %v; want %v, %v", c.drop, test, expected, err, c.want, c.expected)
		}
	}
}

// If the alternatives are independent, the statistic with the expected covariance has a mean equal to its degrees of
// freedom; with two close substitutes it is far larger.
func TestHausmanMcFaddenSeesDependence(t *testing.T) {
	d, u := simulated(t, 2000, 2)
	u.Constants, u.Reference = true, "v"
	spec := &Spec{Utility: u}
	r := fatal.Or(Fit(t.Context(), spec, d, Options{}))(t)
	nested := &Result{Spec: &Spec{Utility: u,
		Model: Model{Kind: "nested", Nests: []Nest{{Name: "n", Alternatives: []string{"w", "x"}}}}},
		Alternatives: d.Alternatives, Outside: true,
		Coefficients: append(append([]float64(nil), r.Coefficients...), 0.3)}
	const runs = 60
	statistic := func(truth *Result, seed uint64) float64 {
		drawn := fatal.Or(truth.simulate(d, rand.New(rand.NewPCG(seed, 9))))(t)
		fit := fatal.Or(Fit(t.Context(), spec, drawn, Options{}))(t)
		test, _, err := fit.HausmanMcFadden(t.Context(), drawn, "x")
		if err != nil || test.Freedom != 5 {
			t.Fatalf("%+v, %v", test, err)
		}
		return test.Statistic
	}
	mean := 0.0
	for seed := range uint64(runs) {
		mean += statistic(r, seed) / runs
	}
	// The variance of χ² is twice the degrees of freedom.
	if se := math.Sqrt(2 * 5. / runs); math.Abs(mean-5) > 4*se {
		t.Errorf("the mean statistic is %.2f, want 5 ± %.2f", mean, se)
	}
	if s := statistic(nested, 1); s < 30 {
		t.Errorf("the statistic of nested choices is %.2f", s)
	}
}

func TestCompare(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", trips, Options{})
	special, _ := fitText(t, "testdata/trips.csv", replaceLine(trips, `individual = ["income"]`, ""), Options{})
	// The numbers are those in TestText, and −370.4389 − ½·21.3281 for the special case.
	want := `                       this model        small.json
constant[bus]      -1.003 (0.609)  -0.02516 (0.274)
constant[car]     0.01022 (0.632)     2.003 (0.429)
constant[train]    0.9130 (0.566)     1.457 (0.372)
cost             -0.2537 (0.0838)  -0.2724 (0.0816)
time / 60         -0.6125 (0.262)   -0.6018 (0.261)
income[bus]        0.2771 (0.150)
income[car]        0.5340 (0.124)
income[train]      0.1481 (0.127)
log-likelihood          -370.4389         -381.1030
coefficients                    8                 5
adjusted rho²              0.0808            0.0622
AIC                        756.88            772.21
BIC                        784.72            789.61
`
	expect.Equal(t, Compare([]string{"this model", "small.json"}, []*Result{r, special}), want)
}

// A name with two meanings does not make a special case.
func TestAgainstAnotherMeaning(t *testing.T) {
	fit := func(old, utility, model string) *Result {
		r, _ := fitText(t, "testdata/trips.csv", replaceLine(trips, old, utility)+model, Options{})
		return r
	}
	const generic = `generic = ["cost", "time / 60"]`
	nest := func(alternatives string) string {
		return "[model]\nkind = \"nested\"\n[[model.nests]]\nname = \"n\"\nalternatives = " + alternatives + "\n"
	}
	term := func(variable string) string { return "[[utility.terms]]\nname = \"k\"\n" + variable + "\n" }
	for _, pair := range [][2]*Result{
		{fit(generic, `generic = ["c = cost", "time / 60"]`, ""), fit(generic, `generic = ["c = cost * time"]`, "")},
		{fit(generic, generic, nest(`["bus", "car"]`)), fit(generic, `generic = ["cost"]`, nest(`["bus", "train"]`))},
		{fit(generic, `generic = ["time / 60"]`, term(`variable = "cost"`)), fit(generic, "", term(`variable = "cost * time"`))},
		{fit(generic, `generic = ["time / 60"]`, term(`variable = "cost"`)),
			fit(generic, "", term("variable = \"cost\"\nalternatives = [\"bus\"]"))},
	} {
		lines, err := pair[0].Against("small.json", pair[1])
		if err != nil || len(lines) != 1 || !strings.HasSuffix(lines[0], "if small.json is a special case of the other.") &&
			!strings.HasPrefix(lines[0], "No likelihood ratio test") {
			t.Errorf("%q, %v", lines, err)
		}
	}
	lines, err := fit(generic, generic, nest(`["bus", "car"]`)).Against("small.json",
		fit(generic, `generic = ["cost"]`, nest(`["car", "bus"]`)))
	if err != nil || len(lines) != 2 {
		t.Errorf("a nest in another order: %q, %v", lines, err)
	}
}
