package choice

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// neuralTrips is a model of testdata/trips.csv with constants and a network.
var neuralTrips = replaceLine(replaceLine(trips, `generic = ["cost", "time / 60"]`, "generic = []"),
	`individual = ["income"]`, `
[utility.network]
variables = ["cost", "time / 60", "income"]
hidden = [3]
penalty = 0.5
seed = 7
`)

// loadTrips returns a specification and its data.
func loadTrips(t *testing.T, text string) (*Spec, *Data) {
	t.Helper()
	spec := fatal.Or(ReadSpec("spec", []byte(text)))(t)
	d := fatal.Or(Load(context.Background(), "testdata/trips.csv", spec, nil))(t)
	return spec, d
}

// The gradient agrees with finite differences. The Hessian is the expected information Σ_s w_s Σ_i ∇P_i ∇P_iᵀ/P_i, with
// probabilities differentiated numerically, plus the penalty.
func TestNetworkDerivatives(t *testing.T) {
	spec, d := loadTrips(t, neuralTrips)
	r, l, err := begin(t.Context(), spec, d)
	fatal.If(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	theta := make([]float64, len(r.Names))
	for j := range theta {
		theta[j] = rng.NormFloat64() / 2
	}
	o := newObjective(l, d, 1)
	at := fatal.Or(o.at(context.Background(), theta, second))(t)
	value := func(x []float64) float64 {
		s, _ := o.at(context.Background(), x, zeroth)
		return s.value
	}
	for j, want := range fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central}) {
		if !near(at.gradient[j], want, 1e-6) {
			t.Errorf("gradient %d is %v, by differences %v", j, at.gradient[j], want)
		}
	}

	// probabilities covers all rows and outside options.
	probabilities := func(theta []float64) (p, weights []float64) {
		moved := *r
		moved.Coefficients = theta
		predictions := fatal.Or(moved.Predict(d))(t)
		for _, q := range predictions {
			p = append(append(p, q.Probabilities...), q.Outside)
			for range len(q.Probabilities) + 1 {
				weights = append(weights, q.Weight)
			}
		}
		return p, weights
	}
	p, weights := probabilities(theta)
	slopes := make([][]float64, len(theta))
	for j := range theta {
		moved := slices.Clone(theta)
		const h = 1e-5
		moved[j] += h
		up, _ := probabilities(moved)
		moved[j] -= 2 * h
		down, _ := probabilities(moved)
		slopes[j] = make([]float64, len(p))
		for i := range p {
			slopes[j][i] = (up[i] - down[i]) / (2 * h)
		}
	}
	hessian := symmetric(at.hessian, len(theta))
	penalty := 0.0
	for j := range theta {
		for k := j; k < len(theta); k++ {
			want := 0.0
			for i, v := range p {
				want += weights[i] * slopes[j][i] * slopes[k][i] / v
			}
			if j == k && strings.HasPrefix(r.Names[j], "network") {
				want += 0.5
				penalty += 0.25 * theta[j] * theta[j]
			}
			if !near(hessian.At(j, k), want, 1e-6) {
				t.Errorf("Hessian %d, %d is %v, want %v", j, k, hessian.At(j, k), want)
			}
		}
	}
	if got := l.(penalised).penalty(nil, theta); !near(got, penalty, 1e-12) {
		t.Errorf("penalty %v, want %v", got, penalty)
	}
	unpenalised := slices.Clone(at.gradient)
	for j, name := range r.Names {
		if strings.HasPrefix(name, "network") {
			unpenalised[j] -= 0.5 * theta[j]
		}
	}
	checkScores(t, l, d, theta, unpenalised)
}

// With a small penalty, a linear family in place of a network gives the multinomial logit of the same variables, in
// units of their standard deviations.
func TestNetworkOfLinearFamily(t *testing.T) {
	const intercept = "[[utility.terms]]\nvariable = \"1\"\n" // absorbs the means of the variables
	want, _ := fitText(t, "testdata/trips.csv", trips+intercept, Options{})
	spec, d := loadTrips(t, trips)
	spec.Utility.Generic = nil
	spec.Utility.Network = &Network{Variables: []string{"cost", "time / 60"}, Model: utility.NewLinear(2, true),
		Penalty: 1e-10}
	r := fatal.Or(Fit(context.Background(), spec, d, Options{Tolerance: 1e-12}))(t)
	if !r.Converged || !near(r.LogLikelihood, want.LogLikelihood, 1e-9) {
		t.Errorf("log-likelihood %v, want %v", r.LogLikelihood, want.LogLikelihood)
	}
	for k, name := range []string{"cost", "time / 60"} {
		theta, se, _ := want.Coefficient(name)
		j := len(r.Names) - 3 + k
		if sd := r.Scale.SD[k]; !near(r.Coefficients[j]/sd, theta, 1e-6) || !near(r.StandardErrors()[j]/sd, se, 1e-6) {
			t.Errorf("%s: %v (%v), want %v (%v)", name, r.Coefficients[j]/sd, r.StandardErrors()[j]/sd, theta, se)
		}
	}
	expect.Part(r.JSON())(t, "*utility.Linear", "a model file of another family")
}

// A network learns a non-linear utility, and predicts unseen choices better than the multinomial logit of the same
// variables.
func TestNetworkLearnsABend(t *testing.T) {
	d, u := simulated(t, 1500, 1)
	truth := &Result{Spec: &Spec{Utility: Utility{Network: &Network{Variables: u.Generic,
		Model: bend{utility.NewLinear(1, false)}}}},
		Alternatives: d.Alternatives, Outside: true, Scale: &Scale{Mean: []float64{0}, SD: []float64{1}},
		Coefficients: []float64{2}}
	d = fatal.Or(truth.simulate(d, rand.New(rand.NewPCG(5, 5))))(t)
	fit, held, err := d.Split(0.3, 1)
	fatal.If(t, err)
	perChoice := func(spec *Spec) float64 {
		r := fatal.Or(Fit(context.Background(), spec, fit, Options{}))(t)
		s, err := r.Score(held)
		if err != nil || !r.Converged {
			t.Fatalf("%v, converged %v", err, r.Converged)
		}
		return s.PerChoice
	}
	best := fatal.Or(truth.Score(held))(t)
	linear := perChoice(&Spec{Utility: u})
	network := perChoice(&Spec{Utility: Utility{Network: &Network{Variables: u.Generic, Hidden: []int{4}, Starts: 1}}})
	if network < best.PerChoice-0.03 || linear > best.PerChoice-0.2 {
		t.Errorf("log-likelihood a choice: %v with a network, %v without, %v of the truth",
			network, linear, best.PerChoice)
	}
}

// bend is the family f_w(x) = w|x|.
type bend struct{ *utility.Linear }

func (bend) Utilities(dst, w []float64, x *mat.Dense) {
	for i := range dst {
		dst[i] = w[0] * math.Abs(x.At(i, 0))
	}
}

func TestNetworkModelFile(t *testing.T) {
	r, d := fitText(t, "testdata/trips.csv", neuralTrips, Options{})
	if !r.Converged {
		t.Fatalf("not converged: decrement %v", r.Decrement)
	}
	path := filepath.Join(t.TempDir(), "model.json")
	fatal.If(t, r.Write(path))
	again := fatal.Or(ReadModel(path))(t)
	want := fatal.Or(r.Shares(d))(t)
	if got, err := again.Shares(d); err != nil || !slices.Equal(got, want) {
		t.Errorf("shares %v, want %v, error %v", got, want, err)
	}
	if text := r.Text(); strings.Contains(text, "network[1]") || !strings.Contains(text, "constant[bus]") ||
		!strings.Contains(text, "The network of cost, time / 60, income (tanh 3-3-1) has 16 parameters") {
		t.Errorf("text:\n%s", text)
	}
}

func TestNetworkErrors(t *testing.T) {
	for _, c := range []struct{ network, want string }{
		{"", `utility.network has no variables: variables = ["cost", "time"]`},
		{"variables = [\"cost\"]\npenalty = -1", "utility.network: penalty is -1: want a number above 0"},
		{"variables = [\"cost\"]\nhidden = [0]", "utility.network: hidden is [0]: want widths from 1 to 2000"},
		{"variables = [\"cost\"]\nhidden = [700]",
			"utility.network: hidden is [700]: it makes 2101 parameters, and the most are 2000"},
		{"variables = [\"cost\"]\nstarts = -1", "utility.network: starts is -1"},
		{"variables = [\"cost\"]\nactivation = \"step\"",
			`utility.network: activation: unknown activation "step": want one of sigmoid, tanh, relu, softplus, sine`},
		{"variables = [\"cost\"]\n[model]\nkind = \"latent\"\nclasses = 2",
			`utility.network needs a multinomial logit: model.kind is "latent"`},
	} {
		_, err := ReadSpec("spec", []byte(unweighted+"[utility.network]\n"+c.network+"\n"))
		if err == nil || strings.TrimPrefix(err.Error(), "spec: ") != c.want {
			t.Errorf("%s: error %v\nwant %s", c.network, err, c.want)
		}
	}
}

// gonum's minimisers find the same estimates as Fit.
func TestMinimizersAgree(t *testing.T) {
	for _, text := range []string{trips, nestedTrips} {
		r, d := fitText(t, "testdata/trips.csv", text, Options{})
		p, names, err := minimization(r.Spec, d)
		if err != nil || !slices.Equal(names, r.Names) {
			t.Fatalf("names %q, error %v", names, err)
		}
		start := slices.Clone(r.Coefficients)
		for j := range start {
			start[j] += 0.05
		}
		for _, method := range []optimize.Method{&optimize.BFGS{}, &optimize.Newton{}} {
			found, err := optimize.Minimize(p, start, &optimize.Settings{GradientThreshold: 1e-6}, method)
			fatal.If(t, err, method)
			if !near(-found.F, r.LogLikelihood, 1e-10) {
				t.Errorf("%T: log-likelihood %v, want %v", method, -found.F, r.LogLikelihood)
			}
			for j, want := range r.Coefficients {
				if !near(found.X[j], want, 1e-5) {
					t.Errorf("%T: %s is %v, want %v", method, names[j], found.X[j], want)
				}
			}
		}
	}
}
