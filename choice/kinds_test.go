package choice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// unweighted is trips without the weights, which differ between a traveller's choices.
var unweighted = replaceLine(trips, `weight = "weight"`, "")

// nestedTrips and mixedTrips are models of testdata/trips.csv.
var (
	nestedTrips = trips + `
[model]
kind = "nested"
[[model.nests]]
name = "road"
alternatives = ["bus", "car"]
[[model.nests]]
name = "rest"
alternatives = ["bike", "train"]
`
	mixedTrips = unweighted + `
[model]
kind = "mixed"
draws = 40
[[model.random]]
coefficient = "cost"
[[model.random]]
coefficient = "time / 60"
distribution = "uniform"
`
	latentTrips = replaceLine(replaceLine(unweighted, "constants = true", ""), `individual = ["income"]`, "") + `
[model]
kind = "latent"
classes = 2
membership = ["income"]
`
)

// Estimates and standard errors agree with a second implementation in NumPy, which uses numerical derivatives.
func TestKindsAgreeWithSecondImplementation(t *testing.T) {
	for _, c := range []struct {
		name, spec       string
		ll               float64
		coefficients, se []float64
	}{
		{"nested", nestedTrips, -370.42195143,
			[]float64{-0.936587, 0.014288, 0.909187, -0.251129, -0.636349, 0.273381, 0.533449, 0.146316, 0.957014,
				1.028955},
			[]float64{0.69515, 0.65338, 0.58763, 0.08680, 0.39551, 0.14919, 0.12290, 0.12987, 0.27278, 0.35508}},
		{"mixed", mixedTrips, -324.65972666,
			[]float64{-0.695939, -0.160297, 0.829117, -0.208306, -0.719879, 0.202840, 0.545493, 0.103532, 0.005257,
				0.340017},
			[]float64{0.61249, 0.66884, 0.62312, 0.08939, 0.28039, 0.15577, 0.13270, 0.14172, 0.14092, 1.67953}},
		{"latent", latentTrips, -338.95321360,
			[]float64{-0.021042, -0.667067, 0.295719, -2.108878, -11.081581, 2.816473},
			[]float64{0.04687, 0.30635, 0.06492, 0.62500, 7.05108, 1.82193}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := fitText(t, "testdata/trips.csv", c.spec, Options{})
			if !r.Converged || math.Abs(r.LogLikelihood-c.ll) > 6e-9 {
				t.Errorf("log-likelihood %.8f, want %v", r.LogLikelihood, c.ll)
			}
			se := r.StandardErrors()
			for j, want := range c.coefficients {
				if math.Abs(r.Coefficients[j]-want) > 1e-6 || math.Abs(se[j]/c.se[j]-1) > 1e-4 {
					t.Errorf("%s: %.6f (%.5f), want %v (%v)", r.Names[j], r.Coefficients[j], se[j], want, c.se[j])
				}
			}
		})
	}
}

// A nested logit with λ = 1, and a mixed logit without spread, equal MNL.
func TestKindsContainMNL(t *testing.T) {
	base, d := fitText(t, "testdata/trips.csv", unweighted, Options{})
	var want []Prediction
	predictions := fatal.Or(base.Predict(d))(t)
	for _, p := range predictions {
		p.Probabilities = slices.Clone(p.Probabilities)
		want = append(want, *p)
	}
	for _, c := range []struct {
		spec string
		more []float64
	}{{nestedTrips, []float64{1, 1}}, {mixedTrips, []float64{0, 0}}} {
		spec := fatal.Or(ReadSpec("spec", []byte(c.spec)))(t)
		r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside,
			Coefficients: append(slices.Clone(base.Coefficients), c.more...)}
		predictions := fatal.Or(r.Predict(d))(t)
		for s, p := range predictions {
			if !near(p.Outside, want[s].Outside, 1e-12) || !near(p.Logsum, want[s].Logsum, 1e-12) {
				t.Fatalf("%s: choice %d: %+v, want %+v", r.Kind(), s, p, want[s])
			}
			for i, v := range p.Probabilities {
				if !near(v, want[s].Probabilities[i], 1e-12) {
					t.Fatalf("%s: choice %d: %+v, want %+v", r.Kind(), s, p, want[s])
				}
			}
		}
	}
}

// A latent class model with equal classes equals MNL; with a certain class, it equals that class's MNL.
func TestLatentContainsMNL(t *testing.T) {
	base, _ := fitText(t, "testdata/trips.csv", replaceLine(replaceLine(unweighted, "constants = true", ""),
		`individual = ["income"]`, `individual = []`), Options{})
	spec, d := loadTrips(t, latentTrips)
	b := base.Coefficients
	for _, theta := range [][]float64{{b[0], b[1], b[0], b[1], 0.3, -0.1}, {b[0], b[1], 9, 9, -800, 0},
		{9, 9, b[0], b[1], 800, 0}} {
		r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside, Coefficients: theta}
		got := fatal.Or(r.Shares(d))(t)
		want := fatal.Or(base.Shares(d))(t)
		for i := range want {
			if !near(got[i], want[i], 1e-12) {
				t.Errorf("shares %v, want %v", got, want)
			}
		}
		mine := fatal.Or(r.logsum(d))(t)
		if theirs, err := base.logsum(d); err != nil || !near(mine, theirs, 1e-12) {
			t.Errorf("logsum %v, want %v, %v", mine, theirs, err)
		}
	}
}

// inPanels simulates the choices in d again. Groups of eight consecutive choices belong to one decision maker, with
// coefficients from draw.
func inPanels(t *testing.T, d *Data, u Utility, rng *rand.Rand, draw func() []float64) *Data {
	t.Helper()
	b := NewBuilder(d.Alternatives, d.Variables, true)
	b.Panels = true
	mnl := &Result{Spec: &Spec{Utility: u}, Alternatives: d.Alternatives, Outside: true}
	for s := range d.Choices {
		if s%8 == 0 {
			mnl.Coefficients = draw()
		}
		one := fatal.Or(slice(d, s, s+1))(t)
		drawn := fatal.Or(mnl.simulate(one, rng))(t)
		c := Case{Panel: s / 8}
		c.Alternatives, c.Chosen = drawn.Choice(0)
		for i := range c.Alternatives {
			c.X = append(c.X, value(one, 0, i, 0), value(one, 0, i, 1))
		}
		fatal.If(t, b.Add(c))
	}
	return fatal.Or(b.Data())(t)
}

// The fit recovers simulated classes: the truth is within four standard errors.
func TestLatentFindsClasses(t *testing.T) {
	d, u := simulated(t, 8000, 2)
	spec := &Spec{Utility: u, Model: Model{Kind: "latent", Classes: 2, Starts: 3, Seed: 5}}
	truth := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: true,
		Coefficients: []float64{1.5, -1, -1, 0.5, 0.7}}
	rng := rand.New(rand.NewPCG(2, 2))
	data := inPanels(t, d, u, rng, func() []float64 {
		if rng.Float64() < 1/(1+math.Exp(-0.7)) {
			return truth.Coefficients[2:4]
		}
		return truth.Coefficients[:2]
	})
	r := fatal.Or(Fit(context.Background(), spec, data, Options{}))(t)
	want := truth.Coefficients
	if r.Coefficients[0] < 0 { // classes are in no particular order
		want = []float64{-1, 0.5, 1.5, -1, -0.7}
	}
	for j, se := range r.StandardErrors() {
		if !r.Converged || math.Abs(r.Coefficients[j]-want[j]) > 4*se {
			t.Errorf("%s: %v (%v), want %v; converged %v", r.Names[j], r.Coefficients[j], se, want[j], r.Converged)
		}
	}
}

// A nest of all alternatives, without an outside option, only scales the utilities: its dissimilarity and the
// coefficients are not determined. A flat likelihood does not lead to standard errors of millions.
func TestNestOfAll(t *testing.T) {
	spec, d := loadTrips(t, nestedTrips)
	spec.Model.Nests = []Nest{{Name: "all", Alternatives: d.Alternatives}}
	with := fatal.Or(Fit(context.Background(), spec, d, Options{}))(t) // the outside option is its own nest
	if se := with.StandardErrors()[len(with.Names)-1]; !with.Converged || !(se < 10) {
		t.Errorf("converged %v, standard error %v", with.Converged, se)
	}
	d.Outside = false
	kept := fatal.Or(d.Filter(func(s int) bool { _, c := d.Choice(s); return c >= 0 }))(t)
	_, err := Fit(context.Background(), spec, kept, Options{})
	var unidentified *IdentificationError
	if !errors.As(err, &unidentified) || !slices.Contains(unidentified.Coefficients, "dissimilarity[all]") ||
		!strings.Contains(err.Error(), "the likelihood hardly changes") {
		t.Errorf("error %v", err)
	}
}

// z of a coefficient is the root of its Wald test, also for a dissimilarity, where it compares with 1.
func TestZIsWald(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", nestedTrips, Options{})
	for j, z := range r.Z() {
		wald := fatal.Or(r.Wald(r.Names[j : j+1]))(t)
		if !near(z*z, wald.Statistic, 1e-9) || !near(r.P()[j], wald.P, 1e-9) {
			t.Errorf("%s: z %v, p %v, Wald test %v", r.Names[j], z, r.P()[j], wald)
		}
	}
}

// A variable that says who belongs to which class has no finite coefficient, and no standard error of any kind. The
// classes' coefficients are then those of two multinomial logits.
func TestLatentSeparation(t *testing.T) {
	const people, each = 60, 12
	build := func(class int) *Data {
		b := NewBuilder([]string{"a", "b", "c"}, []string{"x", "z", "sign"}, false)
		b.Panels = true
		panels := 0
		rng := rand.New(rand.NewPCG(4, 4))
		for n := range people {
			beta := []float64{2, -1}
			if n%2 == 1 {
				beta = []float64{-1, 2}
			}
			kept := class < 0 || n%2 == class
			for range each {
				c := Case{Alternatives: []int{0, 1, 2}, Panel: panels}
				best := math.Inf(-1)
				for i := range 3 {
					x, z := rng.NormFloat64(), rng.NormFloat64()
					c.X = append(c.X, x, z, float64(2*(n%2)-1))
					if u := beta[0]*x + beta[1]*z - math.Log(-math.Log(rng.Float64())); u > best {
						best, c.Chosen = u, i
					}
				}
				if kept {
					fatal.If(t, b.Add(c))
				}
			}
			if kept {
				panels++
			}
		}
		return fatal.Or(b.Data())(t)
	}
	spec := func(membership ...string) *Spec {
		return &Spec{Utility: Utility{Generic: []string{"x", "z"}},
			Model: Model{Kind: "latent", Classes: 2, Starts: 3, Membership: membership}}
	}
	all := build(-1)
	for _, kind := range []string{"classic", "robust"} {
		r := fatal.Or(Fit(context.Background(), spec("sign"), all, Options{Errors: kind}))(t)
		if diff := cmp.Diff([]string{"class 2", "sign in class 2"}, r.Separated); diff != "" || r.Converged {
			t.Fatalf("converged %v, separated (-want +got):\n%s", r.Converged, diff)
		}
		if !strings.HasPrefix(r.Text(), "there is no finite estimate of class 2, sign in class 2: in some class") {
			t.Error(r.Text())
		}
		se := r.StandardErrors()
		if !math.IsNaN(se[4]) || !math.IsNaN(se[5]) {
			t.Errorf("standard errors %v", se)
		}
		for class := range 2 {
			mnl := fatal.Or(Fit(context.Background(), &Spec{Utility: spec().Utility}, build(class), Options{}))(t)
			at := 2 * class
			if (mnl.Coefficients[0] > 0) != (r.Coefficients[at] > 0) {
				at = 2 - at // classes are in no particular order
			}
			for j, want := range mnl.StandardErrors() {
				if got := r.Coefficients[at+j]; !near(got, mnl.Coefficients[j], 1e-5) {
					t.Errorf("%s: %v, want %v", r.Names[at+j], got, mnl.Coefficients[j])
				}
				if kind == "classic" && !near(se[at+j], want, 1e-5) {
					t.Errorf("%s: error %v, want %v", r.Names[at+j], se[at+j], want)
				}
			}
		}
	}
	if r, err := Fit(context.Background(), spec(), all, Options{}); err != nil || !r.Converged {
		t.Errorf("without the variable: %v", err)
	}
	// All members of one class have the same sign.
	expect.Message(Fit(context.Background(), spec("sign"), build(1), Options{}))(t,
		"model.membership: the data do not determine class 2, sign in class 2: some combination of the variables "+
			"is the same for all decision makers: leave one of them out")
	expect.Part(Fit(context.Background(), spec("x"), all, Options{}))(t,
		"model.membership: x varies among the rows of choice 1: use one value per decision maker, for example the mean")
	named := *all
	named.PanelNames = []string{"Anna"}
	expect.Part(Fit(context.Background(), spec("x"), &named, Options{}))(t, "x varies among the rows of panel Anna: ")
}

// A variable that predicts choices only within a nest, or with a coefficient of the decision maker's own, is named, in
// any unit. With noise, an estimate that was stopped early does not name a coefficient.
func TestSeparationBeyondMNL(t *testing.T) {
	build := func(scale, noise float64, taken func(n int, x []float64) int) *Data {
		rng := rand.New(rand.NewPCG(1, 2))
		b := NewBuilder([]string{"a", "b", "c"}, []string{"x", "z"}, false)
		b.Panels = true
		for n := range 600 {
			c := Case{Alternatives: []int{0, 1, 2}, Panel: n / 6}
			x := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
			for _, v := range x {
				c.X = append(c.X, scale*v, rng.NormFloat64())
			}
			if c.Chosen = taken(n, x); rng.Float64() < noise {
				c.Chosen = rng.IntN(3)
			}
			fatal.If(t, b.Add(c))
		}
		return fatal.Or(b.Data())(t)
	}
	inNest := func(n int, x []float64) int {
		switch {
		case n%5 < 2:
			return 2
		case x[1] > x[0]:
			return 1
		}
		return 0
	}
	own := func(n int, x []float64) int {
		if n/6%3 == 0 {
			return slices.Index(x, slices.Min(x))
		}
		return slices.Index(x, slices.Max(x))
	}
	nested := Model{Kind: "nested", Nests: []Nest{{Name: "ab", Alternatives: []string{"a", "b"}}}}
	mixed := Model{Kind: "mixed", Draws: 100, Random: []Random{{Coefficient: "x"}}}
	for _, c := range []struct {
		model Model
		taken func(n int, x []float64) int
		want  []string
		says  string
	}{
		{nested, inNest, []string{"dissimilarity[ab]"}, "dissimilarity[ab] is at its bound, 0.02 or 50: "},
		{mixed, own, []string{"x", "spread[x]"}, "there is no finite estimate of x, spread[x]: large values, "},
	} {
		spec := &Spec{Utility: Utility{Generic: []string{"x", "z"}}, Model: c.model}
		for _, scale := range []float64{1, 1e-4, 1e4} {
			r := fatal.Or(Fit(t.Context(), spec, build(scale, 0, c.taken), Options{}))(t)
			if diff := cmp.Diff(c.want, r.Separated); diff != "" || r.Converged ||
				!strings.HasPrefix(r.Separation(), c.says) || !strings.HasPrefix(r.Text(), c.says) {
				t.Errorf("%s, scale %v: converged %v, separated %s\n%s", r.Kind(), scale, r.Converged, diff, r.Text())
			}
		}
		r := fatal.Or(Fit(t.Context(), spec, build(1, 0.3, c.taken), Options{Steps: 2}))(t)
		if r.Separated != nil || r.Converged {
			t.Errorf("%s with noise: converged %v, separated %v", r.Kind(), r.Converged, r.Separated)
		}
	}
	// One choice contradicts all draws of its decision maker, so that the estimate is finite, but nowhere near.
	spec := &Spec{Utility: Utility{Generic: []string{"x", "z"}}, Model: mixed}
	const want = "the data do not determine x, spread[x]: the likelihood hardly changes"
	expect.Prefix(Fit(t.Context(), spec, build(1, 0.002, own), Options{}))(t, want)
	// A lognormal coefficient cannot be negative: it goes to 0, and its logarithm has no finite estimate.
	spec.Model.Random = []Random{{"x", "lognormal"}}
	r := fatal.Or(Fit(t.Context(), spec, build(1, 0.5, func(_ int, x []float64) int {
		return slices.Index(x, slices.Min(x))
	}), Options{}))(t)
	if why := r.Separation(); r.Converged || !strings.HasPrefix(why, "there is no finite estimate of x: a lognormal") {
		t.Errorf("converged %v, %s", r.Converged, why)
	}
}

// Probabilities sum to 1, and the logsum's derivative in a utility is a probability.
func TestKindsProbabilities(t *testing.T) {
	for _, text := range []string{nestedTrips, mixedTrips} {
		r, d := fitText(t, "testdata/trips.csv", text, Options{})
		predictions := fatal.Or(r.Predict(d))(t)
		bus := slices.Index(d.Alternatives, "bus")
		share := 0.0
		weights := 0.0
		for s, p := range predictions {
			sum := p.Outside
			for i, v := range p.Probabilities {
				sum += v
				if p.Alternatives[i] == bus {
					share += p.Weight * v
				}
			}
			weights += p.Weight
			if !near(sum, 1, 1e-13) {
				t.Fatalf("%s: choice %d: the probabilities sum to %v", r.Kind(), s, sum)
			}
		}
		at := slices.Index(r.Names, "constant[bus]")
		logsum := func(step float64) float64 {
			moved := *r
			moved.Coefficients = slices.Clone(r.Coefficients)
			moved.Coefficients[at] += step
			return fatal.Or(moved.logsum(d))(t)
		}
		if got := (logsum(1e-5) - logsum(-1e-5)) / 2e-5; !near(got, share/weights, 1e-8) {
			t.Errorf("%s: the logsum rises by %v in the constant of the bus, whose share is %v",
				r.Kind(), got, share/weights)
		}
	}
}

// With panels, robust and clustered errors are equal: each decision maker is a panel.
func TestMixedErrorsAreByPanel(t *testing.T) {
	robust, _ := fitText(t, "testdata/trips.csv", mixedTrips, Options{Errors: "robust"})
	clustered, _ := fitText(t, "testdata/trips.csv", replaceLine(mixedTrips, `cluster = "district"`, ""),
		Options{Errors: "clustered"})
	for j, se := range robust.StandardErrors() {
		if !near(clustered.StandardErrors()[j], se, 1e-9) {
			t.Errorf("%s: %v and %v", robust.Names[j], se, clustered.StandardErrors()[j])
		}
	}
}

// Finite draws are not symmetric, so a mixed logit's likelihood has a maximum on either side of spread 0. A fit that
// starts on the wrong side still ends at the larger maximum, here on the right.
func TestMixedMirror(t *testing.T) {
	d, u := simulated(t, 4000, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	spec := &Spec{Utility: u, Model: Model{Kind: "mixed", Draws: 20, Random: []Random{{Coefficient: "a"}}}}
	truth := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: true, Coefficients: []float64{1, -0.5, 1.5}}
	drawn := fatal.Or(truth.simulate(d, rng))(t)
	var ends []float64
	for _, start := range [][]float64{{1, -0.5, 1}, {1, -0.5, -1}} {
		_, l, err := begin(t.Context(), spec, drawn)
		fatal.If(t, err)
		o, m := newObjective(l, drawn, 0), &minimiser{steps: 100, tolerance: 1e-10}
		near := fatal.Or(m.newton(context.Background(), o, start))(t)
		best := fatal.Or(m.mirrored(context.Background(), o, l.(*mixed), near))(t)
		l.(*mixed).upright(best)
		if !best.converged || best.theta[2] < 0 {
			t.Errorf("from %v: %v, converged %v", start, best.theta, best.converged)
		}
		ends = append(ends, best.value)
	}
	if !near(ends[0], ends[1], 1e-10) {
		t.Errorf("log-likelihoods %v", ends)
	}
}

// The first numbers of the sequences match Train (2009), Section 9.3.3.
func TestHalton(t *testing.T) {
	for i, want := range []float64{0, 1. / 3, 2. / 3, 1. / 9, 4. / 9, 7. / 9, 2. / 9, 5. / 9, 8. / 9, 1. / 27} {
		if got := halton(i, 3); math.Abs(got-want) > 1e-15 {
			t.Errorf("number %d of base 3 is %v, want %v", i, got, want)
		}
	}
	var primes []int
	for k := range 8 {
		primes = append(primes, prime(k))
	}
	expect.List(t, primes, []int{2, 3, 5, 7, 11, 13, 17, 19}, "primes")
	if q := quantiles["triangular"]; q(0.5) != 0 || math.Abs(q(0.125)+0.5) > 1e-15 || math.Abs(q(0.875)-0.5) > 1e-15 {
		t.Errorf("quantiles of the triangle: %v, %v", q(0.125), q(0.875))
	}
}

func TestKindsErrors(t *testing.T) {
	for _, c := range []struct{ model, want string }{
		{`kind = "probit"`, `model.kind is "probit": want mnl, nested, mixed or latent`},
		{`kind = "nested"`, "model.nests is missing: a nested logit has nests"},
		{`kind = "mixed"`, "model.random is missing: a mixed logit has coefficients that vary"},
		{"classes = 2", `model.classes, membership, starts and seed need kind = "latent"`},
		{"kind = \"latent\"\nclasses = 1", "model.classes is 1: want 2 to 100"},
		{"kind = \"latent\"\nclasses = 4_000_000_000_000", "model.classes is 4000000000000: want 2 to 100"},
		{"kind = \"mixed\"\ndraws = 4_000_000_000_000\n[[model.random]]\ncoefficient = \"cost\"",
			"model.draws is 4000000000000: want at most 100000"},
		{"draws = 5", `model.random, correlated and draws need kind = "mixed"`},
		{"[[model.nests]]\nname = \"a\"\nalternatives = [\"bus\", \"car\"]", `model.nests needs kind = "nested"`},
		{"kind = \"nested\"\n[[model.nests]]\nname = \"a\"\nalternatives = [\"bus\"]",
			`model.nests: nest "a" has fewer than two alternatives`},
		{"kind = \"nested\"\n[[model.nests]]\nalternatives = [\"bus\", \"car\"]", `model.nests: nest 1 has no name`},
		{"kind = \"nested\"\n[[model.nests]]\nname = \"a\"\nalternatives = [\"bus\", \"tram\"]",
			`model.nests: nest "a": alternative "tram": the alternatives of the data are ["bike" "bus" "car" "train"]`},
		{"kind = \"nested\"\n[[model.nests]]\nname = \"a\"\nalternatives = [\"bus\", \"car\"]\n[[model.nests]]\nname = \"b\"\nalternatives = [\"bus\", \"train\"]", `model.nests: alternative "bus" is in two nests`},
		{"kind = \"mixed\"\n[[model.random]]\ncoefficient = \"speed\"",
			`model.random: there is no coefficient "speed": there are ["constant[bus]" "constant[car]" "constant[train]" "cost" "time / 60" "income[bus]" "income[car]" "income[train]"]`},
		{"kind = \"mixed\"\n[[model.random]]\ncoefficient = \"cost\"",
			"the weights of the choices of a panel differ: this model has one weight for each decision maker"},
		{"kind = \"mixed\"\ncorrelated = true\n[[model.random]]\ncoefficient = \"cost\"",
			"model.correlated: one random coefficient has nothing to be correlated with"},
		{"kind = \"mixed\"\ncorrelated = true\n[[model.random]]\ncoefficient = " +
			"\"cost\"\n[[model.random]]\ncoefficient = \"income[bus]\"\ndistribution = \"uniform\"",
			"model.correlated: income[bus] is uniform: only normal and lognormal coefficients can be correlated"},
		{"kind = \"mixed\"\n[[model.random]]\ncoefficient = \"cost\"\ndistribution = \"cauchy\"",
			`model.random: cost: the distribution is "cauchy": want normal, lognormal, uniform or triangular`},
	} {
		text := unweighted
		if strings.Contains(c.want, "weights") {
			text = trips
		}
		spec, err := ReadSpec("spec", []byte(text+"[model]\n"+c.model+"\n"))
		if err == nil {
			var d *Data
			if d, err = Load(context.Background(), "testdata/trips.csv", spec, nil); err != nil {
				t.Fatal(err)
			}
			_, err = Fit(context.Background(), spec, d, Options{})
		}
		if err == nil || strings.TrimPrefix(err.Error(), "spec: ") != c.want {
			t.Errorf("%s: error %v\nwant %s", c.model, err, c.want)
		}
	}
}

func TestKindsDerivatives(t *testing.T) {
	beta := []float64{.1, -.2, .3, -.2, -1, .1, .2, -.1}
	for _, c := range []struct {
		name, spec string
		more       []float64
	}{
		{"nested", nestedTrips, []float64{.6, 1.4}},
		{"nested, a shared parameter", replaceLine(replaceLine(nestedTrips, `name = "road"`,
			"name = \"road\"\nparameter = \"all\""), `name = "rest"`, "name = \"rest\"\nparameter = \"all\""),
			[]float64{.7}},
		{"mixed", mixedTrips, []float64{.3, .8}},
		{"correlated", correlatedTrips, []float64{.3, -.2, .4, .1, .2, -.3}},
		{"latent", latentTrips, []float64{-.3, -.4, -.1, .5, .3, -.2}},
		{"latent, choice by choice", replaceLine(replaceLine(latentTrips, `panel = "traveller"`, `weight = "weight"`),
			"classes = 2", "classes = 3"), []float64{-.3, -.4, -.1, .5, .3, -.2, .1, .2, -.3, .1}},
		{"mixed, lognormal and triangular, choice by choice",
			replaceLine(replaceLine(replaceLine(mixedTrips, `panel = "traveller"`, `weight = "weight"`),
				`coefficient = "cost"`, "coefficient = \"cost\"\ndistribution = \"triangular\""),
				`distribution = "uniform"`, `distribution = "lognormal"`), []float64{.3, .6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, d := loadTrips(t, c.spec)
			r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside}
			theta := append(slices.Clone(beta), c.more...)
			if spec.Model.Kind == "latent" {
				theta = c.more
			}
			checkDerivatives(t, r, d, theta)
		})
	}
}

// Starts of latent classes depend on the seed alone: equal seeds give equal starts, and others different ones. They lie
// around MNL's estimate, half a unit of utility away.
func TestStartsOfClassesAreOfTheSeed(t *testing.T) {
	d, u := simulated(t, 100, 2)
	g := fatal.Or(newDesign(&u, d.Alternatives, d.Outside, d))(t)
	// one unit of utility is 1/2, and 2
	mnl := &minimum{theta: []float64{1, -2}, moment: []float64{400, 25}, origin: curvature{choices: 100, weight: 1}}
	seen := map[string]bool{}
	var sum, square [2]float64
	const seeds, starts, classes = 50, 4, 3
	for seed := range uint64(seeds) {
		for n := range starts {
			start := func() []float64 {
				l := fatal.Or(newLatent(g, &Model{Kind: "latent", Classes: classes, Seed: seed}, d))(t)
				return l.start(mnl, n)
			}
			theta := start()
			if again := start(); !slices.Equal(theta, again) || len(theta) != 2*classes+classes-1 {
				t.Fatalf("seed %d, start %d: %v, and then %v", seed, n, theta, again)
			}
			seen[fmt.Sprint(theta)] = true
			for j := range 2 * classes {
				z := (theta[j] - mnl.theta[j%2]) / []float64{0.25, 1}[j%2]
				sum[j%2] += z
				square[j%2] += z * z
			}
		}
	}
	if len(seen) != seeds*starts {
		t.Errorf("%d different starts of %d seeds", len(seen), seeds)
	}
	n := float64(seeds * starts * classes)
	for j := range sum {
		if math.Abs(sum[j]) > 4*math.Sqrt(n) || math.Abs(square[j]-n) > 4*math.Sqrt(2*n) {
			t.Errorf("coefficient %d: the mean of the moves is %v and of their squares %v, want 0 and 1",
				j, sum[j]/n, square[j]/n)
		}
	}
}

// Only standard errors that take weights for counts depend on the weights' scale.
func TestScaleOfWeights(t *testing.T) {
	const tiny = 1e-9
	for name, text := range map[string]string{"mnl": trips, "nested": nestedTrips, "mixed": mixedTrips,
		"latent": latentTrips} {
		spec, d := loadTrips(t, text)
		fit := func(weight float64) *Result {
			weighted := d.changed(func(b *block) { b.weight = slices.Repeat([]float64{weight}, b.choices()) })
			return fatal.Or(Fit(t.Context(), spec, weighted, Options{Errors: "robust"}))(t)
		}
		one, small := fit(1), fit(tiny)
		if !near(small.LogLikelihood/tiny, one.LogLikelihood, 1e-9) || small.Converged != one.Converged {
			t.Errorf("%s: log-likelihood %v, converged %v, want %v, %v", name, small.LogLikelihood/tiny,
				small.Converged, one.LogLikelihood, one.Converged)
		}
		se, want := small.StandardErrors(), one.StandardErrors()
		for j, c := range one.Coefficients {
			if !near(small.Coefficients[j], c, 1e-6) || !near(se[j], want[j], 1e-5) {
				t.Errorf("%s: %s is %v ± %v, want %v ± %v", name, one.Names[j], small.Coefficients[j], se[j], c, want[j])
			}
		}
	}
}

// A nest of alternatives that no choice offers together is refused: its dissimilarity has no effect.
func TestNestNeverOfferedTogether(t *testing.T) {
	spec := longSpec + "[model]\nkind = \"nested\"\n[[model.nests]]\nname = \"road\"\nalternatives = [\"bus\", \"car\"]\n"
	apart := "case,alt,took,cost\n1,bus,1,1\n1,walk,0,2\n2,car,1,2\n2,walk,0,1\n3,bus,0,1\n3,walk,1,3\n4,car,0,2\n4,walk,1,1\n"
	fit := func(table string) error {
		d := mustLoad(t, "table.csv", []byte(table), spec)
		_, err := Fit(t.Context(), fatal.Or(ReadSpec("spec.toml", []byte(spec)))(t), d, Options{})
		return err
	}
	const want = "model.nests: no choice offers two alternatives of the nest of dissimilarity[road]: leave the nest out"
	if err := fit(apart); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if err := fit(apart + "5,bus,0,1\n5,car,1,2\n"); err != nil && err.Error() == want {
		t.Error(err)
	}
}
