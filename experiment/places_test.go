package experiment_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// backwards shows the oracle's items in reverse order. A policy without an order and without an estimate shows items in
// their own order.
type backwards struct {
	vitrine.Learner
	silent bool
}

func (b backwards) Policy() vitrine.Policy { return reversing{b.Learner.Policy(), b.silent} }

type reversing struct {
	vitrine.Policy
	silent bool
}

func (r reversing) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	o := r.Policy.Offer(x, rng)
	slices.Reverse(o.Order)
	if r.silent {
		o.Order = nil
	}
	return o
}

// In a world with position effects, the oracle has no regret, the reverse order of its set does, and the regret agrees
// with the formula.
func TestPositionEffectsInRegret(t *testing.T) {
	effects := []float64{0, -0.5, -2}
	p := bandit.Problem{NumFeatures: 2, Items: 6, MaxShown: 3, Rounds: 50, Constraint: assortment.AtMost(3)}
	world := func(rng *rand.Rand) env.Environment {
		return &env.World{Items: 6, Contexts: env.Gaussian{},
			Truth: env.NewFamily(utility.NewLinear(2, false), -1, 1, rng), Revenues: env.One{}, Places: effects}
	}
	policy := func(label string, wrap func(vitrine.Learner) vitrine.Learner) experiment.Policy {
		return experiment.Policy{Label: label, Settings: label,
			New: func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
				l, err := experiment.NewOracle(p, w)
				return wrap(l), err
			}}
	}
	e := &experiment.Experiment{Name: "x", Title: "x", Rounds: 50, Constraint: p.Constraint, World: world,
		Seeds: []uint64{1, 2}, Settings: 1, Version: "v",
		Policies: []experiment.Policy{
			policy("oracle", func(l vitrine.Learner) vitrine.Learner { return l }),
			policy("backwards", func(l vitrine.Learner) vitrine.Learner { return backwards{l, false} }),
			policy("silent", func(l vitrine.Learner) vitrine.Learner { return backwards{l, true} }),
		}}
	finals := fatal.Or(experiment.Finals(context.Background(), e, experiment.Options{Dir: t.TempDir()}))(t)
	for k, seed := range e.Seeds {
		var want [2]float64 // for backwards and silent
		shoppers := env.Shoppers{World: world(stream.New(seed, 0, stream.World)), Seed: seed}
		var s env.Shopper
		for round := 1; round <= 50; round++ {
			fatal.If(t, shoppers.Meet(&s, round))
			order, best := assortment.MaximizeOrdered(nil, p.Constraint, s.Utilities, effects, nil)
			slices.Reverse(order)
			want[0] += best - vitrine.OrderedRevenue(order, s.Utilities, effects, nil)
			slices.Sort(order)
			want[1] += best - vitrine.OrderedRevenue(order, s.Utilities, effects, nil)
		}
		if finals["oracle"][k] != 0 || math.Abs(finals["backwards"][k]-want[0]) > 1e-9 ||
			math.Abs(finals["silent"][k]-want[1]) > 1e-9 || want[0] < 1 {
			t.Errorf("seed %d: regrets %v, %v and %v, want 0, %v and %v",
				seed, finals["oracle"][k], finals["backwards"][k], finals["silent"][k], want[0], want[1])
		}
	}
}

// A family without an exact best order is an error.
func TestPositionEffectsNeedAnExactOptimum(t *testing.T) {
	knapsack := fatal.Or(assortment.NewQuota(assortment.Rules{Items: 6, Max: 3,
		Weights: assortment.WeightsOf([]int{3, 2, 2, 1, 2, 3}, 5)}))(t)
	e := &experiment.Experiment{Name: "x", Title: "x", Rounds: 50, Constraint: knapsack, Seeds: []uint64{1},
		Settings: 1, Version: "v",
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: 6, Contexts: env.Gaussian{}, Truth: env.NewFamily(utility.NewLinear(2, false), -1,
				1, rng), Revenues: env.One{}, Places: []float64{0, -1}}
		},
		Policies: []experiment.Policy{{Label: "uniform", Settings: 1,
			New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
				return bandit.NewUniform(bandit.Problem{NumFeatures: 2, Items: 6, MaxShown: 3, Rounds: 50,
					Constraint: knapsack})
			}}}}
	expect.Part(experiment.Finals(context.Background(), e, experiment.Options{Dir: t.TempDir()}))(t,
		"the best order is not known: position effects need a family without")
	e.Constraint, e.World = assortment.AtMost(3), func(rng *rand.Rand) env.Environment {
		return &env.World{Items: 6, Contexts: env.Gaussian{}, Truth: env.NewFamily(utility.NewLinear(2, false), -1000,
			1000, rng), Revenues: env.UniformRevenue{Low: 0, High: 1}, Places: []float64{0, -1}}
	}
	expect.Part(experiment.Finals(context.Background(), e, experiment.Options{Dir: t.TempDir()}))(t,
		"with position effects the best order can be found only for utilities up to 400: ",
		"utilities of which the best order is not known")
}

// The shopper takes the item with the largest utility in its place; places beyond the effects get the last one's
// effect.
func TestChooseDisplayed(t *testing.T) {
	s := env.Shopper{Utilities: []float64{1, 1.2, 0.9, 5}, Exponentials: []float64{1, 1, 1, 1, 1}}
	for _, c := range []struct {
		order   []int
		effects []float64
		want    vitrine.Choice
	}{
		{[]int{0, 1, 2}, nil, 2},
		{[]int{0, 1, 2}, []float64{0, -1}, 1},
		{[]int{2, 0, 1}, []float64{0, -1}, 3},
		{[]int{1, 0, 2}, []float64{-9, -9, -9}, 0},
	} {
		expect.Equal(t, s.ChooseDisplayed(vitrine.Assortment{0, 1, 2}, c.order, c.effects), c.want, "order", c.order,
			"effects", c.effects)
	}
}
