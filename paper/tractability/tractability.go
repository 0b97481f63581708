// Package tractability measures the claims in the † column of the paper's Table 1: each algorithm's time for an offer
// and for learning a round, against the number N of items and the size K of an assortment.
//
// The times depend on the machine and its load. Their growth, and the sizes that an algorithm refuses, do not.
package tractability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// Title is the figure's title.
const Title = "What an offer and a round take"

// Setting configures the measurement.
type Setting struct {
	Items    []int // N, with Size items offered
	Size     int
	Sizes    []int // K, out of Among items
	Among    int
	Features int // d
	Rounds   int // t, learned before the timed offers
	// Offers and Passes are the maximum numbers of timed offers and of timed passes through the rounds. Timing ends
	// earlier after Spend, but not before one pass and MinOffers offers.
	Offers    int
	MinOffers int `json:"LeastOffers"` // the old name is part of a configuration's identity
	Passes    int
	Spend     time.Duration
}

// Figure is the setting for the figure. After 2⁷ − 1 rounds all algorithms are past their warm-up, and at the end of an
// epoch.
var Figure = Setting{
	Items: []int{5, 10, 20, 50, 100, 200, 500, 1000, 2000}, Size: 3,
	Sizes: []int{1, 2, 3, 4, 5, 6, 7, 8, 10}, Among: 20,
	Features: 3, Rounds: 127,
	Offers: 400, MinOffers: 5, Passes: 5, Spend: 200 * time.Millisecond,
}

// Cell is a problem size.
type Cell struct {
	Items int `json:"items"`
	Size  int `json:"size"`
}

// Cells returns the sizes: first those with growing N, then those with growing K that are not among them.
func (s Setting) Cells() []Cell {
	var cells []Cell
	for _, n := range s.Items {
		cells = append(cells, Cell{n, s.Size})
	}
	for _, k := range s.Sizes {
		if c := (Cell{s.Among, k}); !slices.Contains(cells, c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// Point is an algorithm's cost at a size.
type Point struct {
	Policy string `json:"policy"`
	Cell
	Offer   float64 `json:"offer_seconds"` // median
	Offers  int     `json:"offers"`        // number timed
	Round   float64 `json:"round_seconds"` // mean over the rounds, including training; median over the passes
	Refused string  `json:"refused"`       // number of assortments if the size was refused, else ""
}

// Algorithm makes a learner, or returns an error if the problem is too large for it.
type Algorithm struct {
	Policy string
	New    func(p bandit.Problem, rng *rand.Rand) (vitrine.Learner, error)
}

// Measure measures the algorithms one after the other at all sizes except those for which have returns true. It passes
// each point to done, and stops if done returns an error. The clock returns the time since a fixed moment.
func Measure(ctx context.Context, s Setting, algorithms []Algorithm, clock func() time.Duration,
	have func(policy string, c Cell) bool, done func(Point) error) error {
	for _, c := range s.Cells() {
		for _, a := range algorithms {
			if have(a.Policy, c) {
				continue
			}
			p, err := s.measure(ctx, a, c, clock)
			if err != nil {
				return err
			}
			if err := done(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure plays s.Rounds rounds in a world with uniformly offered sets, with several learners, and then times the last
// learner's offers.
func (s Setting) measure(ctx context.Context, a Algorithm, c Cell, clock func() time.Duration) (Point, error) {
	point := Point{Policy: a.Policy, Cell: c}
	fail := func(err error) (Point, error) {
		return point, fmt.Errorf("%s of N = %d, K = %d: %w", a.Policy, c.Items, c.Size, err)
	}
	family := assortment.AtMost(c.Size)
	p := bandit.Problem{NumFeatures: s.Features, Items: c.Items, MaxShown: c.Size, Rounds: 1000, Constraint: family}
	rounds := s.history(c)
	var learner vitrine.Learner
	passes, spent := []float64(nil), time.Duration(0)
	for len(passes) == 0 || len(passes) < s.Passes && spent < s.Spend {
		var err error
		learner, err = a.New(p, stream.New(0, 0, stream.Learner))
		if many, ok := errors.AsType[*assortment.TooManyError](err); ok {
			point.Refused = many.Count
			return point, nil
		}
		if err != nil {
			return fail(err)
		}
		start := clock()
		for _, r := range rounds {
			if err := ctx.Err(); err != nil {
				return point, err
			}
			if err := learner.Observe(r); err != nil {
				return fail(err)
			}
			learner.Policy()
		}
		took := clock() - start
		spent += took
		passes = append(passes, took.Seconds()/float64(s.Rounds))
	}
	policy := learner.Policy()
	offers := []float64(nil)
	spent = 0
	for len(offers) < s.MinOffers || len(offers) < s.Offers && spent < s.Spend {
		if err := ctx.Err(); err != nil {
			return point, err
		}
		x, rng := rounds[len(offers)%len(rounds)].Context, stream.New(0, len(offers), stream.Policy)
		start := clock()
		policy.Offer(x, rng)
		took := clock() - start
		spent += took
		offers = append(offers, took.Seconds())
	}
	point.Round, point.Offer, point.Offers = median(passes), median(offers), len(offers)
	return point, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// history returns rounds in a world like the paper's, with unequal revenues.
func (s Setting) history(c Cell) []vitrine.Round {
	shoppers := env.Shoppers{World: &env.World{
		Items: c.Items, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0, High: 1},
		Truth: env.NewFamily(utility.NewMLP(s.Features, []int{3}, utility.Sigmoid), -1, 1,
			stream.New(0, 0, stream.World)),
	}}
	rounds := make([]vitrine.Round, s.Rounds)
	var shopper env.Shopper
	for t := range rounds {
		if err := shoppers.Meet(&shopper, t+1); err != nil {
			panic(err) // this world's contexts are valid
		}
		set := assortment.AtMost(c.Size).Sample(nil, c.Items, stream.New(0, t+1, stream.Policy))
		rounds[t] = vitrine.Round{Context: shopper.Context, Offer: vitrine.Offer{Assortment: set},
			Choice: shopper.Choose(set)}
	}
	return rounds
}
