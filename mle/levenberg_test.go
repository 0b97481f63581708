package mle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

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

// A linear family's loss attains its minimum at one point, and Newton finds it too.
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

	// So does gonum's Newton, for either likelihood.
	for _, p := range []optimize.Problem{problem(l, l.Fisher), problem(n.Loss(), n.Loss().Hessian)} {
		found := fatal.Or(
			optimize.Minimize(p, make([]float64, d), &optimize.Settings{GradientThreshold: 1e-8}, &optimize.Newton{}),
		)(t)
		nearAll(t, "gonum's w", found.X, n.Params(), 1e-6)
	}
}

// problem is an objective for the methods of gonum's package optimize.
func problem(l interface {
	mle.Objective
	Value(w []float64) float64
}, hessian func(dst *mat.SymDense, w []float64) *mat.SymDense) optimize.Problem {
	return optimize.Problem{
		Func: l.Value,
		Grad: func(grad, w []float64) { l.Gradient(grad, w) },
		Hess: func(hess *mat.SymDense, w []float64) { hessian(hess, w) },
	}
}

func TestLevenbergMarquardtRefusesAnInfiniteStart(t *testing.T) {
	c := mle.NewChoices(1)
	c.Append(mat.NewDense(1, 1, []float64{math.MaxFloat64}), vitrine.Assortment{0}, 0)
	l := &mle.NLL{Model: utility.NewLinear(1, false), Choices: c, Ridge: 1}
	expect.Refused((mle.LevenbergMarquardt{Steps: 10}).Minimize(l, []float64{10}))(t, "an infinite likelihood")
}

// The units of the features do not matter: with units of 1e4 and 1e-3, the minimum is the rescaled one that BFGS finds
// for features near 1. The minimiser also reports whether it has converged.
func TestLevenbergMarquardtInAnyUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	units := []float64{1e4, 1e-3}
	d := len(units)
	theta := []float64{-1, 0.5}
	for _, ridge := range []struct{ rho, unit float64 }{{1, 1}, {1e-6, 0}} {
		t.Run(fmt.Sprintf("prior %v", ridge), func(t *testing.T) {
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
			best, err := optimize.Minimize(problem(scaled, nil), make([]float64, d),
				&optimize.Settings{GradientThreshold: 1e-9}, &optimize.BFGS{})
			if err != nil && best == nil {
				t.Fatal(err)
			}
			for _, tolerance := range []float64{1e-4, 1e-10} {
				w := make([]float64, d)
				min, err := mle.LevenbergMarquardt{Steps: 100, Tolerance: tolerance}.Minimize(raws, w)
				if err != nil || !min.Converged || min.Steps > 40 || !(min.Decrement < 2*tolerance) {
					t.Errorf("tolerance %v: %+v, error %v", tolerance, min, err)
				}
				if !(min.Value-best.F < 2*tolerance) {
					t.Errorf("tolerance %v: L = %v, the minimum is %v", tolerance, min.Value, best.F)
				}
				for j, s := range units {
					near(t, "a coefficient in units of the feature", s*w[j], best.X[j], 20*math.Sqrt(tolerance))
				}
			}
			start := []float64{0.01, 1000}
			if min, err := (mle.LevenbergMarquardt{Steps: 2, Tolerance: 1e-10}).Minimize(raws, start); err != nil ||
				min.Converged || min.Steps != 2 || !(min.Decrement > 1e-10) {
				t.Errorf("two steps from afar: %+v, error %v", min, err)
			}
		})
	}
}
