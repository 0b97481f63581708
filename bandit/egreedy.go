package bandit

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/state"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// EpsGreedyOptions are the options of ε-greedy-MNL.
type EpsGreedyOptions struct {
	// Epsilon in [0, 1] is ε of the first round; it is multiplied by Decay in
	// [0, 1] after each round until it reaches Floor in [0, 1].
	Epsilon float64 `toml:"epsilon"`
	Decay   float64 `toml:"decay"`
	Floor   float64 `toml:"floor"`
	// Rate and Steps are Adam's, at the end of each epoch.
	Rate  float64 `toml:"rate"`
	Steps int     `toml:"steps"`
	// Restart draws the weights afresh before each training. The paper does not
	// say where a training starts; by default it is from the previous weights.
	Restart bool `toml:"restart"`
}

// DefaultEpsGreedyOptions returns those of the paper's appendix.
func DefaultEpsGreedyOptions() EpsGreedyOptions {
	return EpsGreedyOptions{Epsilon: 0.1, Decay: 0.995, Floor: 0.001, Rate: 1e-4, Steps: 2000}
}

func (o EpsGreedyOptions) check() error {
	for _, v := range []struct {
		key   string
		value float64
	}{{"epsilon", o.Epsilon}, {"decay", o.Decay}, {"floor", o.Floor}} {
		if !(v.value >= 0 && v.value <= 1) {
			return fmt.Errorf("%s = %v: must be in [0, 1]", v.key, v.value)
		}
	}
	if o.Steps < 0 {
		return fmt.Errorf("steps = %d: must not be negative", o.Steps)
	}
	return positive("rate", o.Rate)
}

// EpsGreedy is ε-greedy-MNL (Zhang and Luo 2024, Equation 4) as the paper's
// appendix implements it. Epochs have the lengths 1, 2, 4, …; at the end of
// each, after round 2ᵏ − 1, the network is trained by Adam on the rounds of
// that epoch alone. In round t the offer is uniform with probability
//
//	ε_t = max(floor, ε · decayᵗ⁻¹)
//
// and otherwise the best assortment under f_ŵ.
type EpsGreedy struct {
	p      Problem
	o      EpsGreedyOptions
	model  utility.Model
	seed   uint64 // of the weights of later epochs
	w      []float64
	epoch  *mle.Choices // rounds of the current epoch
	rounds int          // observed so far, t − 1
	policy vitrine.Policy

	tangent tangent // scratch
	pool    *indexPool
}

// NewEpsGreedy returns a learner at its first round, with initial weights from
// rng.
func NewEpsGreedy(p Problem, m utility.Model, o EpsGreedyOptions, rng *rand.Rand) (*EpsGreedy, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if m.NumFeatures() != p.Features {
		return nil, fmt.Errorf("the utility is of %d features, the problem has %d", m.NumFeatures(), p.Features)
	}
	l := &EpsGreedy{
		p: p, o: o, model: m,
		w:     make([]float64, m.NumParams()),
		epoch: mle.NewChoices(p.Features),
		pool:  new(indexPool),
	}
	m.Init(l.w, rng)
	l.seed = rng.Uint64()
	return l, nil
}

// Observe implements vitrine.Learner.
func (l *EpsGreedy) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.Features); err != nil {
		return err
	}
	if _, err := l.tangent.at(l.model, l.w, r); err != nil {
		return err
	}
	l.epoch.Append(r.Context.Features, r.Offer.Assortment, r.Choice)
	l.rounds++
	if l.rounds == l.epochStart() {
		l.train()
	}
	l.policy = nil
	return nil
}

// train fits the network to the epoch that ends, and begins the next.
func (l *EpsGreedy) train() {
	if l.o.Restart {
		l.model.Init(l.w, stream.New(l.seed, l.rounds, stream.Learner))
	}
	nll := &mle.NLL{Model: l.model, Choices: l.epoch}
	mle.Adam{Rate: l.o.Rate, Steps: l.o.Steps}.Minimize(nll, l.w)
	l.epoch.Reset()
}

// Policy implements vitrine.Learner.
func (l *EpsGreedy) Policy() vitrine.Policy {
	if l.policy == nil {
		l.policy = &epsGreedy{
			epsilon: max(l.o.Floor, l.o.Epsilon*math.Pow(l.o.Decay, float64(l.rounds))),
			uniform: uniform{l.p},
			greedy:  optimistic{p: l.p, model: l.model, w: append([]float64(nil), l.w...), pool: l.pool},
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

// epochStart returns the number of rounds before the current epoch, the
// largest 2ᵏ − 1 that is not above those observed.
func (l *EpsGreedy) epochStart() int { return 1<<(bits.Len(uint(l.rounds)+1)-1) - 1 }

func (l *EpsGreedy) kind() string { return l.p.kind("eps-greedy-mnl", l.model, l.o) }

// MarshalBinary implements encoding.BinaryMarshaler.
func (l *EpsGreedy) MarshalBinary() ([]byte, error) {
	e := state.NewEncoder(l.kind())
	e.Count(l.rounds)
	e.Uint64(l.seed)
	e.Floats(l.w)
	l.epoch.Encode(e)
	return e.Bytes()
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. A learner that
// returns an error, as it does for a snapshot of another problem, utility or
// options, is unchanged.
func (l *EpsGreedy) UnmarshalBinary(data []byte) error {
	d, err := state.NewDecoder(l.kind(), data)
	if err != nil {
		return err
	}
	n := &EpsGreedy{
		p: l.p, o: l.o, model: l.model, pool: l.pool,
		rounds: d.Count(),
		seed:   d.Uint64(),
		w:      make([]float64, len(l.w)),
		epoch:  mle.NewChoices(l.p.Features),
	}
	d.Floats(n.w)
	n.epoch.Decode(d)
	if have, want := n.epoch.Rounds(), n.rounds-n.epochStart(); have != want {
		d.Fail(fmt.Errorf("snapshot after %d rounds has %d of the current epoch, want %d", n.rounds, have, want))
	}
	if err := d.Close(); err != nil {
		return err
	}
	*l = *n
	return nil
}
