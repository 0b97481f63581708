package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// The tests of this file check ONL against the lines of Algorithm 1 and the
// lemmas of the paper, each computed again from the paper's formula.

const (
	paperItems    = 8
	paperFeatures = 3
	paperSize     = 3
	paperRounds   = 120
)

func paperProblem() Problem {
	return Problem{NumFeatures: paperFeatures, MaxShown: paperSize, Rounds: paperRounds,
		Constraint: assortment.AtMost(paperSize)}
}

func paperOptions() ONLOptions {
	o := DefaultONLOptions()
	o.Warmup, o.Lambda, o.Beta, o.Tolerance = 20, 2, 3, 1e-12
	return o
}

// history is a test's record of a run, round by round.
type history struct {
	rounds []vitrine.Round
	w      [][]float64 // ŵ_t before the round, nil in Phase I
}

// live plays a learner against customers of a cosine utility.
func live(t testing.TB, l *ONL, rounds int, each func(x *vitrine.Context, pi vitrine.Policy)) history {
	t.Helper()
	var h history
	for s := range rounds {
		x := paperContext(s)
		pi := l.Policy()
		if each != nil {
			each(x, pi)
		}
		var w []float64
		if l.est != nil {
			w = append(w, l.est.Params()...)
		}
		offer := pi.Offer(x, stream.New(1, s, stream.Policy))
		rng := stream.New(1, s, stream.Customers)
		u, shock := make([]float64, paperItems), make([]float64, paperItems+1)
		for i := range u {
			u[i] = math.Cos(2 * x.Features.At(i, 0))
		}
		vitrine.DrawShocks(shock, rng)
		r := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}
		fatal.If(t, l.Observe(r))
		h.rounds, h.w = append(h.rounds, r), append(h.w, w)
	}
	return h
}

func paperContext(s int) *vitrine.Context {
	rng := stream.New(1, s, stream.Contexts)
	x := &vitrine.Context{Features: mat.NewDense(paperItems, paperFeatures, nil), Revenue: make([]float64, paperItems)}
	for i := range paperItems {
		x.Revenue[i] = rng.Float64()
		for j := range paperFeatures {
			x.Features.Set(i, j, rng.NormFloat64())
		}
	}
	return x
}

func newPaperONL(t testing.TB, m utility.Model, o ONLOptions) *ONL {
	t.Helper()
	l := fatal.Or(NewONL(paperProblem(), m, o, stream.New(1, 0, stream.Learner)))(t)
	return l
}

func paperModel() utility.Model {
	return utility.NewMLP(paperFeatures, []int{4}, utility.Sigmoid)
}

// gradients returns f_w and ∇f_w of the items of s.
func gradients(m utility.Model, w []float64, x *vitrine.Context, s vitrine.Assortment) ([]float64, *mat.Dense) {
	var xs scratch.Matrix
	u, g := make([]float64, len(s)), mat.NewDense(len(s), m.NumParams(), nil)
	rows := xs.Rows(x.Features, s)
	m.Utilities(u, w, rows)
	m.Gradients(g, w, rows)
	return u, g
}

func wantNear(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*(1+math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Algorithm 1, lines 2–4: Phase I offers S ~ Unif(𝒮) for t_0 rounds, and learns nothing before it ends.
func TestLine3PhaseIIsUniform(t *testing.T) {
	l := newPaperONL(t, paperModel(), paperOptions())
	// |𝒮 \ {∅}| = C(8,1) + C(8,2) + C(8,3) = 92
	h := live(t, l, l.o.Warmup, nil)
	for s, r := range h.rounds {
		wantNear(t, "the propensity", r.Offer.Propensity, 1.0/92, 1e-12)
		if h.w[s] != nil {
			t.Fatalf("round %d of Phase I has an estimate", s+1)
		}
	}
	if l.est == nil {
		t.Error("Phase II does not begin after t_0 rounds")
	}
}

// Algorithm 1, line 5: ŵ_0 minimises the negative log-likelihood of Phase I, by Adam from the initial weights, as in
// the appendix.
func TestLine5PilotByAdam(t *testing.T) {
	m, o := paperModel(), paperOptions()
	l := newPaperONL(t, m, o)
	h := live(t, l, o.Warmup, nil)

	want := make([]float64, m.NumParams())
	m.Init(want, stream.New(1, 0, stream.Learner))
	c := mle.NewChoices(paperFeatures)
	for _, r := range h.rounds {
		c.Append(r.Context.Features, r.Offer.Assortment, r.Choice)
	}
	mle.Adam{Rate: 1e-4, Steps: 2000}.Minimize(&mle.NLL{Model: m, Choices: c}, want)
	for j, w := range l.w0 {
		wantNear(t, "ŵ_0", w, want[j], 0)
	}
}

// The "map" pilot is a stationary point of the penalised likelihood.
func TestLine5PilotByMAP(t *testing.T) {
	m, o := paperModel(), paperOptions()
	o.Pilot, o.PilotRidge = "map", 2
	l := newPaperONL(t, m, o)
	h := live(t, l, o.Warmup, nil)
	c := mle.NewChoices(paperFeatures)
	for _, r := range h.rounds {
		c.Append(r.Context.Features, r.Offer.Assortment, r.Choice)
	}
	grad := make([]float64, m.NumParams())
	(&mle.NLL{Model: m, Choices: c, Ridge: 2}).Gradient(grad, l.w0)
	for _, g := range grad {
		wantNear(t, "∇L(ŵ_0)", g, 0, 1e-2)
	}
}

// Algorithm 1, lines 6 and 9: at the first round of Phase II there is no data
// in ℓ_t, so V = λI and ŵ is the centre ŵ_0.
func TestLine6And9PhaseIIBeginsAtThePilot(t *testing.T) {
	for _, update := range []string{"mle", "online"} {
		o := paperOptions()
		o.Update = update
		l := newPaperONL(t, paperModel(), o)
		live(t, l, o.Warmup, nil)
		for j, w := range l.est.Params() {
			wantNear(t, "ŵ_{t_0+1}", w, l.w0[j], 0)
		}
		v := l.v.Sym(nil)
		for i := range l.model.NumParams() {
			for j := range i + 1 {
				want := 0.0
				if i == j {
					want = o.Lambda
				}
				wantNear(t, "V_{t_0}", v.At(i, j), want, 0)
			}
		}
	}
}

// Explore-then-commit (tex 410): after Phase I every offer is the best one under the pilot.
func TestCommittedOffersAreThePilots(t *testing.T) {
	m, o := paperModel(), paperOptions()
	o.Beta, o.Curvature, o.Update = 0, 0, "none"
	l := newPaperONL(t, m, o)
	h := live(t, l, o.Warmup+30, nil)
	u := make([]float64, paperItems)
	for k, r := range h.rounds[o.Warmup:] {
		pilot := h.w[o.Warmup]
		m.Utilities(u, pilot, r.Context.Features)
		best, _ := assortment.Maximize(nil, paperProblem().Constraint, u, r.Context.Revenue)
		if !slices.Equal(best, r.Offer.Assortment) || !slices.Equal(h.w[o.Warmup+k], pilot) {
			t.Errorf("offers %v at %v, and the pilot's best is %v", r.Offer.Assortment, h.w[o.Warmup+k], best)
		}
	}
}

// Algorithm 1, line 9, by its stationarity condition (appendix, proof of the
// confidence set):
//
//	Σ_s Σ_{i∈S_s} p̂_si(ŵ_t) ∇f_ŵs(x_si) + λ(ŵ_t − ŵ_0) = Σ_s Σ_{i∈S_s} y_si ∇f_ŵs(x_si)
func TestLine9GradientVanishesAtTheMinimiser(t *testing.T) {
	m := paperModel()
	l := newPaperONL(t, m, paperOptions())
	h := live(t, l, 80, nil)
	w := l.est.Params()
	grad := mat.NewVecDense(len(w), nil)
	for j := range w {
		grad.SetVec(j, l.o.Lambda*(w[j]-l.w0[j]))
	}
	outside := 0
	for s := l.o.Warmup; s < len(h.rounds); s++ {
		r, ws := h.rounds[s], h.w[s]
		if r.Choice == vitrine.Outside {
			outside++
		}
		u, g := gradients(m, ws, r.Context, r.Offer.Assortment)
		diff := mat.NewVecDense(len(w), nil)
		diff.SubVec(mat.NewVecDense(len(w), w), mat.NewVecDense(len(w), ws))
		for k := range u {
			u[k] += mat.Dot(g.RowView(k), diff)
		}
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		for k := range u {
			residual := p[k+1]
			if int(r.Choice) == k+1 {
				residual--
			}
			grad.AddScaledVec(grad, residual, g.RowView(k))
		}
	}
	if outside == 0 {
		t.Fatal("the history has no round in which nobody buys: the test would not see a loss without them")
	}
	for j := range w {
		wantNear(t, "∇ℓ_t(ŵ_t)", grad.AtVec(j), 0, 1e-5)
	}
}

// Algorithm 1, lines 10 and 11: the optimistic utilities, with V inverted
// densely, and the offer by exhaustive search over 𝒮.
func TestLine10And11OptimisticOffer(t *testing.T) {
	m, o := paperModel(), paperOptions()
	o.Curvature = 0.25
	l := newPaperONL(t, m, o)
	all := make(vitrine.Assortment, paperItems)
	for i := range all {
		all[i] = i
	}
	live(t, l, 60, func(x *vitrine.Context, pi vitrine.Policy) {
		if l.est == nil {
			return
		}
		beta := o.Beta * float64(l.rounds+1) / paperRounds
		var inv mat.Dense
		fatal.If(t, inv.Inverse(l.v.Sym(nil)))
		z, g := gradients(m, l.est.Params(), x, all)
		for i := range z {
			var vg mat.VecDense
			vg.MulVec(&inv, g.RowView(i))
			z[i] += math.Sqrt(beta)*math.Sqrt(mat.Dot(g.RowView(i), &vg)) + beta*o.Curvature/o.Lambda
		}
		for i, got := range pi.(*optimistic).z.Utilities(nil, x) {
			wantNear(t, "z", got, z[i], 1e-10)
		}
		best := -1.0
		for set := range 1 << paperItems {
			var s vitrine.Assortment
			for i := range paperItems {
				if set>>i&1 == 1 {
					s = append(s, i)
				}
			}
			if len(s) <= paperSize {
				best = max(best, vitrine.ExpectedRevenue(s, z, x.Revenue))
			}
		}
		offer := pi.Offer(x, nil)
		wantNear(t, "R̃(S_t)", vitrine.ExpectedRevenue(offer.Assortment, z, x.Revenue), best, 1e-12)
		wantNear(t, "the propensity", offer.Propensity, 1, 0)
	})
}

// Algorithm 1, line 12: V_{t+1} = V_t + Σ_{i∈S_t} ∇f_ŵt(x_ti) ∇f_ŵt(x_ti)ᵀ.
func TestLine12GramMatrix(t *testing.T) {
	m := paperModel()
	l := newPaperONL(t, m, paperOptions())
	h := live(t, l, 70, nil)
	want := mat.NewSymDense(m.NumParams(), nil)
	for j := range m.NumParams() {
		want.SetSym(j, j, l.o.Lambda)
	}
	for s := l.o.Warmup; s < len(h.rounds); s++ {
		_, g := gradients(m, h.w[s], h.rounds[s].Context, h.rounds[s].Offer.Assortment)
		for k := range h.rounds[s].Offer.Assortment {
			want.SymRankOne(want, 1, g.RowView(k))
		}
	}
	if !mat.EqualApprox(l.v.Sym(nil), want, 1e-10) {
		t.Error("V_t is not λI plus the outer products of the gradients")
	}
}

// Theorem (Regret Bound): β_t is increasing, and reaches β_T at T.
func TestConfidenceRadiusGrowsToBetaT(t *testing.T) {
	l := newPaperONL(t, paperModel(), paperOptions())
	last := 0.0
	live(t, l, paperRounds-1, func(*vitrine.Context, vitrine.Policy) {
		if b := l.beta(); b <= last {
			t.Errorf("β_t = %v after %v", b, last)
		} else {
			last = b
		}
	})
	wantNear(t, "β_T", l.beta(), l.o.Beta, 1e-15)
}

// sine is f_w(x) = sin(wᵀx), with the Hessian −sin(wᵀx) x xᵀ of norm at most ‖x‖²: a family with a known C_h.
type sine struct{ d int }

func (m sine) NumFeatures() int { return m.d }

func (m sine) NumParams() int { return m.d }

func (m sine) Init(w []float64, rng *rand.Rand) {
	for j := range w {
		w[j] = rng.NormFloat64()
	}
}

func (m sine) Utilities(dst, w []float64, x *mat.Dense) {
	for i := range dst {
		dst[i] = math.Sin(mat.Dot(x.RowView(i), mat.NewVecDense(m.d, w)))
	}
}

func (m sine) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n, _ := x.Dims()
	for i := range n {
		c := math.Cos(mat.Dot(x.RowView(i), mat.NewVecDense(m.d, w)))
		for j := range m.d {
			dst.Set(i, j, c*x.At(i, j))
		}
	}
}

// Lemma (Optimistic utility): where w* is in the confidence set,
//
//	0 ≤ z_ti − f_w*(x_ti) ≤ 2√β_t ‖∇f_ŵt(x_ti)‖_{V_t⁻¹} + 2β_t C_h/λ
//
// for every w* in the set, hence for random ones on its border.
func TestLemmaOptimisticUtility(t *testing.T) {
	m, o := sine{paperFeatures}, paperOptions()
	o.Warmup, o.Beta = 0, 4
	for s := range paperRounds { // C_h = max ‖x‖²
		x := paperContext(s).Features
		for i := range paperItems {
			o.Curvature = max(o.Curvature, mat.Dot(x.RowView(i), x.RowView(i)))
		}
	}
	l := newPaperONL(t, m, o)
	rng := stream.New(2, 0, stream.Policy)
	live(t, l, 100, func(x *vitrine.Context, pi vitrine.Policy) {
		beta := l.beta()
		root := fatal.Or(l.v.Inverse().Cholesky())(t)
		z := pi.(*optimistic).z.Utilities(nil, x)
		norms, g := make([]float64, paperItems), mat.NewDense(paperItems, m.d, nil)
		m.Gradients(g, l.est.Params(), x.Features)
		l.v.Inverse().Norms(norms, g)
		for range 20 {
			xi := mat.NewVecDense(m.d, nil)
			for j := range m.d {
				xi.SetVec(j, rng.NormFloat64())
			}
			xi.ScaleVec(math.Sqrt(beta)/mat.Norm(xi, 2), xi)
			var truth mat.VecDense // ŵ + L ξ with LLᵀ = V⁻¹ and ‖ξ‖² = β: ‖w* − ŵ‖²_V = β
			truth.MulVec(root, xi)
			truth.AddVec(&truth, mat.NewVecDense(m.d, l.est.Params()))
			f := make([]float64, paperItems)
			m.Utilities(f, truth.RawVector().Data, x.Features)
			for i := range f {
				gap, bound := z[i]-f[i], 2*math.Sqrt(beta)*norms[i]+2*beta*o.Curvature/o.Lambda
				if gap < -1e-12 || gap > bound+1e-12 {
					t.Fatalf("round %d: z − f* = %v, outside [0, %v]", l.rounds+1, gap, bound)
				}
			}
		}
	})
}

// If f is linear, linearising loses nothing: with ŵ_0 = 0, no Phase I and C_h = 0, ONL-MNL is UCB-MNL, estimate and
// Gram matrix.
func TestLinearUtilitiesMakeItUCB(t *testing.T) {
	o := paperOptions()
	o.Warmup, o.Lambda = 0, 1
	model := utility.NewLinear(paperFeatures, false)
	l := newPaperONL(t, model, o)
	clear(l.w0)
	l.est = l.newEstimator()
	ucb := fatal.Or(NewUCB(paperProblem(), UCBOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 1}}))(t)
	for _, r := range live(t, l, 100, nil).rounds {
		fatal.If(t, ucb.Observe(r))
	}
	for j, w := range l.est.Params() {
		// UCB stops at a decrement² of 1e-6, so ‖ŵ − θ̂‖ is below 1e-3.
		wantNear(t, "ŵ", w, ucb.est.Params()[j], 1e-3)
	}
	if !mat.EqualApprox(l.v.Sym(nil), ucb.v.Sym(nil), 1e-12) {
		t.Error("V differs from UCB-MNL's")
	}
}

// The plug-in κ is the least p(0|S)p(i|S) at the estimate of its time.
func TestKappaOfTheData(t *testing.T) {
	m := paperModel()
	l := newPaperONL(t, m, paperOptions())
	if l.Diagnostics() != nil {
		t.Error("κ is reported before there is data")
	}
	h := live(t, l, 60, nil)
	want := math.Inf(1)
	for s := l.o.Warmup; s < len(h.rounds); s++ {
		u, _ := gradients(m, h.w[s], h.rounds[s].Context, h.rounds[s].Offer.Assortment)
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		for _, pi := range p[1:] {
			want = min(want, p[0]*pi)
		}
	}
	wantNear(t, "κ", l.Diagnostics()["kappa"], want, 1e-12)
}
