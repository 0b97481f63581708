package mle_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/internal/state"
	"vitrine/mle"
	"vitrine/utility"
)

// A round of affine utilities, and what was chosen.
type round struct {
	a []float64
	g *mat.Dense
	y vitrine.Choice
}

// randomRounds draws rounds of 0 to 5 items; about one in six choices is the
// outside option.
func randomRounds(rng *rand.Rand, n, d int) []round {
	rounds := make([]round, n)
	for s := range rounds {
		k := rng.IntN(6)
		r := round{a: make([]float64, k), y: vitrine.Choice(rng.IntN(k + 1))}
		if k > 0 {
			r.g = mat.NewDense(k, d, nil)
		}
		for i := range k {
			r.a[i] = rng.NormFloat64()
			for j := range d {
				r.g.Set(i, j, rng.NormFloat64())
			}
		}
		rounds[s] = r
	}
	return rounds
}

// naiveLoss is ℓ(w) straight from its definition.
func naiveLoss(rounds []round, lambda float64, center, w []float64) float64 {
	loss := 0.0
	for _, r := range rounds {
		u := make([]float64, len(r.a))
		for k := range u {
			u[k] = r.a[k] + mat.Dot(r.g.RowView(k), mat.NewVecDense(len(w), w))
		}
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		loss -= math.Log(p[r.y])
	}
	for j := range w {
		loss += lambda / 2 * (w[j] - center[j]) * (w[j] - center[j])
	}
	return loss
}

func normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*(1+math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func nearAll(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has length %d, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestAffineAgreesWithItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	// 3 rounds are one block; 400 rounds are several.
	for _, n := range []int{0, 1, 3, 400} {
		const d, lambda = 5, 0.7
		rounds, center, w := randomRounds(rng, n, d), normals(rng, d), normals(rng, d)
		l := mle.NewAffine(lambda, center)
		for _, r := range rounds {
			l.Append(r.a, r.g, r.y)
		}
		f := func(w []float64) float64 { return naiveLoss(rounds, lambda, center, w) }
		near(t, "Value", l.Value(w), f(w), 1e-12)
		got := make([]float64, d)
		near(t, "Gradient's value", l.Gradient(got, w), f(w), 1e-12)
		nearAll(t, "Gradient", got, fd.Gradient(nil, f, w, &fd.Settings{Formula: fd.Central}), 1e-6)

		var want mat.Dense
		want.ReuseAs(d, d)
		fd.Jacobian(&want, func(y, x []float64) { l.Gradient(y, x) }, w, &fd.JacobianSettings{Formula: fd.Central})
		nearAll(t, "Hessian", mat.DenseCopyOf(l.Hessian(nil, w)).RawMatrix().Data, want.RawMatrix().Data, 1e-6)
	}
}

// A round in which nobody buys is part of the loss: it lowers the utilities.
func TestAffineCountsTheOutsideOption(t *testing.T) {
	l := mle.NewAffine(1, []float64{0})
	l.Append([]float64{0}, mat.NewDense(1, 1, []float64{1}), vitrine.Outside)
	grad := make([]float64, 1)
	near(t, "ℓ(0)", l.Gradient(grad, []float64{0}), math.Ln2, 1e-15)
	near(t, "∇ℓ(0) = p(1)", grad[0], 0.5, 1e-15)
}

func TestAffineIsFiniteForHugeUtilities(t *testing.T) {
	l := mle.NewAffine(1, []float64{0})
	l.Append([]float64{700, -700}, mat.NewDense(2, 1, []float64{1, 1}), 2)
	near(t, "ℓ", l.Value([]float64{0}), 1400, 1e-15)
}

// A second minimiser, BFGS on the naive loss, finds the same minimum.
func TestNewtonFollowsTheMinimiser(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	const d = 4
	for _, lambda := range []float64{0.1, 1, 10} {
		rounds, center := randomRounds(rng, 150, d), normals(rng, d)
		n := mle.NewNewton(lambda, center, 1e-12)
		steps := 0
		for s, r := range rounds {
			n.Append(r.a, r.g, r.y)
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

// The stopping rule is what it says: the true decrement² at the point that
// Minimize leaves is about the tolerance or less, though H is lagged.
func TestNewtonStopsAtTheStatedDecrement(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	const d, tol = 6, 1e-6
	n := mle.NewNewton(3, make([]float64, d), tol)
	for _, r := range randomRounds(rng, 300, d) {
		n.Append(r.a, r.g, r.y)
		found := n.Minimize()
		grad := make([]float64, d)
		near(t, "the value returned", found.Value, n.Loss().Gradient(grad, n.Params()), 1e-12)
		var chol mat.Cholesky
		chol.Factorize(n.Loss().Hessian(nil, n.Params()))
		var step mat.VecDense
		fatal.If(t, chol.SolveVecTo(&step, mat.NewVecDense(d, grad)))
		if decrement := mat.Dot(&step, mat.NewVecDense(d, grad)); decrement > 4*tol || !found.Converged || found.Decrement > tol {
			t.Fatalf("decrement² %v after Minimize, want about %v or less; %+v", decrement, tol, found)
		}
	}
}

// H is the Hessian at ŵ within the factor that is stated, and not without it; Tighten makes it that at ŵ. All directions are tried
// by the eigenvalues of exp(2Δ)H − ∇²ℓ and ∇²ℓ − exp(−2Δ)H.
func TestNewtonStatesHowFarItsHessianIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	const d = 4
	n := mle.NewNewton(0.5, make([]float64, d), 1e-6)
	farthest, largest := 0.0, 0.0
	for _, r := range randomRounds(rng, 200, d) {
		n.Append(r.a, r.g, r.y)
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
	nearAll(t, "H", mat.DenseCopyOf(h.Sym(nil)).RawMatrix().Data, mat.DenseCopyOf(n.Loss().Hessian(nil, n.Params())).RawMatrix().Data, 1e-9)
	near(t, "moved", moved, 0, 0)
}

func scaled(c float64, a mat.Symmetric) *mat.SymDense {
	var s mat.SymDense
	s.ScaleSym(c, a)
	return &s
}

// A decrease that is below the rounding of ℓ cannot be seen, and does not keep
// the iteration from its minimum: where ℓ is large it takes as few steps as where
// it is small, whatever the tolerance.
func TestNewtonGoesOnBelowTheRoundingOfTheLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	const d = 4
	n := mle.NewNewton(1, make([]float64, d), 1e-22)
	for s, r := range randomRounds(rng, 2400, d) {
		n.Append(r.a, r.g, r.y)
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

// Far from the minimiser full Newton steps overshoot; the safeguards bring
// the iteration back.
func TestNewtonConvergesFromAfar(t *testing.T) {
	n := mle.NewNewton(1e-3, []float64{40}, 1e-9)
	for i := range 20 {
		n.Append([]float64{0}, mat.NewDense(1, 1, []float64{1}), vitrine.Choice(i%2))
		n.Minimize()
	}
	near(t, "ŵ", n.Params()[0], 0, 0.01)
}

// Rounds whose items differ by orders of magnitude saturate each other, so that
// a Hessian of their time is wrong by more than the loss is. The minima are from
// a Newton iteration in 400 bits.
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

// A feature that is large and almost constant, as a time in seconds is, leaves
// the fast sum of the Hessian indefinite by rounding: then it is summed without
// differences, and the iteration goes on in few steps.
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

// A step that overflows gives no number, and is not taken.
func TestNewtonRefusesAStepThatOverflows(t *testing.T) {
	for _, lambda := range []float64{1e-100, 1e-200} {
		n := mle.NewNewton(lambda, []float64{0}, 1e-6)
		n.Append([]float64{-1000}, mat.NewDense(1, 1, []float64{1e150}), 1)
		n.Minimize()
		if w := n.Params()[0]; w != 0 {
			t.Errorf("λ = %v: ŵ = %v", lambda, w)
		}
	}
}

func bytesOf(t *testing.T, e *state.Encoder) []byte {
	t.Helper()
	data := fatal.Or(e.Bytes())(t)
	return data
}

// A row count that overflows when it is multiplied by the width is refused.
func TestSnapshotWithTooManyRowsIsRefused(t *testing.T) {
	e := state.NewEncoder("test")
	e.Floats(nil)
	e.Count(1)
	e.Count(min(1<<47, math.MaxInt/4+1))
	e.Count(0)
	d := fatal.Or(state.NewDecoder("test", bytesOf(t, e)))(t)
	mle.NewChoices(1 << 17).Decode(d)
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "ends at row") {
		t.Errorf("error %v, want one that names the row", err)
	}
}

func TestOnlineIsTheStatedStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	const d, lambda, eta, sigma = 3, 2.0, 1.5, 0.8
	o := mle.NewOnline(lambda, make([]float64, d), eta, sigma)
	w := mat.NewVecDense(d, nil)
	h := mat.NewDense(d, d, nil)
	for i := range d {
		h.Set(i, i, lambda)
	}
	// The gradient and Hessian of one round from their definitions.
	oneRound := func(r round, w *mat.VecDense) (*mat.VecDense, *mat.Dense) {
		k := len(r.a)
		u, p := make([]float64, k), make([]float64, k+1)
		for i := range u {
			u[i] = r.a[i] + mat.Dot(r.g.RowView(i), w)
		}
		vitrine.Probabilities(p, u)
		grad, hess := mat.NewVecDense(d, nil), mat.NewDense(d, d, nil)
		var outer mat.Dense
		for i := range k {
			c := p[i+1]
			if int(r.y) == i+1 {
				c--
			}
			grad.AddScaledVec(grad, c, r.g.RowView(i))
			for j := range k {
				outer.Outer(-p[i+1]*p[j+1], r.g.RowView(i), r.g.RowView(j))
				hess.Add(hess, &outer)
			}
			outer.Outer(p[i+1], r.g.RowView(i), r.g.RowView(i))
			hess.Add(hess, &outer)
		}
		return grad, hess
	}
	for _, r := range randomRounds(rng, 100, d) {
		o.Update(r.a, r.g, r.y)
		if len(r.a) > 0 {
			grad, hess := oneRound(r, w)
			var tilde, step mat.Dense
			tilde.Scale(eta, hess)
			tilde.Add(&tilde, h)
			fatal.If(t, step.Solve(&tilde, grad))
			w.AddScaledVec(w, -sigma, step.ColView(0))
			_, hess = oneRound(r, w)
			h.Add(h, hess)
		}
		nearAll(t, "w", o.Params(), w.RawVector().Data, 1e-10)
		nearAll(t, "H", mat.DenseCopyOf(o.Hessian().Sym(nil)).RawMatrix().Data, h.RawMatrix().Data, 1e-10)
	}
}

// choicesOf draws choices of 3 of 10 items under random linear tastes.
func choicesOf(rng *rand.Rand, rounds, d int) *mle.Choices {
	c := mle.NewChoices(d)
	theta := normals(rng, d)
	u, shock := make([]float64, 10), make([]float64, 11)
	for range rounds {
		x := mat.NewDense(10, d, normals(rng, 10*d))
		s := vitrine.Assortment{1, 4, 7}
		for i := range u {
			u[i] = mat.Dot(x.RowView(i), mat.NewVecDense(d, theta))
		}
		vitrine.DrawShocks(shock, rng)
		c.Append(x, s, vitrine.Choose(s, u, shock))
	}
	return c
}

// jacobianOnly hides a model's optional interfaces.
type jacobianOnly struct{ utility.Model }

func TestNLLGradientByFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	mlp := utility.NewMLP(3, []int{4}, utility.Sigmoid)
	for _, m := range []utility.Model{mlp, jacobianOnly{mlp}, utility.NewLinear(3, true)} {
		for _, rounds := range []int{0, 30} {
			l := &mle.NLL{Model: m, Choices: choicesOf(rng, rounds, 3), Ridge: 0.3}
			w := normals(rng, m.NumParams())
			got := make([]float64, len(w))
			near(t, "Gradient's value", l.Gradient(got, w), l.Value(w), 1e-12)
			want := fd.Gradient(nil, l.Value, w, &fd.Settings{Formula: fd.Central})
			nearAll(t, "Gradient", got, want, 1e-6)
		}
	}
}

// For a linear family the NLL is an affine loss, and Fisher's information is
// its Hessian.
func TestNLLOfALinearFamilyIsAffine(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	const d, ridge = 3, 0.5
	l := &mle.NLL{Model: utility.NewLinear(d, false), Choices: mle.NewChoices(d), Ridge: ridge}
	a := mle.NewAffine(ridge, make([]float64, d))
	for range 20 {
		x := mat.NewDense(4, d, normals(rng, 4*d))
		y := vitrine.Choice(rng.IntN(5))
		l.Choices.Append(x, vitrine.Assortment{0, 1, 2, 3}, y)
		a.Append(make([]float64, 4), x, y)
	}
	w := normals(rng, d)
	near(t, "Value", l.Value(w), a.Value(w), 1e-13)
	nearAll(t, "Fisher", mat.DenseCopyOf(l.Fisher(nil, w)).RawMatrix().Data, mat.DenseCopyOf(a.Hessian(nil, w)).RawMatrix().Data, 1e-12)
}

// quadratic is ½ Σ_j c_j w_j².
type quadratic []float64

func (q quadratic) Dim() int { return len(q) }
func (q quadratic) Gradient(dst, w []float64) float64 {
	v := 0.0
	for j, c := range q {
		dst[j] = c * w[j]
		v += c * w[j] * w[j] / 2
	}
	return v
}

func TestAdam(t *testing.T) {
	// By hand: whatever the gradient, the first step is α in each coordinate,
	// since m/(1−β_1) = ∇ and v/(1−β_2) = ∇².
	w := []float64{3, -2, 0}
	if r, err := (mle.Adam{Rate: 0.1, Steps: 1}).Minimize(quadratic{1, 100, 1}, w); err != nil || r.Steps != 1 || r.Converged || r.Value != (quadratic{1, 100, 1}).Gradient(make([]float64, 3), w) {
		t.Errorf("after one step: %+v, error %v", r, err)
	}
	nearAll(t, "w after one step", w, []float64{2.9, -1.9, 0}, 1e-7)

	// PyTorch's torch.optim.Adam([w], lr=0.1) from (1, −2) on (w_1² + 10 w_2²)/2,
	// in float64.
	for k, want := range [][]float64{
		{0.900000001, -1.90000000005},
		{0.8004122297123382, -1.8001664857113877},
		{0.701586274504415, -1.7006233914339461},
		{0.603939062682108, -1.6015048944653312},
		{0.507963661927221, -1.502955780256633},
	} {
		w := []float64{1, -2}
		mle.Adam{Rate: 0.1, Steps: k + 1}.Minimize(quadratic{1, 10}, w)
		nearAll(t, "PyTorch's w", w, want, 1e-14)
	}
	w = []float64{1, 1}
	mle.Adam{Rate: 0.01, Steps: 5000}.Minimize(quadratic{1, 10}, w)
	nearAll(t, "the minimiser", w, []float64{0, 0}, 1e-6)
}

func TestLevenbergMarquardtFindsAStationaryPoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	m := utility.NewMLP(3, []int{5}, utility.Sigmoid)
	for _, ridge := range []float64{0.1, 1, 3} {
		l := &mle.NLL{Model: m, Choices: choicesOf(rng, 60, 3), Ridge: ridge}
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		start := l.Value(w)
		min := fatal.Or(mle.LevenbergMarquardt{Steps: 500, Tolerance: 1e-12}.Minimize(l, w))(t)
		near(t, "the value returned", min.Value, l.Value(w), 1e-12)
		if min.Value >= start {
			t.Errorf("ridge %v: L rose from %v to %v", ridge, start, min.Value)
		}
		grad := make([]float64, len(w))
		l.Gradient(grad, w)
		nearAll(t, "∇L at the minimiser", grad, make([]float64, len(w)), 1e-4)
	}
}

// A linear family has one minimum, which Newton finds too.
func TestLevenbergMarquardtAgreesWithNewton(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	const d = 3
	l := &mle.NLL{Model: utility.NewLinear(d, false), Choices: mle.NewChoices(d), Ridge: 2}
	n := mle.NewNewton(2, make([]float64, d), 1e-14)
	for range 40 {
		x := mat.NewDense(3, d, normals(rng, 3*d))
		y := vitrine.Choice(rng.IntN(4))
		l.Choices.Append(x, vitrine.Assortment{0, 1, 2}, y)
		n.Append(make([]float64, 3), x, y)
	}
	n.Minimize()
	w := normals(rng, d)
	fatal.Or((mle.LevenbergMarquardt{Steps: 200, Tolerance: 1e-14}).Minimize(l, w))(t)
	nearAll(t, "w", w, n.Params(), 1e-6)

	// And so does gonum's, for either likelihood.
	for _, p := range []optimize.Problem{l.Problem(), n.Loss().Problem()} {
		found := fatal.Or(optimize.Minimize(p, make([]float64, d), &optimize.Settings{GradientThreshold: 1e-8}, &optimize.Newton{}))(t)
		nearAll(t, "gonum's w", found.X, n.Params(), 1e-6)
	}
}

func TestLevenbergMarquardtRefusesAnInfiniteStart(t *testing.T) {
	c := mle.NewChoices(1)
	c.Append(mat.NewDense(1, 1, []float64{math.MaxFloat64}), vitrine.Assortment{0}, 0)
	l := &mle.NLL{Model: utility.NewLinear(1, false), Choices: c, Ridge: 1}
	if _, err := (mle.LevenbergMarquardt{Steps: 10}).Minimize(l, []float64{10}); err == nil {
		t.Error("no error for an infinite likelihood")
	}
}

func TestNewtonAndOnlineSurviveASnapshot(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	const d = 4
	rounds := randomRounds(rng, 60, d)
	n, o := mle.NewNewton(1, make([]float64, d), 1e-6), mle.NewOnline(1, make([]float64, d), 1, 1)
	play := func(n *mle.Newton, o *mle.Online, rounds []round) {
		for _, r := range rounds {
			n.Append(r.a, r.g, r.y)
			n.Minimize()
			o.Update(r.a, r.g, r.y)
		}
	}
	play(n, o, rounds[:30])
	e := state.NewEncoder("test")
	n.Encode(e)
	o.Encode(e)
	dec := fatal.Or(state.NewDecoder("test", bytesOf(t, e)))(t)
	n2, o2 := mle.NewNewton(1, make([]float64, d), 1e-6), mle.NewOnline(1, make([]float64, d), 1, 1)
	n2.Decode(dec)
	o2.Decode(dec)
	fatal.If(t, dec.Close())
	play(n, o, rounds[30:])
	play(n2, o2, rounds[30:])
	nearAll(t, "Newton's ŵ", n2.Params(), n.Params(), 0)
	nearAll(t, "Online's w", o2.Params(), o.Params(), 0)
}

// A step that would move a utility of the round by more than 3 goes in the stated
// direction, just so far that the largest move is 3; and the Hessian stays
// definite.
func TestOnlineShortensWhatOvershoots(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	const d, lambda = 3, 1e-3
	o := mle.NewOnline(lambda, make([]float64, d), 1, 2)
	short := 0
	for s, r := range randomRounds(rng, 400, d) {
		if len(r.a) == 0 {
			continue
		}
		r.g.Scale(math.Pow(10, float64(s%5)), r.g)
		w, h := slices.Clone(o.Params()), mat.DenseCopyOf(o.Hessian().Sym(nil))
		one := mle.NewAffine(1e-300, w)
		one.Append(r.a, r.g, r.y)
		grad := mat.NewVecDense(d, nil)
		one.Gradient(grad.RawVector().Data, w)
		h.Add(h, one.Hessian(nil, w))
		var step mat.Dense
		_ = step.Solve(h, grad)

		o.Update(r.a, r.g, r.y)
		var full, moved mat.VecDense
		full.MulVec(r.g, step.ColView(0))
		maximum := 2 * mat.Norm(&full, math.Inf(1))
		factor := 1.0
		if maximum > 3 {
			factor = 3 / maximum
			short++
		}
		for j, v := range o.Params() {
			near(t, "w", v, w[j]-2*factor*step.At(j, 0), 1e-6*(1+math.Abs(w[j])))
			w[j] -= v
		}
		moved.MulVec(r.g, mat.NewVecDense(d, w))
		if got := mat.Norm(&moved, math.Inf(1)); got > 3*(1+1e-6) {
			t.Fatalf("round %d moves a utility by %v", s, got)
		}
	}
	var chol mat.Cholesky
	if short < 50 || !chol.Factorize(o.Hessian().Sym(nil)) {
		t.Errorf("%d steps were shortened; H = %v", short, mat.Formatted(o.Hessian().Sym(nil)))
	}
}

// burst is ½ w², without a number beyond 1.
type burst struct{}

func (burst) Dim() int { return 1 }
func (burst) Gradient(dst, w []float64) float64 {
	if dst[0] = w[0] - 3; w[0] > 1 {
		dst[0] = math.NaN()
	}
	return 0
}

// Adam stops at the last point that has a gradient.
func TestAdamStopsBeforeWhatIsNotFinite(t *testing.T) {
	for _, steps := range []int{9, 10, 11, 100} {
		w := []float64{0}
		r, err := mle.Adam{Rate: 0.11, Steps: steps}.Minimize(burst{}, w)
		if err != nil || r.Steps != 9 {
			t.Errorf("%+v, error %v", r, err)
		}
		if !(w[0] > 0.9 && w[0] <= 1) {
			t.Errorf("after %d steps: w = %v, want the last one up to 1", steps, w)
		}
	}
}

func TestAdamRefusesAStartThatIsNotFinite(t *testing.T) {
	w := []float64{2}
	if _, err := (mle.Adam{Rate: 1, Steps: 3}).Minimize(burst{}, w); !errors.Is(err, mle.ErrNotFinite) || w[0] != 2 {
		t.Errorf("w = %v, error %v", w, err)
	}
}

// In whatever units the features are, the minimum is found: that of features in
// units of 1e4 and 1e-3 is, rescaled, what BFGS finds for features near 1. And the
// minimiser says whether it has converged.
func TestLevenbergMarquardtInAnyUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	units := []float64{1e4, 1e-3}
	d := len(units)
	theta := []float64{-1, 0.5}
	for _, ridge := range []struct{ rho, unit float64 }{{1, 1}, {1e-6, 0}} {
		raw, near1 := mle.NewChoices(d), mle.NewChoices(d)
		raws := &mle.NLL{Model: utility.NewLinear(d, false), Choices: raw, Prior: make([]float64, d)}
		scaled := &mle.NLL{Model: utility.NewLinear(d, false), Choices: near1, Prior: make([]float64, d)}
		for j, s := range units {
			raws.Prior[j] = ridge.rho * math.Pow(s, 2*ridge.unit)
			scaled.Prior[j] = raws.Prior[j] / (s * s)
		}
		for range 400 {
			x, y := mat.NewDense(3, d, normals(rng, 3*d)), mat.NewDense(3, d, nil)
			u, shock := make([]float64, 3), make([]float64, 4)
			for i := range 3 {
				for j, s := range units {
					y.Set(i, j, s*x.At(i, j))
					u[i] += theta[j] * x.At(i, j)
				}
			}
			vitrine.DrawShocks(shock, rng)
			s := vitrine.Assortment{0, 1, 2}
			choice := vitrine.Choose(s, u, shock)
			near1.Append(x, s, choice)
			raw.Append(y, s, choice)
		}
		best, err := optimize.Minimize(scaled.Problem(), make([]float64, d), &optimize.Settings{GradientThreshold: 1e-9}, &optimize.BFGS{})
		if err != nil && best == nil {
			t.Fatal(err)
		}
		for _, tolerance := range []float64{1e-4, 1e-10} {
			w := make([]float64, d)
			min, err := mle.LevenbergMarquardt{Steps: 100, Tolerance: tolerance}.Minimize(raws, w)
			if err != nil || !min.Converged || min.Steps > 40 || !(min.Decrement < 2*tolerance) {
				t.Errorf("prior %v, tolerance %v: %+v, error %v", ridge, tolerance, min, err)
			}
			if !(min.Value-best.F < 2*tolerance) {
				t.Errorf("prior %v, tolerance %v: L = %v, the minimum is %v", ridge, tolerance, min.Value, best.F)
			}
			for j, s := range units {
				near(t, "a coefficient in units of the feature", s*w[j], best.X[j], 20*math.Sqrt(tolerance))
			}
		}
		start := []float64{0.01, 1000}
		if min, err := (mle.LevenbergMarquardt{Steps: 2, Tolerance: 1e-10}).Minimize(raws, start); err != nil || min.Converged || min.Steps != 2 || !(min.Decrement > 1e-10) {
			t.Errorf("two steps from afar: %+v, error %v", min, err)
		}
	}
}
