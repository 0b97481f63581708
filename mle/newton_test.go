package mle_test

import (
	"encoding/binary"
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
)

// BFGS on the naive loss finds the same minimum.
func TestNewtonFollowsTheMinimiser(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	const d = 4
	for _, lambda := range []float64{0.1, 1, 10} {
		rounds, center := randomRounds(rng, 150, d), normals(rng, d)
		n := mle.NewNewton(lambda, center, 1e-12)
		steps := 0
		for s, r := range rounds {
			n.Append(r.a, r.g, r.y, r.more...)
			steps += n.Minimize().Steps
			if s%50 != 49 {
				continue
			}
			result, err := optimize.Minimize(optimize.Problem{
				Func: func(w []float64) float64 { return naiveLoss(rounds[:s+1], lambda, center, w) },
				Grad: func(g, w []float64) { n.Loss().Gradient(g, w) },
			}, center, &optimize.Settings{GradientThreshold: 1e-10}, &optimize.BFGS{})
			if err != nil && result == nil {
				t.Fatal(err)
			}
			nearAll(t, "ŵ", n.Params(), result.X, 1e-5)
		}
		t.Logf("λ = %v: %.2f steps a round", lambda, float64(steps)/float64(len(rounds)))
	}
}

// The stopping rule is accurate: the true decrement² at the final point is about the tolerance or less, although H is
// lagged.
func TestNewtonStopsAtTheStatedDecrement(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	const d, tol = 6, 1e-6
	n := mle.NewNewton(3, make([]float64, d), tol)
	for _, r := range randomRounds(rng, 300, d) {
		n.Append(r.a, r.g, r.y, r.more...)
		found := n.Minimize()
		grad := make([]float64, d)
		near(t, "the value returned", found.Value, n.Loss().Gradient(grad, n.Params()), 1e-12)
		var chol mat.Cholesky
		chol.Factorize(n.Loss().Hessian(nil, n.Params()))
		var step mat.VecDense
		fatal.If(t, chol.SolveVecTo(&step, mat.NewVecDense(d, grad)))
		if decrement := mat.Dot(&step, mat.NewVecDense(d, grad)); decrement > 4*tol ||
			!found.Converged || found.Decrement > tol {
			t.Fatalf("decrement² %v after Minimize, want about %v or less; %+v", decrement, tol, found)
		}
	}
}

// H approximates the Hessian at ŵ within the stated factor, but not without it. Tighten recomputes it at ŵ. The
// eigenvalues of exp(2Δ)H − ∇²ℓ and ∇²ℓ − exp(−2Δ)H cover all directions.
func TestNewtonStatesHowFarItsHessianIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	const d = 4
	n := mle.NewNewton(0.5, make([]float64, d), 1e-6)
	farthest, largest := 0.0, 0.0
	for _, r := range randomRounds(rng, 200, d) {
		n.Append(r.a, r.g, r.y, r.more...)
		n.Minimize()
		for k := range len(r.a) {
			largest = max(largest, mat.Norm(mat.NewVecDense(d, r.g.RawRowView(k)), 2))
		}
		h, moved := n.Hessian()
		at := n.Loss().Hessian(nil, n.Params())
		least := func(c, f float64) float64 {
			var difference mat.SymDense
			difference.ScaleSym(c, h.Sym(nil))
			difference.AddSym(&difference, scaled(f, at))
			var e mat.EigenSym
			if !e.Factorize(&difference, false) {
				t.Fatal("no eigenvalues")
			}
			return e.Values(nil)[0]
		}
		if up, down := least(math.Exp(2*moved), -1), least(-math.Exp(-2*moved), 1); min(up, down) < -1e-9 {
			t.Fatalf("moved %v: eigenvalues from %v and %v on", moved, up, down)
		}
		farthest = max(farthest, -least(1, -1), -least(-1, 1))
	}
	if farthest < 1e-3 {
		t.Errorf("H was that at ŵ in all rounds, within %v", farthest)
	}
	near(t, "the largest norm", n.Loss().Reach(), largest, 1e-12)
	n.Tighten(0)
	h, moved := n.Hessian()
	nearAll(t, "H", mat.DenseCopyOf(h.Sym(nil)).RawMatrix().Data,
		mat.DenseCopyOf(n.Loss().Hessian(nil, n.Params())).RawMatrix().Data, 1e-9)
	near(t, "moved", moved, 0, 0)
}

func scaled(c float64, a mat.Symmetric) *mat.SymDense {
	var s mat.SymDense
	s.ScaleSym(c, a)
	return &s
}

// A decrease smaller than the rounding error of ℓ is invisible, but does not stop the iteration early: a large ℓ takes
// as few steps as a small ℓ, at any tolerance.
func TestNewtonGoesOnBelowTheRoundingOfTheLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	const d = 4
	n := mle.NewNewton(1, make([]float64, d), 1e-22)
	for s, r := range randomRounds(rng, 2400, d) {
		n.Append(r.a, r.g, r.y, r.more...)
		if s < 2000 {
			continue
		}
		if steps := n.Minimize().Steps; steps > 30 {
			t.Fatalf("round %d took %d steps", s, steps)
		}
	}
	if value := n.Loss().Value(n.Params()); value < 1e3 {
		t.Fatalf("ℓ = %v: too small to have roundings above the tolerance", value)
	}
}

// Far from the minimiser full Newton steps overshoot. The safeguards bring the iteration back.
func TestNewtonConvergesFromAfar(t *testing.T) {
	n := mle.NewNewton(1e-3, []float64{40}, 1e-9)
	for i := range 20 {
		n.Append([]float64{0}, mat.NewDense(1, 1, []float64{1}), vitrine.Choice(i%2))
		n.Minimize()
	}
	near(t, "ŵ", n.Params()[0], 0, 0.01)
}

// Rounds with items of very different magnitude saturate each other, so an outdated Hessian is off by more than the
// loss is. The minima come from a Newton iteration in 400 bits.
func TestNewtonDoesNotTrustAHessianThatIsOutOfDate(t *testing.T) {
	for _, c := range []struct {
		min float64
		x   [3][2]float64
		y   [3]vitrine.Choice
	}{
		{0.69770, [3][2]float64{{1e3, -1e3}, {-1, 1}, {0, -1e3}}, [3]vitrine.Choice{0, 0, 1}},
		{0.6932, [3][2]float64{{1e6, 0}, {-1e6, 1e6}, {0, 1}}, [3]vitrine.Choice{0, 0, 1}},
		{0.6932, [3][2]float64{{-1, 1}, {1e6, 0}, {1e6, -1e6}}, [3]vitrine.Choice{0, 0, 0}},
	} {
		n := mle.NewNewton(1, make([]float64, 2), 1e-6)
		for s, x := range c.x {
			n.Append([]float64{0}, mat.NewDense(1, 2, x[:]), c.y[s])
			n.Minimize()
		}
		if got := n.Loss().Value(n.Params()); !(got <= c.min+1e-4) {
			t.Errorf("rounds %v: ℓ = %v at %v, the minimum is %v", c.x, got, n.Params(), c.min)
		}
	}
}

// A feature that is large and almost constant, such as a time in seconds, makes the fast sum of the Hessian indefinite
// by rounding. Newton then sums without differences, and still takes few steps.
func TestNewtonSurvivesRoundingInTheHessian(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	const d, time = 3, 1.7e9
	n := mle.NewNewton(1, make([]float64, d), 1e-6)
	maximum := 0
	for range 300 {
		g := mat.NewDense(4, d, nil)
		for i := range 4 {
			g.SetRow(i, []float64{time + 1e3*rng.Float64(), rng.NormFloat64(), rng.NormFloat64()})
		}
		n.Append(make([]float64, 4), g, vitrine.Choice(rng.IntN(5)))
		maximum = max(maximum, n.Minimize().Steps)
	}
	if maximum > 20 {
		t.Errorf("a round took %d steps", maximum)
	}
	grad := make([]float64, d)
	n.Loss().Gradient(grad, n.Params())
	for _, v := range grad[1:] {
		if !(math.Abs(v) < 1) {
			t.Errorf("∇ℓ = %v", grad)
		}
	}
}

// A step that overflows is not a number, and must not be taken.
func TestNewtonRefusesAStepThatOverflows(t *testing.T) {
	for _, lambda := range []float64{1e-100, 1e-200} {
		n := mle.NewNewton(lambda, []float64{0}, 1e-6)
		n.Append([]float64{-1000}, mat.NewDense(1, 1, []float64{1e150}), 1)
		n.Minimize()
		expect.Equal(t, n.Params()[0], 0, "λ", lambda, "ŵ")
	}
}

// A row count that overflows when multiplied by the width is rejected.
func TestSnapshotWithTooManyRowsIsRefused(t *testing.T) {
	f := fields.Reader(append(binary.AppendUvarint([]byte{0, 1}, uint64(min(1<<47, math.MaxInt/4+1))), 0))
	mle.NewChoices(1 << 17).Fields(&f)
	expect.Part(f.Close())(t, "ends at row")
}

func TestNewtonAndOnlineSurviveASnapshot(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	const d = 4
	rounds := randomRounds(rng, 60, d)
	n, o := mle.NewNewton(1, make([]float64, d), 1e-6), mle.NewOnline(1, make([]float64, d), 1, 1)
	play := func(n *mle.Newton, o *mle.Online, rounds []round) {
		for _, r := range rounds {
			n.Append(r.a, r.g, r.y, r.more...)
			n.Minimize()
			o.Update(r.a, r.g, r.y, r.more...)
		}
	}
	play(n, o, rounds[:30])
	w := fields.Writer(nil)
	n.Fields(&w)
	o.Fields(&w)
	read := fields.Reader(w.Rest())
	n2, o2 := mle.NewNewton(1, make([]float64, d), 1e-6), mle.NewOnline(1, make([]float64, d), 1, 1)
	n2.Fields(&read)
	o2.Fields(&read)
	fatal.If(t, read.Close())
	play(n, o, rounds[30:])
	play(n2, o2, rounds[30:])
	nearAll(t, "Newton's ŵ", n2.Params(), n.Params(), 0)
	nearAll(t, "Online's w", o2.Params(), o.Params(), 0)
}
