package env_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/utility"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 21)) }

func TestWorlds(t *testing.T) {
	mlp := env.NewFamily(utility.NewMLP(3, []int{3}, utility.Sigmoid), -1, 1, newRand(1))
	for name, w := range map[string]*env.World{
		"gaussian, mlp, one":       {Items: 20, Contexts: env.Gaussian{}, Truth: mlp, Revenues: env.One{}},
		"uniform, cosine, uniform": {Items: 20, Contexts: env.Uniform{Low: -3, High: 3}, Truth: env.NewCosine(3, 0, newRand(2)), Revenues: env.UniformRevenue{High: 1}},
		"gaussian, linear, one":    {Items: 20, Contexts: env.Gaussian{}, Truth: env.NewFamily(utility.NewLinear(3, true), -1, 1, newRand(3)), Revenues: env.One{}},
	} {
		t.Run(name, func(t *testing.T) { envtest.TestEnvironment(t, w, 20, 3) })
	}
}

// The first two moments, within five standard errors of n draws.
func TestContextMoments(t *testing.T) {
	const n = 40_000
	for name, c := range map[string]struct {
		contexts       env.Contexts
		mean, variance float64
		kurtosis       float64 // E(x−μ)⁴/σ⁴, for the standard error of the variance
	}{
		"gaussian": {env.Gaussian{}, 0, 1, 3},
		"uniform":  {env.Uniform{Low: -3, High: 3}, 0, 3, 1.8},
		"shifted":  {env.Uniform{Low: 1, High: 2}, 1.5, 1.0 / 12, 1.8},
	} {
		x := mat.NewDense(n, 2, nil)
		c.contexts.Draw(x, newRand(4))
		for j := range 2 {
			mean, variance := stat.MeanVariance(mat.Col(nil, j, x), nil)
			if se := math.Sqrt(c.variance / n); math.Abs(mean-c.mean) > 5*se {
				t.Errorf("%s: mean %v, want %v ± %v", name, mean, c.mean, se)
			}
			if se := c.variance * math.Sqrt((c.kurtosis-1)/n); math.Abs(variance-c.variance) > 5*se {
				t.Errorf("%s: variance %v, want %v ± %v", name, variance, c.variance, se)
			}
		}
	}
}

// The misspecified truth, by hand: xᵀw* = ½ gives cos π − ¼ = −1.25.
func TestCosine(t *testing.T) {
	c := env.NewCosine(2, 0, newRand(5))
	w := c.Params()
	scale := 0.5 / (w[0]*w[0] + w[1]*w[1])
	x := mat.NewDense(2, 2, []float64{scale * w[0], scale * w[1], 0, 0})
	u := make([]float64, 2)
	c.Utilities(u, x)
	if math.Abs(u[0]+1.25) > 1e-12 || u[1] != 1 {
		t.Errorf("f = %v, want [-1.25 1]", u)
	}
	for seed := range uint64(200) {
		if norm := mat.Norm(mat.NewVecDense(3, env.NewCosine(3, 1, newRand(seed)).Params()), 2); norm > 1 {
			t.Errorf("‖w*‖ = %v with norm = 1", norm)
		}
	}
}

func TestFamilyDrawsItsParameters(t *testing.T) {
	f := env.NewFamily(utility.NewLinear(500, false), -1, 1, newRand(6))
	mean, variance := stat.MeanVariance(f.Params(), nil)
	if math.Abs(mean) > 5*math.Sqrt(1.0/3/500) || math.Abs(variance-1.0/3) > 0.08 {
		t.Errorf("w* has mean %v and variance %v, want those of U[-1, 1]", mean, variance)
	}
}

func TestUniformRevenue(t *testing.T) {
	for _, r := range (env.UniformRevenue{Low: 0.25, High: 0.5}).Draw(1000, newRand(7)) {
		if r < 0.25 || r > 0.5 {
			t.Fatalf("revenue %v outside [0.25, 0.5]", r)
		}
	}
}

func TestCheckInterval(t *testing.T) {
	for want, bounds := range map[string][2]float64{
		"low = NaN":                     {math.NaN(), 1},
		"high = +Inf":                   {0, math.Inf(1)},
		"low = 2: must not exceed high": {2, 1},
	} {
		if err := env.CheckInterval(bounds[0], bounds[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	if err := env.CheckInterval(1, 1); err != nil {
		t.Error(err)
	}
}
