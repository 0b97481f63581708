package mle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

// round is a round of affine utilities with its choice and further takes.
type round struct {
	a    []float64
	g    *mat.Dense
	y    vitrine.Choice
	more []vitrine.Choice
}

// randomRounds draws rounds of 0 to 5 items. About one in six choices is the outside option, and a third of the others
// have one to three further takes.
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
		for j := range s % 4 {
			if s%3 == 1 && r.y != vitrine.Outside {
				r.more = append(r.more, vitrine.Choice((s/3+j)%k+1))
			}
		}
		rounds[s] = r
	}
	return rounds
}

// naiveLoss computes ℓ(w) straight from its definition.
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
		for _, y := range r.more {
			loss -= math.Log(p[y] / (1 - p[0]))
		}
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
	expect.Equal(fatal.T(t), len(got), len(want), what, "has length")
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestAffineAgreesWithItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	// 3 rounds fit in one block; 400 rounds need several.
	for _, n := range []int{0, 1, 3, 400} {
		const d, lambda = 5, 0.7
		rounds, center, w := randomRounds(rng, n, d), normals(rng, d), normals(rng, d)
		l := mle.NewAffine(lambda, center)
		for _, r := range rounds {
			l.Append(r.a, r.g, r.y, r.more...)
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

// For a linear family the NLL is an affine loss, and the Fisher information is its Hessian.
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
	nearAll(t, "Fisher", mat.DenseCopyOf(l.Fisher(nil, w)).RawMatrix().Data,
		mat.DenseCopyOf(a.Hessian(nil, w)).RawMatrix().Data, 1e-12)
}
