package choice

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// trips is a specification for testdata/trips.csv: modes that are not always available, weights, and travellers who may
// stay at home.
const trips = `
[data]
form = "long"
choice = ["trip"]
alternative = "mode"
chosen = "chosen"
available = "available"
outside = "implicit"
weight = "weight"
panel = "traveller"
cluster = "district"
[utility]
reference = "bike"
constants = true
generic = ["cost", "time / 60"]
individual = ["income"]
`

// secondImplementation lists the estimates for trips from a second implementation in NumPy, with classic and robust
// standard errors, and standard errors clustered by district and by traveller.
var secondImplementation = []struct {
	name                                          string
	coefficient, classic, robust, district, panel float64
}{
	{"constant[bus]", -1.002682915, 0.608689596, 0.779906461, 0.725266310, 0.720014447},
	{"constant[car]", 0.010224551, 0.631728058, 0.756095968, 0.638603385, 0.743536648},
	{"constant[train]", 0.913017185, 0.566204940, 0.688357321, 0.776388929, 0.727423017},
	{"cost", -0.253650777, 0.083765907, 0.098334214, 0.022619527, 0.102443458},
	{"time / 60", -0.612548871, 0.262389908, 0.289044610, 0.285120599, 0.335152530},
	{"income[bus]", 0.277146041, 0.150215238, 0.195857631, 0.201917796, 0.191034070},
	{"income[car]", 0.534039487, 0.123587098, 0.135807180, 0.157275476, 0.118697160},
	{"income[train]", 0.148135465, 0.127063056, 0.151396905, 0.227333417, 0.158623278},
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*(1+math.Abs(want))
}

func TestFitAgreesWithSecondImplementation(t *testing.T) {
	for _, kind := range []string{"classic", "robust", "clustered", "panel"} {
		t.Run(kind, func(t *testing.T) {
			text, o := trips, Options{Errors: kind}
			if kind == "panel" {
				text, o.Errors = replaceLine(trips, `cluster = "district"`, ""), "clustered"
			}
			r, d := fitText(t, "testdata/trips.csv", text, o)
			if d.Choices != 240 || d.Panels != 60 {
				t.Errorf("%d choices, %d panels", d.Choices, d.Panels)
			}
			if !r.Converged || !near(r.LogLikelihood, -370.4389123303, 1e-11) || !near(r.Null, -411.696913154, 1e-11) ||
				!near(r.ConstantsOnly, -388.96609093, 1e-10) {
				t.Errorf("log-likelihoods %.9f, %.9f, %.9f", r.LogLikelihood, r.Null, r.ConstantsOnly)
			}
			for j, want := range secondImplementation {
				se := map[string]float64{"classic": want.classic, "robust": want.robust, "clustered": want.district,
					"panel": want.panel}[kind]
				value, got, ok := r.Coefficient(want.name)
				if !ok || r.Names[j] != want.name || !near(value, want.coefficient, 1e-8) || !near(got, se, 1e-7) {
					t.Errorf("%s: %.9f (%.9f), want %.9f (%.9f)", want.name, value, got, want.coefficient, se)
				}
			}
		})
	}
}

func TestResultStatistics(t *testing.T) {
	r, _ := fitText(t, "testdata/trips.csv", trips, Options{})
	// Computed by hand from the log-likelihoods above, with K = 8 and n = 240.
	for name, c := range map[string]struct{ got, want float64 }{
		"rho":       {r.RhoSquared(), 1 - 370.4389123303/411.696913154},
		"adjusted":  {r.AdjustedRhoSquared(), 1 - 378.4389123303/411.696913154},
		"constants": {r.RhoSquaredConstants(), 1 - 370.4389123303/388.96609093},
		"aic":       {r.AIC(), 2*8 + 2*370.4389123303},
		"bic":       {r.BIC(), 8*math.Log(240) + 2*370.4389123303},
		"z":         {r.Z()[3], -0.253650777 / 0.083765907},
		// 2(1 − Φ(3.028090868)), from a table of the normal distribution.
		"p": {r.P()[3], 0.002461},
	} {
		if math.Abs(c.got-c.want) > 2e-6 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	low, high := r.Intervals(0.95)
	if !near(low[3], -0.253650777-1.959963985*0.083765907, 1e-8) ||
		!near(high[3], -0.253650777+1.959963985*0.083765907, 1e-8) {
		t.Errorf("interval [%v, %v]", low[3], high[3])
	}
}

// A fit is the same for any number of workers, bit for bit.
func TestFitDoesNotDependOnWorkers(t *testing.T) {
	d, u := simulated(t, 40_000, 5)
	var want *Result
	for _, workers := range []int{1, 3, 0} {
		r := fatal.Or(Fit(context.Background(), &Spec{Utility: u}, d, Options{Workers: workers, Errors: "robust"}))(t)
		if want == nil {
			want = r
		}
		if r.LogLikelihood != want.LogLikelihood || !slices.Equal(r.Coefficients, want.Coefficients) ||
			!slices.Equal(r.StandardErrors(), want.StandardErrors()) {
			t.Errorf("with %d workers %v, want %v", workers, r.Coefficients, want.Coefficients)
		}
	}
}

// simulated returns choices among five alternatives with the utility 0.8 x0 − 0.5 x1 + … and an outside option; some
// alternatives are unavailable.
func simulated(t testing.TB, n, variables int) (*Data, Utility) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var u Utility
	for v := range variables {
		u.Generic = append(u.Generic, string(rune('a'+v)))
	}
	b := NewBuilder([]string{"v", "w", "x", "y", "z"}, u.Generic, true)
	for range n {
		c := Case{Chosen: -1}
		best := rng.ExpFloat64()
		best = -math.Log(best)
		for a := range 5 {
			if a > 0 && rng.IntN(5) == 0 {
				continue
			}
			v := 0.0
			for k := range variables {
				x := rng.NormFloat64()
				c.X = append(c.X, x)
				v += x * (0.8 - 1.3*float64(k%2)) / float64(1+k/2)
			}
			if v -= math.Log(rng.ExpFloat64()); v > best {
				best, c.Chosen = v, len(c.Alternatives)
			}
			c.Alternatives = append(c.Alternatives, a)
		}
		fatal.If(t, b.Add(c))
	}
	d := fatal.Or(b.Data())(t)
	return d, u
}

// A large fit starts on a sample, and reaches the same estimate as a fit that does not.
func TestSamplingDoesNotMoveTheEstimate(t *testing.T) {
	d, u := simulated(t, 70_000, 3)
	var steps []Step
	r := fatal.Or(Fit(context.Background(), &Spec{Utility: u}, d, Options{Watch: func(s Step) {
		steps = append(steps, s)
	}}))(t)
	if len(steps) == 0 || steps[0].Choices > d.Choices/4 || steps[len(steps)-1].Choices != d.Choices ||
		r.Steps != len(steps) {
		t.Errorf("steps %+v", steps)
	}
	g := fatal.Or(newDesign(&u, d.Alternatives, d.Outside, d))(t)
	s := fatal.Or(newObjective(mnl{design: g, outside: true}, d, 0).at(context.Background(), r.Coefficients, first))(t)
	for j, se := range r.StandardErrors() {
		if math.Abs(s.gradient[j])*se > 1e-6 {
			t.Errorf("gradient %v at the estimate of %s, whose standard error is %v", s.gradient[j], r.Names[j], se)
		}
		if want := 0.8 - 1.3*float64(j%2); math.Abs(r.Coefficients[j]-want/float64(1+j/2)) > 4*se {
			t.Errorf("%s: %v (%v), the truth is %v", r.Names[j], r.Coefficients[j], se, want/float64(1+j/2))
		}
	}
}

// The likelihood's derivatives agree with finite differences, and its scores sum to the gradient.
func TestLikelihoodDerivatives(t *testing.T) {
	spec, d := loadTrips(t, trips)
	r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside}
	checkDerivatives(t, r, d, []float64{.1, -.2, .3, -.2, -1, .1, .2, -.1})
}

func checkDerivatives(t *testing.T, r *Result, d *Data, theta []float64) {
	t.Helper()
	ctx := context.Background()
	l := fatal.Or(r.likelihood(d))(t)
	o := newObjective(l, d, 1)
	at := fatal.Or(o.at(ctx, theta, second))(t)
	value := func(x []float64) float64 {
		s, _ := o.at(ctx, x, zeroth)
		return s.value
	}
	settings := &fd.Settings{Formula: fd.Central}
	for j, want := range fd.Gradient(nil, value, theta, settings) {
		if !near(at.gradient[j], want, 1e-6) {
			t.Errorf("gradient %d is %v, by differences %v", j, at.gradient[j], want)
		}
	}
	h := symmetric(at.hessian, len(theta))
	for j := range theta {
		along := func(x float64, k int) float64 {
			moved := slices.Clone(theta)
			moved[j] += x
			s, _ := o.at(ctx, moved, first)
			return s.gradient[k]
		}
		for k := range theta {
			want := (along(1e-5, k) - along(-1e-5, k)) / 2e-5
			if !near(h.At(j, k), want, 1e-6) {
				t.Errorf("Hessian %d, %d is %v, by differences %v", j, k, h.At(j, k), want)
			}
		}
	}
	checkScores(t, l, d, theta, at.gradient)
}

// checkScores checks that the choices' scores sum to the gradient.
func checkScores(t *testing.T, l likelihood, d *Data, theta, gradient []float64) {
	t.Helper()
	sum := make([]float64, len(theta))
	w := l.worker()
	for _, b := range d.blocks {
		scores := make([]float64, b.choices()*len(theta))
		w.scores(scores, b, theta)
		for s := range b.end {
			for j := range sum {
				sum[j] -= b.weightOf(s) * scores[s*len(theta)+j]
			}
		}
	}
	for j, want := range gradient {
		if !near(sum[j], want, 1e-10) {
			t.Errorf("the scores of parameter %d sum to %v, the gradient is %v", j, sum[j], want)
		}
	}
}

func TestIdentification(t *testing.T) {
	for _, c := range []struct {
		name, utility string
		want          []string
	}{
		{"the same within each choice", `generic = ["cost", "income"]`, nil},
		{"collinear", `generic = ["cost", "time", "cost + 2 * time"]`, []string{"cost", "time", "cost + 2 * time"}},
		{"zero", `generic = ["cost", "0 * time"]`, []string{"0 * time"}},
		{"zero among many", "constants = true\ngeneric = [\"cost\", \"mode == 'tram'\", \"time\"]\nindividual = [\"income\"]",
			[]string{"mode == 'tram'"}},
		{"all constants and their sum",
			"constants = true\n[[utility.terms]]\nname = \"all\"\nvariable = \"1\"\nalternatives = [\"bus\", \"car\"]",
			[]string{"constant[bus]", "constant[car]", "all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, d := loadTrips(t, cutAfter(trips, "[utility]\n")+c.utility)
			r, err := Fit(context.Background(), spec, d, Options{})
			var unidentified *IdentificationError
			if c.want == nil {
				// With an outside option the level of utilities matters.
				if err != nil || !r.Converged {
					t.Errorf("error %v", err)
				}
				d.Outside = false
				kept, err := d.Filter(func(s int) bool { _, c := d.Choice(s); return c >= 0 })
				fatal.If(t, err)
				_, err = Fit(context.Background(), spec, kept, Options{})
				if !errors.As(err, &unidentified) || !slices.Equal(unidentified.Coefficients, []string{"income"}) {
					t.Errorf("error %v", err)
				}
				return
			}
			if !errors.As(err, &unidentified) {
				t.Fatalf("error %v", err)
			}
			expect.Equal(t, unidentified.Coefficients, c.want)
		})
	}
}

// Data from Go need no layout of a table. Fit checks the model as ReadSpec does, and ReadModel reads what Fit made.
func TestFitInGo(t *testing.T) {
	d, u := simulated(t, 200, 2)
	for want, m := range map[string]Model{
		`model.kind is "probit": want mnl, nested, mixed or latent`: {Kind: "probit"},
		"model.classes is 0: want 2 to 100":                         {Kind: "latent"},
		"model.draws is -1: want at most 100000":                    {Kind: "mixed", Draws: -1, Random: []Random{{Coefficient: "a"}}},
		"model.random, correlated and draws need kind = \"mixed\"":  {Draws: 5},
		"model.nests is missing: a nested logit has nests":          {Kind: "nested"},
	} {
		expect.Message(Fit(context.Background(), &Spec{Utility: u, Model: m}, d, Options{}))(t, want, m)
	}
	r := fatal.Or(Fit(context.Background(), &Spec{Utility: u}, d, Options{}))(t)
	again := fatal.Or(decodeModel(fatal.Or(r.JSON())(t)))(t)
	expect.List(t, fatal.Or(again.Shares(d))(t), fatal.Or(r.Shares(d))(t), "shares")
}

// A large number added to a variable changes neither its coefficient nor the error, or the error names the remedy.
func TestOffset(t *testing.T) {
	in := func(variable string) (*Result, error) {
		spec, d := loadTrips(t, cutAfter(trips, "[utility]\n")+`generic = ["`+variable+`"]`)
		d.Outside = false
		kept := fatal.Or(d.Filter(func(s int) bool { _, c := d.Choice(s); return c >= 0 }))(t)
		return Fit(context.Background(), spec, kept, Options{})
	}
	one, large := fatal.Or(in("time"))(t), fatal.Or(in("time + 1_000_000"))(t)
	if !near(one.Coefficients[0], large.Coefficients[0], 1e-4) ||
		!near(one.StandardErrors()[0], large.StandardErrors()[0], 1e-4) {
		t.Errorf("%v (%v), want %v (%v)", large.Coefficients, large.StandardErrors(), one.Coefficients,
			one.StandardErrors())
	}
	if _, err := in("time + 1e12"); err == nil || !strings.HasSuffix(err.Error(), "(then subtract its mean)") {
		t.Errorf("error %v", err)
	}
}

// A variable's units change only its coefficient. If squares overflow, the error says so.
func TestUnits(t *testing.T) {
	also := `"time", `
	in := func(unit string) (*Result, error) {
		spec, d := loadTrips(t, cutAfter(trips, "[utility]\n")+`generic = [`+also+`"cost * `+unit+`"]`)
		return Fit(context.Background(), spec, d, Options{})
	}
	one := fatal.Or(in("1"))(t)
	for unit, size := range map[string]float64{"1e-140": 1e-140, "1e140": 1e140} {
		r := fatal.Or(in(unit))(t)
		if !near(r.Coefficients[0], one.Coefficients[0], 1e-9) ||
			!near(r.Coefficients[1]*size, one.Coefficients[1], 1e-9) ||
			!near(r.StandardErrors()[1]*size, one.StandardErrors()[1], 1e-9) {
			t.Errorf("in %s: %v, and in units of 1 %v", unit, r.Coefficients, one.Coefficients)
		}
	}
	for _, also = range []string{also, ""} {
		expect.Message(in("1e160"))(t, "the squares of the values behind coefficient cost * 1e160 are beyond 1e308: check "+
			"the data for values out of scale, or measure them in larger units")
	}
}

// Estimates are infinite for a variable that is always largest for the chosen alternative, and for the constant of an
// alternative that was never chosen.
func TestSeparation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1, 1e-4, 1e4} {
		b := NewBuilder([]string{"a", "b", "never"}, []string{"perfect", "noise"}, false)
		for range 300 {
			c := Case{Alternatives: []int{0, 1, 2}, Chosen: rng.IntN(2)}
			for i := range 3 {
				x := rng.Float64()
				if i == c.Chosen {
					x += 1
				}
				c.X = append(c.X, scale*x, rng.NormFloat64())
			}
			fatal.If(t, b.Add(c))
		}
		d := fatal.Or(b.Data())(t)
		for _, c := range []struct {
			utility Utility
			want    []string
		}{
			{Utility{Generic: []string{"perfect"}}, []string{"perfect"}},
			{Utility{Constants: true, Generic: []string{"noise"}}, []string{"constant[never]"}},
			{Utility{Generic: []string{"noise"}}, nil},
			{Utility{Constants: true, Generic: []string{"perfect"}}, []string{"constant[b]", "constant[never]", "perfect"}},
		} {
			r := fatal.Or(Fit(context.Background(), &Spec{Utility: c.utility}, d, Options{}))(t)
			if diff := cmp.Diff(c.want, r.Separated); diff != "" || r.Converged != (c.want == nil) {
				t.Errorf("scale %v, %v: converged %v, separated %v", scale, c.utility, r.Converged, diff)
			}
			// An alternative that is never chosen explains its own coefficients only.
			if why := r.Separation(); strings.HasPrefix(why, "never is never chosen") != slices.Equal(r.Separated,
				[]string{"constant[never]"}) || (why == "") != r.Converged {
				t.Errorf("%v: %s", r.Separated, why)
			}
		}
	}
}

// If the outside option was never chosen, the constants are infinite, too.
func TestOutsideIsNeverChosen(t *testing.T) {
	b := NewBuilder([]string{"a", "b"}, []string{"x"}, true)
	for s := range 100 {
		fatal.If(t, b.Add(Case{Alternatives: []int{0, 1}, Chosen: s % 2, X: []float64{float64(s % 7), float64(s % 5)}}))
	}
	r := fatal.Or(Fit(t.Context(), &Spec{Utility: Utility{Constants: true, Generic: []string{"x"}}},
		fatal.Or(b.Data())(t), Options{}))(t)
	const want = "the outside option is never chosen, so there is no finite estimate of constant[a], constant[b]: " +
		"leave outside out of [data]"
	expect.Equal(t, r.Separation(), want)
}

func TestFitStops(t *testing.T) {
	d, u := simulated(t, 1000, 3)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect.Fails(Fit(ctx, &Spec{Utility: u}, d, Options{}))(t, context.Canceled)
	r, err := Fit(context.Background(), &Spec{Utility: u}, d, Options{Steps: 1})
	if err != nil || r.Converged || r.Steps != 2 {
		t.Errorf("after one step: converged %v, %d steps, %v", r.Converged, r.Steps, err)
	}
	expect.Refused(Fit(context.Background(), &Spec{Utility: u}, d, Options{Errors: "clustered"}))(t,
		"clustered errors without clusters")
	expect.Refused(Fit(context.Background(), &Spec{Utility: u}, d, Options{Errors: "best"}))(t,
		"an unknown kind of errors")
}

func replaceLine(text, old, line string) string {
	before, after, ok := strings.Cut(text, old+"\n")
	if !ok {
		panic("no line " + old)
	}
	return before + line + "\n" + after
}

// cutAfter returns a text up to the first occurrence of mark, inclusive.
func cutAfter(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return before + mark
}

// If all choices weigh 0, the error blames the weights, not the variables.
func TestFitWithoutWeight(t *testing.T) {
	spec := replaceLine(longSpec, "[utility]", "weight = \"w - w\"\n[utility]")
	d := mustLoad(t, "table.csv", []byte(longTable), spec)
	expect.Message(Fit(t.Context(), fatal.Or(ReadSpec("spec.toml", []byte(spec)))(t), d, Options{}))(t,
		"every choice has the weight 0: check data.weight")
}
