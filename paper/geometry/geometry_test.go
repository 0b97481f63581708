package geometry_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/panics"
	"vitrine/paper/geometry"
	"vitrine/utility"
)

func paper() (*geometry.Loss, geometry.Setting) {
	s := geometry.Figure
	return geometry.NewLoss(s.Truth, env.Uniform{Low: s.Contexts[0], High: s.Contexts[1]},
		geometry.ExpectedSize(s.Items, s.Size)), s
}

// draw returns a uniform point in the box.
func draw(box geometry.Box, rng *rand.Rand) (w geometry.Params) {
	for axis := range w {
		w[axis] = box.Low[axis] + (box.High[axis]-box.Low[axis])*rng.Float64()
	}
	return w
}

// closed is E|S| · E_x[(sin(ax+b) − sin(px+q))²] for x ~ U[−3, 3], by
//
//	E[sin(ax+b) sin(px+q)] = ½ (cos(b−q) s(a−p) − cos(b+q) s(a+p)),  s(c) = sin(3c)/(3c)
func closed(size float64, v, w geometry.Params) float64 {
	s := func(c float64) float64 {
		if c == 0 {
			return 1
		}
		return math.Sin(3*c) / (3 * c)
	}
	mean := func(v, w geometry.Params) float64 {
		return (math.Cos(v[1]-w[1])*s(v[0]-w[0]) - math.Cos(v[1]+w[1])*s(v[0]+w[0])) / 2
	}
	return size * (mean(v, v) - 2*mean(v, w) + mean(w, w))
}

func TestLossIsItsClosedForm(t *testing.T) {
	l, s := paper()
	size := geometry.ExpectedSize(s.Items, s.Size)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		w := draw(s.Box, rng)
		if got, want := l.At(w), closed(size, w, s.Truth); math.Abs(got-want) > 1e-12 {
			t.Fatalf("loss at %v is %v, want %v", w, got, want)
		}
	}
}

// The definition, played out: contexts from the paper's world, and sets drawn as in Phase I. The sums over the sets are
// not simplified.
func TestLossIsTheMeanOverRounds(t *testing.T) {
	const rounds = 20_000
	l, s := paper()
	rng := rand.New(rand.NewPCG(2, 2))
	network := utility.NewMLP(1, []int{1}, utility.Sine)
	world := env.World{
		Items:    s.Items,
		Contexts: env.Uniform{Low: -3, High: 3},
		Truth:    env.NewFamily(network, -1, 1, rng),
		Revenues: env.One{},
	}
	points := []geometry.Params{{0, math.Pi}, {3, 1}, {-2, 4}, {1.4, 3.3}, {-3, math.Pi - 0.5}}
	sum, squares := make([]float64, len(points)), make([]float64, len(points))
	u, truth := make([]float64, s.Items), make([]float64, s.Items)
	var set vitrine.Assortment
	for range rounds {
		x := world.Context(rng)
		set = assortment.AtMost(s.Size).Sample(set, s.Items, rng)
		network.Utilities(truth, []float64{s.Truth[0], s.Truth[1], 1, 0}, x.Features)
		for k, w := range points {
			network.Utilities(u, []float64{w[0], w[1], 1, 0}, x.Features)
			v := 0.0
			for _, i := range set {
				v += (u[i] - truth[i]) * (u[i] - truth[i])
			}
			sum[k] += v
			squares[k] += v * v
		}
	}
	for k, w := range points {
		mean := sum[k] / rounds
		se := math.Sqrt((squares[k]/rounds - mean*mean) / rounds)
		if got := l.At(w); math.Abs(got-mean) > 5*se+1e-9 {
			t.Errorf("loss at %v is %v, the mean over rounds %v ± %v", w, got, mean, se)
		}
	}
}

// Counts every set in a small family, one by one.
func TestExpectedSizeCountsTheSets(t *testing.T) {
	for _, c := range []struct{ n, k int }{{1, 1}, {4, 1}, {4, 4}, {9, 3}, {12, 5}} {
		sets, items := 0, 0
		for bits := range 1 << c.n {
			size := 0
			for i := range c.n {
				size += bits >> i & 1
			}
			if 1 <= size && size <= c.k {
				sets++
				items += size
			}
		}
		expect.Equal(t, geometry.ExpectedSize(c.n, c.k), float64(items)/float64(sets), "E|S| for N", c.n, "K", c.k,
			"is")
	}
}

// N = 100, K = 5, by hand: Σ C(100, l) = 79 375 495 and Σ l C(100, l) = 392 617 600.
func TestExpectedSizeOfThePaper(t *testing.T) {
	if got, want := geometry.ExpectedSize(100, 5), 392617600./79375495.; math.Abs(got-want) > 1e-15 {
		t.Errorf("E|S| = %.17g, want %.17g", got, want)
	}
	for _, c := range []struct{ n, k int }{{5, 0}, {5, 6}} {
		if panics.Value(func() { geometry.ExpectedSize(c.n, c.k) }) == nil {
			t.Errorf("N = %d, K = %d: no panic", c.n, c.k)
		}
	}
}

func TestGradientIsTheDerivative(t *testing.T) {
	const h = 1e-6
	l, s := paper()
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		w := draw(s.Box, rng)
		got := l.Gradient(w)
		for axis := range w {
			up, down := w, w
			up[axis] += h
			down[axis] -= h
			if want := (l.At(up) - l.At(down)) / (2 * h); math.Abs(got[axis]-want) > 1e-6 {
				t.Errorf("∂ℓ/∂w_%d at %v is %v, want %v", axis+1, w, got[axis], want)
			}
		}
	}
}

// The Hessian's smallest eigenvalue equals its smallest value on the unit circle, by second differences.
func TestCurvatureIsTheLeastSecondDerivative(t *testing.T) {
	const h = 1e-4
	l, s := paper()
	for _, w := range geometry.Equivalents(s.Truth, s.Box) {
		minimum := math.Inf(1)
		for k := range 1000 {
			sin, cos := math.Sincos(math.Pi * float64(k) / 1000)
			at := func(h float64) float64 { return l.At(geometry.Params{w[0] + h*cos, w[1] + h*sin}) }
			minimum = min(minimum, (at(h)-2*at(0)+at(-h))/(h*h))
		}
		if got := l.Curvature(w); math.Abs(got-minimum) > 1e-4 {
			t.Errorf("curvature at %v is %v, want %v", w, got, minimum)
		}
	}
}
