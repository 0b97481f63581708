// Command shop plays a policy of its own in a world of its own, beside UCB-MNL, and draws the
// regret.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/figure"
)

const (
	items, features, size, rounds = 12, 2, 3, 150
	out                           = "out"
)

// season is the world: each round brings new prices, and a seed draws tastes.
type season struct{ taste, dislike float64 }

func newSeason(rng *rand.Rand) env.Environment {
	return season{taste: 2 * rng.Float64(), dislike: 1 + rng.Float64()}
}

// Context draws colours and prices. The shop earns the price.
func (s season) Context(rng *rand.Rand) *vitrine.Context {
	x := &vitrine.Context{Features: mat.NewDense(items, features, nil), Revenue: make([]float64, items)}
	for i := range items {
		x.Revenue[i] = rng.Float64()
		x.Features.SetRow(i, []float64{rng.NormFloat64(), x.Revenue[i]})
	}
	return x
}

// Utilities are the customers' tastes.
func (s season) Utilities(dst []float64, x *vitrine.Context) {
	if n := x.NumItems(); len(dst) != n || n > 0 && x.Features.RawMatrix().Cols != features {
		panic("season: utilities or features of another number")
	}
	for i := range dst {
		row := x.Features.RawRowView(i)
		dst[i] = s.taste*row[0] - s.dislike*row[1]
	}
}

// bold is the policy: the items of the largest revenue, whatever customers like.
type bold struct{}

func (b bold) Policy() vitrine.Policy        { return b }
func (b bold) Observe(r vitrine.Round) error { return r.Check(features) }
func (b bold) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: assortment.AtMost(size).MaxGain(nil, x.Revenue), Propensity: 1}
}

func main() {
	family := assortment.AtMost(size)
	problem := bandit.Problem{NumFeatures: features, Items: items, MaxShown: size, Rounds: rounds, Constraint: family}
	tuned := bandit.DefaultUCBOptions()
	tuned.Constants, tuned.Radius, tuned.Intercept = "tuned", 0.5, true

	e := &experiment.Experiment{
		Name: "season", Title: "A season in the shop",
		Rounds: rounds, Constraint: family, World: newSeason, Seeds: []uint64{0, 1, 2, 3, 4},
		Settings: map[string]any{"items": items, "rounds": rounds},
		Policies: []experiment.Policy{
			{Label: "bold", Settings: "bold", New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return bold{}, nil }},
			{Label: "ucb-mnl", Settings: tuned, New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return bandit.NewUCB(problem, tuned) }},
		},
	}
	summaries, err := experiment.Run(context.Background(), e, experiment.Options{Dir: out, Note: func(what string) { log.Print(what) }})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range summaries {
		fmt.Printf("%s: regret %.1f after %d rounds\n", s.Policy, s.FinalMean, s.Rounds)
	}
	panel, err := figure.ReadPanel(filepath.Join(out, e.Name, "regret.csv"))
	if err != nil {
		log.Fatal(err)
	}
	panel.Title = e.Title
	if err := figure.Write(filepath.Join(out, e.Name, "regret"), panel); err != nil {
		log.Fatal(err)
	}
}
