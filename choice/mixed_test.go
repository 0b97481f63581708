package choice

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// correlatedTrips is a model of testdata/trips.csv in which three coefficients vary together.
var correlatedTrips = unweighted + `
[model]
kind = "mixed"
draws = 40
correlated = true
[[model.random]]
coefficient = "cost"
[[model.random]]
coefficient = "time / 60"
distribution = "lognormal"
[[model.random]]
coefficient = "income[bus]"
`

// A correlated mixed logit's likelihood is the mean, over the draws, of the products of MNL probabilities, with
// coefficients computed one by one.
func TestCorrelatedAgreesWithItsDefinition(t *testing.T) {
	spec, d := loadTrips(t, correlatedTrips)
	r, l, err := begin(t.Context(), spec, d)
	fatal.If(t, err)
	theta := []float64{.1, -.2, .3, -.2, -1, .1, .2, -.1, .3, -.2, .4, .1, .2, -.3}
	lower := [][]float64{{.3, 0, 0}, {-.2, .4, 0}, {.1, .2, -.3}}
	at := fatal.Or(newObjective(l, d, 1).at(context.Background(), theta, zeroth))(t)
	base := &Result{Spec: &Spec{Data: spec.Data, Utility: spec.Utility}, Alternatives: d.Alternatives,
		Outside: d.Outside}
	m := l.(*mixed)
	product := make([][]float64, d.Panels) // by decision maker and draw
	for n := range product {
		product[n] = make([]float64, m.draws)
		for draw := range m.draws {
			beta := append([]float64(nil), theta[:8]...)
			for k, j := range []int{3, 4, 5} {
				for with := range 3 {
					beta[j] += lower[k][with] * m.eta[(n*3+with)*m.draws+draw]
				}
			}
			beta[4] = math.Exp(beta[4])
			base.Coefficients = beta
			predictions := fatal.Or(base.Predict(d))(t)
			product[n][draw] = 1
			for s, p := range predictions {
				if b, k := d.locate(s); int(b.panel[k]) == n {
					product[n][draw] *= math.Exp(p.LogLikelihood())
				}
			}
		}
	}
	want := 0.0
	for _, draws := range product {
		mean := 0.0
		for _, v := range draws {
			mean += v / float64(len(draws))
		}
		want -= math.Log(mean)
	}
	if !near(at.value, want, 1e-11) {
		t.Errorf("−log-likelihood %v, want %v", at.value, want)
	}
	names := strings.Join(r.Names[8:], " | ")
	expect.Equal(t, names, "spread[cost] | spread[time / 60, cost] | spread[time / 60] | spread[income[bus], cost] | "+
		"spread[income[bus], time / 60] | spread[income[bus]]", "names")
}

// The fit recovers coefficients that vary together: the truth is within four standard errors.
func TestCorrelatedFindsTheTruth(t *testing.T) {
	d, u := simulated(t, 6000, 2)
	rng := rand.New(rand.NewPCG(4, 4))
	const sd, rho = 1.2, -0.7
	data := inPanels(t, d, u, rng, func() []float64 {
		e, f := rng.NormFloat64(), rng.NormFloat64()
		return []float64{1 + sd*e, -0.5 + 0.8*(rho*e+math.Sqrt(1-rho*rho)*f)}
	})
	spec := &Spec{Utility: u, Model: Model{Kind: "mixed", Draws: 64, Correlated: true,
		Random: []Random{{Coefficient: "a"}, {Coefficient: "b"}}}}
	r := fatal.Or(Fit(context.Background(), spec, data, Options{}))(t)
	v := r.Variations()
	if !r.Converged || len(v) != 2 || len(v[1].Correlations) != 1 {
		t.Fatalf("converged %v, variations %+v", r.Converged, v)
	}
	for name, c := range map[string]struct {
		Estimate
		want float64
	}{
		"mean of a": {Estimate{r.Coefficients[0], r.StandardErrors()[0]}, 1},
		"mean of b": {Estimate{r.Coefficients[1], r.StandardErrors()[1]}, -0.5},
		"sd of a":   {v[0].SD, sd}, "sd of b": {v[1].SD, 0.8}, "correlation": {v[1].Correlations[0].Estimate, rho},
	} {
		if !(math.Abs(c.Value-c.want) < 4*c.StandardError) || c.StandardError > 0.15 {
			t.Errorf("%s: %v (%v), want %v", name, c.Value, c.StandardError, c.want)
		}
	}
	if text := r.Text(); !strings.Contains(text, "b and a have correlation -0.") ||
		!strings.HasPrefix(text, "correlated mixed logit") {
		t.Errorf("text:\n%s", text)
	}
}

// The sign of a column of L has no meaning: making the diagonal positive and reflecting the draws gives a minimum with
// the same value and the Hessian in the new parameters. The model file records which draws are reflected.
func TestUpright(t *testing.T) {
	spec, d := loadTrips(t, correlatedTrips)
	r, l, err := begin(t.Context(), spec, d)
	fatal.If(t, err)
	m := l.(*mixed)
	theta := []float64{.1, -.2, .3, -.2, -1, .1, .2, -.1, -.3, -.2, .4, .1, .2, -.3}
	o := newObjective(m, d, 1)
	before := fatal.Or(o.at(t.Context(), theta, second))(t)
	best := &minimum{theta: theta, hessian: symmetric(before.hessian, o.dim)}
	r.Mirrored = m.upright(best)
	if want := []float64{.1, -.2, .3, -.2, -1, .1, .2, -.1, .3, .2, .4, -.1, .2, .3}; !slices.Equal(best.theta, want) ||
		!slices.Equal(r.Mirrored, []string{"cost", "income[bus]"}) {
		t.Fatalf("parameters %v, mirrored %q", best.theta, r.Mirrored)
	}
	r.Coefficients, r.Covariance, r.Converged, r.Null = best.theta, best.hessian, true, null(d)
	r.Checksums = newChecksums(r.Spec, d)
	text := fatal.Or(r.JSON())(t)
	if r, err = decodeModel(text); err != nil {
		t.Fatal(err)
	}
	if l, err = r.likelihood(d); err != nil {
		t.Fatal(err)
	}
	after := fatal.Or(newObjective(l, d, 1).at(t.Context(), best.theta, second))(t)
	hessian := symmetric(after.hessian, o.dim)
	if !near(after.value, before.value, 1e-13) || !mat.EqualApprox(hessian, best.hessian, 1e-10) {
		t.Errorf("the value was %v and is %v; the Hessians are equal: %v",
			before.value, after.value, mat.EqualApprox(hessian, best.hessian, 1e-10))
	}
}

// A variable's unit changes only its coefficient: c·x gets the coefficient β/c and the same likelihood. With absolute
// floors for the start, fits ended in other optima, or failed.
func TestMixedDoesNotDependOnUnits(t *testing.T) {
	for _, distribution := range []string{"normal", "lognormal", "uniform", "triangular"} {
		t.Run(distribution, func(t *testing.T) {
			fit := func(scale float64) *Result {
				d, u := simulated(t, 2000, 2)
				rng := rand.New(rand.NewPCG(7, 7))
				data := inPanels(t, d, u, rng, func() []float64 {
					return []float64{math.Exp(0.2 + 0.6*rng.NormFloat64()), -0.5}
				})
				for alternative := range data.Alternatives {
					data = data.multiplied([]int{0}, alternative, scale)
				}
				spec := &Spec{Utility: u, Model: Model{Kind: "mixed", Draws: 50,
					Random: []Random{{Coefficient: "a", Distribution: distribution}}}}
				r := fatal.Or(Fit(t.Context(), spec, data, Options{}))(t)
				if !r.Converged {
					t.Errorf("scale %g: not converged", scale)
				}
				return r
			}
			want := fit(1)
			for _, scale := range []float64{1e-6, 1e-3, 1e4, 1e6} {
				if r := fit(scale); !near(r.LogLikelihood, want.LogLikelihood, 1e-8) || r.Coefficients[2] <= 0 {
					t.Errorf("scale %g: log-likelihood %.6f, want %.6f; %v",
						scale, r.LogLikelihood, want.LogLikelihood, r.Coefficients)
				}
			}
		})
	}
}

// Decision makers' conditional means agree with Bayes' rule, computed by quadrature over the coefficient.
func TestIndividuals(t *testing.T) {
	for _, distribution := range []string{"normal", "lognormal"} {
		text := unweighted +
			"[model]\nkind = \"mixed\"\ndraws = 20000\n[[model.random]]\ncoefficient = \"cost\"\ndistribution = \"" +
			distribution + "\"\n"
		spec, all := loadTrips(t, text)
		d := fatal.Or(slice(all, 0, 12))(t)
		theta := []float64{.1, -.2, .3, -.3, -1, .1, .2, -.1, .6}
		r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside, Coefficients: theta}
		have := fatal.Or(r.Individuals(d))(t)
		base := &Result{Spec: &Spec{Data: spec.Data, Utility: spec.Utility}, Alternatives: d.Alternatives,
			Outside: d.Outside, Coefficients: slices.Clone(theta[:8])}
		sums := make([][3]float64, d.Panels) // Σ w, Σ w β, Σ w β²
		for eta := -8.0; eta <= 8; eta += 0.01 {
			beta := theta[3] + theta[8]*eta
			if distribution == "lognormal" {
				beta = math.Exp(beta)
			}
			base.Coefficients[3] = beta
			predictions := fatal.Or(base.Predict(d))(t)
			weights := slices.Repeat([]float64{math.Exp(-eta * eta / 2)}, d.Panels)
			for s, p := range predictions {
				b, k := d.locate(s)
				weights[b.panel[k]] *= math.Exp(p.LogLikelihood())
			}
			for n, w := range weights {
				sums[n][0], sums[n][1], sums[n][2] = sums[n][0]+w, sums[n][1]+w*beta, sums[n][2]+w*beta*beta
			}
		}
		for _, one := range have {
			s := sums[one.Panel]
			mean := s[1] / s[0]
			sd := math.Sqrt(s[2]/s[0] - mean*mean)
			if math.Abs(one.Mean[0]-mean) > 2e-3 || math.Abs(one.SD[0]-sd) > 4e-3 {
				t.Errorf("%s: %s has %.5f (%.5f), want %.5f (%.5f)",
					distribution, d.PanelNames[one.Panel], one.Mean[0], one.SD[0], mean, sd)
			}
		}
		expect.Equal(t, len(have), 3, "decision makers")
		expect.Message(base.Individuals(d))(t, "only a mixed logit has coefficients of decision makers")
	}
}

// Draws stop with their context, and their memory is bounded.
func TestDraws(t *testing.T) {
	spec, d := loadTrips(t, correlatedTrips)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := begin(ctx, spec, d); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
	many := *d
	many.Panels = 50_000_000
	if _, _, err := begin(t.Context(), spec, &many); err == nil || !strings.Contains(err.Error(), "GB are the limit: lower model.draws, now 40") {
		t.Errorf("draws of 50 million travellers: %v", err)
	}
}
