package bandit

import (
	"fmt"
	"math"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/portable"
	"vitrine/mle"
	"vitrine/utility"
)

// LinearOptions are common to the baselines of linear utilities. They learn u = xᵀθ, or
// u = θᵀφ(x) with the basis φ of a family that is linear in its parameters. Then φ(x)
// takes the place of x in their papers, and d is the number of parameters.
type LinearOptions struct {
	// "theory" is the formula of the baseline's paper, which grows with t; "frozen" is its value at t = 1, as in
	// published code and figures; "tuned" is Radius.
	Constants string  `toml:"constants" range:"theory|frozen|tuned" doc:"the confidence radius: the paper's formula, its value at t = 1, or radius"`
	Radius    float64 `toml:"radius" range:"[0, inf)" doc:"the confidence radius of constants = tuned"`
	// The outside option's utility is 0, so without an intercept the model cannot represent how much customers buy. A
	// basis brings its own constant, if any, and takes no intercept.
	Intercept bool    `toml:"intercept" doc:"whether the utility has a constant term, u = xᵀθ + b"`
	Lambda    float64 `toml:"lambda" range:"[1e-9, inf)" doc:"λ of the Gram matrix and of the penalty (λ/2)‖θ‖²"`
	// The order of a round's offer says which place each item had.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
}

// basis returns the family for a learner of the problem: m, or the linear utilities of the features if m is nil, and
// with position effects if they are learned. It checks the problem as every constructor does. Errors name the
// constructor.
func (o LinearOptions) basis(constructor string, p *Problem, m utility.LinearInParams) (utility.LinearInParams, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Radius > 0 && o.Constants != "tuned" {
		return nil, fmt.Errorf("radius = %v: constants = %q sets its own radius: set constants = \"tuned\", or leave "+
			"radius out", o.Radius, o.Constants)
	}
	k := newPlaces(*p, o.PositionEffects)
	if m == nil {
		return k.basis(utility.NewLinear(p.NumFeatures, o.Intercept)), nil
	}
	if o.Intercept {
		return nil, fmt.Errorf("intercept = true: the learner has a utility of its own, which has a constant term " +
			"or none: leave intercept out")
	}
	if err := p.checkModel(constructor, m); err != nil {
		return nil, err
	}
	return k.basis(m), nil
}

// radiusAt returns the confidence radius for round t, given its formula.
func (o LinearOptions) radiusAt(t int, formula func(t float64) float64) float64 {
	switch o.Constants {
	case "theory":
		return formula(float64(t))
	case "frozen", published:
		return formula(1)
	default:
		return o.Radius
	}
}

// kappaBound returns the lower bound on p(0 | S) p(i | S) from which published code computes its radii, over all sets
// of at most K items with utilities in [−1, 1]:
//
//	κ = e⁻¹ / (1 + K e)²
func kappaBound(size int) float64 {
	return portable.Exp(-1) / math.Pow(1+float64(float64(size)*math.E), 2)
}

// selfNormalized returns the radius of UCB-MNL and TS-MNL,
//
//	α_t = (1/2κ) √(2 d log(1 + t/d) + 2 log t)
//
// (Oh and Iyengar 2021, Theorem 1; 2019, Theorem 2).
func selfNormalized(t float64, d, size int) float64 {
	dim := float64(d)
	return math.Sqrt(float64(2*dim*portable.Log(1+t/dim))+float64(2*portable.Log(t))) / (2 * kappaBound(size))
}

// linear is the common part of the baselines of linear utilities: rounds go to an estimator as affine utilities with a
// = 0 and G = φ(X), which is X without a basis.
type linear struct {
	learner
	model utility.LinearInParams
	start func() (estimator, *gram.Matrix) // at the start
	est   estimator
	v     *gram.Matrix // λI + Σ φ(x) φ(x)ᵀ; nil if the learner does not use it

	tangent tangent // scratch
}

// newLinear returns the common part of a learner, which is self.
func newLinear(p Problem, m utility.LinearInParams, o LinearOptions, self algorithm, id identity,
	start func() (estimator, *gram.Matrix)) linear {
	l := linear{learner: learner{p: p, self: self, identity: id, places: newPlaces(p, o.PositionEffects)}, model: m,
		start: start}
	l.est, l.v = start()
	return l
}

// regression returns the start of penalised maximum likelihood with a Gram
// matrix, for UCB-MNL and TS-MNL.
func regression(d int, lambda float64, update string) func() (estimator, *gram.Matrix) {
	return func() (estimator, *gram.Matrix) {
		if update == "online" {
			return recursive{mle.NewRecursive(lambda, d)}, gram.New(d, lambda)
		}
		return newton{mle.NewNewton(lambda, make([]float64, d), 1e-6)}, gram.New(d, lambda)
	}
}

// learn implements algorithm: it adds a round to the estimator and to the Gram
// matrix.
func (l *linear) learn(r vitrine.Round) {
	g := l.tangent.basis(l.model, l.est.Params(), r)
	if g == nil {
		return
	}
	a := l.tangent.u
	if l.v != nil {
		l.tangent.addTo(l.v, g, len(r.More))
	}
	l.est.observe(a, g, r.Choice, r.More...)
}

// fields implements algorithm.
func (l *linear) fields(f *fields.Fields, rounds int) func() {
	est, v := l.est, l.v
	if f.Reads() {
		est, v = l.start()
	}
	if est.Fields(f); v != nil {
		v.Fields(f)
	}
	checkRounds(f, est, rounds)
	return func() { l.est, l.v = est, v }
}
