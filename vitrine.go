// Package vitrine states the problem that the rest of the module solves: the
// multinomial-logit (MNL) contextual bandit of Section 2 of the ONL-MNL paper
// (Hwang, Kim and Oh, NeurIPS 2025).
//
// In round t a customer arrives with a [Context]: N items with features x_ti
// and revenues r_ti. A [Policy] offers an [Assortment] S_t of some of them.
// The customer takes one item of S_t or walks away, which is the outside
// option; that is the [Choice]. A [Learner] learns from the [Round], and its next
// Policy offers better. Customers choose by the MNL model with utilities u_i = f_w*(x_ti),
//
//	p(i | S) = exp(u_i) / (1 + Σ_{j∈S} exp(u_j))   i in S
//	p(0 | S) = 1        / (1 + Σ_{j∈S} exp(u_j))   the outside option
//
// There are only a few types here: Context, Constraint, Assortment, Choice,
// Offer, Round, Policy and Learner. The functions compute probabilities, revenues and
// draws of the MNL model. The example plays a learner of a few lines. Package bandit has
// the learners, package assortment the constraints, and package env simulated customers.
//
// Functions take utilities u, never their exponentials, and stay finite for |u| up to
// 700.
package vitrine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Context is what is known before an assortment is offered: X_t and r_t.
type Context struct {
	Features *mat.Dense // N×d, row i is x_ti
	Revenue  []float64  // N, r_ti ≥ 0; nil means 1 for every item; the outside option earns 0
	Feasible Constraint // the feasible family of this request; nil means the learner's own
}

// NumItems returns N. A context without features has no items.
func (x *Context) NumItems() int {
	if x.Features == nil {
		return 0
	}
	n, _ := x.Features.Dims()
	return n
}

// MaxFeature bounds the absolute value of a feature. Learners add sums of squares of
// features to a λ near 1. Over a million items of features of 10⁴ such a sum is 10¹⁴, and
// a float64 has 16 digits, so with larger features λ would be lost. Features near 1 are
// best.
const MaxFeature = 1e4

// MaxRevenue bounds a revenue.
const MaxRevenue = 1e100

// Check returns an error that names the first feature whose absolute value is not at most
// [MaxFeature], or the first revenue outside [0, MaxRevenue]. It also returns an error if
// items do not have d features, or if the feasible family has a method Items() int that
// does not return N. Policies and learners assume a context that passes.
func (x *Context) Check(d int) error {
	n := x.NumItems()
	if n > 0 {
		if _, have := x.Features.Dims(); have != d {
			return fmt.Errorf("context has %d features an item, want %d", have, d)
		}
	}
	for i := range n {
		for j, v := range x.Features.RawRowView(i) {
			if !(math.Abs(v) <= MaxFeature) {
				return fmt.Errorf("feature %d of item %d is %v: features must be finite and at most %v in size: scale them", j, i, v, MaxFeature)
			}
		}
	}
	if family, ok := x.Feasible.(interface{ Items() int }); ok && family.Items() != n {
		return fmt.Errorf("context has %d items, its feasible family has %d", n, family.Items())
	}
	if x.Revenue != nil && len(x.Revenue) != n {
		return fmt.Errorf("context has %d revenues for %d items", len(x.Revenue), n)
	}
	for i, r := range x.Revenue {
		if !(r >= 0 && r <= MaxRevenue) {
			return fmt.Errorf("revenue of item %d is %v: revenues must be finite, not negative and at most %v", i, r, MaxRevenue)
		}
	}
	return nil
}

// Constraint is a feasible family 𝒮 of assortments. It is a linear oracle: for given gains
// of the items it finds the set with the largest sum, which is all that the optimiser of
// package assortment asks. The empty assortment belongs to a family unless its
// documentation says otherwise.
type Constraint interface {
	// Contains reports whether s belongs to the family.
	Contains(s Assortment) bool

	// MaxGain returns argmax over S in the family of Σ_{i∈S} gain_i, where
	// gain has one entry per item, using dst's storage if it suffices. No
	// item of gain 0 or less is in the answer unless the family demands it.
	MaxGain(dst Assortment, gain []float64) Assortment
}

// Assortment lists the items that are shown, strictly increasing in [0, N).
// The empty assortment is legal.
type Assortment []int

// Check returns an error for the first entry that is outside [0, n) or not larger than the
// one before it.
func (s Assortment) Check(n int) error {
	last := -1
	for k, i := range s {
		if i < 0 || i >= n {
			return fmt.Errorf("assortment has item %d at position %d, outside [0, %d)", i, k, n)
		}
		if i <= last {
			return fmt.Errorf("assortment has item %d after item %d: items must be strictly increasing", i, last)
		}
		last = i
	}
	return nil
}

// Choice is a position in S∪{0}: 0 is the outside option, k is the k-th item
// of S, so that S[k-1] was taken.
type Choice int

// Outside is the choice of the outside option: nothing was taken.
const Outside Choice = 0

// Offer is an assortment and the probability with which the policy drew it.
type Offer struct {
	Assortment Assortment
	Order      []int   // the items of the assortment from the first place on; nil for a display without places
	Propensity float64 // π_t(S_t | X_t) in (0, 1]; 0 if it has no closed form or underflows
}

// Round is what happened: a context, what was offered and what was chosen.
type Round struct {
	Context *Context
	Offer   Offer
	Choice  Choice
}

// Check returns an error if a learner of d features cannot use the round: because of
// its context ([Context.Check]), an assortment with other items than the context's, or
// a choice that is not a position in S∪{0}.
func (r Round) Check(d int) error {
	if r.Context == nil {
		return fmt.Errorf("round has no context")
	}
	if err := r.Context.Check(d); err != nil {
		return err
	}
	s := r.Offer.Assortment
	if err := r.Offer.Check(r.Context.NumItems()); err != nil {
		return err
	}
	if r.Choice < Outside || int(r.Choice) > len(s) {
		return fmt.Errorf("choice %d is not a position in an assortment of %d items (0 is the outside option)", r.Choice, len(s))
	}
	return nil
}

// Check returns the error of [Assortment.Check] for n items, or an error if the order does not have each
// item of the assortment once.
func (o Offer) Check(n int) error {
	if err := o.Assortment.Check(n); err != nil {
		return err
	}
	if o.Order == nil {
		return nil
	}
	if len(o.Order) != len(o.Assortment) {
		return fmt.Errorf("order has %d items, the assortment has %d", len(o.Order), len(o.Assortment))
	}
	seen := make([]bool, len(o.Order))
	for place, i := range o.Order {
		k, found := slices.BinarySearch(o.Assortment, i)
		if !found {
			return fmt.Errorf("order has item %d in place %d, which is not in the assortment", i, place+1)
		}
		if seen[k] {
			return fmt.Errorf("order has item %d twice", i)
		}
		seen[k] = true
	}
	return nil
}

// Policy is a frozen rule π_t. It is safe for concurrent use, and all its
// randomness comes from rng.
type Policy interface {
	Offer(x *Context, rng *rand.Rand) Offer
}

// Learner turns rounds into policies. It has one writer: Observe and Policy
// are not safe for concurrent use, the policies returned are.
type Learner interface {
	// Policy returns π_{t+1}. Later calls of Observe do not change it.
	Policy() Policy

	// Observe learns from one round. It is the only method that changes state. If it
	// returns an error, the state is unchanged. Rounds may come late, in any order, or
	// never.
	Observe(Round) error
}
