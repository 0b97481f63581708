package bandit

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/utility"
)

// Explainer is a policy that can say how it came to an offer. All policies of this package are.
type Explainer interface {
	// Value stores the policy's beliefs about the items with the rows of x, each judged alone and in the first place:
	// the mean utility in mean, its standard deviation in sd. It leaves a slice alone if the policy doesn't provide it,
	// and reports which ones it provides.
	Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool)

	// IsLinear reports whether the mean is an affine function of the row.
	IsLinear() bool

	// Reasons returns how Offer came to its answer for the same x and the same draws.
	Reasons(x *vitrine.Context, rng *rand.Rand) Reasons
}

// Reasons say how a policy came to an offer.
type Reasons struct {
	By Cause

	// Index holds the utilities by which the policy chose, for all items: with a bonus, or drawn. If a policy draws for
	// each slot, an item shown gets the utility of the slot that took it, and others their largest. nil if the policy
	// uses no index.
	Index []float64

	// IsBest reports whether the offer is the feasible set of the largest expected revenue under Index. With position
	// effects IsBest is false, because the order of the set counts too.
	IsBest bool

	// Family names, for each item shown, the utility family of the slot that took it, and is empty for others; nil if
	// there is one family.
	Family []string
}

// Cause is the way in which a policy chooses.
type Cause string

// The ways in which the policies choose.
const (
	ByBonus    Cause = "bonus"    // the best set under optimistic utilities
	ByEstimate Cause = "estimate" // the best set under estimated utilities, or under lower bounds of them
	ByDraw     Cause = "draw"     // the best set under utilities that were drawn
	BySlot     Cause = "slots"    // for each slot the best item left under utilities of a belief drawn for it
	ByWeight   Cause = "weights"  // a set drawn from a distribution that prefers good ones
	ByChance   Cause = "chance"   // a set drawn without regard to utilities
)

// Weight is the weight of a utility family in a policy that averages several.
type Weight struct {
	Family string
	Weight float64
}

// isLinear reports whether the utilities of a model are affine in the features.
func isLinear(m utility.Model) bool {
	switch m := m.(type) {
	case *utility.Linear:
		return true
	case interface{ Base() utility.Model }: // with position effects
		return isLinear(m.Base())
	}
	return false
}
