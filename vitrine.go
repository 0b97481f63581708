// Package vitrine states the problem that the rest of the module solves: the multinomial-logit (MNL) contextual bandit
// of Section 2 of the ONL-MNL paper (Hwang, Kim and Oh, NeurIPS 2025).
//
// In round t a customer arrives with a [Context]: N items with features x_ti and revenues r_ti. A [Policy] offers an
// [Assortment] S_t of these items. The customer takes one item of S_t or walks away, which counts as taking the outside
// option; this is the [Choice]. A [Learner] learns from the [Round], and its next Policy offers better assortments.
// Customers choose by the MNL model with utilities u_i = f_w*(x_ti),
//
//	p(i | S) = exp(u_i) / (1 + Σ_{j∈S} exp(u_j))   i in S
//	p(0 | S) = 1        / (1 + Σ_{j∈S} exp(u_j))   the outside option
//
// There are only a few types here: Context, Constraint, Assortment, Choice, Offer, Round, Policy and Learner. The
// functions compute probabilities and revenues under the MNL model, and draw choices from it. The example runs a
// learner of a few lines. Learners are in package bandit, constraints in package assortment, and simulated customers in
// package env.
//
// Functions take utilities u, never their exponentials, and stay finite for |u| up to 700.
package vitrine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Context is everything known before an assortment is offered: X_t and r_t.
type Context struct {
	Features *mat.Dense // N×d, row i is x_ti
	Revenue  []float64  // N, r_ti ≥ 0; nil means 1 for every item; the outside option earns 0
	Feasible Constraint // restricts this request's assortments; nil means the learner's own constraint
}

// NumItems returns N, or 0 if the context contains no features.
func (x *Context) NumItems() int {
	if x.Features == nil {
		return 0
	}
	n, _ := x.Features.Dims()
	return n
}

// MaxFeature bounds the absolute value of a feature: larger numbers lose their units in a float64. Learners that do not
// standardise features accept less, see [MaxUnscaled].
const MaxFeature = 1e15

// MaxUnscaled bounds the absolute value of a feature for a learner that does not standardise features. Such a learner
// adds sums of squares of features to a λ near 1. Over a million items with features near 10⁴ the sum reaches 10¹⁴. A
// float64 holds 16 digits, so larger features would drown λ. Features near 1 are best.
const MaxUnscaled = 1e4

// MaxRevenue is the largest revenue that [Context.Check] accepts.
const MaxRevenue = 1e100

// Check returns an error that names the first feature larger than [MaxFeature] in absolute value or not a number, or
// the first revenue outside [0, MaxRevenue]. It also returns an error if the items do not have d features, or if the
// feasible family defines a method Items() int that does not return N. Policies and learners assume that contexts pass
// this check.
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
				return fmt.Errorf(
					"feature %d of item %d is %v: features must be finite and at most %v in size: scale them",
					j, i, v, MaxFeature,
				)
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
			return fmt.Errorf("revenue of item %d is %v: revenues must be finite, not negative and at most %v",
				i, r, MaxRevenue)
		}
	}
	return nil
}

// Constraint is a feasible family 𝒮 of assortments. It acts as a linear oracle: given a gain for each item, it finds
// the feasible set with the largest total gain. The optimiser in package assortment needs no more than this. The empty
// assortment is feasible unless a constraint documents otherwise.
type Constraint interface {
	// Contains reports whether s belongs to the family.
	Contains(s Assortment) bool

	// MaxGain returns argmax over S in the family of Σ_{i∈S} gain_i, with one gain per item. The result uses
	// dst's storage if it suffices. It includes items with a gain of 0 or less only where the family requires them.
	MaxGain(dst Assortment, gain []float64) Assortment
}

// Assortment lists the items shown, strictly increasing in [0, N). The empty assortment is legal.
type Assortment []int

// Check returns an error for the first entry that is outside [0, n) or does not exceed the entry before it.
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

// Choice is a position in S∪{0}: 0 means the outside option, and k means the k-th item, S[k-1].
type Choice int

// Outside is the choice of the outside option: the customer bought nothing.
const Outside Choice = 0

// Offer is an assortment together with the probability that the policy drew it.
type Offer struct {
	Assortment Assortment
	// Order lists the items of the assortment from the first place on. It is nil for a display without places.
	Order      []int
	Propensity float64 // π_t(S_t | X_t) in (0, 1]; 0 if there is no closed form or it underflows
}

// Round records a context, the assortment offered and the customer's choice.
//
// A visit with several takes records the others in More. Learners treat such a page as the choices of independent
// customers (docs/algorithms/baskets.md). The first chooses from S∪{0}. Each further one chooses from S, because a
// further customer who takes nothing leaves no trace:
//
//	p(c_1, …, c_m | S) ∝ (1 − p(0 | S)) Π_k p(c_k | S) / (1 − p(0 | S))
//
// The takes have no order: all orders of Choice and More mean the same.
type Round struct {
	Context *Context
	Offer   Offer
	Choice  Choice
	More    []Choice // further takes, none of them the outside option; an item may occur again; empty if Choice is Outside
}

// MaxTakes bounds the takes that one [Round] may record.
const MaxTakes = 1000

// Check returns an error if a learner of d features cannot use the round: the context fails [Context.Check], the
// assortment contains items outside the context, or the choice is not a position in S∪{0}.
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
		return fmt.Errorf("choice %d is not a position in an assortment of %d items (0 is the outside option)",
			r.Choice, len(s))
	}
	return r.checkMore()
}

func (r Round) checkMore() error {
	if len(r.More) == 0 {
		return nil
	}
	if r.Choice == Outside {
		return fmt.Errorf("round has %d further takes after the outside option: make one of them the choice",
			len(r.More))
	}
	if len(r.More) >= MaxTakes {
		return fmt.Errorf("round has %d takes, and at most %d are accepted: leave out some", len(r.More)+1, MaxTakes)
	}
	for _, c := range r.More {
		if c <= Outside || int(c) > len(r.Offer.Assortment) {
			return fmt.Errorf("further take %d is not an item of an assortment of %d items (they count from 1)",
				c, len(r.Offer.Assortment))
		}
	}
	return nil
}

// Check returns an error if the assortment fails [Assortment.Check] for n items, if the propensity is no
// probability, or if the order is not a permutation of the assortment.
func (o Offer) Check(n int) error {
	if err := o.Assortment.Check(n); err != nil {
		return err
	}
	if !(o.Propensity >= 0 && o.Propensity < 1+1e-9) { // a sum may be rounded
		return fmt.Errorf("propensity = %v: must be from 0 to 1", o.Propensity)
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

// Policy is a frozen rule π_t. It is safe for concurrent use and takes all its randomness from rng. It must
// not change the context.
type Policy interface {
	Offer(x *Context, rng *rand.Rand) Offer
}

// Learner turns rounds into policies. Observe and Policy are not safe for concurrent use; the returned policies are.
type Learner interface {
	// Policy returns π_{t+1}. Later calls of Observe do not change it.
	Policy() Policy

	// Observe learns from one round. No other method changes the learner. If Observe returns an error, the learner's
	// state is unchanged. Rounds may arrive late, in any order, or never.
	Observe(Round) error
}
