package bandit

import (
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/utility"
)

// optimistic is the policy of lines 10 and 11 of Algorithm 1, and of every
// upper-confidence baseline: offer the assortment of the largest expected
// revenue under the optimistic utilities
//
//	z_i = f_w(x_i) + radius · ‖∇f_w(x_i)‖_{V⁻¹} + slack
//
// A radius of 0 computes no gradients.
type optimistic struct {
	p      Problem
	model  utility.Model
	w      []float64    // d_w, owned
	inv    gram.Inverse // V⁻¹, owned
	radius float64      // √β_t
	slack  float64      // β_t C_h / λ
	pool   *indexPool
	bound  lazyBound // of the norms
}

// Offer implements vitrine.Policy. The offer is deterministic, so its
// propensity is 1.
func (o *optimistic) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	family := o.p.family(x)
	scratch := o.pool.get()
	defer o.pool.put(scratch)
	if s, ok := o.search(scratch, x, family); ok {
		return vitrine.Offer{Assortment: s, Propensity: 1}
	}
	z := o.index(scratch, x)
	s, _ := assortment.Maximize(nil, family, z, x.Revenue)
	return vitrine.Offer{Assortment: s, Propensity: 1}
}

// indexRows is the number of items whose gradients are held at a time.
const indexRows = 256

// index returns the optimistic utilities of all items, in scratch.
func (o *optimistic) index(scratch *indexScratch, x *vitrine.Context) []float64 {
	n := x.NumItems()
	scratch.z = grow(scratch.z, n)
	z := scratch.z
	if n > 0 && o.radius == 0 {
		o.model.Utilities(z, o.w, x.Features)
		for i := range z {
			z[i] += o.slack
		}
		return z
	}
	for i := 0; i < n; i += indexRows {
		to := min(i+indexRows, n)
		o.exact(z[i:to], scratch.items.view(x.Features, i, to), &scratch.g, &scratch.norms)
	}
	return z
}

// exact stores the optimistic utilities of the items x in z. A utility does not
// depend on the other items of x.
func (o *optimistic) exact(z []float64, x *mat.Dense, g *matrix, norms *[]float64) {
	rows := g.reshape(len(z), len(o.w))
	utility.Linearize(o.model, z, rows, o.w, x)
	*norms = grow(*norms, len(z))
	o.inv.Norms(*norms, rows)
	for i, norm := range *norms {
		z[i] = o.at(z[i], norm)
	}
}

// at returns the optimistic utility for the utility f and its norm, and is
// increasing in both. The conversion keeps compilers from fusing the product
// and the sum in some places and not in others: bounds are compared with
// utilities from elsewhere.
func (o *optimistic) at(f, norm float64) float64 {
	f += float64(o.radius * norm)
	return f + o.slack
}

// indexScratch is what computing an index of N items needs besides memory for
// its answer.
type indexScratch struct {
	z      []float64 // N
	norms  []float64 // indexRows
	g      matrix    // indexRows×d_w
	items  matrix    // a view of the context
	search *search
}

// indexPool hands out scratch to the concurrent callers of a learner's
// policies.
type indexPool struct{ pool sync.Pool }

func (p *indexPool) get() *indexScratch {
	if s, ok := p.pool.Get().(*indexScratch); ok {
		return s
	}
	return new(indexScratch)
}

func (p *indexPool) put(s *indexScratch) { p.pool.Put(s) }
