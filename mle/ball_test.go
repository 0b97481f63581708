package mle

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/gram"
)

func ballRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 8)) }

// definite draws a matrix λI + Σ g gᵀ with gradients that differ in size by powers of ten.
func definite(d int, rng *rand.Rand) *gram.Matrix {
	h := gram.New(d, 0.1)
	for range 3 * d {
		g := make([]float64, d)
		for j := range g {
			g[j] = rng.NormFloat64() * math.Pow(10, float64(j%3)-1)
		}
		h.Add(1, g)
	}
	return h
}

// bisected computes the projection from the eigenvectors of H, with a bisection for μ.
func bisected(w []float64, radius float64, h *gram.Matrix) []float64 {
	d := len(w)
	var e mat.EigenSym
	e.Factorize(h.Sym(nil), true)
	var q mat.Dense
	e.VectorsTo(&q)
	var c mat.VecDense
	c.MulVec(q.T(), mat.NewVecDense(d, w))
	at := func(mu float64) *mat.VecDense {
		v := mat.NewVecDense(d, nil)
		for j, value := range e.Values(nil) {
			v.SetVec(j, c.AtVec(j)*value/(value+mu))
		}
		return v
	}
	low, high := 0.0, 1e12
	for range 300 {
		mu := (low + high) / 2
		if low > 0 {
			mu = math.Sqrt(low * high)
		}
		if mat.Norm(at(mu), 2) > radius {
			low = mu
		} else {
			high = mu
		}
	}
	var v mat.VecDense
	v.MulVec(&q, at(high))
	return v.RawVector().Data
}

func TestProjectionAgainstBisection(t *testing.T) {
	rng := ballRand(1)
	for d := 1; d <= 12; d++ {
		for _, radius := range []float64{1e-3, 0.3, 1, 5} {
			h, w := definite(d, rng), make([]float64, d)
			for j := range w {
				w[j] = 4 * rng.NormFloat64()
			}
			outside := floats.Norm(w, 2) > radius
			got, b := slices.Clone(w), new(ball)
			if moved := b.project(got, radius, h); moved != outside {
				t.Errorf("d = %d, radius %v: moved %v, outside %v", d, radius, moved, outside)
			}
			want := w
			if outside {
				want = bisected(w, radius, h)
				if norm := floats.Norm(got, 2); math.Abs(norm-radius) > 1e-14*radius {
					t.Errorf("d = %d: ‖v‖ = %v, want %v", d, norm, radius)
				}
			}
			if distance := floats.Distance(got, want, 2); distance > 1e-9*radius {
				t.Errorf("d = %d, radius %v: %v, want %v", d, radius, got, want)
			}
		}
	}
}

// In the plane, no point on or inside the circle is nearer in the norm of H, and scaling ends up far away.
func TestProjectionIsTheNearestInItsNorm(t *testing.T) {
	h := gram.New(2, 1)
	h.Add(1, []float64{30, 3})
	w := []float64{1, -3}
	v, b := slices.Clone(w), new(ball)
	b.project(v, 1, h)
	square := func(v []float64) float64 { return inner(h, v, w) }
	minimum := math.Inf(1)
	for k := range 200_000 {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / 200_000)
		minimum = min(minimum, square([]float64{cos, sin}))
	}
	if got := square(v); math.Abs(got-minimum) > 1e-7*minimum {
		t.Errorf("‖v − w‖² = %v, and %v on the circle", got, minimum)
	}
	scaled := slices.Clone(w)
	floats.Scale(1/floats.Norm(w, 2), scaled)
	if square(scaled) < 2*minimum {
		t.Errorf("scaling is as good: the test says nothing")
	}
}

// inner returns ‖v − w‖²_H.
func inner(h *gram.Matrix, v, w []float64) float64 {
	d := mat.NewVecDense(len(v), nil)
	d.SubVec(mat.NewVecDense(len(v), v), mat.NewVecDense(len(w), w))
	return mat.Inner(d, h.Sym(nil), d)
}

// draws appends rounds of affine utilities that pull w out of small balls.
func draws(rounds, d int, rng *rand.Rand, add func(a []float64, g *mat.Dense, y vitrine.Choice)) {
	for range rounds {
		n := 1 + rng.IntN(4)
		a, g := make([]float64, n), mat.NewDense(n, d, nil)
		for k := range a {
			a[k] = rng.NormFloat64()
			for j := range d {
				g.Set(k, j, rng.NormFloat64()*math.Pow(2, float64(j)))
			}
		}
		y := vitrine.Choice(0)
		for k := range a {
			if g.At(k, 0) > g.At(k, d-1)/4 {
				y = vitrine.Choice(k + 1)
			}
		}
		add(a, g, y)
	}
}

// projectedGradient minimises a convex function over a ball. It takes steps short enough for the curvature, each
// followed by scaling. This is another algorithm than the one under test, and uses the Euclidean projection.
func projectedGradient(gradient func(dst, w []float64), w []float64, radius, curvature float64, steps int) []float64 {
	w = slices.Clone(w)
	g := make([]float64, len(w))
	for range steps {
		gradient(g, w)
		floats.AddScaled(w, -1/curvature, g)
		if norm := floats.Norm(w, 2); norm > radius {
			floats.Scale(radius/norm, w)
		}
	}
	return w
}

// maxEigenvalue returns the largest eigenvalue of a symmetric matrix.
func maxEigenvalue(s mat.Symmetric) float64 {
	var e mat.EigenSym
	e.Factorize(s, false)
	return slices.Max(e.Values(nil))
}

// Newton over a ball agrees with projected gradient descent, and satisfies the conditions of Karush, Kuhn and Tucker:
// ∇ℓ(ŵ) + μŵ = 0 with μ ≥ 0.
func TestNewtonInABallAgainstProjectedGradient(t *testing.T) {
	const d, lambda = 4, 0.5
	for _, radius := range []float64{0.05, 0.2} {
		center := []float64{0.01, -0.02, 0.01, 0.03}
		n := NewNewton(lambda, center, 1e-16)
		n.Radius = radius
		touched := false
		draws(80, d, ballRand(3), func(a []float64, g *mat.Dense, y vitrine.Choice) {
			n.Append(a, g, y)
			n.Minimize()
			if norm := floats.Norm(n.Params(), 2); norm > radius*(1+1e-12) {
				t.Fatalf("radius %v: ‖ŵ‖ = %v", radius, norm)
			} else if norm > radius*(1-1e-9) {
				touched = true
			}
		})
		if !touched {
			t.Errorf("radius %v: the ball never mattered", radius)
		}
		// The curvature of log-sum-exp is at most half the curvature of the squares.
		bound := gram.New(d, lambda)
		for s := 0; s < len(n.loss.g); s += d {
			bound.Add(0.5, n.loss.g[s:s+d])
		}
		want := projectedGradient(func(dst, w []float64) { n.loss.Gradient(dst, w) },
			center, radius, maxEigenvalue(bound.Sym(nil)), 20_000)
		if distance := floats.Distance(n.Params(), want, 2); distance > 1e-6*radius {
			t.Errorf("radius %v: ŵ = %v, want %v", radius, n.Params(), want)
		}
		grad := make([]float64, d)
		n.loss.Gradient(grad, n.Params())
		mu := -floats.Dot(grad, n.Params()) / (radius * radius)
		if floats.Norm(n.Params(), 2) < radius*(1-1e-9) {
			mu = 0
		}
		size := floats.Norm(grad, 2)
		floats.AddScaled(grad, mu, n.Params())
		if mu < 0 || floats.Norm(grad, 2) > 1e-5*(1+size) {
			t.Errorf("radius %v: μ = %v, and ∇ℓ + μŵ = %v beside ‖∇ℓ‖ = %v", radius, mu, grad, size)
		}
	}
}

// A step of the online estimator is the argmin of its definition over the ball.
func TestOnlineInABallAgainstProjectedGradient(t *testing.T) {
	const d, eta, sigma, radius = 3, 1.0, 2.0, 0.4
	o := NewOnline(1, make([]float64, d), eta, sigma)
	o.Radius = radius
	touched := false
	draws(40, d, ballRand(4), func(a []float64, g *mat.Dense, y vitrine.Choice) {
		before := slices.Clone(o.Params())
		loss := NewAffine(1e-12, make([]float64, d))
		loss.Append(a, g, y)
		gradient := make([]float64, d)
		loss.Gradient(gradient, before)
		h := o.Hessian().Sym(nil)
		tilde := loss.Hessian(nil, before)
		tilde.ScaleSym(eta, tilde)
		tilde.AddSym(tilde, h)

		// Other tests check the step without the ball. Here the estimator's own step length is taken as given.
		free := *NewOnline(1, before, eta, sigma)
		free.h.CopyFrom(o.h)
		free.Update(a, g, y)
		o.Update(a, g, y)
		target := free.Params()
		want := projectedGradient(func(dst, w []float64) {
			diff := mat.NewVecDense(d, nil)
			diff.SubVec(mat.NewVecDense(d, slices.Clone(w)), mat.NewVecDense(d, target))
			mat.NewVecDense(d, dst).MulVec(tilde, diff)
		}, before, radius, maxEigenvalue(tilde), 10_000)
		if floats.Norm(target, 2) > radius {
			touched = true
		}
		if distance := floats.Distance(o.Params(), want, 2); distance > 1e-6 {
			t.Fatalf("w = %v, want %v", o.Params(), want)
		}
	})
	if !touched {
		t.Error("the ball never mattered")
	}
}

// A ball that w never leaves changes no bit of the result.
func TestALargeBallIsNone(t *testing.T) {
	const d = 4
	free, wide := NewNewton(2, make([]float64, d), 1e-6), NewNewton(2, make([]float64, d), 1e-6)
	wide.Radius = 1e6
	draws(60, d, ballRand(5), func(a []float64, g *mat.Dense, y vitrine.Choice) {
		for _, n := range []*Newton{free, wide} {
			n.Append(a, g, y)
			n.Minimize()
		}
		if !slices.Equal(free.Params(), wide.Params()) {
			t.Fatalf("ŵ = %v in a large ball, and %v in none", wide.Params(), free.Params())
		}
	})
}
