package bandit

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// play plays the constants "likelihood" for customers with utilities xᵀθ, and records the quantities in the proof of
// their radius.
type ratioPlay struct {
	*UCB
	theta  []float64
	rounds []vitrine.Round
}

func playRatio(t *testing.T, d int, o UCBOptions, theta []float64, rng *rand.Rand, rounds int,
	each func(r ratioPlay)) ratioPlay {
	t.Helper()
	const items, size = 12, 3
	o.Constants = likelihood
	l := fatal.Or(NewUCB(Problem{NumFeatures: d, MaxShown: size, Rounds: rounds, Constraint: assortment.AtMost(size)},
		o))(t)
	p := ratioPlay{UCB: l, theta: theta}
	shock := make([]float64, items+1)
	for range rounds {
		x := &vitrine.Context{Features: mat.NewDense(items, d, nil)}
		u := make([]float64, items)
		for i := range items {
			for j := range d {
				x.Features.Set(i, j, rng.NormFloat64())
				u[i] += x.Features.At(i, j) * theta[j]
			}
		}
		offer := l.Policy().Offer(x, rng)
		vitrine.DrawShocks(shock, rng)
		r := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}
		observeAll(t, l, []vitrine.Round{r})
		p.rounds = append(p.rounds, r)
		if each != nil {
			each(p)
		}
	}
	return p
}

// rows calls f with the features and the utilities of the items that each round showed, under parameters w.
func (p ratioPlay) each(w []float64, f func(x [][]float64, u []float64, c vitrine.Choice)) {
	for _, r := range p.rounds {
		var x [][]float64
		var u []float64
		for _, i := range r.Offer.Assortment {
			row := r.Context.Features.RawRowView(i)
			x, u = append(x, row), append(u, mat.Dot(mat.NewVecDense(len(w), w), mat.NewVecDense(len(w), row)))
		}
		f(x, u, r.Choice)
	}
}

// loss returns L(w) and H(w) = ∇²L(w) + λI from the definition of the choice probabilities.
func (p ratioPlay) loss(w []float64) (loss float64, h *mat.SymDense) {
	d := len(w)
	h = mat.NewSymDense(d, nil)
	for j := range d {
		h.SetSym(j, j, p.o.Lambda)
	}
	p.each(w, func(x [][]float64, u []float64, c vitrine.Choice) {
		probability := make([]float64, len(u)+1)
		vitrine.Probabilities(probability, u)
		loss -= math.Log(probability[c])
		mean := mat.NewVecDense(d, nil)
		for k, row := range x {
			h.SymRankOne(h, probability[k+1], mat.NewVecDense(d, row))
			mean.AddScaledVec(mean, probability[k+1], mat.NewVecDense(d, row))
		}
		h.SymRankOne(h, -1, mean)
	})
	return loss, h
}

func squared(w []float64) (sum float64) {
	for _, v := range w {
		sum += v * v
	}
	return sum
}

func quadratic(h mat.Symmetric, a, b []float64) float64 {
	v := mat.NewVecDense(len(a), nil)
	v.SubVec(mat.NewVecDense(len(a), a), mat.NewVecDense(len(b), b))
	return mat.Inner(v, h, v)
}

// The radius is the formula of the page, computed from the rounds, with the Hessian at the estimate itself.
func TestLikelihoodRadius(t *testing.T) {
	o := UCBOptions{LinearOptions: LinearOptions{Lambda: 1.5}, Delta: 0.1, Bound: 2}
	theta := []float64{0.8, -0.5, 0.3}
	for _, rounds := range []int{1, 40, 2000} {
		p := playRatio(t, 3, o, theta, rand.New(rand.NewPCG(5, uint64(rounds))), rounds, nil)
		p.est.(newton).Tighten(0)
		estimate := p.est.Params()
		_, h := p.loss(estimate)
		trace, largest := 3*o.Lambda, 0.0
		p.each(estimate, func(x [][]float64, _ []float64, _ vitrine.Choice) {
			for _, row := range x {
				trace += squared(row)
				largest = max(largest, squared(row))
			}
		})
		var inverse mat.Dense
		fatal.If(t, inverse.Inverse(h))
		square := math.Log(10) + 1.5*math.Log(0.5+trace/(2*1.5*3)) + 1.5*2*2/2
		wide := math.Sqrt((2 + 2*math.Sqrt(largest)*(2+math.Sqrt(squared(estimate)))) * square)
		b := 2 * math.Sqrt(largest*mat.Trace(&inverse)) * square
		want := min(wide, (b+math.Sqrt(b*b+8*square))/2)
		wantNear(t, "the radius", p.radius(), want, 1e-9)
		expect.Equal(t, want == wide, rounds < 2000, rounds, "rounds: the bound by the norms is the smaller one")
	}
}

// The steps of the proof, by brute force. In one dimension the mixture is integrated by the trapezoid rule, and the
// loss is compared with its quadratic lower bound at many parameters.
func TestLikelihoodProof(t *testing.T) {
	o := UCBOptions{LinearOptions: LinearOptions{Lambda: 1}}
	for seed := range uint64(5) {
		p := playRatio(t, 1, o, []float64{0.9}, rand.New(rand.NewPCG(6, seed)), 30, nil)
		p.est.(newton).Minimize()
		best := p.est.Params()[0]
		penalized := func(w float64) float64 { loss, _ := p.loss([]float64{w}); return loss + w*w/2 }
		mixture := 0.0
		for w := -8.0; w <= 8; w += 0.01 {
			loss, _ := p.loss([]float64{w})
			mixture += 0.01 * math.Exp(-loss) * distuv.UnitNormal.Prob(w)
		}
		if least := math.Exp(-penalized(best)) / math.Sqrt(0.5+p.v.Trace()/2); mixture < least || mixture > 5*least {
			t.Errorf("seed %d: the mixture is %v, its bound %v", seed, mixture, least)
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	p := playRatio(t, 3, o, []float64{0.5, -0.6, 0.2}, rng, 80, nil)
	estimate := p.est.Params()
	atEstimate, h := p.loss(estimate)
	for range 300 {
		w := []float64{4 * rng.NormFloat64(), 4 * rng.NormFloat64(), 4 * rng.NormFloat64()}
		loss, _ := p.loss(w)
		difference := []float64{w[0] - estimate[0], w[1] - estimate[1], w[2] - estimate[2]}
		widest := 0.0
		p.each(difference, func(_ [][]float64, u []float64, _ vitrine.Choice) {
			low, high := 0.0, 0.0
			for _, v := range u {
				low, high = min(low, v), max(high, v)
			}
			widest = max(widest, high-low)
		})
		gain := loss + squared(w)/2 - atEstimate - squared(estimate)/2
		if least := quadratic(h, w, estimate) / (2 + widest); gain < least-1e-3 {
			t.Errorf("at %v the loss is %v above its minimum, its bound is %v", w, gain, least)
		}
	}
}

// In at least 1 − δ of the runs θ* is in the confidence set after every round, though offers depend on the set. The set
// is much smaller than the paper's.
func TestLikelihoodCoverage(t *testing.T) {
	const runs, rounds, delta = 100, 150, 0.05
	missed := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(8, seed))
		theta := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		norm := math.Sqrt(squared(theta))
		for j := range theta {
			theta[j] /= norm
		}
		inside := true
		p := playRatio(t, 3, UCBOptions{LinearOptions: LinearOptions{Lambda: 1}, Delta: delta}, theta, rng, rounds,
			func(p ratioPlay) {
				h, _ := p.est.(newton).Hessian()
				inside = inside && math.Sqrt(quadratic(h.Sym(nil), theta, p.est.Params())) <= p.radius()
			})
		if !inside {
			missed++
		}
		h, _ := p.est.(newton).Hessian()
		for i := range 12 {
			row := p.rounds[0].Context.Features.Slice(i, i+1, 0, 3).(*mat.Dense)
			var ours, paper [1]float64
			h.Inverse().Norms(ours[:], mat.DenseCopyOf(row))
			p.v.Inverse().Norms(paper[:], mat.DenseCopyOf(row))
			if p.radius()*ours[0] > selfNormalized(rounds+1, 3, 3)*paper[0]/5 {
				t.Errorf("seed %d: the width is %v, that of the paper %v", seed, p.radius()*ours[0],
					selfNormalized(rounds+1, 3, 3)*paper[0])
			}
		}
	}
	if limit := runs*delta + 3*math.Sqrt(runs*delta*(1-delta)); float64(missed) > limit {
		t.Errorf("%d of %d runs miss θ* in a round, at most %.0f may", missed, runs, limit)
	}
	t.Logf("%d of %d runs miss θ*", missed, runs)
}

// The constants are for the maximum of the likelihood, which update = "online" leaves between fits.
func TestLikelihoodNeedsTheMaximum(t *testing.T) {
	o := DefaultUCBOptions()
	o.Constants, o.Update = likelihood, "online"
	expect.Part(NewUCB(paperProblem(), o))(t, `update = "online"`)
}
