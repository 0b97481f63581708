package bandit

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
)

func newLogBarrier(t *testing.T, change func(p *Problem, o *LogBarrierOptions)) *LogBarrier {
	t.Helper()
	p, o := paperProblem(), DefaultLogBarrierOptions()
	change(&p, &o)
	l := fatal.Or(NewLogBarrier(p, paperModel(), o, newRand()))(t)
	return l
}

// An offer is drawn from q, and its probability is its propensity: they sum to 1, and match each set's frequency.
func TestLogBarrierPropensity(t *testing.T) {
	l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) { o.Gamma = 5 })
	x, rng, pi := paperContext(3), newRand(), l.Policy()
	const draws = 8000
	count, propensity := map[string]int{}, map[string]float64{}
	for range draws {
		offer := pi.Offer(x, rng)
		key := fmt.Sprint(offer.Assortment)
		count[key]++
		propensity[key] = offer.Propensity
	}
	total := 0.0
	for key, p := range propensity {
		total += p
		if se := math.Sqrt(p * (1 - p) / draws); math.Abs(float64(count[key])/draws-p) > 5*se+1e-4 {
			t.Errorf("set %s: frequency %v, propensity %v", key, float64(count[key])/draws, p)
		}
	}
	wantNear(t, "the sum of the propensities that were met", total, 1, 1e-3)
}

// With position effects the program uses each set's revenue in its best order, in which it is shown.
func TestLogBarrierOrders(t *testing.T) {
	for _, revenues := range []bool{false, true} {
		l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) {
			o.Gamma, o.Oracle, o.PositionEffects = 20, "online", true
		})
		rng := newRand()
		for s := range 60 {
			x := paperContext(s)
			offer := l.Policy().Offer(x, rng)
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer,
				Choice: vitrine.Choice(rng.IntN(1 + min(1, len(offer.Order))))}))
		}
		x, pi := paperContext(99), l.Policy().(*logBarrier)
		if !revenues {
			x.Revenue = nil
		}
		var w barrierScratch
		pi.distribution(&w, x)
		u, gamma := make([]float64, x.NumItems()), pi.PlaceEffects()
		pi.Utilities(u, x)
		if len(gamma) != paperSize || gamma[1] == 0 {
			t.Fatalf("effects %v", gamma)
		}
		best := map[string]float64{}
		for s := range w.sets.Len() {
			want := 0.0
			for order := range orders(w.sets.At(s)) {
				want = max(want, vitrine.OrderedRevenue(order, u, gamma, x.Revenue))
			}
			wantNear(t, "the revenue of a set", w.revenue[s], want, 1e-12)
			best[fmt.Sprint(w.sets.At(s))] = want
		}
		for range 200 {
			offer := pi.Offer(x, rng)
			wantNear(t, "the revenue of the order", vitrine.OrderedRevenue(offer.Order, u, gamma, x.Revenue),
				best[fmt.Sprint(offer.Assortment)], 1e-12)
		}
	}
}

// The best order of a set equals an exhaustive search's, whatever the signs of its gains and effects.
func TestBestOrder(t *testing.T) {
	rng := newRand()
	var b bestOrder
	for range 400 {
		s := vitrine.Assortment{0, 2, 3, 5}[:rng.IntN(5)]
		u, r, gamma := make([]float64, 6), make([]float64, 6), []float64{0}
		for i := range u {
			u[i], r[i] = 2*rng.NormFloat64(), rng.Float64()*rng.Float64()
		}
		for range rng.IntN(4) {
			gamma = append(gamma, rng.NormFloat64())
		}
		want := 0.0
		for order := range orders(s) {
			want = max(want, vitrine.OrderedRevenue(order, u, gamma, r))
		}
		got := b.of(s, u, gamma, r)
		expect.List(fatal.T(t), slices.Sorted(slices.Values(got)), []int(s), "order", got, "of", s)
		wantNear(t, "revenue", vitrine.OrderedRevenue(got, u, gamma, r), want, 1e-12)
	}
}

// q is the solution of the program of the estimate, with γ_t = γ√t.
func TestLogBarrierWeighsByTheSquareRootOfTime(t *testing.T) {
	l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) { o.Steps = 0 })
	for s, r := range linearHistory(t, 20) {
		wantNear(t, "γ_t", l.Policy().(*logBarrier).gamma(paperItems), 10*math.Sqrt(float64(s+1)), 1e-12)
		observeAll(t, l, []vitrine.Round{r})
	}
}

// Zhang and Luo (2024), Equation 5: in epoch m the barrier weighs (K+1)⁴/γ_m with γ_m = max{1, √(N (K+1)⁴ /
// Err(2^{m−2}))}. At K = 3 and N = 8, with Err(n) = 21c/n for d_w = 21, the root is √(2048 n/(21c)); the error is
// unknown in the first epoch.
func TestLogBarrierConstantsOfTheTheory(t *testing.T) {
	for _, c := range []float64{0.01, 1, 1000} {
		l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) {
			o.Steps, o.Constants, o.ErrConstant = 0, "theory", c
		})
		for s, r := range linearHistory(t, 20) {
			want := 1.0
			if s > 0 {
				epoch := 1 + int(math.Log2(float64(s+1)))
				want = max(1, math.Sqrt(2048*math.Pow(2, float64(epoch-2))/(21*c)))
			}
			wantNear(t, "γ_m", 256*l.Policy().(*logBarrier).gamma(8), want, 1e-12)
			observeAll(t, l, []vitrine.Round{r})
		}
	}
}

// Equation 10: the online oracle uses one γ = K² √(N T / Reg(T)) for all rounds.
func TestLogBarrierConstantsOfTheTheoryOnline(t *testing.T) {
	l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) {
		o.Constants, o.Oracle, o.ErrConstant, o.ErrRate = "theory", "online", 0.1, 0.5
	})
	regret := 2.1 * math.Sqrt(paperRounds) // 21 · 0.1 · √T
	for _, r := range linearHistory(t, 10) {
		wantNear(t, "γ", 256*l.Policy().(*logBarrier).gamma(8), 9*math.Sqrt(8*paperRounds/regret), 1e-12)
		observeAll(t, l, []vitrine.Round{r})
	}
}

// A request with a narrower family, or an empty one, is served from it.
func TestLogBarrierOfARequestsOwnFamily(t *testing.T) {
	pi := newLogBarrier(t, func(*Problem, *LogBarrierOptions) {}).Policy()
	x := paperContext(3)
	x.Feasible = assortment.AtMost(0)
	if offer := pi.Offer(x, newRand()); len(offer.Assortment) != 0 || offer.Propensity != 1 {
		t.Errorf("offer %v, want ∅ with propensity 1", offer)
	}
	family := fatal.Or(assortment.NewQuota(assortment.Rules{Items: x.NumItems(), Min: 2, Max: 2, Include: []int{1}}))(t)
	x.Feasible = family
	for range 20 {
		if offer := pi.Offer(x, newRand()); !family.Contains(offer.Assortment) {
			t.Errorf("offer %v is not in the request's family", offer)
		}
	}
}

// A problem of too many assortments is refused, by their number; a request that
// no problem announced is served by the greedy rule.
func TestLogBarrierRefusesWhatItCannotEnumerate(t *testing.T) {
	p := paperProblem()
	p.Items, p.MaxShown, p.Constraint = 100, 5, assortment.AtMost(5)
	_, err := NewLogBarrier(p, paperModel(), DefaultLogBarrierOptions(), newRand())
	expect.Prefix(err)(t, "there are 79375495 assortments of at most 5 of 100 items, "+
		"more than limit = 100000")
	l := newLogBarrier(t, func(_ *Problem, o *LogBarrierOptions) { o.Limit = 10 })
	x := paperContext(3)
	want, _ := assortment.Maximize(nil, l.p.Constraint, l.policyUtilities(x), x.Revenue)
	offer := l.Policy().Offer(x, newRand())
	if fmt.Sprint(offer.Assortment) != fmt.Sprint(want) || offer.Propensity != 1 {
		t.Errorf("offer %v, want the best set %v", offer, want)
	}
}

// A step of the program takes the cube of the number of items, so more than a thousand are refused, too.
func TestLogBarrierRefusesManyItems(t *testing.T) {
	p := paperProblem()
	p.Items, p.MaxShown, p.Constraint = 1001, 1, assortment.AtMost(1)
	expect.Prefix(NewLogBarrier(p, paperModel(), DefaultLogBarrierOptions(), newRand()))(t, "items = 1001: ")
	l := newLogBarrier(t, func(p *Problem, _ *LogBarrierOptions) { p.MaxShown, p.Constraint = 1, assortment.AtMost(1) })
	x := &vitrine.Context{Features: mat.NewDense(3000, paperFeatures, nil)}
	if offer := l.Policy().Offer(x, newRand()); offer.Propensity != 1 {
		t.Errorf("offer %v is drawn", offer)
	}
}

// policyUtilities are f_ŵ of all items.
func (l *LogBarrier) policyUtilities(x *vitrine.Context) []float64 {
	u := make([]float64, x.NumItems())
	l.model.Utilities(u, l.params(), x.Features)
	return u
}

// The first step of the online oracle is ŵ − 2η (λI + ηG)⁻¹ ∇, with the gradient
// and the information of the round's own likelihood.
func TestOnlineOracleSteps(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Oracle, o.Lambda, o.Step = "online", 3, 0.7
	for _, r := range linearHistory(t, 10) {
		l := newPaperEpsGreedy(t, o)
		w := l.params()
		round := mle.NewChoices(paperFeatures)
		round.Append(r.Context.Features, r.Offer.Assortment, r.Choice)
		nll := &mle.NLL{Model: l.model, Choices: round}
		grad := mat.NewVecDense(len(w), nil)
		nll.Gradient(grad.RawVector().Data, w)
		var h mat.Dense
		h.Scale(o.Step, nll.Fisher(nil, w))
		for j := range w {
			h.Set(j, j, h.At(j, j)+o.Lambda)
		}
		var step mat.VecDense
		fatal.If(t, step.SolveVec(&h, grad))
		observeAll(t, l, []vitrine.Round{r})
		for j, got := range l.params() {
			wantNear(t, "ŵ", got, w[j]-2*o.Step*step.AtVec(j), 1e-10)
		}
	}
}
