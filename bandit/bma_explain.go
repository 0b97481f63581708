package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/utility"
)

// name returns the name of a belief's family.
func (o *mixture) name(e *belief) string {
	return named(Expert{e.family, e.memory}, o.views[e.view].z)
}

// named returns the name of an expert's beliefs.
func named(e Expert, z standardisation) string {
	if z.bends != nil {
		return e.String() + " of ranks"
	}
	return e.String()
}

// Families returns the weight of each family, summed over its beliefs.
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

// doubt is the power of the weights by which families count for the deviation of a utility.
const doubt = 0.1

// Value implements [Explainer]. The mean belongs to the mixture Σ_e π_e N(f_ŵ(x), ‖∇f_ŵ(x)‖²_{H⁻¹}). The standard
// deviation is around that mean, but of the mixture
//
//	Σ_e τ_e N(f_ŵ(x), ‖∇f_ŵ(x)‖²_{H⁻¹}),   τ_e ∝ π_e^0.1
//
// because evidence compares the families without saying that one of them is right. A belief in units uses the moments
// of 16 draws, the same for all rows. Beliefs of little weight are left out, as in Utilities.
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
		if e.view != look && o.views[0].z.shift != nil { // otherwise nothing is learned yet
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
	if o.unknown {
		return Reasons{By: ByChance}
	}
	w := mixtures.Get().(*mixtureScratch)
	defer mixtures.Put(w)
	o.begin(w, x, rng)
	if w.n > 0 {
		o.fillSlots(w, x.Features, 0, len(w.expert))
	}
	return o.reasons(w, o.p.Family(x), x.Revenue)
}

// reasons returns, for each item shown, its utility under the belief of the slot that took it, and for the others the
// largest of the slots' utilities.
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
