// Command warm measures how much regret a log saves: learners start from scratch, with a model fitted to the log as
// their pilot, or after importing the log. It prints a Markdown table.
//
//	go run ./bench/warm [-seeds 40] [-logged 1000] [-rounds 1000]    a minute of a core
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/floats"
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

// start is the way in which a learner begins.
type start struct {
	name string
	base int // index of the same learner's cold start
	// learner makes the learner. Unless it starts from the log's model, the model is nil.
	learner func(p bandit.Problem, model *choice.Result, rng *rand.Rand) (vitrine.Learner, error)
	fits    bool // whether it starts from a model that was fitted to the log
	imports bool // whether it learns the log
}

var starts = []start{
	{"onl-mnl, from nothing", 0, onl, false, false},
	{"onl-mnl, a fitted model as pilot", 0, onl, true, false},
	{"onl-mnl, the log imported", 0, onl, false, true},
	{"ucb-mnl, from nothing", 3, ucb, false, false},
	{"ucb-mnl, the log imported", 3, ucb, false, true},
	{"auto, from nothing", 5, auto, false, false},
	{"auto, a fitted model as prior", 5, auto, true, false},
	{"auto, the log imported", 5, auto, false, true},
}

// onl returns a learner with the options of new placements, and the model as its pilot.
func onl(p bandit.Problem, model *choice.Result, rng *rand.Rand) (vitrine.Learner, error) {
	o := bandit.DefaultONLOptions()
	o.Update, o.Lambda, o.Beta = "online", 1, 1
	if model != nil {
		o.Pilot, o.PilotWeights = "given", model.Coefficients
	}
	return bandit.NewONL(p, utility.NewLinear(width, true), o, rng)
}

func ucb(p bandit.Problem, _ *choice.Result, _ *rand.Rand) (vitrine.Learner, error) {
	o := bandit.DefaultUCBOptions()
	o.Constants, o.Radius, o.Intercept, o.Lambda = "tuned", 1, true, 1
	return bandit.NewUCB(p, o)
}

// auto returns a learner with the model as its prior.
func auto(p bandit.Problem, model *choice.Result, rng *rand.Rand) (vitrine.Learner, error) {
	var o bandit.AutoOptions
	if model != nil {
		o.PriorMean, o.PriorCovariance = model.Coefficients, mat.DenseCopyOf(model.Covariance).RawMatrix().Data
	}
	return bandit.NewAuto(p, o, rng)
}

// learn starts a learner.
func (s start) learn(p bandit.Problem, log []vitrine.Round, seed uint64) (vitrine.Learner, error) {
	var model *choice.Result
	if s.fits {
		var err error
		if model, err = fitted.Linear(log); err != nil {
			return nil, err
		}
	}
	l, err := s.learner(p, model, rand.New(rand.NewPCG(seed, 9)))
	if err != nil || !s.imports {
		return l, err
	}
	for _, r := range log {
		if err := l.Observe(r); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func main() {
	seeds := flag.Int("seeds", 40, "worlds")
	logged := flag.Int("logged", 1000, "decisions of the log")
	rounds := flag.Int("rounds", 1000, "rounds that are played after it")
	flag.Parse()
	regret := make([][]float64, len(starts))
	for seed := range *seeds {
		w := newWorld(uint64(seed))
		log := w.log(*logged, rand.New(rand.NewPCG(uint64(seed), 2)))
		for k, s := range starts {
			r, err := w.play(s, log, *rounds, uint64(seed))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			regret[k] = append(regret[k], r)
		}
	}
	fmt.Println("| start | regret | saved, paired |")
	fmt.Println("|---|---|---|")
	for k, s := range starts {
		mean, se := meanError(regret[k])
		saved := ""
		if s.base != k {
			m, e := meanError(floats.SubTo(make([]float64, len(regret[k])), regret[s.base], regret[k]))
			saved = fmt.Sprintf("%.1f ± %.1f", m, e)
		}
		fmt.Printf("| %s | %.1f ± %.1f | %s |\n", s.name, mean, se, saved)
	}
}

func meanError(v []float64) (mean, se float64) {
	mean, sd := stat.MeanStdDev(v, nil)
	return mean, stat.StdErr(sd, float64(len(v)))
}

// world has a linear truth with an intercept.
type world struct {
	env     *env.World
	problem bandit.Problem
	old     []float64 // for the logging policy
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		env: &env.World{Items: items, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
			Truth: env.NewFamily(utility.NewLinear(width, true), -1, 1, rng)},
		problem: bandit.Problem{NumFeatures: width, Items: items, MaxShown: size, Rounds: 1000,
			Constraint: assortment.AtMost(size)},
	}
	for range width + 1 {
		w.old = append(w.old, rng.NormFloat64())
	}
	return w
}

// best returns the best page under the utilities.
func best(x *vitrine.Context, u []float64) vitrine.Assortment {
	s, _ := assortment.Maximize(nil, assortment.AtMost(size), u, x.Revenue)
	return s
}

// shop asks a customer, and returns the choice and the regret.
func (w *world) shop(x *vitrine.Context, s vitrine.Assortment, rng *rand.Rand) (vitrine.Choice, float64) {
	u := make([]float64, items)
	w.env.Utilities(u, x)
	left := rng.Float64()
	c := vitrine.Outside
	for k, v := range probabilities(u, s) {
		if left -= v; left < 0 {
			c = vitrine.Choice(k)
			break
		}
	}
	return c, vitrine.ExpectedRevenue(best(x, u), u, x.Revenue) - vitrine.ExpectedRevenue(s, u, x.Revenue)
}

func probabilities(u []float64, s vitrine.Assortment) []float64 {
	part, p := make([]float64, len(s)), make([]float64, len(s)+1)
	for k, i := range s {
		part[k] = u[i]
	}
	vitrine.Probabilities(p, part)
	return p
}

// log returns another policy's log, with uniform pages in a tenth of rounds.
func (w *world) log(n int, rng *rand.Rand) (log []vitrine.Round) {
	u := make([]float64, items)
	for range n {
		x := w.env.Context(rng)
		utility.NewLinear(width, true).Utilities(u, w.old, mat.DenseCopyOf(x.Features))
		s := best(x, u)
		if rng.Float64() < 0.1 {
			s = assortment.AtMost(size).Sample(nil, items, rng)
		}
		c, _ := w.shop(x, s, rng)
		log = append(log, vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s}, Choice: c})
	}
	return log
}

// play plays a learner and returns its regret.
func (w *world) play(s start, log []vitrine.Round, rounds int, seed uint64) (regret float64, err error) {
	l, err := s.learn(w.problem, log, seed)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	contexts, customers, draws := rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed,
		4)), rand.New(rand.NewPCG(seed, 5))
	for range rounds {
		x := w.env.Context(contexts)
		offer := l.Policy().Offer(x, draws)
		c, lost := w.shop(x, offer.Assortment, customers)
		regret += lost
		if err := l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: c}); err != nil {
			return 0, err
		}
	}
	return regret, nil
}
