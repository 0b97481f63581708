package tractability

import (
	"math/rand/v2"

	"vitrine"
	"vitrine/bandit"
	"vitrine/utility"
)

// Algorithms returns the algorithms in the figure, under their names in the catalog, with default options and a network
// of three hidden units if they fit a utility family; and ε-greedy with an online oracle, a row in Table 1.
func Algorithms() []Algorithm {
	online := bandit.DefaultEpsGreedyOptions()
	online.Oracle = "online"
	return []Algorithm{
		{"onl-mnl", family(bandit.NewONL, bandit.DefaultONLOptions())},
		{"greedy", family(bandit.NewGreedy, bandit.DefaultGreedyOptions())},
		{"ucb-mnl", linear(bandit.NewUCB, bandit.DefaultUCBOptions())},
		{"ts-mnl", linear(bandit.NewTS, bandit.DefaultTSOptions())},
		{"ofu-mnl-plus", linear(bandit.NewOFU, bandit.DefaultOFUOptions())},
		{"eps-greedy-mnl", family(bandit.NewEpsGreedy, bandit.DefaultEpsGreedyOptions())},
		{"eps-greedy-online", family(bandit.NewEpsGreedy, online)},
		{"log-barrier-mnl", family(bandit.NewLogBarrier, bandit.DefaultLogBarrierOptions())},
		{"feel-good-ts", family(bandit.NewFeelGood, bandit.DefaultFeelGoodOptions())},
		{"bma-mnl", func(p bandit.Problem, rng *rand.Rand) (vitrine.Learner, error) {
			return learner(bandit.NewBMA(p, bandit.DefaultExperts(p.NumFeatures), bandit.DefaultBMAOptions(), rng))
		}},
		{"uniform", func(p bandit.Problem, _ *rand.Rand) (vitrine.Learner, error) {
			return learner(bandit.NewUniform(p))
		}},
	}
}

type newLearner = func(bandit.Problem, *rand.Rand) (vitrine.Learner, error)

func family[O any, L vitrine.Learner](create func(bandit.Problem, utility.Model, O, *rand.Rand) (L, error),
	o O) newLearner {
	return func(p bandit.Problem, rng *rand.Rand) (vitrine.Learner, error) {
		return learner(create(p, utility.NewMLP(p.NumFeatures, []int{3}, utility.Sigmoid), o, rng))
	}
}

func linear[O any, L vitrine.Learner](create func(bandit.Problem, O) (L, error), o O) newLearner {
	return func(p bandit.Problem, _ *rand.Rand) (vitrine.Learner, error) { return learner(create(p, o)) }
}

// learner returns a nil interface if the learner could not be made.
func learner[L vitrine.Learner](l L, err error) (vitrine.Learner, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
