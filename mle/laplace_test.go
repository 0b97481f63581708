package mle_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/mle"
	"vitrine/utility"
)

// manyChoices draws rounds of three items under the linear utility with parameters w and no intercept.
func manyChoices(rng *rand.Rand, rounds int, w []float64) *mle.Choices {
	c := mle.NewChoices(len(w))
	m := utility.NewLinear(len(w), false)
	for range rounds {
		x := mat.NewDense(3, len(w), normals(rng, 3*len(w)))
		u, shock := make([]float64, 3), make([]float64, 4)
		m.Utilities(u, w, x)
		vitrine.DrawShocks(shock, rng)
		y, more := vitrine.Choose(vitrine.Assortment{0, 1, 2}, u, shock), []vitrine.Choice(nil)
		if y != vitrine.Outside && rng.IntN(4) == 0 {
			more = []vitrine.Choice{vitrine.Choice(rng.IntN(3) + 1), y}
		}
		c.AppendRows(x, y, more...)
	}
	return c
}

func fitted(t *testing.T, l *mle.NLL, w []float64) *mle.Laplace {
	t.Helper()
	fatal.Or((mle.LevenbergMarquardt{Steps: 200, Tolerance: 1e-14}).Minimize(l, w))(t)
	p := fatal.Or(mle.NewLaplace(l, w))(t)
	return p
}

// The evidence is log ∫ p(y | w) N(w; 0, P⁻¹) dw, here by the trapezium rule on a fine grid in one and two dimensions.
// Laplace's error shrinks with the number of rounds, and is small for this many.
func TestEvidenceByNumericalIntegration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, truth := range [][]float64{{0.7}, {-0.4, 0.9}} {
		d := len(truth)
		l := &mle.NLL{
			Model: utility.NewLinear(d, false), Choices: manyChoices(rng, 60, truth), Prior: []float64{4, 0.5}[:d],
		}
		p := fitted(t, l, make([]float64, d))

		const half, step = 2.0, 0.02
		var logs []float64
		axis := int(2*half/step) + 1
		cells := 1
		for range d {
			cells *= axis
		}
		w := make([]float64, d)
		for cell := range cells {
			logPrior := 0.0
			for j, k := 0, cell; j < d; j, k = j+1, k/axis {
				w[j] = p.Mode[j] - half + step*float64(k%axis)
				logPrior += 0.5*math.Log(l.Prior[j]/(2*math.Pi)) - l.Prior[j]*w[j]*w[j]/2
			}
			likelihood := &mle.NLL{Model: l.Model, Choices: l.Choices}
			logs = append(logs, logPrior-likelihood.Value(w))
			if d == 2 && cell > 1<<17 {
				t.Fatal("the grid is too fine")
			}
		}
		maximum := logs[0]
		for _, v := range logs {
			maximum = max(maximum, v)
		}
		sum := 0.0
		for _, v := range logs {
			sum += math.Exp(v - maximum)
		}
		want := maximum + math.Log(sum) + float64(d)*math.Log(step)
		if math.Abs(p.LogEvidence-want) > 0.02*float64(d) {
			t.Errorf("d = %d: log evidence %v, by integration %v", d, p.LogEvidence, want)
		}
	}
}

// Another minimiser finds the same mode under a prior.
func TestModeAgreesWithBFGS(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, m := range []utility.Model{utility.NewLinear(2, true), utility.NewQuadratic(2), utility.NewWide(2, 2)} {
		c := manyChoices(rng, 80, []float64{1, -0.5})
		l := &mle.NLL{Model: m, Choices: c, Prior: make([]float64, m.NumParams())}
		utility.Precisions(m, l.Prior)
		start := make([]float64, m.NumParams())
		m.Init(start, rng)
		p := fitted(t, l, append([]float64(nil), start...))
		result, err := optimize.Minimize(problem(l, nil), start,
			&optimize.Settings{GradientThreshold: 1e-9}, &optimize.BFGS{})
		if result == nil {
			t.Fatal(err)
		}
		near(t, "the penalised loss", l.Value(p.Mode), result.F, 1e-8)
	}
}

// A prior with the same precision ρ for every parameter is a ridge.
func TestEqualPrecisionsAreARidge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	m := utility.NewLinear(3, true)
	c := choicesOf(rng, 20, 3)
	prior := &mle.NLL{Model: m, Choices: c, Prior: []float64{2, 2, 2, 2}}
	ridge := &mle.NLL{Model: m, Choices: c, Ridge: 2}
	w := normals(rng, 4)
	a, b := make([]float64, 4), make([]float64, 4)
	near(t, "value", prior.Gradient(a, w), ridge.Gradient(b, w), 1e-14)
	nearAll(t, "gradient", a, b, 1e-14)
	if !mat.EqualApprox(prior.Fisher(nil, w), ridge.Fisher(nil, w), 1e-12) {
		t.Error("the information differs")
	}
}

// If the family is linear and the rounds are many, filter steps add up to a fit to all rounds.
func TestStepsFollowTheFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	truth := []float64{0.6, -0.3}
	m, prior := utility.NewLinear(2, false), []float64{4, 4}
	c := manyChoices(rng, 400, truth)
	all := fitted(t, &mle.NLL{Model: m, Choices: c, Prior: prior}, make([]float64, 2))

	rng = rand.New(rand.NewPCG(4, 1)) // the same rounds, one by one
	p, err := mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(2), Prior: prior}, make([]float64, 2))
	fatal.If(t, err)
	if p.LogEvidence != 0 {
		t.Errorf("the evidence of nothing is exp(%v), want 1", p.LogEvidence)
	}
	for range 400 {
		if p, err = p.Step(&mle.NLL{Model: m, Choices: manyChoices(rng, 1, truth)}); err != nil {
			t.Fatal(err)
		}
	}
	nearAll(t, "the mode", p.Mode, all.Mode, 0.02)
	near(t, "the log evidence", p.LogEvidence, all.LogEvidence, 0.005)
}

// A round that the belief considered all but impossible carries next to no information at the belief's mode, so a whole
// step would head for utilities of 10⁶. The step is cut short before the round and the belief together become less
// likely.
func TestStepsIntoTheUnlikelyAreCutShort(t *testing.T) {
	m, prior := utility.NewLinear(1, false), []float64{4}
	p := fatal.Or(mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(1), Prior: prior}, []float64{0.5}))(t)
	for _, x := range []float64{20, 500, 9000} {
		c := mle.NewChoices(1)
		c.AppendRows(mat.NewDense(1, 1, []float64{x}), vitrine.Outside)
		next := fatal.Or(p.Step(&mle.NLL{Model: m, Choices: c}))(t)
		joint := func(w float64) float64 { // by hand
			u := w * x
			return max(u, 0) + math.Log1p(math.Exp(-math.Abs(u))) + 2*(w-0.5)*(w-0.5)
		}
		if got, before := joint(next.Mode[0]), joint(0.5); !(got < before) {
			t.Errorf("x = %v: the mode is %v, where the loss is %v, from %v", x, next.Mode[0], got, before)
		}
	}
}

// H' = λH + (1−λ)P and H'ŵ' = λHŵ, checked in one dimension by hand and by draws of the deviation.
func TestForgetByHand(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	l := &mle.NLL{Model: utility.NewLinear(1, false), Choices: manyChoices(rng, 30, []float64{1}), Prior: []float64{2}}
	p := fitted(t, l, []float64{0})
	h := l.Fisher(nil, p.Mode).At(0, 0)
	got := fatal.Or(p.Forget(0.9, l.Prior))(t)
	want := 0.9*h + 0.1*2
	near(t, "the mode", got.Mode[0], 0.9*h*p.Mode[0]/want, 1e-12)
	near(t, "H'", precisionOf(got), want, 1e-12)
	near(t, "H, unchanged", precisionOf(p), h, 1e-12)
	same := fatal.Or(p.Forget(1, l.Prior))(t)
	near(t, "the mode with λ = 1", same.Mode[0], p.Mode[0], 1e-12)
}

// precisionOf recovers H of a one-dimensional approximation from a deviation and the draw behind it.
func precisionOf(p *mle.Laplace) float64 {
	dst := make([]float64, 1)
	p.Deviation(dst, 1, rand.New(rand.NewPCG(1, 1)))
	xi := rand.New(rand.NewPCG(1, 1)).NormFloat64()
	return xi * xi / (dst[0] * dst[0])
}

// The covariance of the deviations is scale² H⁻¹, within four standard errors.
func TestDeviationsHaveTheCovariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	l := &mle.NLL{
		Model: utility.NewLinear(2, false), Choices: manyChoices(rng, 40, []float64{1, 0}), Prior: []float64{1, 3},
	}
	p := fitted(t, l, make([]float64, 2))
	var inv mat.Dense
	fatal.If(t, inv.Inverse(l.Fisher(nil, p.Mode)))
	const draws, scale = 20000, 0.5
	var sum [2][2]float64
	delta := make([]float64, 2)
	for range draws {
		p.Deviation(delta, scale, rng)
		for i := range 2 {
			for j := range 2 {
				sum[i][j] += delta[i] * delta[j] / draws
			}
		}
	}
	for i := range 2 {
		for j := range 2 {
			want := scale * scale * inv.At(i, j)
			se := scale * scale * math.Sqrt((inv.At(i, i)*inv.At(j, j)+inv.At(i, j)*inv.At(i, j))/draws)
			if math.Abs(sum[i][j]-want) > 4*se {
				t.Errorf("covariance [%d %d] = %v, want %v ± %v", i, j, sum[i][j], want, se)
			}
		}
	}
}

// A family with two interchangeable parameters admits an approximation only under a prior.
func TestSingularInformationIsNamed(t *testing.T) {
	twice := utility.NewLinear(2, false)
	c := mle.NewChoices(2)
	for s := range 10 {
		v := float64(s%3) - 1
		c.AppendRows(mat.NewDense(2, 2, []float64{v, v, 1, 1}), vitrine.Choice(s%3))
	}
	w := []float64{0.1, 0.2}
	for want, l := range map[string]*mle.NLL{
		"parameter 0 has a prior of precision 0: must be positive": {Model: twice, Choices: c},
		"parameter 1 has a prior of precision 0: must be positive": {
			Model: twice, Choices: c, Prior: []float64{1, 0},
		},
		"parameter 0 has a prior of precision NaN: must be positive": {Model: twice, Choices: c, Ridge: math.NaN()},
	} {
		expect.Part(mle.NewLaplace(l, w))(t, want)
	}
	expect.Fails(mle.NewLaplace(&mle.NLL{
		Model: twice, Choices: c, Ridge: 1e-300,
	}, w))(t, mle.ErrSingular)
	p := fatal.Or(mle.NewLaplace(&mle.NLL{Model: twice, Choices: c, Prior: []float64{1, 1}}, w))(t)
	expect.Fails(p.Forget(0, []float64{1, 0}))(t, mle.ErrSingular)
	w[0] = math.Inf(1)
	expect.Fails(mle.NewLaplace(&mle.NLL{Model: twice, Choices: c, Ridge: 1}, w))(t, mle.ErrNotFinite)
}

func TestLaplaceSurvivesASnapshot(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	l := &mle.NLL{Model: utility.NewLinear(2, false), Choices: manyChoices(rng, 20, []float64{1, 0}), Ridge: 1}
	p := fitted(t, l, make([]float64, 2))
	w := fields.Writer(nil)
	mle.LaplaceFields(&w, &p, 2)
	var q *mle.Laplace
	r := fields.Reader(w.Rest())
	mle.LaplaceFields(&r, &q, 2)
	fatal.If(t, r.Close())
	again := fields.Writer(nil)
	mle.LaplaceFields(&again, &q, 2)
	if !bytes.Equal(again.Rest(), w.Rest()) {
		t.Error("the snapshot of a restored approximation differs")
	}
	r = fields.Reader(w.Rest())
	if mle.LaplaceFields(&r, &q, 3); r.Err() == nil {
		t.Error("no error for a snapshot of two parameters read as three")
	}
}

// Using the posterior of some rounds as the anchor of others gives the posterior of all rounds, as far as the first is
// Gaussian: exactly for a quadratic loss, and here up to the remainder that many rounds leave.
func TestAnAnchorStandsForItsRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	c := manyChoices(rng, 1200, []float64{0.5, -0.3})
	m, prior := utility.NewLinear(2, false), []float64{4, 2}
	whole := fitted(t, &mle.NLL{Model: m, Choices: c, Prior: prior}, make([]float64, 2))
	first := fitted(t, &mle.NLL{Model: m, Choices: c.Slice(0, 700), Prior: prior}, make([]float64, 2))
	l := &mle.NLL{Model: m, Choices: c.Slice(700, 1200), Anchor: first}
	both := fitted(t, l, make([]float64, 2))
	nearAll(t, "the mode", both.Mode, whole.Mode, 2e-3)
	near(t, "the log evidence", both.LogEvidence, whole.LogEvidence, 1e-4)

	// Compare the gradient with central differences.
	w, grad := []float64{0.2, 0.7}, make([]float64, 2)
	l.Gradient(grad, w)
	for j := range w {
		const h = 1e-5
		up, down := append([]float64(nil), w...), append([]float64(nil), w...)
		up[j], down[j] = w[j]+h, w[j]-h
		near(t, "the gradient", grad[j], (l.Value(up)-l.Value(down))/(2*h), 1e-5)
	}

	// New parameters start with the given prior.
	wide := fatal.Or(first.Extended(len(first.Mode), []float64{3}))(t)
	empty := &mle.NLL{Model: utility.NewLinear(2, true), Choices: mle.NewChoices(2), Anchor: wide}
	v := []float64{first.Mode[0], first.Mode[1], 2}
	near(t, "the strain of the new one", empty.Value(v), 3*2*2/2.0, 1e-12)
	v[0], v[2] = v[0]+0.1, 0
	near(t, "the strain of an old one", empty.Value(v),
		(&mle.NLL{Model: m, Choices: mle.NewChoices(2), Anchor: first}).Value(v[:2]), 1e-12)
	near(t, "the log evidence", fitted(t, empty, v).LogEvidence, first.LogEvidence, 1e-9)

	// They can also be inserted between the old ones.
	between := fatal.Or(first.Extended(1, []float64{5, 3}))(t)
	nearAll(t, "the mode", between.Mode, []float64{first.Mode[0], 0, 0, first.Mode[1]}, 0)
	empty = &mle.NLL{Model: utility.NewLinear(4, false), Choices: mle.NewChoices(4), Anchor: between}
	old := []float64{first.Mode[0] + 0.1, first.Mode[1] - 0.2}
	want := (&mle.NLL{Model: m, Choices: mle.NewChoices(2), Anchor: first}).Value(old) + 5*0.5*0.5/2.0 + 3*2*2/2.0
	near(t, "the strain of all", empty.Value([]float64{old[0], 0.5, 2, old[1]}), want, 1e-12)
}

// If the rounds exceed a block, their likelihood is the sum over parts, including empty rounds.
func TestBlocksAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	c := mle.NewChoices(2)
	for s := range 2500 {
		n := rng.IntN(4)
		if s >= 1024 && s < 2048 {
			n = 0 // a whole block without items
		}
		if n == 0 {
			c.AppendRows(nil, vitrine.Outside)
			continue
		}
		c.AppendRows(mat.NewDense(n, 2, normals(rng, 2*n)), vitrine.Choice(rng.IntN(n+1)))
	}
	for _, m := range []utility.Model{utility.NewQuadratic(2), utility.NewWide(2, 1)} {
		d := m.NumParams()
		w := normals(rng, d)
		grad, want := make([]float64, d), make([]float64, d)
		value, information := 0.0, mat.NewSymDense(d, nil)
		for s := range c.Rounds() {
			one := &mle.NLL{Model: m, Choices: c.Round(s)}
			g := make([]float64, d)
			value += one.Gradient(g, w)
			for j := range g {
				want[j] += g[j]
			}
			information.AddSym(information, one.Fisher(nil, w))
		}
		all := &mle.NLL{Model: m, Choices: c}
		near(t, "value", all.Value(w), value, 1e-11)
		near(t, "value beside the gradient", all.Gradient(grad, w), value, 1e-11)
		nearAll(t, "gradient", grad, want, 1e-9)
		if !mat.EqualApprox(all.Fisher(nil, w), information, 1e-9) {
			t.Errorf("%v: the information differs", m)
		}
	}
}

// Deviations are the square roots of the variances, also if gradients omit trailing coordinates.
func TestDeviationsOfManyGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	l := &mle.NLL{Model: utility.NewLinear(3, true), Choices: mle.NewChoices(3), Prior: []float64{1, 3, 2, 0.5}}
	for range 30 {
		x := mat.NewDense(4, 3, nil)
		x.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, x)
		l.Choices.AppendRows(x, vitrine.Choice(rng.IntN(4)))
	}
	p := fitted(t, l, make([]float64, 4))
	const n = 300 // more than a tile
	for _, coordinates := range []int{0, 2, 4} {
		g := make([]float64, coordinates*n)
		for i := range g {
			g[i] = rng.NormFloat64()
		}
		got := make([]float64, n)
		p.Deviations(got, nil, g)
		for i, sd := range got {
			gradient := make([]float64, 4)
			for j := range coordinates {
				gradient[j] = g[j*n+i]
			}
			near(t, "standard deviation", sd, math.Sqrt(p.Variance(gradient)), 1e-12)
		}
	}
}

// The minimiser returns the approximation at its minimum, with rounds in one block and in several. Like NewLaplace, it
// names a parameter without a prior.
func TestLaplaceOfTheMinimiser(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	m := utility.NewRadial(2, 1)
	for _, rounds := range []int{40, 1024, 1500} {
		l := &mle.NLL{
			Model: m, Choices: manyChoices(rng, rounds, []float64{1, -0.5}), Prior: make([]float64, m.NumParams()),
		}
		m.Precisions(l.Prior)
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		got := fatal.Or(mle.LevenbergMarquardt{Steps: 7, Tolerance: 1e-9}.Laplace(l, w))(t)
		want := fatal.Or(mle.NewLaplace(l, w))(t)
		near(t, "log evidence", got.LogEvidence, want.LogEvidence, 1e-8)
		g := normals(rng, len(w))
		near(t, "variance", got.Variance(g), want.Variance(g), 1e-8)
		expect.List(t, got.Mode, w, "the mode is")
	}
	l := &mle.NLL{Model: m, Choices: manyChoices(rng, 5, []float64{1, -0.5})}
	expect.Part((mle.LevenbergMarquardt{Steps: 7}).Laplace(l, make([]float64, m.NumParams())))(t,
		"parameter 0 has a prior of precision 0")
}
