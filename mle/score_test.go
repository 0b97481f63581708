package mle_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/mle"
	"vitrine/utility"
)

// pinned is a family with one unit and a fixed θ, so it is linear in a, b and γ.
type pinned struct {
	*utility.Additive
	theta []float64
}

func (p pinned) full(w []float64) []float64 { return append(append([]float64(nil), w...), p.theta...) }

func (p pinned) NumParams() int { return p.Linear() + p.Outputs() }

func (p pinned) Utilities(dst, w []float64, x *mat.Dense) {
	p.Additive.Utilities(dst, p.full(w), x)
}

func (p pinned) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	p.Utilities(u, w, x)
	p.Gradients(g, w, x)
}

func (p pinned) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n, d := dst.Dims()
	whole := mat.NewDense(n, d+len(p.theta), nil)
	p.Additive.Gradients(whole, p.full(w), x)
	dst.Copy(whole.Slice(0, n, 0, d))
}

func (p pinned) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	whole := make([]float64, len(dst)+len(p.theta))
	l := p.Additive.Backpropagate(whole, p.full(w), x, loss)
	copy(dst, whole)
	return l
}

// A unit's gain equals the gain of one Newton step from the linear fit in a, b and γ at once, except that the gain does
// not use the information at the end of the step. It ranks units as full fits do.
func TestGainIsALaplaceEvidence(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	for _, m := range []*utility.Additive{utility.NewSpectral(2, 1), utility.NewRadial(2, 1)} {
		c := manyChoices(rng, 150, []float64{1, -0.5})
		linear := utility.NewLinear(2, true)
		l := &mle.NLL{Model: linear, Choices: c, Prior: make([]float64, 3)}
		utility.Precisions(linear, l.Prior)
		fit := fitted(t, l, make([]float64, 3))
		prior := make([]float64, m.NumParams())
		m.Precisions(prior)
		test := mle.NewScoreTest(m, c, fit, 1000, 0)

		best, bestGain := math.Inf(-1), math.Inf(-1)
		var ofBestGain float64
		for range 40 {
			theta := normals(rng, m.Inputs())
			a := test.Amplitudes(theta)[0]
			gain := test.Gain(a, theta)

			// By hand: the dense Newton step from γ = 0.
			family := pinned{m, theta}
			n := family.NumParams()
			one := &mle.NLL{Model: family, Choices: c, Prior: prior[:n]}
			w := make([]float64, n)
			copy(w, fit.Mode)
			grad := make([]float64, n)
			value := one.Gradient(grad, w)
			h := one.Fisher(nil, w)
			var chol mat.Cholesky
			chol.Factorize(h)
			step := mat.NewVecDense(n, nil)
			fatal.If(t, chol.SolveVecTo(step, mat.NewVecDense(n, grad)))
			inner := mat.Dot(step, mat.NewVecDense(n, grad)) / 2
			logPrior := 0.0
			for _, rho := range prior[:n] {
				logPrior += math.Log(rho) / 2
			}
			ofTheta := 0.0
			for j, v := range theta {
				ofTheta += m.Theta(prior, 0)[j] * v * v / 2
			}
			want := -value + inner + logPrior - chol.LogDet()/2 - ofTheta - fit.LogEvidence
			near(t, m.String()+": gain", gain, want, 1e-6)
			for o, v := range a.Mode {
				near(t, m.String()+": γ", v, -step.AtVec(m.Linear()+o), 1e-6)
			}

			brute := fitted(t, one, w).LogEvidence - ofTheta
			if brute > best {
				best = brute
			}
			if gain > bestGain {
				bestGain, ofBestGain = gain, brute
			}
		}
		if best-ofBestGain > 0.5 {
			t.Errorf("%v: the unit of the largest gain has a log evidence of %v, the best has %v", m, ofBestGain, best)
		}
	}
}

func gainOf(t *mle.ScoreTest, theta []float64) float64 { return t.Gain(t.Amplitudes(theta)[0], theta) }

// A sample of the rounds stands for all of them, within its noise. Without rounds there is no test.
func TestScoreTestOnASample(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	m := utility.NewSpectral(1, 1)
	linear := utility.NewLinear(1, true)
	l := &mle.NLL{Model: linear, Choices: manyChoices(rng, 3000, []float64{1}), Prior: []float64{4, 0.1}}
	fit := fitted(t, l, make([]float64, 2))
	all, some := mle.NewScoreTest(m, l.Choices, fit, 3000, 0), mle.NewScoreTest(m, l.Choices, fit, 1500, 7)
	theta := []float64{2}
	if a, b := gainOf(all, theta), gainOf(some, theta); math.Abs(a-b) > 4 {
		t.Errorf("gain %v on all rounds, %v on half of them", a, b)
	}
	if mle.NewScoreTest(m, mle.NewChoices(1), fit, 10, 0) != nil {
		t.Error("a test of no rounds")
	}
}

// The offset determines the sampled rounds: a sample of one is the round at the offset, weighted by the number of
// rounds.
func TestScoreTestSamplesFromTheOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	const n = 5
	m := utility.NewSpectral(1, 1)
	linear := utility.NewLinear(1, true)
	var rounds [n]*mat.Dense
	all := mle.NewChoices(1)
	for s := range rounds {
		rounds[s] = mat.NewDense(3, 1, normals(rng, 3))
		all.AppendRows(rounds[s], vitrine.Choice(s%4))
	}
	fit := fitted(t, &mle.NLL{Model: linear, Choices: all, Prior: []float64{4, 0.1}}, make([]float64, 2))
	theta := []float64{2}
	gains := map[float64]bool{}
	for offset := range 2 * n {
		repeated := mle.NewChoices(1)
		for range n {
			repeated.AppendRows(rounds[offset%n], vitrine.Choice(offset%n%4))
		}
		want := gainOf(mle.NewScoreTest(m, repeated, fit, n, 0), theta)
		got := gainOf(mle.NewScoreTest(m, all, fit, 1, offset), theta)
		near(t, "gain on the round at the offset", got, want, 1e-12)
		gains[got] = true
	}
	if len(gains) != n {
		t.Errorf("%d offsets make %d samples, want one for each of %d rounds", 2*n, len(gains), n)
	}
}

// The posterior of a unit's amplitudes and of the linear parameters matches the Gaussian of the dense quadratic model
// in all of them at once. The test inverts the dense information by hand.
func TestAmplitudesAreTheDensePosterior(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	for _, m := range []*utility.Additive{utility.NewSpectral(2, 1), utility.NewRadial(2, 1)} {
		c := manyChoices(rng, 60, []float64{1, -0.5})
		linear := utility.NewLinear(2, true)
		l := &mle.NLL{Model: linear, Choices: c, Prior: make([]float64, 3)}
		utility.Precisions(linear, l.Prior)
		fit := fitted(t, l, make([]float64, 3))
		prior := make([]float64, m.NumParams())
		m.Precisions(prior)
		theta := normals(rng, m.Inputs())
		a := mle.NewScoreTest(m, c, fit, 1000, 0).Amplitudes(theta)[0]
		if a == nil {
			t.Fatal("no amplitudes")
		}

		family := pinned{m, theta}
		n, o := family.NumParams(), m.Outputs()
		one := &mle.NLL{Model: family, Choices: c, Prior: prior[:n]}
		w := make([]float64, n)
		copy(w, fit.Mode)
		var covariance mat.Dense
		fatal.If(t, covariance.Inverse(one.Fisher(nil, w)))
		// Cov(γ) = J⁻¹ = (RᵀR)⁻¹.
		root := mat.NewTriDense(o, mat.Upper, nil)
		for i := range o {
			for j := i; j < o; j++ {
				root.SetTri(i, j, a.Root[i*o+j])
			}
		}
		var precision, block mat.Dense
		precision.Mul(root.T(), root)
		fatal.If(t, block.Inverse(&precision))
		for i := range o {
			for j := range o {
				near(t, m.String()+": Cov(γ)", block.At(i, j), covariance.At(3+i, 3+j), 1e-9)
			}
		}
		// Cov(z, γ) Cov(γ)⁻¹ = −U⁻¹c̃.
		var slope mat.Dense
		slope.Mul(covariance.Slice(0, 3, 3, n), &precision)
		for k := range o {
			cross := append([]float64(nil), a.Cross[k*3:][:3]...)
			fit.Colour(cross)
			for j, v := range cross {
				near(t, m.String()+": −U⁻¹c̃", -v, slope.At(j, k), 1e-9)
			}
		}
		// The covariance of the draws is scale² J⁻¹, within five standard errors.
		const draws, scale = 20000, 0.5
		sum, v := make([]float64, o), make([]float64, o)
		for range draws {
			a.Deviation(v, scale, rng)
			for k := range o {
				sum[k] += v[k] * v[k] / draws
			}
		}
		for k := range o {
			if want := scale * scale * block.At(k, k); math.Abs(sum[k]-want) > 5*want*math.Sqrt(2.0/draws) {
				t.Errorf("%v: variance %v of a draw, want %v", m, sum[k], want)
			}
		}
	}
}

func TestAmplitudesSurviveASnapshot(t *testing.T) {
	a := mle.Amplitudes{Mode: []float64{1, 2}, Gain: 3, Cross: []float64{1, 2, 3, 4, 5, 6}, Root: []float64{1, 2, 0, 3}}
	w := fields.Writer(nil)
	a.Fields(&w, 2, 3)
	var got mle.Amplitudes
	r := fields.Reader(w.Rest())
	if got.Fields(&r, 2, 3); r.Close() != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("restored %v, %v", got, r.Err())
	}
	zero := fields.Reader(make([]byte, len(w.Rest())))
	if got.Fields(&zero, 2, 3); zero.Err() == nil ||
		!strings.Contains(zero.Err().Error(), "the root of a precision is 0") {
		t.Errorf("error %v, want one of the root 0", zero.Err())
	}
}

// The linear fit also covers features that units ignore: adding a unit gains as much as a Newton step in all parameters
// at once, meaning γ, a, b and the other features' parameters.
func TestFeaturesWithoutUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 4))
	c := manyChoices(rng, 200, []float64{1, -0.5, 0.8})
	m := utility.NewSpectral(2, 1)
	linear := utility.NewSum(utility.NewLinear(2, true), utility.NewLinear(1, false))
	fit := fitted(t, &mle.NLL{Model: linear, Choices: c, Prior: []float64{4, 4, 1, 1}}, make([]float64, 4))
	theta := normals(rng, m.Inputs())
	a := mle.NewScoreTest(m, c, fit, 1000, 0).Amplitudes(theta)[0]
	if a == nil {
		t.Fatal("no amplitudes")
	}
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	family := utility.NewSum(pinned{m, theta}, utility.NewLinear(1, false)) // a, b, γ, and the third feature
	all := &mle.NLL{
		Model: family, Choices: c, Prior: append([]float64{4, 4, 1}, append(slices.Clone(m.Gamma(prior, 0)), 1)...),
	}
	w := []float64{fit.Mode[0], fit.Mode[1], fit.Mode[2], 0, 0, fit.Mode[3]}
	step, grad := mat.NewVecDense(len(w), nil), make([]float64, len(w))
	all.Gradient(grad, w)
	var chol mat.Cholesky
	if !chol.Factorize(all.Fisher(nil, w)) {
		t.Fatal("singular")
	}
	fatal.If(t, chol.SolveVecTo(step, mat.NewVecDense(len(w), grad)))
	for k, v := range a.Mode {
		near(t, "an amplitude", v, -step.AtVec(3+k), 1e-3)
	}
}

// A test processes the rounds in tiles. Their order does not change the gain, nor do rounds without items. The gain of
// a unit without amplitudes is −Inf.
func TestScoreTestInTiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	const rounds = 180 // two tiles of 86 rounds, and one of 8
	c := manyChoices(rng, rounds, []float64{1, -0.5})
	m := utility.NewSpectral(2, 1)
	fit := fitted(
		t, &mle.NLL{Model: utility.NewLinear(2, true), Choices: c, Prior: []float64{4, 4, 1}}, make([]float64, 3),
	)
	other := mle.NewChoices(2)
	for s := range rounds {
		k := (s + 50) % rounds
		other.AppendRows(c.Round(k).Features(), c.Choice(k), c.More(k)...)
		if s%3 == 0 {
			other.AppendRows(nil, vitrine.Outside)
		}
	}
	for range 300 {
		other.AppendRows(nil, vitrine.Outside)
	}
	whole, tiles := mle.NewScoreTest(m, c, fit, rounds, 0), mle.NewScoreTest(m, other, fit, other.Rounds(), 0)
	for range 5 {
		theta := normals(rng, m.Inputs())
		near(t, "gain", gainOf(tiles, theta), gainOf(whole, theta), 1e-9)
	}
	full, then := c.Slice(0, 86), c.Slice(0, 86) // one tile, and one without items
	for range 5 {
		then.AppendRows(nil, vitrine.Outside)
	}
	theta := normals(rng, m.Inputs())
	near(t, "gain", gainOf(mle.NewScoreTest(m, then, fit, 91, 0), theta),
		gainOf(mle.NewScoreTest(m, full, fit, 86, 0), theta), 1e-9)
	if gain := whole.Gain(nil, []float64{1, 1}); !math.IsInf(gain, -1) {
		t.Errorf("a unit without amplitudes gains %v", gain)
	}
}
