package bandit

import (
	"math/rand/v2"
	"sync"

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
}

// Offer implements vitrine.Policy. The offer is deterministic, so its
// propensity is 1.
func (o *optimistic) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	scratch := o.pool.get()
	defer o.pool.put(scratch)
	z := o.index(scratch, x)
	s, _ := assortment.Maximize(nil, o.p.family(x), z, x.Revenue)
	return vitrine.Offer{Assortment: s, Propensity: 1}
}

// index returns the optimistic utilities of all items, in scratch.
func (o *optimistic) index(scratch *indexScratch, x *vitrine.Context) []float64 {
	n := x.NumItems()
	scratch.z = grow(scratch.z, n)
	z := scratch.z
	switch {
	case n == 0:
		return z
	case o.radius == 0:
		o.model.Utilities(z, o.w, x.Features)
	default:
		scratch.norms = grow(scratch.norms, n)
		g := scratch.g.reshape(n, len(o.w))
		utility.Linearize(o.model, z, g, o.w, x.Features)
		o.inv.Norms(scratch.norms, g)
		for i, norm := range scratch.norms {
			z[i] += o.radius * norm
		}
	}
	for i := range z {
		z[i] += o.slack
	}
	return z
}

// indexScratch is what computing an index of N items needs besides memory for
// its answer.
type indexScratch struct {
	z, norms []float64 // N
	g        matrix    // N×d_w
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
