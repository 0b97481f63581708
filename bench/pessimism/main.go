// Command pessimism measures the regret of fixed models after logs that cover little: greedy with pilot = "given",
// update = "none" and a pessimism of 0, 1 and 2 standard errors. It prints a Markdown table.
//
//	go run ./bench/pessimism [-seeds 400] [-logged 500] [-rounds 1000]    a minute of a core
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bench/fitted"
	"vitrine/choice"
	"vitrine/env"
	"vitrine/utility"
)

const (
	items = 30
	size  = 4
	width = 5
)

var model = utility.NewLinear(width, true)

// logger is a logging policy: it shows the best pages under the true weights plus normal errors, and a share of uniform
// pages.
type logger struct {
	name    string
	skill   float64 // factor on the true weights
	err     float64 // standard deviation of the errors
	explore float64
	fresh   bool // whether each request brings its own items instead of a fixed catalogue
}

var loggers = []logger{
	{"skilled, 4% uniform pages", 1, 0.3, 0.04, false},
	{"unskilled, 4% uniform pages", 0, 1, 0.04, false},
	{"all pages uniform", 0, 1, 1, false},
	{"skilled, 4% uniform pages, new items in each request", 1, 0.3, 0.04, true},
}

var levels = []float64{0, 1, 2}

func main() {
	log.SetFlags(0)
	seeds := flag.Int("seeds", 400, "worlds")
	logged := flag.Int("logged", 500, "decisions of the log")
	rounds := flag.Int("rounds", 1000, "rounds that are played after it")
	flag.Parse()
	fmt.Println("| log | regret of the fixed model | saved by 1 standard error | by 2 |")
	fmt.Println("|---|---|---|---|")
	for _, g := range loggers {
		regret := make([][]float64, len(levels)) // from the second level on, the savings
		for seed := range uint64(*seeds) {
			truth := make([]float64, model.NumParams())
			rng := rand.New(rand.NewPCG(seed, 1))
			old := make([]float64, len(truth))
			for j := range truth {
				truth[j] = 2*rng.Float64() - 1
				old[j] = float64(g.skill*truth[j]) + float64(g.err*rng.NormFloat64())
			}
			catalogue := newRequest(rng)
			request := func(rng *rand.Rand) *vitrine.Context {
				if g.fresh {
					return newRequest(rng)
				}
				return catalogue
			}
			estimate, err := fitted.Linear(g.rounds(truth, old, request, *logged, seed))
			if err != nil {
				log.Fatalf("%s, world %d: %v", g.name, seed, err)
			}
			for k, c := range levels {
				r, err := play(truth, estimate, request, c, *rounds, seed)
				if err != nil {
					log.Fatalf("%s, world %d: %v", g.name, seed, err)
				}
				if k > 0 {
					r = regret[0][seed] - r
				}
				regret[k] = append(regret[k], r)
			}
		}
		fmt.Printf("| %s |", g.name)
		for _, v := range regret {
			mean, sd := stat.MeanStdDev(v, nil)
			fmt.Printf(" %.1f ± %.1f |", mean, stat.StdErr(sd, float64(len(v))))
		}
		fmt.Println()
	}
}

// newRequest draws items.
func newRequest(rng *rand.Rand) *vitrine.Context {
	x := &vitrine.Context{Features: mat.NewDense(items, width, nil), Revenue: make([]float64, items)}
	env.Gaussian{}.Draw(x.Features, rng)
	for i := range x.Revenue {
		x.Revenue[i] = 0.5 + rng.Float64()/2
	}
	return x
}

// best returns the best page under the weights w, and its expected revenue.
func best(w []float64, x *vitrine.Context) (vitrine.Assortment, float64) {
	u := make([]float64, items)
	model.Utilities(u, w, x.Features)
	return assortment.Maximize(nil, assortment.AtMost(size), u, x.Revenue)
}

// rounds returns a log of n decisions.
func (g logger) rounds(truth, old []float64, request func(*rand.Rand) *vitrine.Context, n int,
	seed uint64) []vitrine.Round {
	rng := rand.New(rand.NewPCG(seed, 2))
	u, shock := make([]float64, items), make([]float64, items+1)
	all := make([]vitrine.Round, n)
	for t := range all {
		x := request(rng)
		s, _ := best(old, x)
		if rng.Float64() < g.explore {
			s = assortment.AtMost(size).Sample(nil, items, rng)
		}
		model.Utilities(u, truth, x.Features)
		vitrine.DrawShocks(shock, rng)
		all[t] = vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s}, Choice: vitrine.Choose(s, u, shock)}
	}
	return all
}

// play returns the regret of the fixed model when its utilities are lowered by c standard errors.
func play(truth []float64, fitted *choice.Result, request func(*rand.Rand) *vitrine.Context, c float64, rounds int,
	seed uint64) (regret float64, err error) {
	o := bandit.DefaultGreedyOptions()
	o.Pilot, o.PilotWeights, o.Update = "given", fitted.Coefficients, "none"
	o.Pessimism, o.PilotCovariance = c, mat.DenseCopyOf(fitted.Covariance).RawMatrix().Data
	p := bandit.Problem{NumFeatures: width, MaxShown: size, Rounds: rounds, Constraint: assortment.AtMost(size)}
	l, err := bandit.NewGreedy(p, model, o, rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		return 0, err
	}
	rng, u := rand.New(rand.NewPCG(seed, 4)), make([]float64, items)
	for range rounds {
		x := request(rng)
		_, most := best(truth, x)
		model.Utilities(u, truth, x.Features)
		regret += most - vitrine.ExpectedRevenue(l.Policy().Offer(x, rng).Assortment, u, x.Revenue)
	}
	return regret, nil
}
