package env

import (
	"math"
	"math/rand/v2"

	"vitrine"
	"vitrine/internal/portable"
)

// Baskets says how visitors take several items of a page. It is safe for concurrent use.
type Baskets interface {
	// Further returns the takes after the first, as positions in s, from the first on. u holds the utilities of the
	// items of s as displayed. The draws from rng belong to the items of x, so that several policies can be compared on
	// the same visitor.
	Further(x *vitrine.Context, s vitrine.Assortment, u []float64, first vitrine.Choice,
		rng *rand.Rand) []vitrine.Choice

	// Revenue returns the expected revenue of the page s, with the same u. The first takes earn R(s), see
	// [vitrine.ExpectedRevenue].
	Revenue(x *vitrine.Context, s vitrine.Assortment, u []float64, first float64) float64

	// Mean returns the mean number of takes of a visit with any, if pages have no influence on it. Then the page of the
	// largest expected revenue is the first takes'. Otherwise Mean returns 0.
	Mean() float64
}

// Crowded is an environment with visitors who take several items.
type Crowded interface {
	Environment

	// Baskets returns nil if visitors take at most one item.
	Baskets() Baskets
}

// BasketsOf returns the baskets of e, or nil unless e is [Crowded].
func BasketsOf(e Environment) Baskets {
	if c, ok := e.(Crowded); ok {
		return c.Baskets()
	}
	return nil
}

// Independent are the baskets that learners assume (docs/algorithms/baskets.md): each take is followed by another with
// the same probability, 1 − 1/Number, and all follow the MNL model given that something is taken.
type Independent struct {
	Number float64 // the mean number of takes of a visit with any, at least 1
}

// Mean implements [Baskets].
func (b Independent) Mean() float64 { return b.Number }

// Further implements [Baskets].
func (b Independent) Further(x *vitrine.Context, s vitrine.Assortment, u []float64, _ vitrine.Choice,
	rng *rand.Rand) (more []vitrine.Choice) {
	shock := make([]float64, x.NumItems()+1)
	for len(more) < vitrine.MaxTakes-1 && rng.Float64() < 1-1/b.Number {
		vitrine.DrawShocks(shock, rng)
		best := 0
		for k, i := range s {
			if u[k]+shock[i+1] > u[best]+shock[s[best]+1] {
				best = k
			}
		}
		more = append(more, vitrine.Choice(best+1))
	}
	return more
}

// Revenue implements [Baskets].
func (b Independent) Revenue(_ *vitrine.Context, _ vitrine.Assortment, _ []float64, first float64) float64 {
	return b.Number * first
}

// Complements are baskets that violate the learners' assumptions. A taker of item i draws once more, from the other
// items and the outside option, by the MNL model with the utilities
//
//	u_j − Reluctance + Strength 1{x_i1 and x_j1 differ in sign}
//
// Items on different sides of the first feature, such as a camera and a lens, complement each other. A page with both
// kinds sells more second items.
type Complements struct {
	Strength   float64 `toml:"strength" range:"[-100, 100]" doc:"what a second item of the other side gains in utility"`
	Reluctance float64 `toml:"reluctance" range:"[-100, 100]" doc:"what every second item loses in utility"`
}

// Mean implements [Baskets].
func (Complements) Mean() float64 { return 0 }

// Further implements [Baskets].
func (b Complements) Further(x *vitrine.Context, s vitrine.Assortment, u []float64, first vitrine.Choice,
	rng *rand.Rand) []vitrine.Choice {
	shock := make([]float64, x.NumItems()+1)
	vitrine.DrawShocks(shock, rng)
	choice, best := vitrine.Outside, shock[0]
	for k, v := range b.second(x, s, u, int(first)-1) {
		if v += shock[s[k]+1]; v > best {
			choice, best = vitrine.Choice(k+1), v
		}
	}
	if choice == vitrine.Outside {
		return nil
	}
	return []vitrine.Choice{choice}
}

// second returns the utilities after the item at a position was taken: −∞ for that item.
func (b Complements) second(x *vitrine.Context, s vitrine.Assortment, u []float64, first int) []float64 {
	v := make([]float64, len(s))
	for k := range v {
		v[k] = u[k] - b.Reluctance
		if (x.Features.At(s[k], 0) < 0) != (x.Features.At(s[first], 0) < 0) {
			v[k] += b.Strength
		}
	}
	v[first] = math.Inf(-1)
	return v
}

// Revenue implements [Baskets].
func (b Complements) Revenue(x *vitrine.Context, s vitrine.Assortment, u []float64, first float64) float64 {
	p := make([]float64, len(s)+1)
	vitrine.Probabilities(p, u)
	total := first
	for k := range s {
		sum, earned := 1.0, 0.0
		for j, v := range b.second(x, s, u, k) {
			e := portable.Exp(v)
			sum += e
			earned += float64(e * vitrine.RevenueOf(x.Revenue, s[j]))
		}
		total += float64(p[k+1] * earned / sum)
	}
	return total
}
