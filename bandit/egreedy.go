package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/option"
	"vitrine/utility"
)

// EpsGreedyOptions are the options of ε-greedy-MNL.
type EpsGreedyOptions struct {
	Epsilon float64 `toml:"epsilon" range:"[0, 1]" doc:"ε of the first round, the probability of a uniform offer"`
	Decay   float64 `toml:"decay" range:"[0, 1]" doc:"the factor by which ε shrinks after each round"`
	Floor   float64 `toml:"floor" range:"[0, 1]" doc:"the least ε"`
	RegressionOptions
}

// DefaultEpsGreedyOptions returns those of the paper's appendix.
func DefaultEpsGreedyOptions() EpsGreedyOptions {
	return EpsGreedyOptions{Epsilon: 0.1, Decay: 0.995, Floor: 0.001, RegressionOptions: DefaultRegressionOptions()}
}

// EpsGreedy is ε-greedy-MNL (Zhang and Luo 2024, Equation 4) as the paper's
// appendix implements it with an offline regression oracle, or with an online
// one. In round t the offer is uniform with probability
//
//	ε_t = max(floor, ε · decayᵗ⁻¹)
//
// and otherwise the best assortment under f_ŵ. ŵ is the oracle's:
// [RegressionOptions].
type EpsGreedy struct {
	*regressor
	o      EpsGreedyOptions
	policy vitrine.Policy
	pool   *indexPool
}

// NewEpsGreedy returns a learner at its first round, with initial weights from
// rng.
func NewEpsGreedy(p Problem, m utility.Model, o EpsGreedyOptions, rng *rand.Rand) (*EpsGreedy, error) {
	if err := option.Check(o); err != nil {
		return nil, err
	}
	oracle, err := newRegressor("NewEpsGreedy", p, m, o.RegressionOptions, rng)
	if err != nil {
		return nil, err
	}
	return &EpsGreedy{regressor: oracle, o: o, pool: new(indexPool)}, nil
}

// Observe implements vitrine.Learner.
func (l *EpsGreedy) Observe(r vitrine.Round) error {
	if err := l.observe(r); err != nil {
		return err
	}
	l.policy = nil
	return nil
}

// Policy implements vitrine.Learner.
func (l *EpsGreedy) Policy() vitrine.Policy {
	if l.policy == nil {
		l.policy = &epsGreedy{
			epsilon: max(l.o.Floor, l.o.Epsilon*math.Pow(l.o.Decay, float64(l.rounds))),
			uniform: uniform{l.p},
			greedy:  optimistic{p: l.p, model: l.model, w: l.params(), pool: l.pool},
		}
	}
	return l.policy
}

// epsGreedy mixes the uniform and the greedy policy.
type epsGreedy struct {
	epsilon float64
	uniform uniform
	greedy  optimistic
}

// Offer implements vitrine.Policy. The propensity is that of the mixture,
//
//	ε / |𝒮 \ {∅}| + (1 − ε) 1{S is the greedy assortment},
//
// where the family can be sampled uniformly; ∅ has the first part only where it
// is all there is.
func (o *epsGreedy) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	explore := rng.Float64() < o.epsilon
	best := o.greedy.Offer(x, rng)
	offer := best
	if explore {
		offer = o.uniform.Offer(x, rng)
	}
	offer.Propensity = 0
	if family, ok := o.greedy.p.family(x).(assortment.Sampler); ok {
		n := x.NumItems()
		if len(offer.Assortment) > 0 || len(family.Sample(nil, n, rng)) == 0 {
			offer.Propensity = o.epsilon * family.Propensity(n)
		}
		if slices.Equal(offer.Assortment, best.Assortment) {
			offer.Propensity += 1 - o.epsilon
		}
	}
	return offer
}

func (l *EpsGreedy) kind() kind {
	return l.p.kind("eps-greedy-mnl", 1, l.model, l.o, DefaultEpsGreedyOptions())
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (l *EpsGreedy) MarshalBinary() ([]byte, error) { return l.marshal(l.kind()) }

// UnmarshalBinary implements encoding.BinaryUnmarshaler. A learner that
// returns an error, as it does for a snapshot of another problem, utility or
// options, is unchanged.
func (l *EpsGreedy) UnmarshalBinary(data []byte) error {
	oracle, err := l.unmarshal(l.kind(), data)
	if err != nil {
		return err
	}
	l.regressor, l.policy = oracle, nil
	return nil
}
