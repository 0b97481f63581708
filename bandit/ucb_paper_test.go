package bandit

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/mle"
)

// linearHistory is a run of the uniform policy, for learners of linear
// utilities to observe.
func linearHistory(t testing.TB, rounds int) []vitrine.Round {
	t.Helper()
	o := paperOptions()
	o.Warmup = rounds
	p := paperProblem()
	p.Rounds = rounds + 1
	l := fatal.Or(NewONL(p, paperModel(), o, newRand()))(t)
	return live(t, l, rounds, nil).rounds
}

func observeAll(t testing.TB, l vitrine.Learner, rounds []vitrine.Round) {
	t.Helper()
	for _, r := range rounds {
		fatal.If(t, l.Observe(r))
	}
}

// Oh and Iyengar (2021), Theorem 1, with the κ of published code. The numbers
// are the formula's, evaluated by another program.
func TestUCBConfidenceRadius(t *testing.T) {
	wantNear(t, "κ for K = 5", kappaBound(5), 0.0017278699337772438, 1e-14)
	wantNear(t, "α_1, d = 3, K = 5", selfNormalized(1, 3, 5), 380.1815012047046, 1e-14)
	wantNear(t, "α_100, d = 3, K = 5", selfNormalized(100, 3, 5), 1596.2055387703324, 1e-14)
	wantNear(t, "α_1000, d = 5, K = 10", selfNormalized(1000, 5, 10), 8826.313605013895, 1e-14)
}

func TestConstantsChooseTheRadius(t *testing.T) {
	rounds := linearHistory(t, 9)
	p := paperProblem()
	for _, c := range []struct {
		constants    string
		radius, want float64
	}{
		{"theory", 0, selfNormalized(10, paperFeatures, paperSize)},
		{"frozen", 0, selfNormalized(1, paperFeatures, paperSize)},
		{"tuned", 0.3, 0.3},
	} {
		l := fatal.Or(NewUCB(p, UCBOptions{LinearOptions: LinearOptions{Constants: c.constants, Radius: c.radius,
			Lambda: 1}}))(t)
		observeAll(t, l, rounds)
		wantNear(t, c.constants, l.radius(), c.want, 1e-14)
	}
}

// Oh and Iyengar (2021), Algorithm 1: θ̂_t maximises the penalised likelihood,
// V_t = λI + Σ x xᵀ over what was offered.
func TestUCBEstimateAndGramMatrix(t *testing.T) {
	const lambda = 1.5
	for _, intercept := range []bool{false, true} {
		l := fatal.Or(NewUCB(paperProblem(),
			UCBOptions{LinearOptions: LinearOptions{Constants: "tuned", Lambda: lambda, Intercept: intercept}}))(t)
		d := l.model.NumParams()
		loss := mle.NewAffine(lambda, make([]float64, d))
		v := mat.NewSymDense(d, nil)
		for j := range d {
			v.SetSym(j, j, lambda)
		}
		for _, r := range linearHistory(t, 60) {
			observeAll(t, l, []vitrine.Round{r})
			g := mat.NewDense(len(r.Offer.Assortment), d, nil)
			for k, i := range r.Offer.Assortment {
				copy(g.RawRowView(k), r.Context.Features.RawRowView(i))
				if intercept {
					g.Set(k, d-1, 1)
				}
				v.SymRankOne(v, 1, g.RowView(k))
			}
			loss.Append(make([]float64, len(r.Offer.Assortment)), g, r.Choice)
		}
		grad := make([]float64, d)
		loss.Gradient(grad, l.est.Params())
		for _, g := range grad {
			wantNear(t, "the likelihood's gradient at θ̂", g, 0, 1e-2)
		}
		if !mat.EqualApprox(l.v.Sym(nil), v, 1e-12) {
			t.Error("V is not λI + Σ x xᵀ")
		}
	}
}

// z_ti = xᵀθ̂ + α‖x‖_{V⁻¹}.
func TestUCBIndex(t *testing.T) {
	l := fatal.Or(NewUCB(paperProblem(),
		UCBOptions{LinearOptions: LinearOptions{Constants: "tuned", Radius: 0.7, Lambda: 1}}))(t)
	observeAll(t, l, linearHistory(t, 40))
	var inv mat.Dense
	fatal.If(t, inv.Inverse(l.v.Sym(nil)))
	x := paperContext(99)
	for i, z := range l.Policy().(*optimistic).z.Utilities(nil, x) {
		row := x.Features.RowView(i)
		var vx mat.VecDense
		vx.MulVec(&inv, row)
		want := mat.Dot(row, mat.NewVecDense(paperFeatures, l.est.Params())) + 0.7*math.Sqrt(mat.Dot(row, &vx))
		wantNear(t, "z", z, want, 1e-12)
	}
}
