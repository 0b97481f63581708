package bandit

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/utility"
)

const (
	meanPairs = 8    // pairs of draws w and 2ŵ − w of each belief
	meanLeast = 0.01 // beliefs of less weight are left out
)

// Utilities stores in dst the utilities under which all items of x, offered together, get their mean probabilities
// under the posterior,
//
//	dst_i = log p̄(i) − log p̄(0),   p̄ = Σ_e π_e E p(· | w),   w ~ N(ŵ_e, H_e⁻¹)
//
// with f_w linearised at ŵ_e, or draws of a posterior over units. Every call uses the same draws.
func (o *mixture) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	n := x.NumItems()
	if n == 0 {
		return
	}
	w := mixtures.Get().(*mixtureScratch)
	defer mixtures.Put(w)
	z := o.standardisation(x.Features)
	var items *mat.Dense
	look := -1 // the view of items
	rng := rand.New(rand.NewPCG(1, 1))
	mean, p := make([]float64, n+1), make([]float64, n+1)
	u, moved := make([]float64, n), make([]float64, n)
	for i, e := range o.beliefs {
		if o.weights[i] < meanLeast {
			continue
		}
		if e.view != look {
			look = e.view
			o.standardise(w, look, z, x.Features)
			items = w.standardised()
		}
		d := e.family.NumParams() // in the first place the effects of places are 0
		if e.unit != nil {
			params := make([]float64, e.model.NumParams())
			for range 2 * meanPairs {
				e.unit.sample(params, e.unit.draw(rng), e.family.(*utility.Additive), e.posterior, 1, 1, rng)
				e.family.Utilities(moved, params[:d], items)
				vitrine.Probabilities(p, moved)
				for k, v := range p {
					mean[k] += float64(o.weights[i] * v)
				}
			}
			continue
		}
		g := w.g.Reshape(n, d)
		utility.Linearize(e.family, u, g, e.posterior.Mode[:d], items)
		delta := make([]float64, e.model.NumParams())
		for range meanPairs {
			e.posterior.Deviation(delta, 1, rng)
			for _, sign := range []float64{1, -1} {
				copy(moved, u)
				blas64.Gemv(blas.NoTrans, sign, g.RawMatrix(), vector(delta[:d]), 1, vector(moved))
				vitrine.Probabilities(p, moved)
				for k, v := range p {
					mean[k] += float64(o.weights[i] * v)
				}
			}
		}
	}
	for k := range dst {
		dst[k] = portable.Log(max(mean[k+1], minMean)) - portable.Log(max(mean[0], minMean))
	}
}

// minMean keeps the logarithms of mean probabilities finite.
const minMean = 1e-150
