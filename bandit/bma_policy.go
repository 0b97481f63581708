package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/search"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/mle"
	"vitrine/utility"
)

// belief is a family and its frozen posterior: Laplace's approximation, or a population of units next to the linear
// fit, with the linear fit's posterior.
type belief struct {
	family    utility.Model
	model     utility.Model // the family, with the effects of places
	posterior *mle.Laplace
	unit      *unitPosterior // nil for Laplace's
	memory    float64        // the expert's
	view      int
}

// view is a way to look at items: standardised, or in normal scores.
type view struct {
	z      standardisation // the zero value takes the context's moments
	bounds *bounds         // of features that are standardised but for the scores
	rows   *affineRows     // for contexts of short rows; nil for whole ones
}

// mixture is BMA-MNL's policy: for each slot a belief, and a unit if the belief is in units.
type mixture struct {
	p        Problem
	beliefs  []belief
	weights  []float64 // π
	width    float64   // b_t
	views    []view
	unknown  bool // whether too little is known, from rounds or from a prior, to prefer items
	outliers Outliers
	places   places
	effects  []float64 // the mean γ, γ_1 = 0 first; nil without position effects
}

// estimateEffects sets the effects of the places to the modes' effects, averaged by weight.
func (o *mixture) estimateEffects() {
	if o.places == 0 {
		return
	}
	o.effects = make([]float64, 1+int(o.places))
	for i, e := range o.beliefs {
		floats.AddScaled(o.effects, o.weights[i], o.places.effects(e.posterior.Mode))
	}
}

// PlaceEffects returns the estimated effects of the places, γ_1 = 0 first; nil without position effects.
func (o *mixture) PlaceEffects() []float64 { return slices.Clone(o.effects) }

// Offer implements vitrine.Policy. [Propensity] estimates the propensity, which cannot be computed in closed form.
func (o *mixture) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	if x.NumItems() == 0 {
		return vitrine.Offer{Assortment: vitrine.Assortment{}}
	}
	family := o.p.Family(x)
	if o.unknown {
		return o.chance(family, x, rng)
	}
	w := mixtures.Get().(*mixtureScratch)
	defer mixtures.Put(w)
	o.begin(w, x, rng)
	if s, ok := o.many(w, family, x); ok {
		return vitrine.Offer{Assortment: s}
	}
	o.fillSlots(w, x.Features, 0, len(w.expert))
	return o.pick(w, family, x.Revenue)
}

// firstRounds is the number of rounds before which pages are drawn at random. Outcomes may come late, and two sales before
// all others: until then the prior would show the items at the ends of the features on all pages, and known revenues
// the dearest items, which few may want.
const firstRounds = 3

// chance returns items at random, as many as the family allows, but no items without revenue, which only lower the
// revenue of a page.
func (o *mixture) chance(family vitrine.Constraint, x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	gain := make([]float64, x.NumItems())
	for i := range gain {
		if u := 1 - rng.Float64(); x.Revenue == nil || x.Revenue[i] > 0 {
			gain[i] = u
		}
	}
	// A copy: the answer may be the family's own.
	offer := vitrine.Offer{Assortment: slices.Clone(family.MaxGain(nil, gain))}
	if o.places > 0 {
		offer.Order = slices.Clone(offer.Assortment)
		rng.Shuffle(len(offer.Order), func(j, k int) {
			offer.Order[j], offer.Order[k] = offer.Order[k], offer.Order[j]
		})
	}
	return offer
}

// pick returns the offer of the slots' sampled utilities.
func (o *mixture) pick(w *mixtureScratch, family vitrine.Constraint, revenue []float64) vitrine.Offer {
	var s vitrine.Assortment
	if k, ok := family.(assortment.AtMost); ok && assortment.EqualRevenues(revenue) {
		s = w.largest(int(k))
	} else {
		s = w.fill(family, revenue, o.effects)
	}
	return vitrine.Offer{Assortment: s, Order: o.order(w, s, revenue)}
}

// order returns the best order of the items of s for the means of the slots' utilities; nil without
// position effects.
func (o *mixture) order(w *mixtureScratch, s vitrine.Assortment, revenue []float64) []int {
	if o.places == 0 {
		return nil
	}
	u, r := make([]float64, len(s)), make([]float64, len(s))
	for j, i := range s {
		r[j] = vitrine.RevenueOf(revenue, i)
		for k := range w.expert {
			u[j] += max(-maxSample, min(maxSample, w.z[k*w.n+i])) / float64(len(w.expert))
		}
	}
	best, _ := assortment.MaximizeOrdered(nil, assortment.AtMost(len(s)), u, o.effects, r)
	for j := range s { // those that earn less than the others, last
		if !slices.Contains(best, j) {
			best = append(best, j)
		}
	}
	for p, j := range best {
		best[p] = s[j]
	}
	return best
}

// α, the standard deviations that a slot adds to utilities: fewer if revenues differ.
const (
	optimism        = 1
	revenueOptimism = 0.3
)

// fullySpread is the coefficient of variation of revenues from which on α takes its smaller value.
const fullySpread = 0.1

// optimismOf returns α for revenues: it falls with their coefficient of variation, from α of equal revenues to α of
// unequal ones.
func optimismOf(r []float64) float64 {
	mean, square := 0.0, 0.0
	for k, v := range r {
		delta := v - mean
		mean += delta / float64(k+1)
		square += float64(delta * (v - mean))
	}
	if !(square > 0) {
		return optimism
	}
	variation := math.Sqrt(square/float64(len(r))) / mean
	return max(revenueOptimism, optimism-float64((optimism-revenueOptimism)*variation/fullySpread))
}

// begin draws a belief for each slot, for the items of x, and for a belief in units also a unit and its amplitudes. It
// uses systematic sampling: each slot draws by weight, but together the slots repeat a belief or a unit no more often
// than its weight warrants.
func (o *mixture) begin(w *mixtureScratch, x *vitrine.Context, rng *rand.Rand) {
	w.n = x.NumItems()
	slots := min(o.p.MaxShown, w.n)
	w.optimism = optimismOf(x.Revenue)
	w.expert = slices.Grow(w.expert[:0], slots)[:slots]
	w.width = 0
	for _, e := range o.beliefs {
		w.width = max(w.width, e.model.NumParams())
	}
	w.delta = scratch.Grow(w.delta, slots*w.width)
	w.v = scratch.Grow(w.v, slots)
	systematic(w.v, rng)
	for k, v := range w.v {
		i, within := quantile(o.weights, v)
		w.expert[k] = i
		e := o.beliefs[i]
		if e.unit != nil {
			unit, _ := quantile(e.unit.weight, within)
			e.unit.sample(w.delta[k*w.width:][:e.model.NumParams()], unit, e.family.(*utility.Additive), e.posterior,
				max(o.width, amplitudeWidth), 0, rng)
		}
	}
}

// fillSlots leaves in scratch the sampled utilities of the slots [first, end) for items of the
// features x.
func (o *mixture) fillSlots(w *mixtureScratch, x *mat.Dense, first, end int) {
	w.z = scratch.Grow(w.z, len(w.expert)*w.n)
	z := o.standardisation(x)
	if w.n < search.MinSlots {
		for from := 0; from < w.n; from += indexRows {
			o.fillRows(w, w, z, x, from, min(from+indexRows, w.n), first, end)
		}
		return
	}
	search.Blocks(w.n, func(int) (block func(from, to int), done func()) {
		own := mixtures.Get().(*mixtureScratch)
		return func(from, to int) { o.fillRows(own, w, z, x, from, to, first, end) }, func() { mixtures.Put(own) }
	})
}

// indexRows is the number of items with gradients in memory at a time.
const indexRows = 256

// fillRows is fillSlots for the items from ≤ i < to, in the scratch w, by the draws and into the utilities of drawn.
func (o *mixture) fillRows(w, drawn *mixtureScratch, z standardisation, x *mat.Dense, from, to, first, end int) {
	o.fillBlock(w, drawn, z, w.view.View(x, from, to), first, end, func(k int) []float64 {
		return drawn.z[k*drawn.n+from:][:to-from]
	})
}

// fillBlock stores in u(k) the sampled utilities of the slots k of [first, end) for the items x, by the draws of drawn.
func (o *mixture) fillBlock(w, drawn *mixtureScratch, z standardisation, x *mat.Dense, first, end int,
	u func(k int) []float64) {
	look := -1 // the view of the columns
	for i, e := range o.beliefs {
		if !slices.Contains(drawn.expert[first:end], i) {
			continue
		}
		if e.view != look {
			look = e.view
			o.standardise(w, look, z, x)
			w.deviationsOf, w.deviations = w.deviationsOf[:0], w.deviations[:0]
		}
		index := -1 // a slot with the belief's
		for k := first; k < end; k++ {
			switch {
			case drawn.expert[k] != i:
			case e.unit != nil:
				delta := drawn.delta[k*drawn.width:][:e.family.NumParams()] // in the first place the effects of places are 0
				e.family.(*utility.Additive).ColumnUtilities(u(k), delta, &w.columns)
				kernel.Axpy(u(k), drawn.optimism, w.deviation(e.posterior, w.columns.Affine()))
			case index < 0:
				e.index(u(k), drawn.optimism, w)
				index = k
			default:
				copy(u(k), u(index))
			}
		}
	}
}

// index stores in u the utilities of the items in the columns of w at the mode, and adds optimism times their standard
// deviations,
//
//	u_i = f_ŵ(x_i) + optimism √(∇f_ŵ(x_i)ᵀ H⁻¹ ∇f_ŵ(x_i))
func (e *belief) index(u []float64, optimism float64, w *mixtureScratch) {
	n, d := len(u), e.family.NumParams()
	mode := e.posterior.Mode[:d] // in the first place the effects of places are 0
	w.gradients = scratch.Grow(w.gradients, d*n)
	if m, ok := e.family.(utility.Columnar); ok {
		m.ColumnLinearize(u, w.gradients, mode, &w.columns)
	} else {
		g := w.g.Reshape(n, d)
		utility.Linearize(e.family, u, g, mode, w.standardised())
		kernel.Columns(w.gradients, g.RawMatrix().Data, d, n, d)
	}
	kernel.Axpy(u, optimism, w.deviation(e.posterior, w.gradients))
}

// deviation returns the posterior standard deviations of utilities with the given gradients, in columns. It keeps them
// for other beliefs with the same posterior, and so the same gradients. If a gradient is beyond [vitrine.MaxUnscaled],
// the deviation is 0: such an item would be shown for its deviation, and no expert could learn from it.
func (w *mixtureScratch) deviation(p *mle.Laplace, gradients []float64) []float64 {
	n, _ := w.columns.Dims()
	if k := slices.Index(w.deviationsOf, p); k >= 0 {
		return w.deviations[k*n:][:n]
	}
	have := len(w.deviations)
	w.deviations = slices.Grow(w.deviations, n)[:have+n]
	w.deviationsOf = append(w.deviationsOf, p)
	w.solved = p.Deviations(w.deviations[have:], w.solved, gradients)
	w.squares = scratch.Grow(w.squares, n)
	clear(w.squares)
	kernel.AddSquares(w.squares, gradients, len(gradients)/n)
	for i, square := range w.squares {
		if !(square <= vitrine.MaxUnscaled*vitrine.MaxUnscaled) {
			w.deviations[have+i] = 0
		}
	}
	return w.deviations[have:]
}

// standardisation returns the moments in use in the first view, or the moments of the items x before the first fit.
func (o *mixture) standardisation(x *mat.Dense) standardisation {
	if o.views[0].z.shift != nil {
		return o.views[0].z
	}
	seen := newMoments(o.p.NumFeatures)
	seen.add(x)
	return seen.standardisation()
}

// standardise sets the columns of w to the items x in a view. The first view uses the standardisation first.
func (o *mixture) standardise(w *mixtureScratch, look int, first standardisation, x *mat.Dense) {
	v := o.views[look]
	if look == 0 {
		v.z = first
	}
	if v.rows != nil {
		v.rows.of(&w.columns, &w.short, x)
	} else {
		w.columns.SetRows(x)
		v.z.of(&w.columns)
	}
	v.bounds.columns(&w.columns)
	v.z.bend(&w.columns)
}

// Outliers counts the feature values that the learner left out.
func (o *mixture) Outliers() Outliers { return o.outliers }

// standardised returns the items in the columns of w, in rows.
func (w *mixtureScratch) standardised() *mat.Dense {
	items := w.items.Reshape(w.columns.Dims())
	w.columns.Rows(items)
	return items
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Data: v, Inc: 1} }

// mixtureScratch is an offer's working memory.
type mixtureScratch struct {
	n            int
	z            []float64 // slots×n
	expert       []int     // the belief of each slot
	v            []float64 // by which the slots draw beliefs and units
	width        int       // of a slot's parameters
	optimism     float64   // α
	deviations   []float64 // of the utilities of a block of items, under each of deviationsOf
	deviationsOf []*mle.Laplace
	gradients    []float64 // column after column
	solved       []float64 // scratch of deviations
	squares      []float64 // lengths of gradients
	delta        []float64 // slots×width
	u            []float64
	gain         []float64
	earned       []float64 // by the answer of each slot
	taken        vitrine.Assortment
	takers       []int                // the slots that took them
	answers      []vitrine.Assortment // of the slots
	whole        vitrine.Assortment
	g            scratch.Matrix
	columns      utility.Columns // of standardised items
	short        utility.Columns
	items        scratch.Matrix
	view         scratch.Matrix
	some         []int     // items
	sampled      []float64 // utilities of these
	rows         scratch.Matrix
	pruned       assortment.Pruned
}

var mixtures = sync.Pool{New: func() any { return new(mixtureScratch) }}

// largest returns, for each slot but those beyond the limit, the item of the
// largest sampled utility that no slot before it took.
func (s *mixtureScratch) largest(limit int) vitrine.Assortment {
	slots := max(0, min(limit, len(s.expert)))
	s.taken, s.takers = s.taken[:0], s.takers[:0]
	for k := range slots {
		z := s.z[k*s.n:][:s.n]
		best := -1
		for i, v := range z {
			if (best < 0 || v > z[best]) && !slices.Contains(s.taken, i) {
				best = i
			}
		}
		s.taken, s.takers = append(s.taken, best), append(s.takers, k)
	}
	answer := slices.Clone(s.taken)
	slices.Sort(answer)
	return answer
}

// maxSample is the size beyond which [assortment.Maximize] is not exact.
const maxSample = 200

func clamp(z []float64) {
	for i, v := range z {
		if math.Abs(v) > maxSample {
			z[i] = math.Copysign(maxSample, v)
		}
	}
}

// fill gives each slot the first remaining item of the best assortment under its sampled utilities, and returns a set
// of the family with all of these items. It passes over an item if no set of the family combines it with the earlier
// ones. So the answer is the oracle's own for any family. If the family demands further items, they are the best ones
// under the last slot's sample.
func (s *mixtureScratch) fill(family vitrine.Constraint, r, effects []float64) vitrine.Assortment {
	n := s.n
	s.gain = scratch.Grow(s.gain, n)
	s.taken, s.takers = s.taken[:0], s.takers[:0]
	s.answers, s.earned = scratch.Grow(s.answers, len(s.expert)), scratch.Grow(s.earned, len(s.expert))
	if n < search.MinSlots {
		for k := range s.expert {
			s.maximize(k, family, r, effects)
		}
	} else {
		search.Each(len(s.expert), n, func(k int) { s.maximize(k, family, r, effects) })
	}
	for k := range s.expert {
		s.u = s.u[:0]
		for _, i := range s.answers[k] {
			s.u = append(s.u, s.z[k*n+i])
		}
		s.take(k, family, s.answers[k], s.u, r, s.earned[k])
	}
	if q, ok := assortment.Ranked(family); ok || assortment.Hereditary(family) {
		return s.shown(q)
	}
	z := s.z[(len(s.expert)-1)*n:][:n]
	for i := range s.gain {
		s.gain[i] = z[i] - 3*maxSample
	}
	for _, i := range s.taken {
		s.gain[i] = 4 * maxSample * float64(n)
	}
	return append(vitrine.Assortment{}, s.ask(family)...)
}

// shown returns the items taken and the pinned ones.
func (s *mixtureScratch) shown(q assortment.Rules) vitrine.Assortment {
	answer := append(append(vitrine.Assortment{}, s.taken...), q.Include...)
	slices.Sort(answer)
	return slices.Compact(answer)
}

// maximize finds the best assortment under the sampled utilities of a slot.
func (s *mixtureScratch) maximize(k int, family vitrine.Constraint, r, effects []float64) {
	z := s.z[k*s.n:][:s.n]
	clamp(z)
	if effects == nil {
		s.answers[k], s.earned[k] = assortment.Maximize(s.answers[k], family, z, r)
		return
	}
	s.answers[k], s.earned[k] = assortment.MaximizeOrdered(s.answers[k], family, z, effects, r)
}

// ask returns the family's answer to s.gain in the storage of s.whole, because a slice that the family keeps must not
// enter the pool.
func (s *mixtureScratch) ask(family vitrine.Constraint) vitrine.Assortment {
	answer := family.MaxGain(s.whole, s.gain)
	s.whole = append(slices.Grow(s.whole[:0], cap(answer)), answer...)
	return s.whole
}

// take adds to s.taken, for slot k, the item of left with the largest gain v_i (r_i − R) among those that the family
// allows next to the items taken. u holds the utilities of left; take changes both.
func (s *mixtureScratch) take(k int, family vitrine.Constraint, left vitrine.Assortment, u, r []float64,
	revenue float64) {
	for len(left) > 0 {
		best, maximum := 0, math.Inf(-1)
		for j, i := range left {
			gain := portable.Exp(u[j]) * (vitrine.RevenueOf(r, i) - revenue)
			if gain > maximum {
				best, maximum = j, gain
			}
		}
		i := left[best]
		left, u = slices.Delete(left, best, best+1), slices.Delete(u, best, best+1)
		if slices.Contains(s.taken, i) {
			continue
		}
		s.taken = append(s.taken, i)
		if s.stands(family) {
			s.takers = append(s.takers, k)
			return
		}
		s.taken = s.taken[:len(s.taken)-1]
	}
}

// stands reports whether a set of the family contains all items taken.
func (s *mixtureScratch) stands(family vitrine.Constraint) bool {
	if q, ok := assortment.Ranked(family); ok {
		return q.Allows(s.taken)
	}
	if assortment.Hereditary(family) {
		return family.Contains(s.taken)
	}
	clear(s.gain)
	for _, i := range s.taken {
		s.gain[i] = 1
	}
	whole := s.ask(family)
	for _, i := range s.taken {
		if !slices.Contains(whole, i) {
			return false
		}
	}
	return true
}
