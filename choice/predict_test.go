package choice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// handMade returns a model with given coefficients and two choices: one among three alternatives and an outside option,
// the other among two.
func handMade(t *testing.T) (*Result, *Data) {
	t.Helper()
	b := NewBuilder([]string{"a", "b", "c"}, []string{"price", "quality"}, true)
	for _, c := range []Case{
		{Alternatives: []int{0, 1, 2}, X: []float64{1, 0, 2, 1, 4, 3}, Chosen: 1},
		{Alternatives: []int{2, 0}, X: []float64{3, 1, 2, 2}, Chosen: -1, Weight: 3},
	} {
		fatal.If(t, b.Add(c))
	}
	d := fatal.Or(b.Data())(t)
	return &Result{Spec: &Spec{Utility: Utility{Generic: []string{"price", "quality"}}}, Alternatives: d.Alternatives,
		Outside: true,
		Names:   []string{"price", "quality"}, Coefficients: []float64{-0.5, 0.8}}, d
}

func TestPredict(t *testing.T) {
	r, d := handMade(t)
	predictions := fatal.Or(r.Predict(d))(t)
	// By hand, with utilities −.5, −.2, .4 and −.7, .6.
	v := [][]float64{{-.5, -.2, .4}, {-.7, .6}}
	for s, p := range predictions {
		sum := 1.0
		for _, u := range v[s] {
			sum += math.Exp(u)
		}
		for i, u := range v[s] {
			if !near(p.Probabilities[i], math.Exp(u)/sum, 1e-14) {
				t.Errorf("choice %d: %v", s, p.Probabilities)
			}
		}
		want := -math.Log(sum)
		if s == 0 {
			want -= .2
		}
		if !near(p.Outside, 1/sum, 1e-14) || !near(p.Logsum, math.Log(sum), 1e-14) ||
			!near(p.LogLikelihood(), want, 1e-14) || p.Weight != float64(1+2*s) {
			t.Errorf("choice %d: %+v", s, p)
		}
	}
	s0, s1 := 1+math.Exp(-.5)+math.Exp(-.2)+math.Exp(.4), 1+math.Exp(-.7)+math.Exp(.6)
	shares := fatal.Or(r.Shares(d))(t)
	for i, want := range []float64{
		(math.Exp(-.5)/s0 + 3*math.Exp(.6)/s1) / 4,
		math.Exp(-.2) / s0 / 4,
		(math.Exp(.4)/s0 + 3*math.Exp(-.7)/s1) / 4,
		(1/s0 + 3/s1) / 4,
	} {
		if !near(shares[i], want, 1e-14) {
			t.Errorf("share %d is %v, want %v", i, shares[i], want)
		}
	}
	score := fatal.Or(r.Score(d))(t)
	ll := -.2 - math.Log(s0) - 3*math.Log(s1)
	// Neither choice took the most probable alternative.
	if !near(score.LogLikelihood, ll, 1e-14) || !near(score.PerChoice, ll/4, 1e-14) || score.Hits != 0 ||
		!near(score.Null, -math.Log(4)-3*math.Log(3), 1e-14) {
		t.Errorf("score %+v", score)
	}
	logsum, err := r.logsum(d)
	if err != nil || !near(logsum, (math.Log(s0)+3*math.Log(s1))/4, 1e-14) {
		t.Errorf("logsum %v, %v", logsum, err)
	}
}

// The income of a traveller is the same for all alternatives. Its elasticity is the relative change of a share if it
// changes for all of them at once.
func TestElasticitiesOfACommonVariable(t *testing.T) {
	for _, text := range []string{trips, latentTrips} { // the membership is the traveller's
		r, d := fitText(t, "testdata/trips.csv", text, Options{})
		if d.Common("cost") || d.Common("colour") || !d.Common("income") {
			t.Fatal("income is the traveller's, cost is not")
		}
		v, shares := slices.Index(d.Variables, "income"), fatal.Or(r.Shares(d))(t)
		at := func(by float64) []float64 {
			return fatal.Or(r.Shares(d.changed(func(b *block) {
				b.x = slices.Clone(b.x)
				b.x[v] = slices.Clone(b.x[v])
				for i := range b.x[v] {
					b.x[v][i] *= by
				}
			})))(t)
		}
		up, down := at(1+1e-5), at(1-1e-5)
		for i, line := range fatal.Or(r.Elasticities(d, "income"))(t) {
			if want := (up[i] - down[i]) / 2e-5 / shares[i]; len(line) != 1 || !near(line[0], want, 1e-6) {
				t.Errorf("share %d: %v, want %v", i, line, want)
			}
		}
	}
}

// Elasticities agree with MNL's closed form θ x_j (δ_ij − P_j), weighted with P_i.
func TestElasticities(t *testing.T) {
	r, d := handMade(t)
	e := fatal.Or(r.Elasticities(d, "price"))(t)
	want, shares := [4][3]float64{}, [4]float64{}
	predictions := fatal.Or(r.Predict(d))(t)
	for s, p := range predictions {
		all := append(append([]float64(nil), p.Probabilities...), p.Outside)
		label := append(append([]int(nil), p.Alternatives...), 3)
		for i, pi := range all {
			shares[label[i]] += p.Weight * pi
			for j, pj := range p.Probabilities {
				derivative := -pj
				if i == j {
					derivative++
				}
				want[label[i]][label[j]] += p.Weight * pi * -0.5 * value(d, s, j, 0) * derivative
			}
		}
	}
	for i := range want {
		for j := range want[i] {
			if !near(e[i][j], want[i][j]/shares[i], 1e-8) {
				t.Errorf("elasticity %d, %d is %v, want %v", i, j, e[i][j], want[i][j]/shares[i])
			}
		}
	}
	// A coefficient stands for the variables in its terms, here one variable in two halves.
	r.Spec = &Spec{Utility: Utility{Generic: []string{"quality"},
		Terms: []Term{{"money", "price", []string{"a"}}, {"money", "price", []string{"b", "c"}}}}}
	r.Coefficients = []float64{0.8, -0.5}
	again, err := r.Elasticities(d, "money")
	if diff := cmp.Diff(e, again, cmpopts.EquateApprox(0, 1e-10)); err != nil || diff != "" {
		t.Errorf("elasticities -price +money: %s, %v", diff, err)
	}
	// Two terms of one alternative may have the same variable.
	r.Spec.Utility.Terms = append(r.Spec.Utility.Terms, Term{"money", "price", []string{"a"}})
	e = fatal.Or(r.Elasticities(d, "price"))(t)
	again, err = r.Elasticities(d, "money")
	if diff := cmp.Diff(e, again, cmpopts.EquateApprox(0, 1e-10)); err != nil || diff != "" {
		t.Errorf("elasticities -price +money: %s, %v", diff, err)
	}
	expect.Refused(r.Elasticities(d, "colour"))(t, "an unknown variable")
}

// If a column is in two variables, the elasticity in one of them would be wrong for the column.
func TestElasticitiesOfAColumnInTwoVariables(t *testing.T) {
	for _, other := range []string{"cost * (income > 3)", "dear"} {
		spec := replaceLine(trips, `generic = ["cost", "time / 60"]`,
			fmt.Sprintf(`generic = ["cost", "time / 60", %q]`, other))
		spec = replaceLine(spec, `weight = "weight"`, `derive = ["dear = cost > 2"]`)
		r, d := fitText(t, "testdata/trips.csv", spec, Options{})
		expect.Prefix(r.Elasticities(d, "cost"))(t, fmt.Sprintf("%q also changes with cost", other))
		for _, alone := range []string{"time / 60", other} {
			if _, err := r.Elasticities(d, alone); err != nil {
				t.Error(err)
			}
		}
	}
}

// A ratio of coefficients is a willingness to pay only if both belong to variables of one class that nothing else in the
// utilities changes with.
func TestNoWillingnessToPay(t *testing.T) {
	const generic = `generic = ["cost", "time / 60"]`
	with := func(list string) string { return replaceLine(trips, generic, "generic = "+list) }
	neural := strings.Replace(neuralTrips, "generic = []", generic, 1)
	const changes = " so the willingness to pay is not a ratio of two coefficients"
	individual := func(list string) string { return replaceLine(trips, `individual = ["income"]`, "individual = "+list) }
	fee := func(alternatives string) string {
		return trips + "\n[[utility.terms]]\nname = \"fee\"\nvariable = \"cost\"\nalternatives = " + alternatives + "\n"
	}
	derive := func(entry, list string) string {
		return strings.Replace(with(list), `weight = "weight"`, `derive = [`+entry+`]`, 1)
	}
	for _, c := range [][4]string{
		{with(`["cost", "time / 60", "cost * income"]`), "time / 60", "cost", "cost * income also changes with cost," + changes},
		{with(`["cost", "time / 60", "time * cost"]`), "time / 60", "income[bus]", "time * cost also changes with time / 60,"},
		{with(`["cost", "time / 60", "cost ** 2"]`), "time / 60", "cost", "cost ** 2 also changes with cost,"},
		{with(`["cost", "time / 60", "cost ** 2"]`), "time / 60", "cost ** 2", "cost also changes with cost ** 2,"},
		{individual(`["time / 60"]`), "time / 60", "cost", "time / 60[bus] also changes with time / 60,"},
		{individual(`["time / 60"]`), "cost", "time / 60[bus]", "time / 60 also changes with time / 60,"},
		{fee(`["bus"]`), "time / 60", "cost", "fee also changes with cost,"},
		{derive(`"hours = time / 60"`, `["cost", "hours", "time * income"]`), "hours", "cost", "time * income also changes with hours,"},
		{derive(`"c100 = cost / 100"`, `["c100", "time", "cost * income"]`), "time", "c100", "cost * income also changes with c100,"},
		{derive(`"red = district == 'north'"`, `["cost", "cost * red"]`), "cost * red", "cost", "cost * red also changes with cost,"},
		{neural, "time / 60", "cost", "the network also changes with time / 60,"},
		{strings.Replace(neural, `"time / 60", "income"]`, `"cost / time"]`, 1), "time / 60", "cost",
			"cost / time also changes with time / 60,"},
		{neural, "network[1]", "cost", "network[1] is not the coefficient of a variable"},
		{nestedTrips, "dissimilarity[road]", "cost", "dissimilarity[road] is not the coefficient of a variable"},
		{mixedTrips, "spread[cost]", "income[bus]", "spread[cost] is not the coefficient of a variable"},
		{trips, "cost", "constant[car]", "constant[car] is not the coefficient of a variable"},
		{latentTrips, "income in class 2", "cost (class 2)", "income in class 2 is not the coefficient of a variable"},
		{replaceLine(latentTrips, generic, `generic = ["cost", "time / 60", "cost * income"]`), "time / 60 (class 2)",
			"cost (class 2)", "cost * income also changes with cost,"},
		{latentTrips, "time / 60 (class 1)", "cost (class 2)", "time / 60 (class 1) and cost (class 2) belong to two classes:"},
	} {
		r, _ := fitText(t, "testdata/trips.csv", c[0], Options{})
		expect.Prefix(r.WillingnessToPay(c[1], c[2]))(t, c[3])
	}
}

// These ratios hold at all values of the variables.
func TestWillingnessToPayOfExpressions(t *testing.T) {
	const line = `generic = ["cost", "time / 60"]`
	generic := func(list string) string { return replaceLine(trips, line, "generic = "+list) }
	fare := func(alternative string) string {
		return "[[utility.terms]]\nname = \"fare\"\nvariable = \"cost\"\nalternatives = [\"" + alternative + "\"]\n"
	}
	table := string(fatal.Or(os.ReadFile("testdata/trips.csv"))(t))
	for _, c := range [][4]string{ // the last is the name of the column income
		{latentTrips, "time / 60 (class 2)", "cost (class 2)", "income"},
		{strings.Replace(replaceLine(latentTrips, line, `generic = ["time"]`), "[model]", fare("bus")+fare("car")+"[model]", 1),
			"time (class 2)", "fare (class 2)", "income"},
		{trips, "constant[car]", "cost", "income"},
		{generic(`["cost", "district == 'north'", "district == 'south'"]`), "district == 'north'", "cost", "income"},
		{generic(`["cost", "north = district == 'north'", "district == 'south' ? 1 : 0"]`), "north", "cost", "income"},
		{generic(`["cost", "time", "cost > 2"]`), "time", "cost", "income"},
		{generic(`["cost * (income > 3)", "time", "cost * (income <= 3)"]`), "time", "cost * (income > 3)", "income"},
		{generic(`["cost / income", "time"]`), "time", "cost / income", "income"},
		{strings.Replace(generic(`["cost"]`), "[utility]", "[utility]\nspecific = [\"time\"]", 1), "time[car]", "cost", "income"},
		{trips + "[[utility.terms]]\nname = \"fare\"\nvariable = \"income * time\"\nalternatives = [\"bus\"]\n", "income[car]", "cost", "income"},
		{replaceLine(strings.Replace(latentTrips, "[model]", "individual = [\"income\"]\n[model]", 1), `membership = ["income"]`,
			`membership = ["log(income)"]`), "income[bus] (class 1)", "cost (class 1)", "income"},
		{strings.ReplaceAll(generic(`["cost", "time"]`), "income", "walk-time"), "time", "cost", "walk-time"},
		{strings.ReplaceAll(generic(`["cost", "time"]`), "income", "time.walk"), "time", "time.walk[bus]", "time.walk"},
	} {
		path := filepath.Join(t.TempDir(), "trips.csv")
		fatal.If(t, os.WriteFile(path, []byte(strings.Replace(table, "income", c[3], 1)), 0o600))
		r, d := fitText(t, path, c[0], Options{})
		fatal.If(t, r.Write(path+".json"))
		r = fatal.Or(ReadModel(path + ".json"))(t)
		e, err := r.WillingnessToPay(c[1], c[2])
		want := -r.Coefficients[slices.Index(r.Names, c[1])] / r.Coefficients[slices.Index(r.Names, c[2])]
		if err != nil || e.Value != want {
			t.Errorf("%s: %v, %v, want %v", c[1], e.Value, err, want)
		}
		if c[3] != "income" {
			if _, err := r.Elasticities(d, "time"); err != nil {
				t.Error(err)
			}
		}
	}
}

// The estimate of a lognormal coefficient is not in the price's units.
func TestNoWillingnessToPayInLogarithms(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", mixedTrips, Options{})
	expect.Prefix(r.WillingnessToPay(r.Names[0], r.Spec.Model.Random[0].Coefficient))(t,
		r.Spec.Model.Random[0].Coefficient+" varies between decision makers: the ratio of two means is not the mean")
	r.Spec.Model.Random[0].Distribution = "lognormal"
	name := r.Spec.Model.Random[0].Coefficient
	for _, pair := range [][2]string{{name, r.Names[0]}, {r.Names[0], name}} {
		expect.Prefix(r.WillingnessToPay(pair[0], pair[1]))(t, name+" is lognormal")
	}
	if note := "The estimates for " + name + " describe its logarithm: it is above 0 for everyone. If people " +
		"dislike its variable, negate the variable.\n"; !strings.Contains(r.Text(), note) {
		t.Errorf("no note %q", note)
	}
}

func TestDelta(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", trips, Options{})
	wtp := fatal.Or(r.WillingnessToPay("time / 60", "cost"))(t)
	// The delta method by hand: the gradient of −a/p is (−1/p, a/p²).
	a, p := r.Coefficients[4], r.Coefficients[3]
	variance := r.Covariance.At(4, 4)/(p*p) + a*a/(p*p*p*p)*r.Covariance.At(3, 3) - 2*a/(p*p*p)*r.Covariance.At(3, 4)
	if !near(wtp.Value, -a/p, 1e-14) || !near(wtp.StandardError, math.Sqrt(variance), 1e-7) {
		t.Errorf("%+v, want %v, %v", wtp, -a/p, math.Sqrt(variance))
	}
	expect.Message(r.WillingnessToPay("speed", "cost"))(t,
		`there is no coefficient "speed": there are ["constant[bus]" "constant[car]" "constant[train]" "cost" "time / 60" "income[bus]" "income[car]" "income[train]"]`)
}

// simulate returns the data with choices drawn from the model.
func (r *Result) simulate(d *Data, rng *rand.Rand) (*Data, error) {
	predictions, err := r.Predict(d)
	if err != nil {
		return nil, err
	}
	drawn := d.changed(func(b *block) { b.chosen = make([]int32, len(b.chosen)) })
	drawn.Unobserved = false
	for s, p := range predictions {
		b, k := drawn.locate(s)
		lo, hi := b.span(k)
		b.chosen[k] = int32(hi - 1) // in case rounding leaves the sum of probabilities below the draw
		if d.Outside {
			b.chosen[k] = none
		}
		left := rng.Float64()
		for i, v := range p.Probabilities {
			if left -= v; left < 0 {
				b.chosen[k] = int32(lo + i)
				break
			}
		}
	}
	return drawn, nil
}

// Simulated choices have the predicted shares, and a fit to them recovers the coefficients.
func TestSimulate(t *testing.T) {
	d, u := simulated(t, 20_000, 3)
	spec := &Spec{Utility: u}
	r := fatal.Or(Fit(context.Background(), spec, d, Options{}))(t)
	drawn := fatal.Or(r.simulate(d, rand.New(rand.NewPCG(5, 6))))(t)
	again := fatal.Or(Fit(context.Background(), spec, drawn, Options{}))(t)
	for j, se := range again.StandardErrors() {
		if z := (again.Coefficients[j] - r.Coefficients[j]) / se; math.Abs(z) > 4 || z == 0 {
			t.Errorf("%s is %v standard errors away", r.Names[j], z)
		}
	}
	shares := fatal.Or(r.Shares(d))(t)
	counts := make([]float64, len(shares))
	for s := range drawn.Choices {
		alternatives, chosen := drawn.Choice(s)
		k := len(shares) - 1
		if chosen >= 0 {
			k = alternatives[chosen]
		}
		counts[k]++
	}
	for k, p := range shares {
		if se := math.Sqrt(p * (1 - p) / float64(d.Choices)); math.Abs(counts[k]/float64(d.Choices)-p) > 4*se {
			t.Errorf("alternative %d was drawn %v times, its share is %v", k, counts[k], p)
		}
	}
}

// Published predictions: the mean probabilities for Heating (mlogit), and the fit for Camera on the first 250
// respondents, judged on the others.
func TestPublishedPredictions(t *testing.T) {
	r, d := fitText(t, realData(t, "heating/Heating.csv"), heating+"\ngeneric = [\"ic\", \"oc\"]\n", Options{})
	shares := fatal.Or(r.Shares(d))(t)
	for i, want := range []float64{.10413057, .05141477, .51695653, .24030898, .08718915} {
		if math.Abs(shares[i]-want) > 6e-9 {
			t.Errorf("%s: %.9f, want %.8f", d.Alternatives[i], shares[i], want)
		}
	}

	spec := fatal.Or(ReadSpec("camera", []byte(camera)))(t)
	ctx := context.Background()
	all := fatal.Or(Load(ctx, realData(t, "camera/camera.csv"), spec, nil))(t)
	train := fatal.Or(slice(all, 0, 4000))(t)
	held := fatal.Or(slice(all, 4000, 5312))(t)
	fit := fatal.Or(Fit(ctx, spec, train, Options{}))(t)
	score := fatal.Or(fit.Score(held))(t)
	if math.Abs(fit.LogLikelihood+4880.832446) > 6e-7 || math.Abs(score.PerChoice+1.238716) > 6e-7 ||
		!near(null(all), -8549.334191, 1e-10) {
		t.Errorf("log-likelihood %.6f, then %.6f a choice, null %.6f", fit.LogLikelihood, score.PerChoice, null(all))
	}
}

// logsum returns the weighted mean of a choice's expected largest utility, up to Euler's constant: for MNL the mean of
// log Σ exp V.
func (r *Result) logsum(d *Data) (float64, error) {
	predictions, err := r.Predict(d)
	if err != nil {
		return 0, err
	}
	sum, weights := 0.0, 0.0
	for _, p := range predictions {
		sum += p.Weight * p.Logsum
		weights += p.Weight
	}
	return sum / weights, nil
}
