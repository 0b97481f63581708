package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/option"
)

// NearestOptions are the options of Nearest.
type NearestOptions struct {
	Scale float64 `toml:"scale" range:"(0, inf)" doc:"how much a unit of distance takes off the utility"`
}

// DefaultNearestOptions returns a scale of 1.
func DefaultNearestOptions() NearestOptions { return NearestOptions{Scale: 1} }

// Nearest offers what is best if the utility of an item is its distance to the mean m of the items
// that were bought, times −Scale:
//
//	u_i = −Scale ‖x_i − m‖
type Nearest struct {
	p      Problem
	o      NearestOptions
	bought int
	sum    []float64 // of the features of the items that were bought
}

// NewNearest returns a learner at its first round.
func NewNearest(p Problem, o NearestOptions) (*Nearest, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := option.Check(o); err != nil {
		return nil, err
	}
	return &Nearest{p: p, o: o, sum: make([]float64, p.NumFeatures)}, nil
}

// Observe implements vitrine.Learner.
func (l *Nearest) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.NumFeatures); err != nil {
		return err
	}
	takes := append([]vitrine.Choice{r.Choice}, r.More...)
	slices.Sort(takes) // the same sum to the bit, whatever their order
	for _, c := range takes {
		if c == vitrine.Outside {
			continue
		}
		l.bought++
		for j, v := range r.Context.Features.RawRowView(r.Offer.Assortment[c-1]) {
			l.sum[j] += v
		}
	}
	return nil
}

// Policy implements vitrine.Learner.
func (l *Nearest) Policy() vitrine.Policy {
	mean := slices.Clone(l.sum)
	for j := range mean {
		mean[j] /= max(float64(l.bought), 1)
	}
	return &nearest{l.p, l.o.Scale, mean}
}

type nearest struct {
	p     Problem
	scale float64
	mean  []float64
}

// Offer implements vitrine.Policy.
func (o *nearest) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	family := o.p.Family(x) // first: it panics if x has another number of features
	u := make([]float64, x.NumItems())
	for i := range u {
		square := 0.0
		for j, v := range x.Features.RawRowView(i) {
			square += (v - o.mean[j]) * (v - o.mean[j])
		}
		u[i] = -o.scale * math.Sqrt(square)
	}
	s, _ := assortment.Maximize(nil, family, u, x.Revenue)
	return vitrine.Offer{Assortment: s, Propensity: 1}
}
