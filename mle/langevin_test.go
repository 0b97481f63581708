package mle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/mle"
)

// normal is the potential of N(mean, Σ) in two dimensions.
type normal struct{ mean, precision [2]float64 } // correlation 0

func (n normal) Gradient(dst, w []float64) float64 {
	u := 0.0
	for j := range dst {
		dst[j] = n.precision[j] * (w[j] - n.mean[j])
		u += dst[j] * (w[j] - n.mean[j]) / 2
	}
	return u
}

func identity(d int) *mat.TriDense {
	l := mat.NewTriDense(d, mat.Lower, nil)
	for i := range d {
		l.SetTri(i, i, 1)
	}
	return l
}

// moments runs a chain and returns means and variances, with standard errors based on the effective size.
func moments(l *mle.Langevin, target mle.Target, w []float64, moves int) (mean, variance, se []float64) {
	draws := make([][]float64, len(w))
	l.Run(target, w, moves, rand.New(rand.NewPCG(3, 1)), func(w []float64, _ float64) {
		for j, v := range w {
			draws[j] = append(draws[j], v)
		}
	})
	for _, x := range draws {
		m, v := 0.0, 0.0
		for _, a := range x {
			m += a / float64(len(x))
		}
		for _, a := range x {
			v += (a - m) * (a - m) / float64(len(x))
		}
		mean, variance, se = append(mean, m), append(variance, v), append(se, math.Sqrt(v/mle.EffectiveSize(x)))
	}
	return mean, variance, se
}

// The chain reproduces the moments of its target, even with a wrong root, which only lowers the effective size.
func TestLangevinDrawsFromItsTarget(t *testing.T) {
	target := normal{[2]float64{1, -2}, [2]float64{4, 0.25}}
	skewed := mat.NewTriDense(2, mat.Lower, []float64{0.8, 0, 0.4, 1.5})
	for name, root := range map[string]*mat.TriDense{"identity": identity(2), "skewed": skewed} {
		mean, variance, se := moments(&mle.Langevin{Root: root, Step: 0.9}, target, []float64{1, -2}, 60_000)
		for j := range mean {
			if math.Abs(mean[j]-target.mean[j]) > 5*se[j] {
				t.Errorf("%s: mean %v ± %v, want %v", name, mean[j], se[j], target.mean[j])
			}
			near(t, name+": variance", variance[j], 1/target.precision[j], 0.1)
		}
	}
}

// half is the exponential density exp(−w), defined only for w ≥ 0. The chain must stay there.
type half struct{}

func (half) Gradient(dst, w []float64) float64 {
	dst[0] = 1
	if w[0] < 0 {
		return math.NaN()
	}
	return w[0]
}

// The exponential distribution has mean 1 and variance 1.
func TestLangevinStaysWhereTheDensityIs(t *testing.T) {
	mean, variance, se := moments(&mle.Langevin{Root: identity(1), Step: 1}, half{}, []float64{1}, 60_000)
	if math.Abs(mean[0]-1) > 5*se[0] {
		t.Errorf("mean %v ± %v, want 1", mean[0], se[0])
	}
	near(t, "variance", variance[0], 1, 0.1)
}

// An autoregression with coefficient φ has the effective size n(1−φ)/(1+φ).
func TestEffectiveSizeOfAnAutoregression(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, phi := range []float64{0, 0.5, 0.9} {
		x := make([]float64, 40_000)
		for s := 1; s < len(x); s++ {
			x[s] = phi*x[s-1] + rng.NormFloat64()
		}
		near(t, "effective size", mle.EffectiveSize(x), float64(len(x))*(1-phi)/(1+phi), 0.12)
	}
	for n, x := range [][]float64{{}, {7}, {7, 7}, {7, 7, 7}} {
		expect.Equal(t, mle.EffectiveSize(x), math.Min(1, float64(n)), "effective size of", x, "is")
	}
}

// Without moves, the mean acceptance is 0 and w stays put.
func TestNoMoves(t *testing.T) {
	w := []float64{1, 2}
	l := &mle.Langevin{Root: identity(2), Step: 1}
	visit := func([]float64, float64) { t.Error("a visit without a move") }
	rate := l.Run(normal{precision: [2]float64{1, 1}}, w, 0, rand.New(rand.NewPCG(1, 1)), visit)
	if rate != 0 || w[0] != 1 || w[1] != 2 {
		t.Errorf("rate %v and w = %v after no moves", rate, w)
	}
}
