package bandit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/assortment/search"
	"vitrine/internal/gram"
	"vitrine/internal/option"
	"vitrine/utility"
)

// GreedyOptions are the options of ONL-MNL without its bonus, and of a fitted model that is shown with caution. With
// Pessimism c and PilotCovariance Σ, the offer is the best one under
//
//	z_i = f_ŵ(x_i) − c √(∇f_ŵ(x_i)ᵀ Σ ∇f_ŵ(x_i))
//
// a lower bound of each utility, as in pessimistic offline learning (Jin, Yang and Wang 2021). That needs Pilot "given"
// and Update "none", because Σ describes the given weights.
type GreedyOptions struct {
	FitOptions
	Pessimism       float64   `toml:"pessimism,omitempty" range:"[0, inf)" doc:"standard errors of the given pilot by which each utility is lowered"`
	PilotCovariance []float64 `toml:"pilot_covariance,omitempty" doc:"the covariance of pilot_weights, row after row, for pessimism"`
}

// DefaultGreedyOptions returns the fit options of [DefaultONLOptions].
func DefaultGreedyOptions() GreedyOptions { return GreedyOptions{FitOptions: DefaultFitOptions()} }

// Check returns an error if the options do not suit a learner of the problem with the
// given number of parameters.
func (o GreedyOptions) Check(p Problem, params int) error {
	if err := o.onl().Check(p, params); err != nil {
		return err
	}
	_, err := o.covariance(params)
	return err
}

// onl returns the options of ONL-MNL without its bonus.
func (o GreedyOptions) onl() ONLOptions {
	return ONLOptions{FitOptions: o.FitOptions, Schedule: "configured"}
}

// covariance checks the options of pessimism, and returns Σ, or nil without pessimism.
func (o GreedyOptions) covariance(params int) (*mat.SymDense, error) {
	if err := option.Check(o); err != nil {
		return nil, err
	}
	switch given := len(o.PilotCovariance) > 0; {
	case o.Pessimism == 0 && !given:
		return nil, nil
	case !given:
		return nil, fmt.Errorf("pessimism = %v: needs pilot_covariance, the covariance of pilot_weights", o.Pessimism)
	case o.Pilot != "given" || o.Update != "none":
		return nil, errors.New("pessimism and pilot_covariance: need pilot = \"given\" and update = \"none\", for " +
			"a covariance describes weights that stay")
	}
	c, err := readCovariance("pilot_covariance", o.PilotCovariance, params)
	if err == nil && !semidefinite(c) {
		err = fmt.Errorf("pilot_covariance: is not the covariance of %d parameters: must be positive semi-definite",
			params)
	}
	return c, err
}

// semidefinite reports whether all eigenvalues of a matrix's correlations are at least 0, up to rounding. Correlations,
// unlike covariances, do not depend on the units of the parameters.
func semidefinite(c *mat.SymDense) bool {
	n := c.SymmetricDim()
	r := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			if v := c.At(i, j); v != 0 {
				v /= math.Sqrt(c.At(i, i)) * math.Sqrt(c.At(j, j))
				if !(math.Abs(v) <= 1+1e-9) { // also a variance of 0 or less
					return false
				}
				r.SetSym(i, j, v)
			}
		}
	}
	var eigen mat.EigenSym
	return eigen.Factorize(r, false) && slices.Min(eigen.Values(nil)) >= -1e-9
}

// NewGreedy returns ONL-MNL with β = 0 and C_h = 0: after the same warm-up it offers the best assortment under ŵ_t, or
// under the lower bounds of [GreedyOptions]. ONL-MNL's gain over it, with the same λ, is the value of the bonus.
func NewGreedy(p Problem, m utility.Model, o GreedyOptions, rng *rand.Rand) (*ONL, error) {
	if err := p.checkModel("NewGreedy", m); err != nil {
		return nil, err
	}
	l, err := NewONL(p, m, o.onl(), rng)
	if err != nil {
		return nil, err
	}
	c, err := o.covariance(m.NumParams())
	if err != nil {
		return nil, err
	}
	if o.Pessimism > 0 {
		l.pessimism = o.Pessimism
		l.sigma = gram.NewInverse(c.GrowSym(l.model.NumParams() - m.NumParams()).(*mat.SymDense)) // 0 for the effects of places
		o.FitOptions = l.o.FitOptions
		l.identity = p.identify("greedy", 1, utility.Identity(l.model), o)
	}
	return l, nil
}

// onGreedy is a policy that chooses by the parameters of a greedy one, and is explained by them: an estimate, or, for
// Feel-Good Thompson sampling, a draw.
type onGreedy struct {
	greedy  estimated // with position effects if they are learned
	effects []float64 // of the places; nil without position effects
}

// newOnGreedy returns the policy of the parameters w of a problem's model.
func newOnGreedy(p Problem, m utility.Model, w []float64, k places) onGreedy {
	greedy := (&optimistic{p: p, z: search.Optimistic{Model: m, Params: w}}).inPlaces(k)
	return onGreedy{greedy, effectsOf(greedy)}
}

// PlaceEffects returns the effects of the places, γ_1 = 0 first; nil without position effects.
func (o *onGreedy) PlaceEffects() []float64 { return slices.Clone(o.effects) }

// Value implements [Explainer].
func (o *onGreedy) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	return o.greedy.Value(mean, sd, x)
}

// IsLinear implements [Explainer].
func (o *onGreedy) IsLinear() bool { return o.greedy.IsLinear() }
