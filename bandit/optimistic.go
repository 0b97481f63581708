package bandit

import (
	"math/rand/v2"

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
