package bandit

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

// A slot takes the item that matters in the best assortment under its sample, and not one that customers would take in
// great numbers and that adds next to nothing to the expected revenue.
func TestASlotTakesWhatAddsRevenue(t *testing.T) {
	rng := newRand()
	for range 200 {
		n := 2 + rng.IntN(6)
		u, r := make([]float64, n), make([]float64, n)
		for i := range u {
			u[i], r[i] = 2*rng.NormFloat64(), rng.Float64()
		}
		others, best := assortment.Maximize(nil, assortment.AtMost(n-1), u[:n-1], r[:n-1])
		// Item n−1 sells best of all, at a revenue just above R: it belongs to the best
		// assortment, and R without it is R up to 1e-6.
		u[n-1], r[n-1] = floats.Max(u)+3, best*(1+1e-6)
		with, _ := assortment.Maximize(nil, assortment.AtMost(n), u, r)
		if !slices.Contains(with, n-1) {
			t.Fatalf("u = %v, r = %v: the test's item is not in %v", u, r, with)
		}
		s := &mixtureScratch{n: n, z: slices.Clone(u), expert: make([]int, 1)} // one slot
		if got := s.fill(assortment.AtMost(n), r, nil); len(got) != 1 || got[0] == n-1 ||
			!slices.Contains(others, got[0]) {
			t.Fatalf("u = %v, r = %v: the slot takes %v of %v, and item %d adds nothing to the others", u, r, got, with,
				n-1)
		}
	}
}

// With a memory of M rounds each round leaves the share 1 − 1/M of the earlier information: of one round nothing, and
// after M rounds about 1/e.
func TestMemoryIsTheNumberOfRounds(t *testing.T) {
	// The rounds are informative about the parameter, or not at all.
	telling, silent := mle.NewChoices(1), mle.NewChoices(1)
	telling.AppendRows(mat.NewDense(2, 1, []float64{3, -2}), 1)
	silent.AppendRows(mat.NewDense(2, 1, []float64{0, 0}), 1)
	precision := func(p *mle.Laplace) float64 {
		var v [1]float64
		p.Deviation(v[:], 1, newRand())
		z := newRand().NormFloat64()
		return z * z / (v[0] * v[0])
	}
	for _, memory := range []float64{1, 2, 5, 200} {
		e := fatal.Or(newExpert(Expert{Model: utility.NewLinear(1, false), MemoryRounds: memory}, 0, nil))(t)
		step := func(round *mle.Choices) float64 {
			e.learn(round, nil, new(tangent))
			return precision(e.posterior) - e.prior[0]
		}
		before := step(telling)
		if before < 0.1 {
			t.Fatalf("a round leaves the information %v", before)
		}
		left := 0.0
		for range int(memory) {
			left = step(silent)
		}
		wantNear(t, "share of the information after M rounds", left/before, math.Pow(1-1/memory, memory), 1e-9)
		if share := left / before; share > 1/math.E || share < 1/math.E-1/memory {
			t.Errorf("memory %v: the share %v is left, want about 1/e", memory, share)
		}
	}
}

// The width of the draws in round t is b_t by the options, from the first round on.
func TestWidthOfRoundT(t *testing.T) {
	o := DefaultBMAOptions()
	o.Width, o.Anneal, o.Candidates = 0.1, 0.25*paperFeatures, 20
	l := fatal.Or(NewBMA(paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}}, o, newRand()))(t)
	for round := 1; round <= 30; round++ {
		want := max(0.1, 0.5/math.Sqrt(float64(round)))
		wantNear(t, "b_t", l.Policy().(*mixture).width, want, 1e-15)
		play(t, l, product, round-1, round)
	}
}
