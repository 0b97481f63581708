package bandit

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// waves returns rounds of three items in one dimension with a wave as utility, and the linear fit to them.
func waves(t *testing.T, rounds int) (*mle.Choices, *mle.Laplace) {
	t.Helper()
	rng, c := newRand(), mle.NewChoices(1)
	for range rounds {
		x, u, shock := mat.NewDense(3, 1, nil), make([]float64, 3), make([]float64, 4)
		for i := range u {
			x.Set(i, 0, rng.NormFloat64())
			u[i] = 1.5 * math.Sin(3*x.At(i, 0))
		}
		vitrine.DrawShocks(shock, rng)
		c.AppendRows(x, vitrine.Choose(vitrine.Assortment{0, 1, 2}, u, shock))
	}
	base, err := newExpert(Expert{Model: utility.NewLinear(1, true)}, 0, nil)
	if err != nil || !base.fit(c, nil, nil) {
		t.Fatal(err)
	}
	return c, base.posterior
}

// The mean of the weights is the evidence of a unit, ∫ exp(gain(θ)) m(θ) dN(θ) with the moment m, by the rule of the
// trapezium: with proposals from the prior, and with those about an earlier population.
func TestUnitsWeighByTheirEvidence(t *testing.T) {
	m := utility.NewSpectral(1, 1)
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	c, base := waves(t, 25)
	test := mle.NewScoreTest(m, c, base, c.Rounds(), 0)
	const step, half = 0.01, 15.0
	integral := 0.0
	for theta := -half; theta <= half; theta += step {
		a := test.Amplitudes([]float64{theta})[0]
		if a == nil {
			t.Fatal("no amplitudes")
		}
		integral += math.Exp(a.Gain-theta*theta/18) / (3 * math.Sqrt(2*math.Pi)) * step
	}
	rng := newRand()
	first := newUnits(m, prior, 0, rng)
	for name, from := range map[string]*unitPosterior{"from the prior": nil,
		"about a population": first.next(m, prior, test, rng)} {
		const n = 400
		sum, square := 0.0, 0.0
		for range n {
			v := math.Exp(from.next(m, prior, test, rng).logMean)
			sum, square = sum+v/n, square+v*v/n
		}
		if se := math.Sqrt((square - sum*sum) / n); math.Abs(sum-integral) > 5*se || se > integral/4 {
			t.Errorf("%s: the evidence is %v ± %v, by integration %v", name, sum, se, integral)
		}
	}
}

// A population follows the evidence: after a few fits its weight is at the frequency of the truth.
func TestUnitsFindTheWave(t *testing.T) {
	m := utility.NewSpectral(1, 1)
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	c, base := waves(t, 200)
	test, rng := mle.NewScoreTest(m, c, base, c.Rounds(), 0), newRand()
	var p *unitPosterior
	for range 4 {
		p = p.next(m, prior, test, rng)
	}
	near := 0.0
	for i, theta := range p.theta {
		if math.Abs(math.Abs(theta[0])-3) < 0.4 {
			near += p.weight[i]
		}
	}
	if near < 0.95 || p.logMean < 10 {
		t.Errorf("the weight near the frequency is %v, and the log evidence %v", near, p.logMean)
	}
}

// Units with a density that overflows, as about a unit of a damaged population, are left out.
func TestUnitsOverflow(t *testing.T) {
	m := utility.NewSpectral(1, 1)
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	c, base := waves(t, 25)
	test := mle.NewScoreTest(m, c, base, c.Rounds(), 0)
	far := newUnits(m, prior, 0, newRand())
	for _, theta := range far.theta {
		theta[0] = 1e200
	}
	next := far.next(m, prior, test, newRand()) // those drawn from the prior stay
	if n := len(next.theta); n == 0 || n >= population || math.IsNaN(next.logMean) ||
		math.Abs(floats.Sum(next.weight)-1) > 1e-12 {
		t.Errorf("%d of %d units, of the weights %v, log mean %v", n, population, next.weight, next.logMean)
	}
}

// Amplitudes are draws of N(γ̂, width² J⁻¹), and the linear part given these is one of N(ŵ − U⁻¹c̃γ, lineWidth² A⁻¹).
func TestDrawsOfAUnit(t *testing.T) {
	m := utility.NewSpectral(1, 1)
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	c, base := waves(t, 60)
	test := mle.NewScoreTest(m, c, base, c.Rounds(), 0)
	theta := []float64{2.5}
	a := test.Amplitudes(theta)[0]
	p := &unitPosterior{theta: [][]float64{theta}, amplitudes: []mle.Amplitudes{*a}, weight: []float64{1}}

	root := mat.NewDense(2, 2, a.Root)
	var j, covariance mat.Dense
	j.Mul(root.T(), root)
	fatal.If(t, covariance.Inverse(&j))
	const n = 20000
	w, rng := make([]float64, m.NumParams()), newRand()
	for _, widths := range [][2]float64{{0.6, 0}, {0.5, 0.25}, {1, 1}} {
		b, lineB := widths[0], widths[1]
		var gamma, line [2][]float64
		for range n {
			p.sample(w, 0, m, base, b, lineB, rng)
			expect.List(fatal.T(t), m.Theta(w, 0), theta, "the unit is")
			rest := slices.Clone(w[:2]) // of the linear part, without ŵ − U⁻¹c̃γ
			floats.Sub(rest, base.Mode)
			for k, g := range m.Gamma(w, 0) {
				v := slices.Clone(a.Cross[k*2:][:2])
				base.Colour(v)
				floats.AddScaled(rest, g, v)
			}
			for k, g := range m.Gamma(w, 0) {
				gamma[k], line[k] = append(gamma[k], g-a.Mode[k]), append(line[k], rest[k])
			}
		}
		for k := range gamma {
			unit := make([]float64, 2)
			unit[k] = 1
			wantMoments(t, fmt.Sprintf("b = %v: amplitude %d", b, k), gamma[k], b*b*covariance.At(k, k))
			wantMoments(t, fmt.Sprintf("b = %v: linear parameter %d", b, k), line[k], lineB*lineB*base.Variance(unit))
		}
		wantNear(t, "the covariance of the amplitudes", floats.Dot(gamma[0], gamma[1])/n, b*b*covariance.At(0, 1),
			5*b*b*math.Sqrt(2*covariance.At(0, 0)*covariance.At(1, 1)/n))
	}
}

// wantMoments checks that draws have the mean 0 and the variance.
func wantMoments(t *testing.T, what string, draws []float64, variance float64) {
	t.Helper()
	n := float64(len(draws))
	wantNear(t, what+", mean", floats.Sum(draws)/n, 0, 5*math.Sqrt(variance/n)+1e-12)
	wantNear(t, what+", variance", floats.Dot(draws, draws)/n, variance, 5*variance*math.Sqrt(2/n)+1e-20)
}

// Before the first round the units are drawn from the prior, with half the weight of the line.
func TestUnitsBeforeTheFirstRound(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: utility.NewSpectral(paperFeatures, 1)}})
	s := l.split()[0]
	modes, units, flat := s.modes, s.units, s.flat
	wantNear(t, "the weight of the line", modes[0], 2*units[0][1], 1e-12)
	wantNear(t, "the weight of slopes near 0", flat, 0.25*units[0][1], 1e-12)
	wantNear(t, "the weights of the line", l.weights()[0], 2.25*units[0][1], 1e-12)
	for _, beside := range units {
		wantNear(t, "the weight of units of the line", beside[0], 0, 0)
		wantNear(t, "the weight of units of the waves", beside[1], units[0][1], 1e-12)
	}
	p := l.experts[1].unit[0]
	if floats.Equal(p.theta[0], l.experts[1].unit[1].theta[0]) {
		t.Error("the units beside both bases are the same")
	}
	sum := 0.0
	for _, theta := range p.theta {
		sum += floats.Dot(theta, theta) / float64(len(theta)*len(p.theta))
	}
	if n := float64(len(p.theta) * paperFeatures); math.Abs(sum-9) > 9*5*math.Sqrt(2/n) {
		t.Errorf("the variance of the frequencies is %v, want 9", sum)
	}
}

// Units next to the base of slopes near 0 take that fit's weight, by hand from its prior: more than those next to the
// line if items differ by a bump, and nearly none if they differ along a line.
func TestUnitsBesideSlopesNear0(t *testing.T) {
	for name, truth := range map[string]func(x []float64) float64{
		"bump": func(x []float64) float64 { return 4*math.Exp(-2*floats.Dot(x, x)) - 2 },
		"line": func(x []float64) float64 { return 2*x[0] - 1 },
	} {
		l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewRadial(paperFeatures, 1)}})
		for s := 0; s < 40 || l.job != nil; s++ {
			play(t, l, truth, s, s+1)
		}
		for _, b := range l.freeze().(*mixture).beliefs {
			for k, base := range l.bases() {
				if b.unit != nil && b.unit == l.experts[0].unit[k] && b.posterior != base.posterior {
					t.Errorf("units beside base %d have the linear part of another one", k)
				}
			}
		}
		f := fitting{beliefs: l.beliefs.clone(), o: l.o, seed: l.seed, rounds: l.rounds, workers: 1}
		c := l.history.Transformed(l.z.row)
		f.run(l.history, 0)
		var evidence [2]float64
		for k, slope := range []float64{4, 100} {
			nll := &mle.NLL{Model: utility.NewLinear(paperFeatures, true), Choices: c,
				Prior: []float64{slope, slope, slope, 1 / (f.intercept * f.intercept)}}
			w := make([]float64, 4)
			fatal.Or((mle.LevenbergMarquardt{Steps: 200, Tolerance: 1e-12}).Minimize(nll, w))(t)
			p := fatal.Or(mle.NewLaplace(nll, w))(t)
			evidence[k] = p.LogEvidence + f.experts[0].unit[k].logMean
		}
		weights := f.split()[0].units
		wantNear(t, "the log of the ratio of weights", math.Log(weights[1][0]/weights[0][0]), evidence[1]-evidence[0],
			1e-3)
		if near0 := weights[1][0] / (weights[0][0] + weights[1][0]); name == "bump" && near0 < 0.6 ||
			name == "line" && near0 > 0.01 {
			t.Errorf("with a %s units beside slopes near 0 have the share %v", name, near0)
		}
	}
}

// The intercept's scale is the posterior mean of its logarithm, by hand from linear fits at the
// three scales; a shop where few customers buy widens it, for all experts.
func TestScaleOfTheIntercept(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: utility.NewQuadratic(paperFeatures)}, {Model: utility.NewLinear(paperFeatures, false)}})
	for s := 0; s < 40 || l.job != nil; s++ {
		play(t, l, func(x []float64) float64 { return x[0] - 5 }, s, s+1)
	}
	c := l.history.Transformed(l.z.row)
	f := fitting{beliefs: l.beliefs.clone(), o: l.o, seed: l.seed, rounds: l.rounds, workers: 1}
	f.run(l.history, 0)
	var weights, mean float64
	for _, sd := range []float64{0.2, 1, 5} {
		m := utility.NewLinear(paperFeatures, true)
		nll := &mle.NLL{Model: m, Choices: c, Prior: []float64{4, 4, 4, 1 / (sd * sd)}}
		w := make([]float64, 4)
		fatal.Or((mle.LevenbergMarquardt{Steps: 200, Tolerance: 1e-12}).Minimize(nll, w))(t)
		p := fatal.Or(mle.NewLaplace(nll, w))(t)
		weight := math.Exp(p.LogEvidence - math.Pow(math.Log(sd)/1.6, 2)/2)
		weights, mean = weights+weight, mean+weight*math.Log(sd)
	}
	want := math.Exp(mean / weights)
	wantNear(t, "the scale of the intercept", f.intercept, want, 1e-3*want)
	if want < 1.5 {
		t.Errorf("the scale is %v although customers rarely buy", want)
	}
	for i, e := range f.experts {
		if j := paperFeatures; i < 2 {
			wantNear(t, "the intercept's precision", e.prior[j], 1/(f.intercept*f.intercept), 1e-12)
		}
		wantNear(t, "a slope's precision", e.prior[0], 4, 0)
	}
}

// Candidates along the line take the directions of the linear fit's slopes, and the lengths of the prior: with a truth
// of one direction nearly all point along it.
func TestSearchAlongTheLine(t *testing.T) {
	m := utility.NewRadial(paperFeatures, 1)
	theta := []float64{1, 2, 3, 4, 5}
	if d := m.Direction(theta); len(d) != 3 || d[0] != 2 || d[2] != 4 {
		t.Errorf("the direction of a radial unit is %v", d)
	}
	if d := utility.NewSpectral(paperFeatures, 1).Direction(theta[:3]); d[0] != 1 || d[2] != 3 {
		t.Errorf("the direction of a wave is %v", d)
	}
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}})
	play(t, l, func(x []float64) float64 { return 3 * x[1] }, 0, 150)
	e := fatal.Or(newExpert(Expert{Model: utility.NewSpectral(paperFeatures, 1)}, 0, newRand()))(t)
	f := fitting{beliefs: l.beliefs, o: l.o}
	f.o.Candidates = 30
	along := 0
	f.starts(e, l.history.Transformed(l.z.row), stream.New(1, 1, stream.Learner))
	for _, u := range e.units {
		if math.Abs(u[1])/floats.Norm(u, 2) > 0.97 {
			along++
		}
	}
	// Of random directions in three dimensions 3% are so close to an axis.
	if along < 4 {
		t.Errorf("%d of %d units point along the line", along, len(e.units))
	}
}

// A snapshot names the families of its experts, with the columns of their products, in order.
func TestSnapshotsNameProductsOfNumbers(t *testing.T) {
	create := func(numeric []int) *BMA {
		p := paperProblem()
		p.Numeric = numeric
		return must(NewAuto(p, AutoOptions{}, newRand())).(*BMA)
	}
	for want, numeric := range map[string][2][]int{
		"want linear with intercept": {nil, {1}},
		"quadratic in [0], want ":    {{0}, {1}},
	} {
		data := fatal.Or(create(numeric[0]).MarshalBinary())(t)
		expect.Part(create(numeric[1]).UnmarshalBinary(data))(t, want)
	}
}

// rowCounter counts the items at which a family is evaluated.
type rowCounter struct {
	*utility.Additive
	rows *int
}

func (m rowCounter) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	*m.rows += len(u)
	m.Additive.Linearize(u, g, w, x)
}

func (m rowCounter) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	n, _ := x.Dims()
	*m.rows += n
	return m.Additive.Backpropagate(dst, w, x, loss)
}

// After a long history only the best start of a search is fitted to all of it, with results as good as from fits of
// all.
func TestStartsAreTriedOnASample(t *testing.T) {
	m := utility.NewSpectral(1, 1)
	e, err := newExpert(Expert{Model: m}, 0, newRand())
	fatal.If(t, err)
	rows := 0
	e.model = rowCounter{m, &rows}
	c, base := waves(t, 3*shortRounds)
	from := func(theta float64) start {
		w := make([]float64, m.NumParams())
		m.CopyLinear(w, base.Mode)
		m.Theta(w, 0)[0], m.Gamma(w, 0)[0] = theta, 0.5
		return start{w: w}
	}
	starts := []start{from(12), from(9), from(3.3), from(20)} // the wave's is 3
	want, _ := e.fromBest(c, starts, 20, 15)
	all := rows
	rows = 0
	got, _ := e.best(c, starts)
	if d := math.Abs(got.LogEvidence - want.LogEvidence); d > 1e-3 ||
		math.Abs(math.Abs(m.Theta(got.Mode, 0)[0])-3) > 0.3 {
		t.Errorf("a unit %v with an evidence %v from the best, want 3", m.Theta(got.Mode, 0), d)
	}
	if rows > 2*all/3 {
		t.Errorf("fits look at %d items, and at %d if all are to all rounds", rows, all)
	}
	// The present mode stays if it is best.
	starts[0], starts[2] = starts[2], starts[0]
	if got, _ := e.best(c, starts); math.Abs(got.LogEvidence-want.LogEvidence) > 1e-3 {
		t.Errorf("from the best mode, evidence %v, want %v", got.LogEvidence, want.LogEvidence)
	}
	// A start's anchor goes with it.
	known := fatal.Or(mle.NewLaplace(e.loss(c.Slice(0, 50), nil), starts[0].w))(t)
	starts[0], starts[2] = starts[2], starts[0]
	starts[2].anchor = known
	if want, err = (mle.LevenbergMarquardt{Steps: 15, Tolerance: 1e-4}).Laplace(e.loss(c, known),
		slices.Clone(starts[2].w)); err != nil {
		t.Fatal(err)
	}
	got, anchor := e.best(c, starts)
	if anchor != known || math.Abs(got.LogEvidence-want.LogEvidence) > 1e-3 {
		t.Errorf("of a start with an anchor, evidence %v with %p, want %v with %p", got.LogEvidence, anchor,
			want.LogEvidence, known)
	}
	starts[2].anchor = nil
	short := c.Slice(0, 2*shortRounds)
	rows = 0
	e.fromBest(short, starts, 20, 15)
	all, rows = rows, 0
	if e.best(short, starts); rows != all {
		t.Errorf("of %d rounds, fits look at %d items, want %d", 2*shortRounds, rows, all)
	}
}
