package choice

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
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
		lines[2] != "A spread of 0 is at the edge of its range: the Wald test's true p is larger, and the likelihood ratio "+
			"test's is smaller, so prefer the likelihood ratio." {
		t.Errorf("lines %q, %v", lines, err)
	}
	// Robust errors and weights leave only the Wald test.
	robust, weighted, spec := *mixed, *mixed, *mixed.Spec
	robust.Errors, weighted.Spec, spec.Data.Weight = "robust", &spec, "weight"
	for _, large := range []*Result{&robust, &weighted} {
		if lines, err := large.Against("mnl.json", base); err != nil || len(lines) != 3 ||
			lines[2] != "A spread of 0 is at the edge of its range: the Wald test's true p is larger." {
			t.Errorf("lines %q, %v", lines, err)
		}
	}
}

func TestComparisonErrors(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", unweighted, Options{})
	weighted, d := fitText(t, "testdata/trips.csv", trips, Options{})
	latent, _ := fitText(t, "testdata/trips.csv", latentTrips, Options{})
	of := func(_ Test, err error) error { return err }
	without := func(r *Result, drop string) error {
		_, err := r.HausmanMcFadden(t.Context(), d, drop)
		return err
	}
	robust := *weighted
	robust.Errors = "robust"
	for want, err := range map[string]error{
		"the models have other choices or weights: 240 choices, 846 rows and log-likelihood -359.5360 at random, and " +
			"240, 846 and -411.6969: fit both to the same choices in one order": of(r.LikelihoodRatio(weighted)),
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

// The statistics agree with a second implementation in NumPy.
func TestHausmanMcFadden(t *testing.T) {
	text := replaceLine(trips, `weight = "weight"`, "")
	r, d := fitText(t, "testdata/trips.csv", text, Options{})
	for drop, want := range map[string]float64{"bus": 5.222063000049286, "car": 6.346504482784886, "train": 5.017976324046101} {
		test, err := r.HausmanMcFadden(t.Context(), d, drop)
		if err != nil || test.Freedom != 6 || !near(test.Statistic, want, 1e-6) {
			t.Errorf("without %s: %+v, %v; want %v", drop, test, err, want)
		}
	}
}

// If the alternatives are independent, the statistic has a mean equal to its degrees of freedom, and in small samples
// few p are below 1%; with two close substitutes p is tiny.
func TestHausmanMcFaddenSeesDependence(t *testing.T) {
	for _, c := range []struct{ choices, runs int }{{2000, 60}, {250, 500}} {
		d, u := simulated(t, c.choices, 2)
		u.Constants, u.Reference = true, "v"
		spec := &Spec{Utility: u}
		r := fatal.Or(Fit(t.Context(), spec, d, Options{}))(t)
		run := func(truth *Result, seed int) Test {
			drawn := fatal.Or(truth.simulate(d, rand.New(rand.NewPCG(uint64(seed), 9))))(t)
			fit := fatal.Or(Fit(t.Context(), spec, drawn, Options{}))(t)
			test, err := fit.HausmanMcFadden(t.Context(), drawn, "x")
			if err != nil || test.Freedom != 5 {
				t.Fatalf("%+v, %v", test, err)
			}
			return test
		}
		mean, rejected, runs := 0.0, 0.0, float64(c.runs)
		for seed := range c.runs {
			test := run(r, seed)
			mean += test.Statistic / runs
			rejected += indicator(test.P < 0.01) / runs
		}
		// The variance of χ² is twice the degrees of freedom. In 1,500 other simulations of 250 choices 2.3% were rejected.
		if se := math.Sqrt(2 * 5. / runs); math.Abs(mean-5) > 4*se {
			t.Errorf("%d choices: the mean statistic is %.2f, want 5 ± %.2f", c.choices, mean, se)
		}
		if se := math.Sqrt(0.023 / runs); rejected > 0.023+3*se {
			t.Errorf("%d choices: %.1f%% have p below 1%%", c.choices, 100*rejected)
		}
		if c.choices < 2000 {
			continue
		}
		nested := &Result{Spec: &Spec{Utility: u,
			Model: Model{Kind: "nested", Nests: []Nest{{Name: "n", Alternatives: []string{"w", "x"}}}}},
			Alternatives: d.Alternatives, Outside: true,
			Coefficients: append(append([]float64(nil), r.Coefficients...), 0.3)}
		for seed := range 5 {
			if test := run(nested, seed); test.P > 0.001 {
				t.Errorf("nested choices: %v", test)
			}
		}
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

// Models of other data are not compared, although the data agree in their numbers of choices and rows and in the
// log-likelihood at random. Data with other names or another order of the alternatives are the same.
func TestComparisonOfOtherData(t *testing.T) {
	small := replaceLine(unweighted, `individual = ["income"]`, "")
	spec := fatal.Or(ReadSpec("spec.toml", []byte(small)))(t)
	r, d := fitText(t, "testdata/trips.csv", unweighted, Options{})
	against := func(special *Result) error {
		special = fatal.Or(decodeModel(fatal.Or(special.JSON())(t)))(t)
		_, err := r.LikelihoodRatio(special)
		if _, also := r.Against("small.json", special); (also == nil) != (err == nil) {
			t.Errorf("LikelihoodRatio returns %v, and Against %v", err, also)
		}
		return err
	}
	changed := func(change func(b *block)) error {
		return against(fatal.Or(Fit(t.Context(), spec, d.changed(change), Options{}))(t))
	}
	expect.Prefix(changed(func(b *block) {
		b.chosen = slices.Clone(b.chosen)
		for s := range b.chosen {
			if lo, _ := b.span(s); s%2 == 0 {
				b.chosen[s] = int32(lo)
			}
		}
	}))(t, "the models have other choices or weights: 240 choices, 846 rows and log-likelihood -359.5360 at random, "+
		"and 240, 846 and -359.5360")
	expect.Message(changed(func(b *block) {
		b.x = slices.Clone(b.x)
		b.x[0] = slices.Clone(b.x[0])
		slices.Reverse(b.x[0])
	}))(t, "the models have other values of the variable cost: fit both to the same table")
	for _, spec := range []string{small,
		replaceLine(small, "[utility]", "alternatives = [\"train\", \"car\", \"bus\", \"bike\"]\n[utility]"),
		replaceLine(replaceLine(small, "[utility]", "labels = {bike = \"velo\"}\n[utility]"), `reference = "bike"`,
			`reference = "velo"`),
	} {
		special, _ := fitText(t, "testdata/trips.csv", spec, Options{})
		if err := against(special); err != nil {
			t.Errorf("%v, for%s", err, spec)
		}
	}
}

// The same data in blocks of other lengths, or with the alternatives of each choice in another order, have the same
// checksums.
func TestChecksums(t *testing.T) {
	cost := &Spec{Utility: Utility{Generic: []string{"cost"}}}
	data := func(outside, panels, reverse, swap bool) Checksums {
		b := NewBuilder([]string{"a", "b", "c"}, []string{"cost"}, outside)
		b.Panels = panels
		for i := range 2000 {
			c := Case{Alternatives: []int{0, 1, 2}, X: []float64{float64(i % 7), 8, 9}, Chosen: i % 3, Panel: i / 1500}
			if outside && i%5 == 0 {
				c.Chosen = none
			}
			if swap {
				c.X[1], c.X[2] = c.X[2], c.X[1]
			}
			if reverse {
				slices.Reverse(c.Alternatives)
				slices.Reverse(c.X)
				if c.Chosen != none {
					c.Chosen = 2 - c.Chosen
				}
			}
			fatal.If(t, b.Add(c))
		}
		return newChecksums(cost, fatal.Or(b.Data())(t))
	}
	want := data(true, false, false, false)
	for _, got := range []Checksums{data(true, true, false, false), data(true, false, true, false)} {
		if got.Choices != want.Choices || !maps.Equal(got.Variables, want.Variables) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := data(true, false, false, true); got.Choices != want.Choices || maps.Equal(got.Variables, want.Variables) {
		t.Errorf("%+v with the values of two alternatives exchanged, and %+v", got, want)
	}
	inside := NewBuilder([]string{"a", "b"}, []string{"cost"}, false)
	outside := NewBuilder([]string{"a", "b"}, []string{"cost"}, true)
	for _, b := range []*Builder{inside, outside} {
		fatal.If(t, b.Add(Case{Alternatives: []int{0, 1}, X: []float64{1, 2}}))
	}
	if newChecksums(cost, fatal.Or(inside.Data())(t)).Choices == newChecksums(cost, fatal.Or(outside.Data())(t)).Choices {
		t.Error("an outside option that no choice takes makes no difference")
	}
}

// Panels matter only between models that depend on them.
func TestComparisonOfOtherPanels(t *testing.T) {
	fit := func(text string) *Result {
		r, _ := fitText(t, "testdata/trips.csv", replaceLine(text, `panel = "traveller"`, ""), Options{})
		return r
	}
	mixed, _ := fitText(t, "testdata/trips.csv", mixedTrips, Options{})
	special := fit(mixedTrips)
	special.Names = special.Names[1:]
	expect.Message(mixed.LikelihoodRatio(special))(t,
		"the models group the choices into other panels: fit both with one data.panel")
	if _, err := mixed.LikelihoodRatio(fit(unweighted)); err != nil {
		t.Error(err)
	}
}

// A variable that two models use for other alternatives is not compared: a table may lack it in the rows of others.
func TestComparisonOfTerms(t *testing.T) {
	fit := func(alternatives string) *Result {
		r, _ := fitText(t, "testdata/trips.csv", replaceLine(unweighted, `generic = ["cost", "time / 60"]`, "")+
			"[[utility.terms]]\nvariable = \"cost\"\nalternatives = "+alternatives+"\n", Options{})
		return r
	}
	large, special := fit(`["bus", "car"]`), fit(`["bus"]`)
	if err := large.sameData(special); err != nil {
		t.Error(err)
	}
	expect.List(t, slices.Sorted(maps.Keys(large.Checksums.Variables)), []string{`cost of ["bus" "car"]`, "income"})
	expect.List(t, slices.Sorted(maps.Keys(fit(`["car", "bus"]`).Checksums.Variables)),
		slices.Sorted(maps.Keys(large.Checksums.Variables)))
}

// The criteria ignore a choice of weight 0.
func TestChoicesOfWeightZero(t *testing.T) {
	fit := func(line string) *Result {
		r, _ := fitText(t, "testdata/trips.csv", replaceLine(unweighted, "[utility]", line+"\n[utility]"), Options{})
		return r
	}
	without, zero := fit(`filter = "trip > 40"`), fit(`weight = "trip > 40"`)
	if !near(zero.BIC(), without.BIC(), 1e-12) {
		t.Errorf("BIC %v with choices of weight 0, and %v without", zero.BIC(), without.BIC())
	}
	zero = fatal.Or(decodeModel(fatal.Or(zero.JSON())(t)))(t)
	expect.Prefix(errors.New(zero.Text()))(t, "multinomial logit: 240 choices (40 of weight 0), 846 rows, ")
}

// With a true spread of 0, the likelihood ratio rejects too seldom, and the Wald test too often: of 300 data sets the
// two reject 1.7% and 11.3% at 5%.
func TestTestsOfASpread(t *testing.T) {
	long.Test(t)
	const runs, level = 300, 0.05
	var ratios, walds float64
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 9))
		b := NewBuilder([]string{"a", "b", "c"}, []string{"x", "y"}, false)
		b.Panels = true
		for n := range 600 {
			c, best := Case{Alternatives: []int{0, 1, 2}, Panel: n / 6}, math.Inf(-1)
			for a := range c.Alternatives {
				x, y := rng.NormFloat64(), rng.NormFloat64()
				c.X = append(c.X, x, y)
				if v := x - 0.5*y - math.Log(rng.ExpFloat64()); v > best {
					best, c.Chosen = v, a
				}
			}
			fatal.If(t, b.Add(c))
		}
		d := fatal.Or(b.Data())(t)
		spec := Spec{Utility: Utility{Generic: []string{"x", "y"}}}
		special := fatal.Or(Fit(t.Context(), &spec, d, Options{}))(t)
		mixed := spec
		mixed.Model = Model{Kind: "mixed", Draws: 100, Random: []Random{{"x", "normal"}}}
		r := fatal.Or(Fit(t.Context(), &mixed, d, Options{}))(t)
		ratios += indicator(fatal.Or(r.LikelihoodRatio(special))(t).P < level)
		walds += indicator(fatal.Or(r.Wald([]string{"spread[x]"}))(t).P < level)
	}
	if se := math.Sqrt(runs * level * (1 - level)); ratios > runs*level || walds < runs*level+3*se {
		t.Errorf("of %d tests, %v likelihood ratios and %v Wald tests reject", runs, ratios, walds)
	}
}
