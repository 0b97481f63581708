// Command offpolicy measures the estimators in package offpolicy on simulated logs with a known truth: bias, root mean
// squared error, and how many 95% intervals contain the truth. It prints a Markdown table.
//
//	go run ./bench/offpolicy [-logs 200] [-rounds 4000]    three minutes of a core
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/parallel"
	"vitrine/offpolicy"
	"vitrine/utility"
)

const (
	items = 10
	size  = 3
	width = 5
)

// setting is a world, the way its log explores, and the model's family.
type setting struct {
	world, law, family string
	model              utility.Model
}

func main() {
	logs := flag.Int("logs", 200, "simulated logs of each setting")
	rounds := flag.Int("rounds", 4000, "decisions of each log")
	flag.Parse()
	linear, quadratic := utility.NewLinear(width, true), utility.NewQuadratic(width)
	var settings []setting
	for _, law := range []string{"sets", "slots"} {
		settings = append(settings,
			setting{"linear", law, "linear, right", linear},
			setting{"product", law, "quadratic, right", quadratic},
			setting{"product", law, "linear, wrong", linear})
	}
	fmt.Println("| world, exploration | family | method | bias | RMSE | normal | bootstrap | at any time | no number |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, s := range settings {
		if err := s.run(*logs, *rounds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	w := newWorld("linear")
	fmt.Printf("\nRevenue of a page that explores, by sets %.3f, by slots %.3f; of the policy's own page %.3f\n",
		w.earns("sets"), w.earns("slots"), w.earns("own"))
}

// earns returns the mean revenue of the logging policy's pages if every page explores.
func (w *world) earns(law string) (mean float64) {
	const n = 20_000
	rng := rand.New(rand.NewPCG(6, 6))
	for range n {
		x := w.context(rng)
		s := w.own(x)
		switch law {
		case "sets":
			s = assortment.AtMost(size).Sample(nil, items, rng)
		case "slots":
			s = swapped(s, rng)
		}
		mean += vitrine.ExpectedRevenue(s, w.utilities(x), x.Revenue) / n
	}
	return mean
}

// world holds the truth, which gives the judged policy's best pages, and an estimate, which gives the logging policy's.
type world struct {
	truth   env.Truth
	logging []float64 // linear utilities
}

func newWorld(kind string) *world {
	rng := rand.New(rand.NewPCG(11, 0))
	w := &world{logging: make([]float64, width)}
	if kind == "product" {
		w.truth = env.NewProduct(width, rng)
	} else {
		w.truth = env.NewFamily(utility.NewLinear(width, false), -1, 1, rng)
	}
	for j := range w.logging {
		w.logging[j] = rng.NormFloat64()
	}
	return w
}

func (w *world) context(rng *rand.Rand) *vitrine.Context {
	x := &vitrine.Context{Features: mat.NewDense(items, width, nil), Revenue: make([]float64, items)}
	env.ClippedGaussian{Bound: 2}.Draw(x.Features, rng)
	for i := range x.Revenue {
		x.Revenue[i] = 0.5 + 2*rng.Float64()
	}
	return x
}

// own returns the logging policy's page.
func (w *world) own(x *vitrine.Context) vitrine.Assortment {
	u := make([]float64, items)
	utility.NewLinear(width, false).Utilities(u, w.logging, x.Features)
	s, _ := assortment.Maximize(nil, assortment.AtMost(size), u, x.Revenue)
	return s
}

// best returns the judged policy's page, and its true expected revenue.
func (w *world) best(x *vitrine.Context) (vitrine.Assortment, float64) {
	return assortment.Maximize(nil, assortment.AtMost(size), w.utilities(x), x.Revenue)
}

// utilities returns the true utilities.
func (w *world) utilities(x *vitrine.Context) []float64 {
	u := make([]float64, items)
	w.truth.Utilities(u, x.Features)
	return u
}

// choose draws a customer's choice from a page.
func (w *world) choose(x *vitrine.Context, s vitrine.Assortment, rng *rand.Rand) vitrine.Choice {
	u, part, p := w.utilities(x), make([]float64, len(s)), make([]float64, len(s)+1)
	for k, i := range s {
		part[k] = u[i]
	}
	vitrine.Probabilities(p, part)
	left := rng.Float64()
	for k, v := range p {
		if left -= v; left < 0 {
			return vitrine.Choice(k)
		}
	}
	return vitrine.Outside
}

const share = 0.1 // of pages that explore by sets; 0.3 explore by slots, at the same cost

// log draws a log, along with the judged policy's pages.
func (w *world) log(law string, n int, rng *rand.Rand) (rounds []offpolicy.Round, pages []vitrine.Assortment) {
	for range n {
		x := w.context(rng)
		own := w.own(x)
		r := offpolicy.Round{Context: x, Shown: own}
		if law == "sets" {
			r.SamplingLaw = offpolicy.EpsilonSets(share, items, size, own)
			if rng.Float64() < share {
				r.Shown = assortment.AtMost(size).Sample(nil, items, rng)
			}
		} else {
			r.SamplingLaw = offpolicy.Swaps(3*share, items, own, nil)
			if rng.Float64() < 3*share {
				r.Shown = swapped(own, rng)
			}
		}
		r.Choice = w.choose(x, r.Shown, rng)
		best, _ := w.best(x)
		rounds, pages = append(rounds, r), append(pages, best)
	}
	return rounds, pages
}

// swapped replaces one of a page's items by an item outside it.
func swapped(own vitrine.Assortment, rng *rand.Rand) vitrine.Assortment {
	s := slices.Clone(own)
	leaves, enters := rng.IntN(len(own)), rng.IntN(items)
	for slices.Contains(own, enters) {
		enters = rng.IntN(items)
	}
	s[leaves] = enters
	slices.Sort(s)
	return s
}

// score sums an estimator's results.
type score struct {
	n, none, normal, bootstrap, anytime int
	bias, square                        float64
	finite                              bool
}

func (s setting) run(logs, rounds int) error {
	w := newWorld(s.world)
	truth := w.truthOf(400_000)
	scores := map[string]*score{}
	for _, m := range offpolicy.Methods() {
		scores[m] = &score{}
	}
	var mu sync.Mutex
	seeds := make([]uint64, logs)
	for n := range seeds {
		seeds[n] = uint64(n)
	}
	err := parallel.Each(context.Background(), 0, seeds, func(_ context.Context, seed uint64) error {
		log, pages := w.log(s.law, rounds, rand.New(rand.NewPCG(seed, 7)))
		r, err := report(log, pages, s.model, seed)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range r.Estimates {
			scores[e.Method].add(e, truth)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range offpolicy.Methods() {
		fmt.Printf("| %s, %s | %s | %s | %s |\n", s.world, s.law, s.family, m, scores[m])
	}
	return nil
}

func report(log []offpolicy.Round, pages []vitrine.Assortment, model utility.Model,
	seed uint64) (*offpolicy.Report, error) {
	l, err := offpolicy.NewLog(context.Background(), log, offpolicy.Options{Model: model, Seed: seed, Resamples: 400})
	if err != nil {
		return nil, err
	}
	return l.Evaluate("judged", pages)
}

// truthOf returns the judged policy's value over n contexts.
func (w *world) truthOf(n int) float64 {
	rng := rand.New(rand.NewPCG(5, 5))
	sum := 0.0
	for range n {
		_, v := w.best(w.context(rng))
		sum += v
	}
	return sum / float64(n)
}

func (s *score) add(e offpolicy.Estimate, truth float64) {
	if e.None != "" {
		s.none++
		return
	}
	s.n++
	s.bias += e.Value - truth
	s.square += (e.Value - truth) * (e.Value - truth)
	for _, c := range []struct {
		count *int
		i     offpolicy.Interval
	}{{&s.normal, e.Normal}, {&s.bootstrap, e.Bootstrap}, {&s.anytime, e.Anytime}} {
		if c.i.Low <= truth && truth <= c.i.High {
			*c.count++
		}
	}
	s.finite = !math.IsNaN(e.Anytime.Low)
}

func (s *score) String() string {
	if s.n == 0 {
		return fmt.Sprintf("| | | | | %d", s.none)
	}
	n := float64(s.n)
	anytime := "none"
	if s.finite {
		anytime = fmt.Sprintf("%.3f", float64(s.anytime)/n)
	}
	return fmt.Sprintf("%+.3f | %.3f | %.3f | %.3f | %s | %d",
		s.bias/n, math.Sqrt(s.square/n), float64(s.normal)/n, float64(s.bootstrap)/n, anytime, s.none)
}
