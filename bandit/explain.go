package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment/search"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// Explainer is a policy that can say how it came to an offer. All policies of this package are.
type Explainer interface {
	// Value stores what the policy believes of items with the rows of x, one by one and in the first
	// place: the mean of the utility of each in mean, and its standard deviation in sd. It reports
	// which of them the policy has; what it does not have is not stored.
	Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool)

	// IsLinear reports whether the mean is an affine function of the row.
	IsLinear() bool

	// Reasons returns how Offer came to its answer for the same x and the same draws.
	Reasons(x *vitrine.Context, rng *rand.Rand) Reasons
}

// Reasons say how a policy came to an offer.
type Reasons struct {
	By Cause

	// Index has the utilities of all items by which the policy chose: with a bonus, or drawn. A policy
	// that draws for each slot has, of an item shown, that of the slot that took it, and of others the largest. nil if the policy
	// has none.
	Index []float64

	// IsBest reports whether the offer is the feasible set of the largest expected revenue under Index. With
	// position effects it is not: the order of the set counts, too.
	IsBest bool

	// Family names, of each item shown, the utility family of the slot that took it, and is empty for others; nil if there is
	// one family.
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
	ByChance   Cause = "chance"   // a set drawn whatever the utilities are
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

// Value implements [Explainer].
func (o *placed) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	return valueAt(&o.z, mean, sd, o.places.first(new(scratch.Matrix), &vitrine.Context{Features: x}).Features)
}

// Reasons implements [Explainer].
func (o *placed) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.reasons(o.places.first(new(scratch.Matrix), x))
	r.IsBest = false // it is the best order, with the effects of the places
	return r
}

// Value implements [Explainer]. The standard deviation is ‖φ‖_{V⁻¹}.
func (o *sampling) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	x = o.places.first(new(scratch.Matrix), &vitrine.Context{Features: x}).Features
	o.model.Utilities(mean, o.mean, x)
	n, _ := x.Dims()
	g := mat.NewDense(n, len(o.mean), nil)
	o.model.Gradients(g, o.mean, x)
	var along mat.Dense
	along.Mul(g, o.root)
	for i := range n {
		sd[i] = mat.Norm(along.RowView(i), 2)
	}
	return true, true
}

// IsLinear implements [Explainer].
func (o *sampling) IsLinear() bool { return isLinear(o.model) }

// Reasons implements [Explainer].
func (o *sampling) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	w := samplings.Get().(*samplingScratch)
	defer samplings.Put(w)
	return Reasons{By: ByDraw, IsBest: o.places == 0, Index: slices.Clone(o.index(w, o.places.first(new(scratch.Matrix), x), rng))}
}

// Value implements [Explainer].
func (o *epsGreedy) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	return o.best.Value(mean, sd, x)
}

// IsLinear implements [Explainer].
func (o *epsGreedy) IsLinear() bool { return o.best.IsLinear() }

// Reasons implements [Explainer].
func (o *epsGreedy) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	r := o.best.Reasons(x, nil) // it draws nothing
	if rng.Float64() < o.share(x.NumItems()) {
		r.By, r.IsBest = ByChance, false
	}
	return r
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

// Reasons implements [Explainer].
func (o *logBarrier) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.greedy.Reasons(x, nil) // it draws nothing
	w := barriers.Get().(*barrierScratch)
	defer barriers.Put(w)
	if o.distribution(w, x) != nil {
		r.By, r.IsBest = ByWeight, false
	}
	return r
}

// Reasons implements [Explainer].
func (o *drawn) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.greedy.Reasons(x, nil) // it draws nothing
	r.By = ByDraw
	return r
}

// Value implements [Explainer]: the policy knows no utilities.
func (u uniform) Value(_, _ []float64, _ *mat.Dense) (hasMean, hasSD bool) { return false, false }

// IsLinear implements [Explainer].
func (u uniform) IsLinear() bool { return false }

// Reasons implements [Explainer].
func (u uniform) Reasons(*vitrine.Context, *rand.Rand) Reasons { return Reasons{By: ByChance} }

// name returns the name of a belief's family.
func (o *mixture) name(e *belief) string {
	return named(Expert{e.family, e.memory}, o.views[e.view].z)
}

// nameOf returns the name of an expert's beliefs.
func (b *beliefs) nameOf(e Expert) string { return named(e, b.z) }

func named(e Expert, z standardisation) string {
	if z.bends != nil {
		return e.String() + " of ranks"
	}
	return e.String()
}

// Families returns the weights of the families, those of all beliefs of a family together.
func (o *mixture) Families() []Weight {
	var list []Weight
	for i, e := range o.beliefs {
		name := o.name(&e)
		if at := slices.IndexFunc(list, func(w Weight) bool { return w.Family == name }); at >= 0 {
			list[at].Weight += o.weights[i]
			continue
		}
		list = append(list, Weight{name, o.weights[i]})
	}
	return list
}

// Families returns the weights of the families of the BMA-MNL within.
func (o *widePolicy) Families() []Weight { return o.inner.Families() }

// doubt is the power of the weights by which families count for the deviation of a utility.
const doubt = 0.1

// Value implements [Explainer]: the mean of the mixture Σ_e π_e N(f_ŵ(x), ‖∇f_ŵ(x)‖²_{H⁻¹}), and the deviation from it of
//
//	Σ_e τ_e N(f_ŵ(x), ‖∇f_ŵ(x)‖²_{H⁻¹}),   τ_e ∝ π_e^0.1
//
// because evidence compares the families, and does not say that one of them is right. A belief in units has the moments of 16 draws,
// the same for all rows. Beliefs of little weight are left out, as in Utilities.
func (o *mixture) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	items, look := x, -1
	w := mixtures.Get().(*mixtureScratch)
	defer mixtures.Put(w)
	n, _ := x.Dims()
	u, first, square := make([]float64, n), make([]float64, n), make([]float64, n)
	pi, tau := make([]float64, len(o.beliefs)), make([]float64, len(o.beliefs))
	most := portable.Log(slices.Max(o.weights))
	for b, weight := range o.weights {
		if weight >= meanLeast {
			pi[b] = weight
		}
		if t := portable.Exp(doubt * (portable.Log(weight) - most)); t >= meanLeast {
			tau[b] = t
		}
	}
	floats.Scale(1/floats.Sum(pi), pi)
	floats.Scale(1/floats.Sum(tau), tau)
	clear(mean)
	add := func(b, draws, i int, mode, variance float64) {
		mean[i] += float64(pi[b] / float64(draws) * mode)
		first[i] += float64(tau[b] / float64(draws) * mode)
		square[i] += float64(tau[b] / float64(draws) * (float64(mode*mode) + variance))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for b, e := range o.beliefs {
		if tau[b] == 0 {
			continue
		}
		if e.view != look && o.views[0].z.shift != nil { // otherwise no round has been learned
			look = e.view
			o.standardise(w, look, o.views[0].z, x)
			items = w.standardised()
		}
		d := e.family.NumParams()
		if e.unit != nil {
			params := make([]float64, e.model.NumParams())
			for range 2 * meanPairs {
				e.unit.sample(params, e.unit.draw(rng), e.family.(*utility.Additive), e.posterior, 1, 1, rng)
				e.family.Utilities(u, params[:d], items)
				for i, v := range u {
					add(b, 2*meanPairs, i, v, 0)
				}
			}
			continue
		}
		g := mat.NewDense(n, e.model.NumParams(), nil) // 0 for the effects of places
		utility.Linearize(e.family, u, g.Slice(0, n, 0, d).(*mat.Dense), e.posterior.Mode[:d], items)
		for i, v := range u {
			add(b, 1, i, v, e.posterior.Variance(g.RawRowView(i)))
		}
	}
	for i, m := range mean {
		sd[i] = math.Sqrt(max(0, square[i]-float64(2*m*first[i])+float64(m*m)))
	}
	return true, true
}

// IsLinear implements [Explainer].
func (o *mixture) IsLinear() bool {
	for i, e := range o.beliefs {
		if o.weights[i] >= meanLeast && (!isLinear(e.model) || o.views[e.view].z.bends != nil) {
			return false
		}
	}
	return true
}

// Reasons implements [Explainer].
func (o *mixture) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	w := mixtures.Get().(*mixtureScratch)
	defer mixtures.Put(w)
	o.begin(w, x, rng)
	if w.n > 0 {
		o.fillSlots(w, x.Features, 0, len(w.expert))
		o.level(w, rng)
	}
	return o.reasons(w, o.p.Family(x), x.Revenue)
}

// reasons returns, of each item shown, its utility under the belief of the slot that took it, and of the others the largest of
// the slots' utilities.
func (o *mixture) reasons(w *mixtureScratch, family vitrine.Constraint, revenue []float64) Reasons {
	r := Reasons{By: BySlot, Index: make([]float64, w.n), Family: make([]string, w.n)}
	if w.n == 0 {
		return r
	}
	for k := range w.expert {
		for i, z := range w.z[k*w.n:][:w.n] {
			if k == 0 || z > r.Index[i] {
				r.Index[i] = z
			}
		}
	}
	o.pick(w, family, revenue)
	for j, k := range w.takers {
		i := w.taken[j]
		r.Index[i], r.Family[i] = w.z[k*w.n+i], o.name(&o.beliefs[w.expert[k]])
	}
	return r
}

// Value implements [Explainer]. The variance is that of an index of indicators which is one standard
// deviation above or below its mean: the mean of the variances there, and the variance of the means.
func (o *widePolicy) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	n, _ := x.Dims()
	s := wides.Get().(*wideScratch)
	defer wides.Put(s)
	reduced := o.reduced(s, x, 0)
	_, d := reduced.Dims()
	around, variances := mat.NewDense(2*n, d, nil), make([]float64, n)
	o.line.indexVariances(variances, &s.rows, 0, n)
	for i := range n {
		for side, sign := range []float64{-1, 1} {
			row := around.RawRowView(2*i + side)
			copy(row, reduced.RawRowView(i))
			row[d-1] += float64(sign * math.Sqrt(variances[i]))
		}
	}
	moved, spread := make([]float64, 2*n), make([]float64, 2*n)
	o.inner.Value(moved, spread, around)
	o.inner.Value(mean, sd, reduced)
	for i := range sd {
		within := (float64(spread[2*i]*spread[2*i]) + float64(spread[2*i+1]*spread[2*i+1])) / 2
		sd[i] = math.Hypot(math.Sqrt(within), (moved[2*i+1]-moved[2*i])/2)
	}
	return true, true
}

// IsLinear implements [Explainer].
func (o *widePolicy) IsLinear() bool { return o.inner.IsLinear() }

// Reasons implements [Explainer].
func (o *widePolicy) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	w, s := mixtures.Get().(*mixtureScratch), wides.Get().(*wideScratch)
	defer mixtures.Put(w)
	defer wides.Put(s)
	o.sample(w, s, x, rng)
	return o.inner.reasons(w, o.p.Family(x), x.Revenue)
}
