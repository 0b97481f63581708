package bandit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Every optimistic learner offers, of few items and of enough that they are
// searched, the best assortment under all optimistic utilities: with revenues that
// are equal, unequal and zero, over families that are stable and that are not.
func TestOptimisticOffersAreTheBest(t *testing.T) {
	for name, learner := range learners() {
		t.Run(name, func(t *testing.T) {
			l := learner(paperProblem())
			rng := newRand()
			for s := range 40 {
				x := paperContext(s)
				offer := l.Policy().Offer(x, rng)
				fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choice(s % 2)}))
				o, ok := l.Policy().(*optimistic)
				if !ok || s%5 > 0 {
					continue
				}
				for _, n := range []int{1, 5, 2047, 2048, 5000} {
					x := &vitrine.Context{Features: mat.NewDense(n, paperFeatures, nil)}
					x.Features.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x.Features)
					z := o.z.Utilities(nil, x)
					slots := fatal.Or(assortment.NewSlots(n, make([]assortment.Slot, 2), 0))(t)
					rules := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 2}))(t)
					for _, x.Revenue = range [][]float64{nil, slices.Repeat([]float64{2.5}, n), unequal(rng, n),
						make([]float64, n)} {
						x.Feasible = []vitrine.Constraint{nil, slots, rules}[rng.IntN(3)]
						want, _ := assortment.Maximize(nil, o.p.Family(x), z, x.Revenue)
						expect.List(fatal.T(t), o.Offer(x, nil).Assortment, want, "round", s, "N", n)
					}
				}
			}
		})
	}
}

// unequal draws revenues, some of them equal and some zero.
func unequal(rng *rand.Rand, n int) []float64 {
	r := make([]float64, n)
	for i := range r {
		r[i] = float64(rng.IntN(8)) / 2
	}
	return r
}
