package env_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/utility"
)

// law describes a distribution by its first two moments, plus the fourth for the standard error of the second.
type law struct{ mean, variance, kurtosis float64 }

func uniformLaw(low, high float64) law {
	return law{(low + high) / 2, (high - low) * (high - low) / 12, 1.8}
}

// clippedLaw returns the law of max(−b, min(b, Z)) for a standard normal Z, by numerical integration.
func clippedLaw(b float64) law {
	moment := func(power float64) float64 {
		const steps = 100_000
		sum := 0.0
		for k := range steps {
			z := b * (float64(k) + 0.5) / steps
			sum += math.Pow(z, power) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * b / steps
		}
		return 2*sum + math.Pow(b, power)*math.Erfc(b/math.Sqrt2)
	}
	variance := moment(2)
	return law{0, variance, moment(4) / (variance * variance)}
}

// check compares the moments of independent draws with the law, within five standard errors.
func (l law) check(t *testing.T, draws []float64) {
	t.Helper()
	n := float64(len(draws))
	mean, variance := stat.MeanVariance(draws, nil)
	if se := math.Sqrt(l.variance / n); math.Abs(mean-l.mean) > 5*se {
		t.Errorf("mean %v, want %v ± %v", mean, l.mean, se)
	}
	if se := l.variance * math.Sqrt((l.kurtosis-1)/n); math.Abs(variance-l.variance) > 5*se {
		t.Errorf("variance %v, want %v ± %v", variance, l.variance, se)
	}
}

// checkRange requires draws in [low, high].
func checkRange(t *testing.T, draws []float64, low, high float64) {
	t.Helper()
	for _, v := range draws {
		if v < low || v > high {
			t.Fatalf("%v is outside [%v, %v]", v, low, high)
		}
	}
}

func TestContextsFollowTheirLaw(t *testing.T) {
	const n = 40_000
	for name, c := range map[string]struct {
		contexts env.Contexts
		law      law
	}{
		"Gaussian":           {env.Gaussian{}, law{0, 1, 3}},
		"normal":             {env.Normal{Mean: 2, Deviation: 0.5}, law{2, 0.25, 3}},
		"clipped":            {env.ClippedGaussian{Bound: 0.5}, clippedLaw(0.5)},
		"clipped nowhere":    {env.ClippedGaussian{Bound: 50}, law{0, 1, 3}},
		"the paper's":        {env.Uniform{Low: -3, High: 3}, uniformLaw(-3, 3)},
		"uniform, shifted":   {env.Uniform{Low: 1, High: 2}, uniformLaw(1, 2)},
		"uniform on a point": {env.Uniform{Low: 2, High: 2}, uniformLaw(2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			x := mat.NewDense(n, 2, nil)
			c.contexts.Draw(x, newRand(4))
			one, two := mat.Col(nil, 0, x), mat.Col(nil, 1, x)
			c.law.check(t, one)
			c.law.check(t, two)
			if u, ok := c.contexts.(env.Uniform); ok {
				checkRange(t, x.RawMatrix().Data, u.Low, u.High)
			}
			if c, ok := c.contexts.(env.ClippedGaussian); ok {
				checkRange(t, x.RawMatrix().Data, -c.Bound, c.Bound)
			}
			if covariance, se := stat.Covariance(one, two, nil),
				c.law.variance/math.Sqrt(n); math.Abs(covariance) > 5*se {
				t.Errorf("two features of an item have covariance %v, want 0 ± %v", covariance, se)
			}
			if covariance, se := stat.Covariance(one[1:], one[:n-1], nil),
				c.law.variance/math.Sqrt(n); math.Abs(covariance) > 5*se {
				t.Errorf("a feature of two items has covariance %v, want 0 ± %v", covariance, se)
			}
		})
	}
}

// P(|x| > q) = 0.1 at the tabulated quantiles of Student's distribution with n degrees of freedom, and no feature
// exceeds the cut-off.
func TestStudentTFollowsItsTables(t *testing.T) {
	const n = 40_000
	for degrees, q := range map[int]float64{1: 6.3138, 2: 2.9200, 3: 2.3534, 30: 1.6973} {
		x := mat.NewDense(n, 1, nil)
		env.StudentT{Degrees: degrees}.Draw(x, newRand(4))
		beyond := 0.0
		for _, v := range x.RawMatrix().Data {
			if math.Abs(v) > q {
				beyond++
			}
			if math.Abs(v) > 1000 {
				t.Fatalf("%d degrees: the feature %v", degrees, v)
			}
		}
		if se := math.Sqrt(0.09 / n); math.Abs(beyond/n-0.1) > 5*se {
			t.Errorf("%d degrees: the share %v is beyond %v, want 0.1 ± %v", degrees, beyond/n, q, se)
		}
	}
}

// The customer's features are those of all items of a context, and others in the next one.
func TestVisitsShareTheCustomer(t *testing.T) {
	x, rng := mat.NewDense(5, 3, nil), newRand(4)
	var customers []float64
	for range 2000 {
		env.Visits{Customer: 1}.Draw(x, rng)
		for i := range 5 {
			if x.At(i, 2) != x.At(0, 2) || i > 0 && x.At(i, 1) == x.At(0, 1) {
				t.Fatalf("items %v", mat.Formatted(x))
			}
		}
		customers = append(customers, x.At(0, 2))
	}
	law{0, 1, 3}.check(t, customers)
}

// Contexts are not clipped, so a Gaussian feature may be large.
func TestGaussianIsNotClipped(t *testing.T) {
	x := mat.NewDense(40_000, 1, nil)
	env.Gaussian{}.Draw(x, newRand(4))
	if largest := mat.Max(x); largest < 3.5 { // the law gives a smaller maximum a probability of 10⁻⁴
		t.Errorf("the largest of 40 000 features is %v", largest)
	}
}

// The matrix may be a view into a wider one. The rest must stay untouched.
func TestContextsFillViews(t *testing.T) {
	for name, contexts := range map[string]env.Contexts{
		"Gaussian": env.Gaussian{}, "clipped": env.ClippedGaussian{Bound: 1},
		"normal": env.Normal{Mean: 1, Deviation: 2}, "uniform": env.Uniform{Low: 1, High: 2},
		"student": env.StudentT{Degrees: 3}, "visits": env.Visits{},
	} {
		whole, want := mat.NewDense(6, 5, nil), mat.NewDense(4, 2, nil)
		view := whole.Slice(1, 5, 2, 4).(*mat.Dense)
		contexts.Draw(view, newRand(5))
		contexts.Draw(want, newRand(5))
		if !mat.Equal(view, want) {
			t.Errorf("%s: a view got other features", name)
		}
		view.Zero()
		expect.Equal(t, mat.Norm(whole, 1), 0, name, "features outside the view")
	}
}

func TestUniformRevenuesFollowTheirLaw(t *testing.T) {
	r := env.UniformRevenue{Low: 0.25, High: 0.5}.Draw(20_000, newRand(6))
	uniformLaw(0.25, 0.5).check(t, r)
	checkRange(t, r, 0.25, 0.5)
}

func TestOneIsNoRevenues(t *testing.T) {
	if r := (env.One{}).Draw(3, newRand(7)); r != nil {
		t.Errorf("revenues %v, want nil, which means 1", r)
	}
}

func TestParametersFollowTheirLaw(t *testing.T) {
	const n = 20_000
	t.Run("family", func(t *testing.T) {
		w := env.NewFamily(utility.NewLinear(n, false), -1, 1, newRand(8)).Params()
		uniformLaw(-1, 1).check(t, w)
		checkRange(t, w, -1, 1)
	})
	t.Run("family on another interval", func(t *testing.T) {
		w := env.NewFamily(utility.NewLinear(n, false), 2, 5, newRand(9)).Params()
		uniformLaw(2, 5).check(t, w)
		checkRange(t, w, 2, 5)
	})
	t.Run("cosine", func(t *testing.T) {
		w := env.NewCosine(n, 0, newRand(10)).Params()
		uniformLaw(-1, 1).check(t, w)
		checkRange(t, w, -1, 1)
	})
}
