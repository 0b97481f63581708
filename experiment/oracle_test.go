package experiment_test

import (
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/bandittest"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// firstFeature is a world in which an item's first feature is its utility.
type firstFeature struct{ env.Environment }

func (firstFeature) Utilities(dst []float64, x *vitrine.Context) {
	for i := range dst {
		dst[i] = x.Features.At(i, 0)
	}
}

func TestOracleKeepsTheContract(t *testing.T) {
	p := bandit.Problem{NumFeatures: 3, Items: 12, MaxShown: 3, Rounds: 60, Constraint: assortment.AtMost(3)}
	bandittest.TestLearner(t, 3, 3, 60, func() vitrine.Learner {
		return fatal.Or(experiment.NewOracle(p, firstFeature{}))(t)
	})
	var world *env.World
	for _, e := range []env.Environment{nil, world} {
		expect.Part(experiment.NewOracle(p, e))(t, "NewOracle: the environment is nil")
	}
	expect.Part(experiment.NewOracle(bandit.Problem{}, firstFeature{}))(t, "features = 0", "no problem")
}
