package bandit

import (
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment/search"
	"vitrine/internal/gram"
	"vitrine/internal/portable"
	"vitrine/mle"
	"vitrine/utility"
)

// published are the constants of OFU-MNL+ in the code of its authors: the radius at t = 1 for all
// rounds, and twice the step of their paper.
const published = "published"

// OFUOptions are the options of OFU-MNL+.
type OFUOptions struct {
	LinearOptions `zero:"lambda: the paper's 84√2 d η" range:"constants: theory|frozen|published|tuned" doc:"constants: the paper's radius, its value at t = 1 (also with the code's step 2η), or radius"`
	Eta           float64 `toml:"eta" range:"(0, inf)" zero:"the paper's ½ log(K+1) + 2" doc:"η, the step size"`
}

// DefaultOFUOptions returns the constants of the paper.
func DefaultOFUOptions() OFUOptions {
	return OFUOptions{LinearOptions: LinearOptions{Constants: "theory"}}
}

// OFU is OFU-MNL+ (Lee and Oh 2024, Algorithm 1): online mirror descent on
// linear utilities, in O(1) a round, and the index
//
//	z_ti = x_tiᵀ w_t + β_t ‖x_ti‖_{H_t⁻¹}
//
// with H_t and w_t as in [mle.Online], σ = η = ½ log(K+1) + 2 and λ = 84√2 d η. The set
// ‖w‖ ≤ 1 to which the paper restricts w is not enforced, as in the published
// experiments. Their code also takes twice the step, σ = 2η; the constants "published"
// do so too.
type OFU struct {
	linear
	o OFUOptions // resolved: no zeros that stand for the paper's values
}

// NewOFU returns a learner of linear utilities at its first round.
func NewOFU(p Problem, o OFUOptions) (*OFU, error) { return NewOFUOn(p, nil, o) }

// NewOFUOn returns a learner of the utilities wᵀφ(x) at its first round, where φ
// is the basis of m; nil is [NewOFU].
func NewOFUOn(p Problem, m utility.LinearInParams, o OFUOptions) (*OFU, error) {
	model, err := o.basis("NewOFUOn", &p, m)
	if err != nil {
		return nil, err
	}
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if o.Eta == 0 {
		o.Eta = float64(0.5*portable.Log(float64(p.MaxShown+1))) + 2
	}
	if o.Lambda == 0 {
		o.Lambda = 84 * math.Sqrt2 * float64(model.NumParams()) * o.Eta
	}
	l := &OFU{o: o}
	id := p.identify("ofu-mnl-plus", 1, utility.Identity(model), o)
	l.linear = newLinear(p, model, o.LinearOptions, l, id, func() (estimator, *gram.Matrix) {
		return online{mle.NewOnline(o.Lambda, make([]float64, model.NumParams()), o.Eta, o.sigma())}, nil
	})
	return l, nil
}

// sigma returns the σ of [mle.Online].
func (o OFUOptions) sigma() float64 {
	if o.Constants == published {
		return 2 * o.Eta
	}
	return o.Eta
}

// freeze implements algorithm.
func (l *OFU) freeze() vitrine.Policy {
	pi := &optimistic{p: l.p, z: search.Optimistic{
		Model:   l.model,
		Params:  slices.Clone(l.est.Params()),
		Inverse: l.est.(online).Hessian().Inverse(),
		Radius:  l.o.radiusAt(l.rounds+1, l.beta),
	}}
	return pi.inPlaces(l.places)
}

// beta returns β_t of Lee and Oh (2024, Lemma 1 with the constants of its
// proof, at δ = 1, as in the authors' code):
//
//	β_t² = 2η ((3 log(1 + (K+1)t) + 3) (17/16 λ + 2√λ c_t + 16 c_t²)
//	           + 2 + (7√6/6) d η log(1 + (t+1)/(2λ))) + 4λ
//	c_t  = log(2√(1 + 2t))
func (l *OFU) beta(t float64) float64 {
	k, d := float64(l.p.MaxShown), float64(l.model.NumParams())
	eta, lambda := l.o.Eta, l.o.Lambda
	c := portable.Log(2 * math.Sqrt(1+float64(2*t)))
	square := float64((float64(3*portable.Log(1+float64((k+1)*t))) + 3) *
		(float64(17.0/16*lambda) + float64(2*math.Sqrt(lambda)*c) + float64(16*c*c)))
	width := float64(7 * math.Sqrt(6) / 6 * d * eta * portable.Log(1+(t+1)/(2*lambda)))
	return math.Sqrt(float64(2*eta*(square+2+width)) + float64(4*lambda))
}
