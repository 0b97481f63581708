package bandit

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fields"
)

// Uniform draws assortments uniformly from the nonempty sets of the feasible family. It
// is Phase I of Algorithm 1 without an end.
type Uniform struct {
	p      Problem
	policy vitrine.Policy
}

// NewUniform returns a learner that ignores its rounds.
func NewUniform(p Problem) (*Uniform, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &Uniform{p: p, policy: &uniform{p}}, nil
}

// Policy implements vitrine.Learner.
func (l *Uniform) Policy() vitrine.Policy { return l.policy }

// Observe implements vitrine.Learner.
func (l *Uniform) Observe(r vitrine.Round) error { return r.Check(l.p.NumFeatures) }

func (l *Uniform) identity() identity { return l.p.identify("uniform", 1, "", nil) }

// MarshalBinary implements encoding.BinaryMarshaler. It saves only the problem, because
// there is no state.
func (l *Uniform) MarshalBinary() ([]byte, error) {
	return fields.Snapshot(l.identity().String()).Seal()
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (l *Uniform) UnmarshalBinary(data []byte) error {
	f, err := l.identity().open(data)
	if err != nil {
		return err
	}
	return f.Close()
}

// uniform is the policy S ~ Unif(𝒮 \ {∅}).
type uniform struct{ p Problem }

// Offer implements vitrine.Policy. If the family cannot be sampled uniformly, Offer uses random gains, and the
// propensity has no closed form.
func (u uniform) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	offer := vitrine.Offer{Assortment: u.draw(nil, x, rng)}
	if f, ok := assortment.SamplerOf(u.p.Family(x)); ok {
		offer.Propensity = f.Propensity(x.NumItems())
	}
	return offer
}

// Propensity returns the probability that Offer shows s, or 0 without a closed form.
func (u uniform) Propensity(x *vitrine.Context, s vitrine.Assortment) float64 {
	p, _ := sets{u}.probability(x, s)
	return p
}

// draw returns the set of an offer, in dst's storage if it suffices.
func (u uniform) draw(dst vitrine.Assortment, x *vitrine.Context, rng *rand.Rand) vitrine.Assortment {
	family, n := u.p.Family(x), x.NumItems()
	if f, ok := assortment.SamplerOf(family); ok {
		return f.Sample(dst, n, rng)
	}
	gain := make([]float64, n)
	for i := range gain {
		gain[i] = 1 - rng.Float64()
	}
	// A copy: the answer may be the family's own.
	return append(dst[:0], family.MaxGain(nil, gain)...)
}

// Value implements [Explainer]: the policy knows no utilities.
func (u uniform) Value(_, _ []float64, _ *mat.Dense) (hasMean, hasSD bool) { return false, false }

// IsLinear implements [Explainer].
func (u uniform) IsLinear() bool { return false }

// Reasons implements [Explainer].
func (u uniform) Reasons(*vitrine.Context, *rand.Rand) Reasons { return Reasons{By: ByChance} }
