package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/utility"
)

// EpsGreedyOptions are the options of ε-greedy-MNL.
type EpsGreedyOptions struct {
	// "item" is Equation 4 of Zhang and Luo (2024).
	Explore  string  `toml:"explore" range:"item|set" doc:"an exploring round shows one item, or a set of the family, drawn uniformly"`
	Schedule string  `toml:"schedule" range:"configured|theory" doc:"ε by epsilon, decay and floor, or by the theory and the oracle's error"`
	Epsilon  float64 `toml:"epsilon" range:"[0, 1]" doc:"ε of the first round, the probability of exploring (configured)"`
	Decay    float64 `toml:"decay" range:"[0, 1]" doc:"the factor by which ε shrinks after each round (configured)"`
	Floor    float64 `toml:"floor" range:"[0, 1]" doc:"the least ε (configured)"`
	// The order of a round's offer says which place each item had. A set that explores is in a random order.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
	ErrorOptions
	RegressionOptions
}

// DefaultEpsGreedyOptions returns the options of the paper's appendix, with the
// exploration of the article that it cites.
func DefaultEpsGreedyOptions() EpsGreedyOptions {
	return EpsGreedyOptions{
		Explore: "item", Schedule: "configured", Epsilon: 0.1, Decay: 0.995, Floor: 0.001,
		ErrorOptions: DefaultErrorOptions(), RegressionOptions: DefaultRegressionOptions(),
	}
}

// EpsGreedy is ε-greedy-MNL (Zhang and Luo 2024, Equations 4 and 9) with an offline regression oracle, as in the
// paper's appendix, or with an online one. In round t the offer explores with probability ε_t, and otherwise is the
// best assortment under f_ŵ,
//
//	q(S) = (1 − ε_t) 1{S = argmax_S R(S; ŵ)} + (ε_t/N) Σ_i 1{S = {i}}
//
// With the schedule of the appendix, and with the theory's, where Err is the oracle's error and m the epoch of round t
// (online, the horizon T takes the place of 2^{m−2}), ε_t is
//
//	ε_t = max(floor, ε · decayᵗ⁻¹)
//	ε_t = min(1, (N K Err(2^{m−2}))^{1/3})
//
// [RegressionOptions] describe the oracle, which estimates ŵ, and [ErrorOptions] its error.
type EpsGreedy struct {
	regressor
	o EpsGreedyOptions
}

// NewEpsGreedy returns a learner at its first round, with initial weights from
// rng.
func NewEpsGreedy(p Problem, m utility.Model, o EpsGreedyOptions, rng *rand.Rand) (*EpsGreedy, error) {
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	oracle, err := newRegressor("NewEpsGreedy", p, m, newPlaces(p, o.PositionEffects), o.RegressionOptions, rng)
	if err != nil {
		return nil, err
	}
	l := &EpsGreedy{regressor: oracle, o: o}
	l.self, l.identity = l, p.identify("eps-greedy-mnl", 1, utility.Identity(m), o)
	return l, nil
}

// freeze implements algorithm.
func (l *EpsGreedy) freeze() vitrine.Policy {
	pi := &epsGreedy{explorer: items{l.p}, onGreedy: newOnGreedy(l.p, l.model, l.params(), l.places)}
	if l.o.Explore == "set" {
		pi.explorer = sets{uniform{l.p}}
	}
	if l.o.Schedule == "theory" {
		pi.perItem = float64(l.p.MaxShown) * l.err(l.o.ErrorOptions)
	} else {
		pi.epsilon = max(l.o.Floor, l.o.Epsilon*math.Pow(l.o.Decay, float64(l.rounds)))
	}
	return pi
}

// epsGreedy mixes an exploring and the greedy policy.
type epsGreedy struct {
	epsilon  float64 // where perItem is 0
	perItem  float64 // K Err, where ε = (N K Err)^{1/3} for the N of the request
	explorer explorer
	onGreedy
}

// share returns ε for n items.
func (o *epsGreedy) share(n int) float64 {
	if o.perItem == 0 {
		return o.epsilon
	}
	return min(math.Cbrt(float64(max(n, 1))*o.perItem), 1)
}

// Offer implements vitrine.Policy. The propensity is the mixture's,
//
//	ε · P(the exploration draws S) + (1 − ε) 1{S is the greedy assortment},
//
// and 0 if the first part cannot be computed in closed form: for sets of a family that cannot be sampled uniformly.
func (o *epsGreedy) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	explore := rng.Float64() < o.share(x.NumItems())
	offer := o.greedy.Offer(x, rng)
	greedy := true
	if explore {
		drawn := assortments.Get().(*vitrine.Assortment)
		defer assortments.Put(drawn)
		*drawn = o.explorer.draw(*drawn, x, rng)
		greedy = slices.Equal(*drawn, offer.Assortment)
		offer.Assortment = append(offer.Assortment[:0], *drawn...)
		if _, ok := o.greedy.(*placed); ok {
			offer.Order = slices.Clone([]int(offer.Assortment))
			rng.Shuffle(len(offer.Order),
				func(a, b int) { offer.Order[a], offer.Order[b] = offer.Order[b], offer.Order[a] })
		}
	}
	offer.Propensity = o.mixture(x, offer.Assortment, greedy)
	return offer
}

// Propensity returns the probability that Offer shows s, or 0 without a closed form.
func (o *epsGreedy) Propensity(x *vitrine.Context, s vitrine.Assortment) float64 {
	return o.mixture(x, s, slices.Equal(s, o.greedy.Offer(x, nil).Assortment))
}

// mixture returns the propensity of s. greedy says whether s is the greedy assortment.
func (o *epsGreedy) mixture(x *vitrine.Context, s vitrine.Assortment, greedy bool) (p float64) {
	epsilon := o.share(x.NumItems())
	explored, known := o.explorer.probability(x, s)
	if !known && epsilon > 0 {
		return 0
	}
	if greedy {
		p = 1 - epsilon
	}
	return float64(epsilon*explored) + p
}

// Reasons implements [Explainer].
func (o *epsGreedy) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	r := o.greedy.Reasons(x, nil) // without drawing
	if rng.Float64() < o.share(x.NumItems()) {
		r.By, r.IsBest = ByChance, false
	}
	return r
}
