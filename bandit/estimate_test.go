package bandit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// A policy's utilities are the ones it would use without optimism and without draws: ONL-MNL's equal the greedy
// learner's after the same rounds, and rank its offers.
func TestEstimates(t *testing.T) {
	type estimator interface {
		Utilities(dst []float64, x *vitrine.Context)
	}
	p := bandit.Problem{NumFeatures: 2, Items: 6, MaxShown: 1, Rounds: 100, Constraint: assortment.AtMost(1)}
	m := utility.NewMLP(2, []int{2}, utility.Tanh)
	fit := bandit.DefaultFitOptions()
	fit.Warmup, fit.PilotSteps = 5, 10
	rng := stream.New(1, 1, stream.Contexts)
	onl := fatal.Or(bandit.NewONL(p, m, bandit.ONLOptions{FitOptions: fit, Schedule: "configured", Beta: 10},
		stream.New(1, 0, stream.Learner)))(t)
	greedy := fatal.Or(bandit.NewGreedy(p, m, bandit.GreedyOptions{FitOptions: fit}, stream.New(1, 0, stream.Learner)))(
		t)
	if _, ok := onl.Policy().(estimator); ok {
		t.Error("Phase I has an estimate")
	}
	x := &vitrine.Context{Features: mat.NewDense(6, 2, nil)}
	for i := range 6 {
		x.Features.SetRow(i, []float64{rng.NormFloat64(), rng.NormFloat64()})
	}
	for round := range 30 {
		r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{round % 6}},
			Choice: vitrine.Choice(round / 3 % 2)}
		for _, l := range []vitrine.Learner{onl, greedy} {
			fatal.If(t, l.Observe(r))
		}
	}
	a, b := make([]float64, 6), make([]float64, 6)
	onl.Policy().(estimator).Utilities(a, x)
	greedy.Policy().(estimator).Utilities(b, x)
	expect.Equal(t, a, b, "utilities", cmpopts.EquateApprox(1e-12, 0))
	best := greedy.Policy().Offer(x, nil).Assortment[0]
	for i, u := range a {
		if u > a[best] {
			t.Errorf("item %d has the utility %v, and item %d of %v is offered", i, u, best, a[best])
		}
	}
}
