package mle_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/mle"
)

func TestOnlineIsTheStatedStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	const d, lambda, eta, sigma = 3, 2.0, 1.5, 0.8
	o := mle.NewOnline(lambda, make([]float64, d), eta, sigma)
	w := mat.NewVecDense(d, nil)
	h := mat.NewDense(d, d, nil)
	for i := range d {
		h.Set(i, i, lambda)
	}
	// The gradient and Hessian of one round, from their definitions.
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
		for _, y := range r.more { // a choice from the items only
			mean := mat.NewVecDense(d, nil)
			for i := range k {
				mean.AddScaledVec(mean, p[i+1]/(1-p[0]), r.g.RowView(i))
			}
			grad.AddVec(grad, mean)
			grad.SubVec(grad, r.g.RowView(int(y)-1))
			for i := range k {
				var off mat.VecDense
				off.SubVec(r.g.RowView(i), mean)
				outer.Outer(p[i+1]/(1-p[0]), &off, &off)
				hess.Add(hess, &outer)
			}
		}
		return grad, hess
	}
	for _, r := range randomRounds(rng, 100, d) {
		o.Update(r.a, r.g, r.y, r.more...)
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

// A step that would move a utility of the round by more than 3 keeps its direction but stops when the largest move is
// 3. The Hessian stays definite.
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
		one.Append(r.a, r.g, r.y, r.more...)
		grad := mat.NewVecDense(d, nil)
		one.Gradient(grad.RawVector().Data, w)
		h.Add(h, one.Hessian(nil, w))
		var step mat.Dense
		_ = step.Solve(h, grad)

		o.Update(r.a, r.g, r.y, r.more...)
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
