package bandit

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment/search"
)

// optimistic is the policy of lines 10 and 11 of Algorithm 1, and of every
// upper-confidence baseline.
type optimistic struct {
	p Problem
	z search.Optimistic
}

// estimated is a policy of estimated utilities.
type estimated interface {
	vitrine.Policy
	Explainer
	Utilities(dst []float64, x *vitrine.Context)
}

// inPlaces returns the policy with position effects, if they are learned.
func (o *optimistic) inPlaces(k places) estimated {
	if k == 0 {
		return o
	}
	return &placed{o, k}
}

// Offer implements vitrine.Policy. The offer is deterministic, so its
// propensity is 1.
func (o *optimistic) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	// Line 10: z_ti = f_w(x_ti) + √β_t ‖∇f_w(x_ti)‖_{V⁻¹} + β_t C_h/λ. Of many items
	// only those z_ti are computed that line 11 depends on.
	// Line 11: S_t ∈ argmax over S ∈ 𝒮 of R̃_t(S).
	return vitrine.Offer{Assortment: o.z.Maximize(o.p.Family(x), x), Propensity: 1}
}

// valueAt is Value of a model at the parameters of optimistic utilities. The standard deviation is
// ‖∇f‖_{V⁻¹}, which goes with the bonus.
func valueAt(z *search.Optimistic, mean, sd []float64, x *mat.Dense) (bool, bool) {
	z.Model.Utilities(mean, z.Params, x)
	if z.Radius == 0 {
		return true, false
	}
	n, _ := x.Dims()
	g := mat.NewDense(n, len(z.Params), nil)
	z.Model.Gradients(g, z.Params, x)
	z.Inverse.Norms(sd, g)
	return true, true
}

// Value implements [Explainer].
func (o *optimistic) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	return valueAt(&o.z, mean, sd, x)
}

// IsLinear implements [Explainer].
func (o *optimistic) IsLinear() bool { return isLinear(o.z.Model) }

// Reasons implements [Explainer].
func (o *optimistic) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	return o.reasons(x)
}

func (o *optimistic) reasons(x *vitrine.Context) Reasons {
	r := Reasons{By: ByBonus, IsBest: true, Index: o.z.Utilities(nil, x)}
	if o.z.Radius <= 0 && o.z.Slack == 0 {
		r.By = ByEstimate
	}
	return r
}
