package bandit

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
	"vitrine/mle"
)

// Lee and Oh (2024), Algorithm 1 and Lemma 1: η = ½ log(K+1) + 2,
// λ = 84√2 d η, and β_t. The numbers are the formulas', evaluated by another
// program.
func TestOFUConstants(t *testing.T) {
	for _, c := range []struct {
		size, features int
		at             float64
		eta, lambda    float64
		beta           float64
	}{
		{5, 3, 1, 2.8958797346140273, 1032.0388837145244, 256.1597177876913},
		{5, 3, 100, 2.8958797346140273, 1032.0388837145244, 442.43407336559244},
		{10, 5, 1000, 3.1989476363991853, 1900.0779557411756, 740.5575369280126},
	} {
		p := Problem{NumFeatures: c.features, MaxShown: c.size, Rounds: 10, Constraint: assortment.AtMost(c.size)}
		l := fatal.Or(NewOFU(p, DefaultOFUOptions()))(t)
		wantNear(t, "η", l.o.Eta, c.eta, 1e-14)
		wantNear(t, "λ", l.o.Lambda, c.lambda, 1e-14)
		wantNear(t, "β_t", l.beta(c.at), c.beta, 1e-14)
	}
}

// Lee and Oh (2024), Algorithm 1: the step is −η H̃_t⁻¹∇ with
// H̃_t = H_t + η G(w_t), and H_{t+1} = H_t + G(w_{t+1}). mle tests that
// mle.Online is that step; here, that OFU is mle.Online on linear utilities.
func TestOFUIsOnlineMirrorDescent(t *testing.T) {
	l := fatal.Or(NewOFU(paperProblem(), DefaultOFUOptions()))(t)
	want := mle.NewOnline(l.o.Lambda, make([]float64, paperFeatures), l.o.Eta, l.o.Eta)
	var xs scratch.Matrix
	for _, r := range linearHistory(t, 50) {
		observeAll(t, l, []vitrine.Round{r})
		want.Update(make([]float64, len(r.Offer.Assortment)), xs.Rows(r.Context.Features, r.Offer.Assortment), r.Choice)
	}
	for j, w := range l.est.Params() {
		wantNear(t, "w", w, want.Params()[j], 0)
	}
	if !mat.Equal(l.est.(online).Hessian().Sym(nil), want.Hessian().Sym(nil)) {
		t.Error("H differs")
	}
	// The index is the optimistic policy's, with H in V's place.
	pi := l.Policy().(*optimistic)
	wantNear(t, "β_t", pi.z.Radius, l.beta(51), 0)
}

func TestOFUOptionsOverrideTheFormulas(t *testing.T) {
	l := fatal.Or(NewOFU(paperProblem(), OFUOptions{LinearOptions{Constants: "tuned", Radius: 1, Lambda: 2}, 0.5}))(t)
	wantNear(t, "η", l.o.Eta, 0.5, 0)
	wantNear(t, "λ", l.o.Lambda, 2, 0)
	wantNear(t, "the radius", l.Policy().(*optimistic).z.Radius, 1, 0)
}
