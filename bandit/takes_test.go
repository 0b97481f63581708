package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/internal/gram"
	"vitrine/mle"
	"vitrine/utility"
)

// What V gains by further takes bounds the Hessian of their loss on both sides: at least the least q_i of it, and at
// most half. docs/algorithms/baskets.md, "One likelihood".
func TestGramOfFurtherTakes(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 5))
	const d, lambda = 3, 1.0
	for range 200 {
		n := 1 + rng.IntN(5)
		g, a, w := mat.NewDense(n, d, nil), make([]float64, n), make([]float64, d)
		for k := range n {
			for j := range d {
				g.Set(k, j, 2*rng.NormFloat64())
			}
		}
		for j := range w {
			w[j] = rng.NormFloat64()
		}
		further := 1 + rng.IntN(3)
		var tangent tangent
		one, several := gram.New(d, lambda), gram.New(d, lambda)
		tangent.addTo(one, g, 0)
		tangent.addTo(several, g, further)
		var gained, least, half mat.SymDense
		subtract(&gained, several.Sym(nil), one.Sym(nil))

		single, basket := mle.NewAffine(lambda, w), mle.NewAffine(lambda, w)
		single.Append(a, g, 1)
		basket.Append(a, g, 1, slices.Repeat([]vitrine.Choice{1}, further)...)
		var h mat.SymDense
		subtract(&h, basket.Hessian(nil, w), single.Hessian(nil, w))

		u, p := make([]float64, n), make([]float64, n+1)
		mat.NewVecDense(n, u).MulVec(g, mat.NewVecDense(d, w))
		vitrine.Probabilities(p, u)
		least.ScaleSym(slices.Min(p[1:])/floats.Sum(p[1:]), &gained)
		subtract(&least, &h, &least)
		half.ScaleSym(0.5, &gained)
		subtract(&half, &half, &h)
		for what, m := range map[string]*mat.SymDense{"H − q V": &least, "V/2 − H": &half} {
			var eigen mat.EigenSym
			eigen.Factorize(m, false)
			if v := slices.Min(eigen.Values(nil)); v < -1e-10*(1+mat.Max(several.Sym(nil))) {
				t.Fatalf("%s has the eigenvalue %v", what, v)
			}
		}
	}
}

// subtract stores a − b in dst.
func subtract(dst, a, b *mat.SymDense) {
	var minus mat.SymDense
	minus.ScaleSym(-1, b)
	dst.AddSym(a, &minus)
}

// For visits with independent takes, a learner of all takes knows more: its estimate is nearer to the truth, by the
// ratio of the informations. On a page of one item further takes teach nothing.
func TestFurtherTakesTeach(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 6))
	const d, visits, samples = 2, 400, 60
	truth := []float64{0.8, -0.5}
	p := paperProblem()
	p.NumFeatures = d
	o := UCBOptions{LinearOptions: LinearOptions{Constants: "tuned", Lambda: 1e-3}}
	var all, first float64 // squared errors
	for range samples {
		one, several := must(NewUCB(p, o)).(*UCB), must(NewUCB(p, o)).(*UCB)
		for range visits {
			x := &vitrine.Context{Features: mat.NewDense(4, d, nil)}
			u, probabilities := make([]float64, 4), make([]float64, 5)
			for i := range u {
				for j, w := range truth {
					x.Features.Set(i, j, rng.NormFloat64())
					u[i] += w * x.Features.At(i, j)
				}
			}
			vitrine.Probabilities(probabilities, u)
			draw := func(from int) vitrine.Choice {
				left := rng.Float64() * floats.Sum(probabilities[from:])
				for k, v := range probabilities[from:] {
					if left -= v; left < 0 {
						return vitrine.Choice(from + k)
					}
				}
				return 4
			}
			r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1, 2, 3}},
				Choice: draw(0)}
			fatal.If(t, one.Observe(r))
			for range 2 {
				if r.Choice != vitrine.Outside {
					r.More = append(r.More, draw(1))
				}
			}
			fatal.If(t, several.Observe(r))
		}
		for j, w := range truth {
			all += (several.est.Params()[j] - w) * (several.est.Params()[j] - w)
			first += (one.est.Params()[j] - w) * (one.est.Params()[j] - w)
		}
	}
	// With three takes a visit the information is nearly three times as large as with one.
	if ratio := all / first; ratio < 0.2 || ratio > 0.6 {
		t.Errorf("the squared error with all takes is %.2f of that with the first, want about 0.38", ratio)
	}

	alone := vitrine.Round{Context: &vitrine.Context{Features: mat.NewDense(1, d, []float64{1, 2})},
		Offer: vitrine.Offer{Assortment: vitrine.Assortment{0}}, Choice: 1}
	one, several := must(NewUCB(p, o)).(*UCB), must(NewUCB(p, o)).(*UCB)
	fatal.If(t, one.Observe(alone))
	alone.More = []vitrine.Choice{1, 1}
	fatal.If(t, several.Observe(alone))
	for j, w := range one.est.Params() {
		wantNear(t, "θ̂", several.est.Params()[j], w, 1e-9)
	}
}

// BMA-MNL's linear expert reaches the posterior of a fit by hand to the same takes, Kalman steps and snapshots between.
func TestExpertsOfTakes(t *testing.T) {
	rounds := linearHistory(t, 60)
	for s, r := range rounds {
		if r.Choice != vitrine.Outside && s%3 == 0 {
			rounds[s].More = []vitrine.Choice{vitrine.Choice(1 + s%len(r.Offer.Assortment)), r.Choice}
		}
	}
	c := mle.NewChoices(paperFeatures)
	m := utility.NewLinear(paperFeatures, true)
	e := fatal.Or(newExpert(Expert{Model: m}, 0, nil))(t)
	var tangent tangent
	for _, r := range rounds {
		c.Append(r.Context.Features, r.Offer.Assortment, r.Choice, r.More...)
		if round := c.Round(c.Rounds() - 1); round.Rows() > 0 {
			e.learn(round, nil, &tangent)
		}
	}
	fit := fatal.Or((mle.LevenbergMarquardt{Steps: 100, Tolerance: 1e-12}).Laplace(
		&mle.NLL{Model: m, Choices: c, Prior: e.prior}, make([]float64, m.NumParams())))(t)
	for j, w := range fit.Mode {
		wantNear(t, "a step's mode", e.posterior.Mode[j], w, 0.1)
	}
	wantNear(t, "the evidence of steps", e.posterior.LogEvidence, fit.LogEvidence, 0.02)
	basket := mle.NewChoices(paperFeatures)
	basket.AppendRows(mat.NewDense(4, paperFeatures, nil), 1, 2, 2)
	var none *expert
	wantNear(t, "the loss of a guess", none.forecast(basket), math.Log(5)+2*math.Log(4), 1e-14)
	if !e.fit(c, nil, nil) {
		t.Fatal("no fit")
	}
	wantNear(t, "the evidence of a fit", e.posterior.LogEvidence, fit.LogEvidence, 1e-6)
}
