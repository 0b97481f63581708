package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// FeelGoodOptions are the options of Feel-Good Thompson sampling.
type FeelGoodOptions struct {
	// "squared" is Equation 29 of Zhang and Luo (2024), with η = 1 and their η as λ.
	Loss string `toml:"loss" range:"squared|log" doc:"squared error of the choice probabilities over 8K, or the log loss"`
	// A smaller ρ would draw parameters beyond 10³, and would be lost to rounding next to squares of
	// [vitrine.MaxUnscaled].
	Ridge    float64 `toml:"ridge" range:"[1e-6, inf)" doc:"ρ, the precision of the prior w ~ N(0, I/ρ)"`
	Eta      float64 `toml:"eta" range:"(0, inf)" doc:"η, the weight of the loss: of the log loss 1 is the likelihood"`
	FeelGood float64 `toml:"feel_good" range:"[0, inf)" doc:"λ, the weight of the largest expected revenue; 0 is Thompson sampling"`
	Moves    int     `toml:"moves" range:"[1, 1000]" doc:"the moves of the chain each round"`
	// The order of a round's offer says which place each item had.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
}

// DefaultFeelGoodOptions returns the loss of Equation 29, a standard normal prior and a chain
// of 10 moves a round.
func DefaultFeelGoodOptions() FeelGoodOptions {
	return FeelGoodOptions{Loss: "squared", Ridge: 1, Eta: 1, FeelGood: 0.1, Moves: 10}
}

// FeelGood is Feel-Good Thompson sampling (Zhang 2022; for assortments Zhang and Luo 2024): it offers the best
// assortment under one draw of the parameters,
//
//	w_t ~ π_t(w) ∝ exp(−(ρ/2)‖w‖² − Σ_{s<t} (η ℓ_s(w) − λ max_S R_s(S; w)))
//	S_t = argmax_S R_t(S; w_t)
//
// where ℓ_s is the loss of round s, over the items that were offered. The term with λ favours parameters that promise a
// high revenue. Zhang and Luo's Equation 29 uses the squared error of the choice probabilities, and their regret bound
// holds for it; the log loss gives another algorithm:
//
//	ℓ_s(w) = 1/(8K) Σ_{i∈S_s} (p(i | S_s, w) − 1{i = i_s})²    or    −log p(i_s | S_s, w)
//
// Their prior is uniform on a class, with η = 1 here. With position effects R_s is the revenue in the best order, which
// [assortment.MaximizeOrdered] finds.
//
// The draws come from a chain of [mle.Langevin] that continues for a number of moves after each round, with V⁻¹ as the
// guess of the covariance,
//
//	V = ρI + η Σ_s Σ_{i∈S_s} p(i | S_s, w_s) ∇f_{w_s}(x_si) ∇f_{w_s}(x_si)ᵀ        log loss
//	V = ρI + η/(4K) Σ_s Σ_{i∈S_s} ∇p(i | S_s, w_s) ∇p(i | S_s, w_s)ᵀ              squared
//
// and a step size that adapts towards [mle.TargetAcceptance]. A move costs a pass over the items of all rounds, so the
// method is not tractable, and no number of moves is known to suffice for a network. Diagnostics reports how well the
// chain moves.
type FeelGood struct {
	learner
	o     FeelGoodOptions
	model utility.Model
	shown places // the position effects; learner.places is 0, because rounds keep the items that were not shown

	seed     uint64 // of the chain's draws
	w        []float64
	past     *posterior
	v        *gram.Matrix
	step     float64 // h
	accepted float64 // the sum of the rounds' mean probabilities of acceptance

	tangent tangent // scratch
	offered scratch.Matrix
	probs   []float64
	mean    []float64
}

// NewFeelGood returns a learner at its first round, with its chain at initial
// weights from rng.
func NewFeelGood(p Problem, m utility.Model, o FeelGoodOptions, rng *rand.Rand) (*FeelGood, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if err := p.checkModel("NewFeelGood", m); err != nil {
		return nil, err
	}
	k := newPlaces(p, o.PositionEffects)
	l := &FeelGood{o: o, model: k.family(m), shown: k, step: 1}
	l.learner = learner{p: p, self: l, identity: p.identify("feel-good-ts", 1, utility.Identity(m), o)}
	l.w = make([]float64, l.model.NumParams())
	m.Init(l.w[:m.NumParams()], rng)
	l.seed = rng.Uint64()
	l.start()
	return l, nil
}

// start makes the posterior and V of no rounds.
func (l *FeelGood) start() {
	l.past = &posterior{
		model: l.model, family: l.p.Constraint, d: l.p.NumFeatures + int(l.shown), places: l.shown,
		ridge: l.o.Ridge, eta: l.o.Eta, feel: l.o.FeelGood,
	}
	if l.o.Loss == "squared" {
		l.past.squared = 1 / (8 * float64(l.p.MaxShown))
	}
	l.v = gram.New(l.model.NumParams(), l.o.Ridge)
}

// Observe implements vitrine.Learner.
func (l *FeelGood) Observe(r vitrine.Round) error {
	if err := l.past.check(r); err != nil {
		return err
	}
	return l.learner.Observe(r)
}

// learn implements algorithm. If the potential of a round is not finite, the chain could not go on, so the round counts
// as one without items.
func (l *FeelGood) learn(r vitrine.Round) {
	offered := l.shown.round(&l.offered, r)
	g := l.tangent.at(l.model, l.w, offered)
	if g != nil {
		l.probs = scratch.Grow(l.probs, len(l.tangent.u)+1)
		further := len(r.More)
		if l.past.squared > 0 {
			further = 0
		}
		mle.ExpectedTakes(l.probs, l.tangent.u, further)
		l.inform(g)
	}
	if g == nil && len(r.Offer.Assortment) > 0 || !l.past.finite(r, l.w) {
		l.past.rounds = append(l.past.rounds, pastRound{})
	} else {
		l.past.add(r, offered)
	}
	l.move()
}

// inform adds the information of a round to V. g holds the gradients of the offered items' utilities, which inform
// overwrites, and l.probs their probabilities, or the expected takes for the log loss. V is only a guess of the
// precision, and the squared error leaves further takes out.
func (l *FeelGood) inform(g *mat.Dense) {
	if l.past.squared == 0 {
		for k, p := range l.probs[1:] {
			l.v.Add(l.o.Eta*p, g.RawRowView(k))
		}
		return
	}
	// ∇p_k = p_k (g_k − ḡ)
	l.mean = scratch.Grow(l.mean, len(l.w))
	clear(l.mean)
	for k, p := range l.probs[1:] {
		floats.AddScaled(l.mean, p, g.RawRowView(k))
	}
	for k, p := range l.probs[1:] {
		row := g.RawRowView(k)
		floats.Sub(row, l.mean)
		l.v.Add(2*l.past.squared*l.o.Eta*p*p, row)
	}
}

// move runs the chain of a round, and adapts its step for the next.
func (l *FeelGood) move() {
	rate := l.chain().Run(l.past, l.w, l.o.Moves, stream.New(l.seed, l.rounds, stream.Learner), nil)
	l.accepted += rate
	l.step *= portable.Exp((rate - mle.TargetAcceptance) / math.Sqrt(float64(l.rounds)))
}

func (l *FeelGood) chain() *mle.Langevin {
	root, err := l.v.Inverse().Cholesky()
	if err != nil {
		// V ⪰ ρI is definite. If rounding spoils that, the prior's covariance has to do.
		root = mat.NewTriDense(len(l.w), mat.Lower, nil)
		for j := range l.w {
			root.SetTri(j, j, 1/math.Sqrt(l.o.Ridge))
		}
	}
	return &mle.Langevin{Root: root, Step: l.step}
}

// Diagnostics returns acceptance, the mean probability with which the chain accepted a move so far; step, its step
// size; and effective_size, the number of independent draws that the moves of a round are worth. It is the
// [mle.EffectiveSize] of the worst of the parameters and the potential, over the moves of 20 more rounds. Below 1, a
// round's draw depends on the previous draw.
func (l *FeelGood) Diagnostics() map[string]float64 {
	if l.rounds == 0 {
		return nil
	}
	const rounds = 20
	draws := make([][]float64, len(l.w)+1)
	rng := stream.New(l.seed, l.rounds+1, stream.Learner)
	l.chain().Run(l.past, append([]float64(nil), l.w...), rounds*l.o.Moves, rng, func(w []float64, u float64) {
		for j, v := range w {
			draws[j] = append(draws[j], v)
		}
		draws[len(w)] = append(draws[len(w)], u)
	})
	minimum := math.Inf(1)
	for _, x := range draws {
		minimum = min(minimum, mle.EffectiveSize(x))
	}
	return map[string]float64{"acceptance": l.accepted / float64(l.rounds), "step": l.step,
		"effective_size": minimum / rounds}
}

// freeze implements algorithm.
func (l *FeelGood) freeze() vitrine.Policy {
	return &drawn{newOnGreedy(l.p, l.model, slices.Clone(l.w), l.shown)}
}

// drawn is the greedy policy of drawn parameters, with position effects if they are learned.
type drawn struct{ onGreedy }

// Offer implements vitrine.Policy. The propensity is an integral over the posterior, without a closed form.
func (o *drawn) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	offer := o.greedy.Offer(x, rng)
	offer.Propensity = 0
	return offer
}

// fields implements algorithm.
func (l *FeelGood) fields(f *fields.Fields, rounds int) func() {
	n := *l
	if f.Reads() {
		n.start()
	}
	f.Uvarint(&n.seed)
	f.Vector(&n.w)
	f.Float(&n.step, &n.accepted)
	n.v.Fields(f)
	n.past.fields(f)
	f.Check(len(n.past.rounds) == rounds, "%d rounds, of which %d are counted", len(n.past.rounds), rounds)
	f.Check(n.step > 0, "the step is %v", n.step)
	return func() { *l = n }
}

// Reasons implements [Explainer].
func (o *drawn) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.greedy.Reasons(x, nil) // without drawing
	r.By = ByDraw
	return r
}
