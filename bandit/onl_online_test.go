package bandit

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
)

// The O(1) update, ŵ_{t+1} = ŵ_t − (H_t/(2η) + G_t(ŵ_t)/2)⁻¹ ∇_t, then
// H_{t+1} = H_t + G_t(ŵ_{t+1}), with everything dense and from the definition.
func TestOnlineUpdate(t *testing.T) {
	const eta = 1.3
	m, o := paperModel(), paperOptions()
	o.Update, o.Step = "online", eta
	l := newPaperONL(t, m, o)
	h := live(t, l, 60, nil)
	dw := m.NumParams()
	w := mat.NewVecDense(dw, h.w[o.Warmup])
	hess := mat.NewDense(dw, dw, nil)
	for j := range dw {
		hess.Set(j, j, o.Lambda)
	}
	for s := o.Warmup; s < len(h.rounds); s++ {
		r := h.rounds[s]
		f, g := gradients(m, w.RawVector().Data, r.Context, r.Offer.Assortment)
		at := mat.VecDenseCopyOf(w)
		derivatives := func() (*mat.VecDense, *mat.Dense) {
			var diff, gp mat.VecDense
			diff.SubVec(w, at)
			u, p := make([]float64, len(f)), make([]float64, len(f)+1)
			for k := range f {
				u[k] = f[k] + mat.Dot(g.RowView(k), &diff)
			}
			vitrine.Probabilities(p, u)
			grad := mat.NewVecDense(dw, nil)
			for k := range f {
				y := 0.0
				if int(r.Choice) == k+1 {
					y = 1
				}
				grad.AddScaledVec(grad, p[k+1]-y, g.RowView(k))
			}
			// G = Gᵀ(diag(p) − ppᵀ)G
			var pg, gram mat.Dense
			pg.CloneFrom(g)
			for k := range f {
				for j := range dw {
					pg.Set(k, j, p[k+1]*g.At(k, j))
				}
			}
			gram.Mul(g.T(), &pg)
			gp.MulVec(g.T(), mat.NewVecDense(len(f), p[1:]))
			var outer mat.Dense
			outer.Outer(-1, &gp, &gp)
			gram.Add(&gram, &outer)
			return grad, &gram
		}
		grad, gram := derivatives()
		var system, step mat.Dense
		system.Scale(1/eta, hess)
		system.Add(&system, gram)
		system.Scale(0.5, &system)
		fatal.If(t, step.Solve(&system, grad))
		w.SubVec(w, step.ColView(0))
		_, gram = derivatives()
		hess.Add(hess, gram)
		if s+1 < len(h.rounds) {
			for j, v := range h.w[s+1] {
				wantNear(t, "ŵ", v, w.AtVec(j), 1e-9)
			}
		}
	}
}

// Line 9 with 𝒲 a ball: ŵ_t is in it, and ∇ℓ_t(ŵ_t) + μŵ_t = 0 with μ ≥ 0, and
// μ = 0 inside (Karush, Kuhn and Tucker). The pilot is in it, too.
func TestLine9OverABall(t *testing.T) {
	in, on := 0, 0
	for _, ball := range []float64{0.3, 1, 50} {
		for _, warmup := range []int{0, 12} {
			o := paperOptions()
			o.Ball, o.Warmup, o.Tolerance, o.Lambda = ball, warmup, 1e-14, 0.3
			l := fatal.Or(NewONL(paperProblem(), paperModel(), o, newRand()))(t)
			for _, r := range linearHistory(t, 80) {
				observeAll(t, l, []vitrine.Round{r})
				if l.est == nil {
					continue
				}
				if norm := floats.Norm(l.est.Params(), 2); norm > ball*(1+1e-12) {
					t.Fatalf("‖ŵ‖ = %v in the ball %v", norm, ball)
				}
			}
			w := l.est.Params()
			if norm := floats.Norm(l.w0, 2); norm > ball*(1+1e-12) {
				t.Errorf("the pilot has the norm %v in the ball %v", norm, ball)
			}
			grad := make([]float64, len(w))
			l.est.(newton).Loss().Gradient(grad, w)
			inside := floats.Norm(w, 2) < ball*(1-1e-9)
			if inside {
				in++
			} else {
				on++
			}
			mu := 0.0
			if !inside {
				mu = -floats.Dot(grad, w) / (ball * ball)
			}
			floats.AddScaled(grad, mu, w)
			if mu < 0 || floats.Norm(grad, 2) > 1e-4 {
				t.Errorf("ball %v, t_0 = %d: μ = %v and ∇ℓ + μŵ has the norm %v", ball, warmup, mu,
					floats.Norm(grad, 2))
			}
		}
	}
	if in < 2 || on < 2 {
		t.Errorf("%d estimates are inside and %d on the sphere: the test is for both", in, on)
	}
}

// The pilot within a ball is that without one, scaled into the ball only if it is outside.
func TestPilotInABall(t *testing.T) {
	pilot := func(ball float64, warmup int) []float64 {
		o := paperOptions()
		o.Ball, o.Warmup = ball, warmup
		l := fatal.Or(NewONL(paperProblem(), paperModel(), o, newRand()))(t)
		observeAll(t, l, linearHistory(t, warmup))
		return l.w0
	}
	for _, warmup := range []int{0, 12} {
		free := pilot(0, warmup)
		norm := floats.Norm(free, 2)
		for _, share := range []float64{0.25, 0.99, 1.01, 4} {
			want := slices.Clone(free)
			if share < 1 {
				floats.Scale(share, want)
			}
			got := pilot(share*norm, warmup)
			if !floats.EqualApprox(got, want, 1e-12*norm) {
				t.Errorf("t_0 = %d, a ball of %v of the pilot's norm: pilot %v, want %v", warmup, share, got, want)
			}
		}
	}
}
