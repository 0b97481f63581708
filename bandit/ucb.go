package bandit

import (
	"slices"

	"vitrine"
	"vitrine/internal/option"
	"vitrine/internal/search"
	"vitrine/utility"
)

// UCBOptions are the options of UCB-MNL.
type UCBOptions struct {
	LinearOptions
}

// DefaultUCBOptions returns λ = 1 and the radius of the paper.
func DefaultUCBOptions() UCBOptions {
	return UCBOptions{LinearOptions{Constants: "theory", Lambda: 1}}
}

// UCB is UCB-MNL (Oh and Iyengar 2021, Algorithm 1): with the ridge-penalised maximum
// likelihood estimate θ̂_t of linear utilities it has the index
//
//	z_ti = x_tiᵀ θ̂_t + α_t ‖x_ti‖_{V_t⁻¹},   V_t = λI + Σ_{s<t} Σ_{i∈S_s} x_si x_siᵀ
//	α_t  = (1/2κ) √(2 d log(1 + t/d) + 2 log t)
type UCB struct {
	linear
	o UCBOptions
}

// NewUCB returns a learner of linear utilities at its first round.
func NewUCB(p Problem, o UCBOptions) (*UCB, error) { return NewUCBOn(p, nil, o) }

// NewUCBOn returns a learner of the utilities θᵀφ(x) at its first round, where φ
// is the basis of m; nil is [NewUCB].
func NewUCBOn(p Problem, m utility.LinearInParams, o UCBOptions) (*UCB, error) {
	model, err := o.basis("NewUCBOn", p, m)
	if err != nil {
		return nil, err
	}
	if err := option.Check(o); err != nil {
		return nil, err
	}
	l := &UCB{o: o}
	id := p.identify("ucb-mnl", 1, utility.Identity(model), o, DefaultUCBOptions())
	l.linear = newLinear(p, model, o.LinearOptions, l, id, regression(model.NumParams(), o.Lambda))
	return l, nil
}

// freeze implements algorithm.
func (l *UCB) freeze() vitrine.Policy {
	pi := &optimistic{p: l.p, z: search.Optimistic{
		Model:   l.model,
		Params:  slices.Clone(l.est.Params()),
		Inverse: l.v.Inverse(),
		Radius:  l.radius(),
	}}
	return pi.inPlaces(l.places)
}

// radius returns α_t for the coming round t.
func (l *UCB) radius() float64 {
	return l.o.radiusAt(l.rounds+1, func(t float64) float64 {
		return selfNormalized(t, l.model.NumParams(), l.p.Size)
	})
}
