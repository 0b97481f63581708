// Package bandit holds the learners, one file each. [NewAuto] makes the one that needs no choice: give it a [Problem],
// call Policy and Observe, and see the example.
//
//	onl.go        ONL-MNL, Algorithm 1 of the paper
//	greedy.go     ONL-MNL without its bonus
//	ucb.go        UCB-MNL (Oh and Iyengar 2021)
//	ts.go         TS-MNL with optimistic sampling (Oh and Iyengar 2019)
//	ofu.go        OFU-MNL+ (Lee and Oh 2024)
//	egreedy.go    ε-greedy-MNL (Zhang and Luo 2024)
//	log_barrier.go the log-barrier strategy (Zhang and Luo 2024)
//	feel_good.go  Feel-Good Thompson sampling (Zhang 2022; Zhang and Luo 2024)
//	bma.go        BMA-MNL: families averaged by evidence, slots sampled
//	wide.go       BMA-MNL for many features, mostly indicators
//	uniform.go    uniform over the feasible family
//
// Constructors return an error that names an invalid option or part of the problem; their rng must not be nil. Every
// learner accepts any non-negative revenues, learns only in Observe, and returns policies that are frozen and safe for
// concurrent use. All can be saved and restored: they implement encoding.BinaryMarshaler and, on a learner made with
// the same problem and options, encoding.BinaryUnmarshaler.
package bandit

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/scratch"
	"vitrine/mle"
	"vitrine/utility"
)

// Problem describes the task to every learner before the first round.
//
// No policy shows more than MaxShown items. If the Constraint or a context's family contains larger sets, policies
// restrict it by [assortment.Limiter], which all families of package assortment implement. If it demands more items,
// constructors return an error, and policies panic. If your own family is no Limiter, it must not contain larger sets.
//
// Policies panic if the items of a context do not have NumFeatures features.
type Problem struct {
	NumFeatures int                // d, of each item
	Items       int                // N, the most items of a request; 0 if unknown. A learner may refuse too many
	MaxShown    int                // K, the most items that are shown; an AtMost must agree
	Rounds      int                // T, the horizon
	Constraint  vitrine.Constraint // 𝒮, for contexts without a family of their own
	// Numeric lists the columns of features that are numbers rather than indicators, in order; nil if unknown. Only
	// [NewAuto] uses it.
	Numeric []int
	// Customer lists the columns of the customer's features, which are equal for all items of a context, in order; nil
	// if unknown. Only [NewAuto] uses it.
	Customer []int
}

// Check reports an invalid problem.
func (p Problem) Check() error {
	switch {
	case p.NumFeatures < 1:
		return fmt.Errorf("features = %d: must be at least 1", p.NumFeatures)
	case p.Items < 0:
		return fmt.Errorf("items = %d: must not be negative (0 is unknown)", p.Items)
	case p.MaxShown < 1:
		return fmt.Errorf("size = %d: must be at least 1", p.MaxShown)
	case p.MaxShown > math.MaxInt32:
		return fmt.Errorf("size = %d: must be at most %d", p.MaxShown, math.MaxInt32)
	case p.Rounds < 1:
		return fmt.Errorf("rounds = %d: must be at least 1", p.Rounds)
	case !p.areColumns(p.Numeric):
		return fmt.Errorf("numeric columns %v: must be distinct columns of %d features, in order", p.Numeric,
			p.NumFeatures)
	case !p.areColumns(p.Customer):
		return fmt.Errorf("the customer's columns %v: must be distinct columns of %d features, in order", p.Customer,
			p.NumFeatures)
	case isNil(p.Constraint):
		return fmt.Errorf("the problem has no constraint")
	}
	if k, ok := p.Constraint.(assortment.AtMost); ok && int(k) != p.MaxShown {
		return fmt.Errorf("size = %d: the constraint allows %d", p.MaxShown, int(k))
	}
	if _, err := p.limit(p.Constraint); err != nil {
		return fmt.Errorf("size = %d: the constraint: %w", p.MaxShown, err)
	}
	return nil
}

// check is Check, and limits the Constraint of a constructor's own copy: a large family takes too long for every offer.
func (p *Problem) check() error {
	if err := p.Check(); err != nil {
		return err
	}
	p.Constraint = p.Family(new(vitrine.Context))
	return nil
}

func (p Problem) areColumns(list []int) bool {
	return !slices.ContainsFunc(list, func(j int) bool { return j < 0 || j >= p.NumFeatures }) &&
		slices.IsSorted(list) && len(slices.Compact(slices.Clone(list))) == len(list)
}

// checkModel reports a utility family that the named constructor cannot take.
func (p Problem) checkModel(constructor string, m utility.Model) error {
	if isNil(m) {
		return fmt.Errorf("%s: the utility model is nil: give it a family, such as utility.NewLinear(%d, true)",
			constructor, p.NumFeatures)
	}
	if m.NumFeatures() != p.NumFeatures {
		return fmt.Errorf("the utility has %d features, the problem has %d", m.NumFeatures(), p.NumFeatures)
	}
	if m.NumParams() < 1 {
		return fmt.Errorf("the utility has no parameters: there is nothing to learn, give it a family that has some")
	}
	return nil
}

// checkWidth panics unless the items of a context have d features. A policy cannot return an error:
// [vitrine.Context.Check] is for contexts from outside.
func (p Problem) checkWidth(x *vitrine.Context) {
	if x.NumItems() == 0 {
		return
	}
	if _, have := x.Features.Dims(); have != p.NumFeatures {
		panic(fmt.Sprintf("bandit: a policy for items of %d features got a context with items of %d: "+
			"Context.Check reports such a context", p.NumFeatures, have))
	}
}

// isNil reports a nil interface, or one that holds a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// Family returns the feasible family of a context, without sets of more than MaxShown items. It panics if no sets are
// left, or if the items do not have NumFeatures features. Every policy calls it first.
func (p Problem) Family(x *vitrine.Context) vitrine.Constraint {
	p.checkWidth(x)
	family := x.Feasible
	if family == nil {
		family = p.Constraint
	}
	limited, err := p.limit(family)
	if err != nil {
		panic(fmt.Sprintf("bandit: the feasible family of a context has no set of at most %d items, the size "+
			"of the problem: %v", p.MaxShown, err))
	}
	return limited
}

// limit returns a family without sets of more than MaxShown items.
func (p Problem) limit(c vitrine.Constraint) (vitrine.Constraint, error) {
	if c, ok := c.(assortment.Limiter); ok {
		return c.Limit(p.MaxShown)
	}
	return c, nil
}

// tangent linearises the offered items of a round.
type tangent struct {
	x, g         scratch.Matrix
	u            []float64
	mean, spread []float64
	nll          mle.NLL
}

// addTo adds the offered items of a round, of gradients g, to a Gram matrix. A further take says nothing of how much is
// taken at all, so each adds only the items' spread around their mean ḡ,
//
//	V ← V + Σ_{i∈S} g_i g_iᵀ + n Σ_{i∈S} (g_i − ḡ)(g_i − ḡ)ᵀ
//
// At every w the Hessian of the round's loss is at least min_i p(0 | S) p(i | S) times what V gains.
func (t *tangent) addTo(v *gram.Matrix, g *mat.Dense, further int) {
	n, d := g.Dims()
	for k := range n {
		v.Add(1, g.RawRowView(k))
	}
	if further == 0 {
		return
	}
	t.mean, t.spread = scratch.Grow(t.mean, d), scratch.Grow(t.spread, d)
	clear(t.mean)
	for k := range n {
		floats.AddScaled(t.mean, 1/float64(n), g.RawRowView(k))
	}
	for k := range n {
		floats.SubTo(t.spread, g.RawRowView(k), t.mean)
		v.Add(float64(further), t.spread)
	}
}

// loss returns the loss of a round under a model, t's own until the next call.
func (t *tangent) loss(m utility.Model, round *mle.Choices) *mle.NLL {
	t.nll.Model, t.nll.Choices = m, round
	return &t.nll
}

// maxUtility bounds the utility of a row that is learned from. Linear
// utilities do not reach it.
const maxUtility = vitrine.MaxUnscaled * vitrine.MaxUnscaled

// at linearises the offered items of a round at the learner's estimate w: it stores their utilities in t.u and returns
// their gradients. They are the learner's own doing, so they are no reason to refuse the round. They are brought within
// the bounds that keep a learner's sums of squares comparable with its λ, as [vitrine.MaxUnscaled] does for features:
//
//   - A gradient with an entry beyond [vitrine.MaxUnscaled] is scaled down to it. The utility at w stays, so the round
//     teaches the same from a gentler slope.
//   - A utility beyond maxUtility is cut off there.
//
// It returns nil if the page was empty, or if a utility or a gradient is not finite: then the round teaches nothing.
func (t *tangent) at(m utility.Model, w []float64, r vitrine.Round) *mat.Dense {
	t.u = t.u[:0]
	if len(r.Offer.Assortment) == 0 {
		return nil
	}
	g, size := t.of(m, w, t.x.Rows(r.Context.Features, r.Offer.Assortment))
	if math.IsInf(size, 0) {
		return nil
	}
	for k, u := range t.u {
		t.u[k] = max(-maxUtility, min(maxUtility, u))
		gentle(g.RawRowView(k))
	}
	return g
}

// gentle scales a gradient with an entry beyond [vitrine.MaxUnscaled] down to it,
// and returns the factor.
func gentle(g []float64) float64 {
	steepest := largest(0, g)
	if steepest <= vitrine.MaxUnscaled {
		return 1
	}
	factor := vitrine.MaxUnscaled / steepest
	floats.Scale(factor, g)
	return factor
}

// basis is at for a family u = wᵀφ(x) with gradients φ(x) that do not depend on w. It stores in t.u the offsets a of
// the utilities a + gᵀw: 0, except for an item with a scaled gradient.
func (t *tangent) basis(m utility.LinearInParams, w []float64, r vitrine.Round) *mat.Dense {
	s := r.Offer.Assortment
	t.u = scratch.Grow(t.u, len(s))
	clear(t.u)
	if len(s) == 0 {
		return nil
	}
	g := t.g.Reshape(len(s), len(w))
	m.Gradients(g, w, t.x.Rows(r.Context.Features, s))
	if math.IsInf(largest(0, g.RawMatrix().Data), 0) {
		return nil
	}
	for k := range s {
		row := g.RawRowView(k)
		u := floats.Dot(row, w)
		if factor := gentle(row); factor < 1 {
			t.u[k] = (1 - factor) * u
		}
	}
	return g
}

// of stores the utilities of the items x in t.u and returns their gradients, with
// the largest size of an entry of them: +Inf if a gradient or a utility is not
// finite.
func (t *tangent) of(m utility.Model, w []float64, x *mat.Dense) (g *mat.Dense, size float64) {
	n, _ := x.Dims()
	t.u = scratch.Grow(t.u, n)
	g = t.g.Reshape(n, len(w))
	utility.Linearize(m, t.u, g, w, x)
	for k, v := range t.u {
		size = largest(size, g.RawRowView(k))
		if v-v != 0 {
			size = math.Inf(1)
		}
	}
	return g, size
}

// largest returns the largest of size and the sizes of v's entries, +Inf if one
// is not a number.
func largest(size float64, v []float64) float64 {
	for _, x := range v {
		if a := math.Abs(x); !(a <= size) {
			size = a
			if a != a {
				return math.Inf(1)
			}
		}
	}
	return size
}
