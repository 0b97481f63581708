package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// TSOptions are the options of TS-MNL.
type TSOptions struct {
	LinearOptions
	Update  string `toml:"update,omitempty" range:"mle|online" zero:"mle" doc:"θ̂ from all rounds, or by a step a round and fits now and then"`
	Samples int    `toml:"samples" range:"[1, 1000]" zero:"the paper's M(K)" doc:"M, the parameters drawn for each offer"`
}

// DefaultTSOptions returns λ = 1, the radius of the paper and its M(K).
func DefaultTSOptions() TSOptions {
	return TSOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 1}}
}

// TS is TS-MNL with optimistic sampling (Oh and Iyengar 2019, Algorithm 2): it
// draws M parameters and takes the largest utility of each item,
//
//	θ̃_t^(j) ~ N(θ̂_t, α_t² V_t⁻¹),   j = 1, …, M
//	z_ti    = max_j x_tiᵀ θ̃_t^(j)
//	M       = ⌈1 − log K / log(1 − 1/(4√(eπ)))⌉
//
// with θ̂_t, V_t and α_t as in [UCB].
type TS struct {
	linear
	o TSOptions
}

// NewTS returns a learner of linear utilities at its first round.
func NewTS(p Problem, o TSOptions) (*TS, error) { return NewTSOn(p, nil, o) }

// NewTSOn returns a learner of the utilities θᵀφ(x) at its first round, where φ
// is the basis of m; nil is [NewTS].
func NewTSOn(p Problem, m utility.LinearInParams, o TSOptions) (*TS, error) {
	model, err := o.basis("NewTSOn", &p, m)
	if err != nil {
		return nil, err
	}
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if o.Samples == 0 {
		o.Samples = OptimisticSamples(p.MaxShown)
	}
	l := &TS{o: o}
	id := p.identify("ts-mnl", 1, utility.Identity(model), o)
	l.linear = newLinear(p, model, o.LinearOptions, l, id, regression(model.NumParams(), o.Lambda, o.Update))
	return l, nil
}

// OptimisticSamples returns M(K): with that many samples, the maximum is optimistic for all K items of the best
// assortment at once, with constant probability (Oh and Iyengar 2019, Theorem 2).
func OptimisticSamples(size int) int {
	return int(math.Ceil(1 - portable.Log(float64(size))/portable.Log(1-1/(4*math.Sqrt(math.E*math.Pi)))))
}

// freeze implements algorithm.
func (l *TS) freeze() vitrine.Policy {
	d := l.model.NumParams()
	pi := &sampling{
		p: l.p, model: l.model, samples: l.o.Samples, places: l.places,
		mean: append([]float64(nil), l.est.Params()...),
	}
	radius := l.o.radiusAt(l.rounds+1, func(t float64) float64 { return selfNormalized(t, d, l.p.MaxShown) })
	root, err := l.v.Inverse().Cholesky()
	if err != nil {
		// V ⪰ λI is definite; only rounding can bring it this far from that, and then only the greedy rule is left.
		root, radius = mat.NewTriDense(d, mat.Lower, nil), 0
	}
	pi.root = root
	pi.radius = radius
	return pi
}

// sampling is TS-MNL's policy.
type sampling struct {
	p       Problem
	model   utility.Model
	mean    []float64     // θ̂, owned
	root    *mat.TriDense // L with LLᵀ = V⁻¹, owned
	radius  float64       // α
	samples int           // M
	places  places
}

type samplingScratch struct {
	z, u, theta, xi []float64
	first           scratch.Matrix
}

var samplings = sync.Pool{New: func() any { return new(samplingScratch) }}

// Offer implements vitrine.Policy. The propensity cannot be computed in closed form.
func (o *sampling) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	w := samplings.Get().(*samplingScratch)
	defer samplings.Put(w)
	c := o.p.Family(x)
	if o.places > 0 {
		return o.places.offer(c, o.index(w, o.places.first(&w.first, x), rng), o.mean, x.Revenue)
	}
	s, _ := assortment.Maximize(nil, c, o.index(w, x, rng), x.Revenue)
	return vitrine.Offer{Assortment: s}
}

// index returns the largest sampled utility of each item, in w.
func (o *sampling) index(w *samplingScratch, x *vitrine.Context, rng *rand.Rand) []float64 {
	n, d := x.NumItems(), len(o.mean)
	w.z, w.u = scratch.Grow(w.z, n), scratch.Grow(w.u, n)
	w.theta, w.xi = scratch.Grow(w.theta, d), scratch.Grow(w.xi, d)
	z, u, theta, xi := w.z, w.u, w.theta, w.xi
	if n == 0 {
		return z
	}
	for i := range z {
		z[i] = math.Inf(-1)
	}
	raw := o.root.RawTriangular()
	for range o.samples {
		for j := range xi {
			xi[j] = rng.NormFloat64()
		}
		for j := range theta {
			theta[j] = o.mean[j]
			for k, l := range raw.Data[j*raw.Stride : j*raw.Stride+j+1] {
				theta[j] += float64(o.radius * l * xi[k])
			}
		}
		o.model.Utilities(u, theta, x.Features)
		for i, v := range u {
			z[i] = max(z[i], v)
		}
	}
	return z
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
	return Reasons{By: ByDraw, IsBest: o.places == 0,
		Index: slices.Clone(o.index(w, o.places.first(new(scratch.Matrix), x), rng))}
}
