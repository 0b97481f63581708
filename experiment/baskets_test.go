package experiment_test

import (
	"context"
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
	"vitrine/utility"
)

// overhearing counts the further takes that a learner sees.
type overhearing struct {
	vitrine.Learner
	more *int
}

func (c overhearing) Observe(r vitrine.Round) error {
	*c.more += len(r.More)
	return c.Learner.Observe(r)
}

// crowded is an experiment on visitors with baskets.
func crowded(p bandit.Problem, b env.Baskets, places []float64, more *int,
	policies ...experiment.Policy) *experiment.Experiment {
	policies = append(policies, experiment.Policy{Label: "uniform", Settings: "uniform",
		New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
			l, err := bandit.NewUniform(p)
			return overhearing{l, more}, err
		}},
		experiment.Policy{Label: "oracle", Settings: "oracle",
			New: func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) { return experiment.NewOracle(p, w) }})
	return &experiment.Experiment{Name: "x", Rounds: 60, Constraint: p.Constraint, Seeds: []uint64{4}, Settings: 1,
		Version: "v", Policies: policies,
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: 6, Contexts: env.Gaussian{}, Truth: env.NewFamily(utility.NewLinear(2, false), -1,
				1, rng),
				Revenues: env.UniformRevenue{Low: 0, High: 1}, Places: places, Takers: b}
		}}
}

func TestRegretOfBaskets(t *testing.T) {
	p := bandit.Problem{NumFeatures: 2, Items: 6, MaxShown: 3, Rounds: 60, Constraint: assortment.AtMost(3)}
	play := func(b env.Baskets, places []float64, more *int, policies ...experiment.Policy) map[string][]float64 {
		results := fatal.Or(experiment.Results(context.Background(), crowded(p, b, places, more, policies...),
			experiment.Options{Dir: t.TempDir(), Workers: 1}))(t)
		regrets := map[string][]float64{}
		for _, r := range results {
			regrets[r.Policy] = r.Regret
		}
		return regrets
	}
	for _, places := range [][]float64{nil, {0, -1}} {
		var none, ones, many int
		single := play(nil, places, &none)
		if one := play(env.Independent{Number: 1}, places, &ones); !slices.Equal(one["uniform"], single["uniform"]) ||
			ones > 0 {
			t.Errorf("with one taker a visit the regret is %v, and %v without baskets", one["uniform"],
				single["uniform"])
		}
		double := play(env.Independent{Number: 2}, places, &many)
		for k, v := range double["uniform"] {
			if d := v - 2*single["uniform"][k]; d > 1e-12 || d < -1e-12 {
				t.Fatalf("with two takes a visit the regret is %v, want twice %v", v, single["uniform"][k])
			}
		}
		if many < 10 || slices.Max(double["oracle"]) != 0 {
			t.Errorf("%d further takes; the oracle's regret is %v", many, slices.Max(double["oracle"]))
		}
	}

	var seen, hidden int
	deaf := experiment.Policy{Label: "deaf", Settings: "deaf", FirstTakes: true,
		New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
			l, err := bandit.NewUniform(p)
			return overhearing{l, &hidden}, err
		}}
	pairs := play(env.Complements{Strength: 3, Reluctance: 0}, nil, &seen, deaf)
	if hidden > 0 || seen == 0 {
		t.Errorf("%d further takes are hidden, %d are seen", hidden, seen)
	}
	if last := len(pairs["uniform"]) - 1; slices.Max(pairs["oracle"]) != 0 || slices.Min(pairs["oracle"]) != 0 ||
		!slices.IsSorted(pairs["uniform"]) || pairs["uniform"][last] < 1 ||
		!slices.Equal(pairs["deaf"], pairs["uniform"]) {
		t.Errorf("regrets with complements: %v", pairs)
	}
}

// What no experiment can play with baskets is named.
func TestBasketsThatCannotBePlayed(t *testing.T) {
	p := bandit.Problem{NumFeatures: 2, Items: 6, MaxShown: 3, Rounds: 60, Constraint: assortment.AtMost(3)}
	var more int
	complements := env.Complements{Strength: 1}
	refused := func(e *experiment.Experiment, want string) {
		t.Helper()
		expect.Part(experiment.Finals(context.Background(), e, experiment.Options{Dir: t.TempDir()}))(t, want)
	}
	refused(crowded(p, complements, []float64{0, -1}, &more), "leave out position_effects")
	e := crowded(p, complements, nil, &more)
	e.Constraint = fatal.Or(assortment.NewQuota(assortment.Rules{Items: 6, Max: 3}))(t)
	refused(e, "leave out [constraint]")
	e = crowded(p, complements, nil, &more)
	e.World = func(*rand.Rand) env.Environment {
		return &env.World{Items: 60, Contexts: env.Gaussian{}, Truth: env.NewFamily(utility.NewLinear(2, false), -1, 1,
			rand.New(rand.NewPCG(1, 1))),
			Revenues: env.One{}, Takers: complements}
	}
	refused(e, "take fewer items")
	expect.Part(experiment.Dump(context.Background(), crowded(p, env.Independent{Number: 2}, nil, &more),
		experiment.Options{Dir: t.TempDir()}))(t, "leave out [baskets]", "a dump of baskets")
}
