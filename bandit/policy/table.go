package policy

import (
	"fmt"

	"vitrine/bandit"
	"vitrine/internal/settings"
)

// All lists the policies. To add one, write its file in bandit and a line here; one that can serve also needs a row in
// service/setup/size_test.go.
var All = []Policy{
	{
		Name: "auto", Doc: "averages linear and curved tastes, as suits your features",
		Choose: "if in doubt: it has no constants to choose", Offer: "K N d_w²", Round: "K d_w²", Page: "auto",
		Matrices: Matrices{20, 9},
		AnyScale: true,
		Learner:  auto(),
	},
	{
		Name: "onl-mnl", Doc: "optimism on non-linear utilities, Algorithm 1 of the paper",
		Choose: "for utilities that are not linear, and name one: placements learn a linear one by default", Offer: "N d_w²", Round: "(d_w + t) K d_w", Page: "onl-mnl",
		Serving:  map[string]any{"utility": linear, "update": "online"},
		Warn:     scheduled,
		Line:     Line{Color: "black"},
		Matrices: Matrices{6, 2.5},
		Learner:  OfUtility(bandit.DefaultONLOptions, bandit.NewONL),
	},
	{
		Name: "greedy", Doc: "onl-mnl without its bonus",
		Choose: "as the control of onl-mnl", Offer: "N d_w", Round: "(d_w + t) K d_w", Page: "onl-mnl",
		Serving:  map[string]any{"utility": linear, "update": "online"},
		Line:     Line{Color: "orange", Dashes: []float64{8, 2, 3, 2}},
		Matrices: Matrices{6, 2.5},
		Learner:  OfUtility(bandit.DefaultGreedyOptions, bandit.NewGreedy),
	},
	{
		Name: "ucb-mnl", Doc: "confidence bounds on linear utilities (Oh and Iyengar 2021)",
		Choose: "for utilities that are linear", Offer: "N d_w²", Round: "(d_w + t) K d_w", Page: "ucb-mnl",
		Serving: tunedOnline, Warn: notTuned,
		Line:     Line{Color: "blue", Dashes: []float64{8, 3}},
		Matrices: Matrices{6, 2.5},
		Learner:  OfBasis(bandit.DefaultUCBOptions, bandit.NewUCBOn),
	},
	{
		Name: "ts-mnl", Doc: "optimistic Thompson sampling, linear (Oh and Iyengar 2019)",
		Choose: "for offers that vary, with linear utilities", Offer: "N d_w log K", Round: "(d_w + t) K d_w",
		Page:    "ts-mnl",
		Serving: tunedOnline, Warn: notTuned,
		Line:     Line{Color: "sky blue", Dashes: []float64{5, 2}},
		Matrices: Matrices{8, 2.5},
		Learner:  OfBasis(bandit.DefaultTSOptions, bandit.NewTSOn),
	},
	{
		Name: "ofu-mnl-plus", Doc: "linear, one mirror-descent step a round (Lee and Oh 2024)",
		Choose: "for rounds without end, with linear utilities", Offer: "N d_w²", Round: "K d_w²", Page: "ofu-mnl-plus",
		Serving: tuned, Warn: notTuned,
		Line:     Line{Color: "green", Dashes: []float64{2.5, 1.8}},
		Matrices: Matrices{4, 1.5},
		Learner:  OfBasis(bandit.DefaultOFUOptions, bandit.NewOFUOn),
	},
	{
		Name: "eps-greedy-mnl", Doc: "ε-greedy with a regression oracle (Zhang and Luo 2024)",
		Choose: "for logs with propensities", Offer: "N d_w", Round: "steps K d_w", Page: "eps-greedy-mnl",
		// A customer who is shown one item only is worth less.
		Serving: map[string]any{"utility": linear, "oracle": "online", "explore": "set"},
		Warn:    scheduled,
		Line: Line{Color: "vermilion", Dashes: []float64{16, 3}, Variants: []Variant{
			{"eps-greedy-sets", []float64{10, 4, 2, 4}},
			{"eps-greedy-online", []float64{5, 1.5, 1.5, 1.5}},
		}},
		Matrices: Matrices{6, 2.5},
		Learner:  OfUtility(bandit.DefaultEpsGreedyOptions, bandit.NewEpsGreedy),
	},
	{
		Name: "log-barrier-mnl", Doc: "draws from all assortments, log barrier (Zhang and Luo 2024)",
		Choose: "for logs of few items", Offer: "C(N, ≤K) K²", Round: "steps K d_w", Page: "log-barrier-mnl",
		Serving: map[string]any{"utility": linear, "oracle": "online"},
		Warn:    notTuned,
		Line: Line{Color: "purple", Dashes: []float64{14, 2, 1.5, 2}, Variants: []Variant{
			{"log-barrier-online", []float64{3.5, 3.5}},
		}},
		Matrices: Matrices{6, 2.5},
		Learner:  OfUtility(bandit.DefaultLogBarrierOptions, bandit.NewLogBarrier),
	},
	{
		Name: "feel-good-ts", Doc: "Feel-Good Thompson sampling by a Langevin chain (Zhang 2022)",
		Choose: "for few items and few rounds", Offer: "N d_w", Round: "moves t N d_w", Page: "feel-good-ts",
		Serving: map[string]any{"utility": linear, "loss": "log"}, // the loss that learns
		AllRows: true,
		Line: Line{Color: "green", Dashes: []float64{12, 2, 4, 2}, Variants: []Variant{
			{"feel-good-log", []float64{7, 2, 1.5, 2, 1.5, 2}},
		}},
		Matrices: Matrices{2, 1.5},
		Learner:  OfUtility(bandit.DefaultFeelGoodOptions, bandit.NewFeelGood),
	},
	{
		Name: "bma-mnl", Doc: "utility families averaged by evidence, one for each slot",
		Choose: "if it is not known what utilities look like", Offer: "N d_w² + K N d", Round: "d_w³ + K d_w²",
		Page:     "bma-mnl",
		Matrices: Matrices{20, 9},
		AnyScale: true,
		Learner:  OfExperts(bandit.DefaultBMAOptions, bandit.NewBMA),
	},
	{
		Name: "uniform", Doc: "uniform over the feasible family, learns nothing",
		Choose: "for unbiased logs, and as the regret of choosing at random", Offer: "K", Round: "1", Page: "uniform-and-oracle",
		Line:     Line{Color: "grey"},
		AnyScale: true,
		Learner: OfOptions(noOptions, func(p bandit.Problem, _ struct{}) (*bandit.Uniform, error) {
			return bandit.NewUniform(p)
		}),
	},
	{
		Name: "oracle", Doc: "knows the truth: regret 0",
		Choose: "for simulations, as the floor of regret", Offer: "N", Round: "1", Page: "uniform-and-oracle",
		Line:    Line{Color: "black", Dashes: []float64{1.2, 2.4}},
		Learner: oracle(),
	},
	{
		Name: "process", Doc: "a program of yours in any language, by lines of JSON",
		Choose: "to play a learner that is not written in Go", Offer: "N d", Round: "K",
		Learner: process(),
	},
}

// linear is the default utility of placements. Its constant says how many customers buy at all. If a policy offers a
// choice, Serving also picks updates with a cost and memory that do not grow with the rounds, because a service never
// ends.
var linear = map[string]any{"kind": "linear", "intercept": true}

// tuned are the constants of placements. The theory's constants sell less than chance within any horizon of a shop.
var tuned = map[string]any{"intercept": true, "constants": "tuned", "radius": 1.0, "lambda": 1.0}

// tunedOnline also bounds the cost of a round.
var tunedOnline = settings.Merge(tuned, map[string]any{"update": "online"})

// notTuned warns of constants that a shop cannot afford.
func notTuned(s map[string]any) string {
	if s["constants"] == "tuned" || s["constants"] == "likelihood" {
		return ""
	}
	return fmt.Sprintf("constants = %q: these constants are for proofs, and explore for longer than any shop "+
		"lasts; it may earn less than items drawn by chance. Leave constants out", s["constants"])
}

// scheduled warns of a schedule that a shop cannot afford.
func scheduled(s map[string]any) string {
	if s["schedule"] != "theory" {
		return ""
	}
	return `schedule = "theory": this schedule is for proofs, and explores for longer than any shop lasts; it may earn less than items drawn by chance. Leave schedule out`
}
