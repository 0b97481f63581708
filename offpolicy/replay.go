package offpolicy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"vitrine"
)

// Replay plays a learning policy on a log of uniformly drawn pages. If the policy offers the same page as the log, the
// round counts and the policy learns from it; other rounds are skipped. The revenue in the counted rounds estimates the
// policy's earnings while it learns live on as many rounds. Source: Li, Chu, Langford and Wang (2011).
//
// Replay returns an error that names the first round with a page that was not drawn uniformly. Whole pages rarely
// agree: with N = 10 items and K = 3, about one round in 175 counts. There is no number if fewer than [MinESS] rounds
// count, or if their number contradicts the law. If ctx ends, Replay returns its error.
func Replay(ctx context.Context, rounds []Round, learner vitrine.Learner, o Options) (*Estimate, error) {
	o, err := o.resolve(rounds)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 2))
	first, bounded := 0.0, true
	expected, variance := 0.0, 0.0 // of the number of rounds that count
	var terms []float64
	var counted []Round
	var steps []step
	for t := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := &rounds[t]
		u, ok := r.SamplingLaw.(*sets)
		if !ok || u.epsilon < 1 {
			return nil, fmt.Errorf("round %d: the page was not drawn uniformly: a learning policy can be replayed "+
				"only on a uniform log", t+1)
		}
		if mu := u.Propensity(r.Shown); t == 0 {
			first = mu
		} else if math.Abs(mu-first) > 1e-9*first {
			return nil, fmt.Errorf("round %d: the page has probability %v, and that of the first round %v: a "+
				"replay needs requests of the same number of items", t+1, mu, first)
		}
		offer := learner.Policy().Offer(r.Context, rng)
		mu := u.Propensity(offer.Assortment)
		expected, variance = expected+mu, variance+float64(mu*(1-mu))
		if !equal(offer.Assortment, r.Shown) {
			continue
		}
		if err := learner.Observe(vitrine.Round{Context: r.Context,
			Offer: vitrine.Offer{Assortment: r.Shown, Order: r.Order, Propensity: offer.Propensity}, Choice: r.Choice,
			More: r.More}); err != nil {
			return nil, fmt.Errorf("round %d: %w", t+1, err)
		}
		terms, counted = append(terms, r.Revenue()), append(counted, *r)
		most := 0.0
		for _, i := range r.Shown {
			most = max(most, r.price(i))
		}
		bounded = bounded && r.isBounded()
		steps = append(steps, both(most/2, r.Revenue()-most/2, most/2, most/2))
	}
	report := &Report{shoppers: shoppersOf(counted), level: o.Level, resamples: o.Resamples, seed: o.Seed}
	e := &Estimate{Method: "replay", ESS: float64(len(terms))}
	if c := underLaws(float64(len(rounds)), e.ESS, expected, variance, 1); c.Wrong() {
		e.None = fmt.Sprintf("the policy's page is that of the log in %d of %d rounds, and %.1f are expected: the pages "+
			"were not drawn as the log says", len(terms), len(rounds), expected)
	} else if len(terms) < MinESS {
		e.None = fmt.Sprintf("no support: the policy's page is that of the log in %d of %d rounds, and %d are needed",
			len(terms), len(rounds), MinESS)
	}
	if e.None != "" {
		report.finish(e)
		return e, nil
	}
	for _, v := range terms {
		e.Value += v / float64(len(terms))
		if v != 0 {
			e.Sales++
		}
	}
	if bounded {
		e.steps = steps
	}
	for _, v := range terms {
		e.influence = append(e.influence, v-e.Value)
	}
	report.finish(e)
	return e, nil
}
