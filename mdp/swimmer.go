package mdp

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/mle"
	"vitrine/utility"
)

// SwimmerOptions are how a [Swimmer] learns.
type SwimmerOptions struct {
	Algorithm string  // ucrl-mnl, ucrl-mnl-plus, rrl-mnl, orrl-mnl or onl-mdp
	Warmup    int     // t_0 of onl-mdp, in sessions of H moves with a choice
	Beta      float64 // β ≥ 0, the radius; greedy without
	Lambda    float64 // λ > 0
}

// algorithm is a learner of rivers.
type algorithm struct {
	core  func(s *Swimmer, rng *rand.Rand) (core, error) // how it estimates f
	clips bool                                           // whether it bounds Q by H
	bonus func(s *Swimmer, m *water) float64             // of a move
}

var algorithms = map[string]algorithm{
	"ucrl-mnl":      {newBatch, true, (*Swimmer).radius},
	"ucrl-mnl-plus": {newMirror, false, (*Swimmer).centred},
	"rrl-mnl":       {newGradient, true, (*Swimmer).sampled},
	"orrl-mnl":      {newMirror, true, (*Swimmer).sampledCentred},
	"onl-mdp":       {newONL("online"), false, (*Swimmer).radius},
}

// Swimmer learns a [River] by optimistic value iteration with one estimate for all steps, which it updates after every
// step. The reward and the reach of a move are known.
//
//	Q_h(s,a) = r(s,a) + Σ_s' P̂(s'|s,a) V_{h+1}(s') + bonus(s,a)     V_h(s) = min{max_a Q_h(s,a), H}
//
// With the gradient g of a state's utility relative to s⁰ (g = 0 for s⁰ itself), ḡ = g − Σ P̂ g, ξ ~ N(0, (Hβ)² A⁻¹),
// and maxima over the states in reach and m ≤ M:
//
//	ucrl-mnl       A = λI + Σ g gᵀ            Hβ max ‖g‖_{A⁻¹}
//	rrl-mnl        A = λI + (κ/2) Σ g gᵀ      max_m g*ᵀξ^m, g* the longest g
//	ucrl-mnl-plus  A = λI + Σ ∇²ℓ             Hβ Σ P̂ ‖ḡ‖_{A⁻¹} + 3Hβ² max ‖g‖²_{A⁻¹}
//	orrl-mnl       A = λI + Σ ∇²ℓ             Σ P̂ max_m ḡᵀξ^m + 3Hβ² max ‖g‖²_{A⁻¹}
//	onl-mdp        A = λI + Σ g gᵀ            Hβ max ‖g‖_{A⁻¹}
//
// ucrl-mnl is from Hwang and Oh (2023), and estimates by maximum likelihood; the next three are from Cho and others
// (2024; Equations 2–4, 104 and 5–7). These take linear f. onl-mdp estimates a [River]'s family as ONL-MNL
// ([bandit.ONL]). Its bonus bounds the error of Σ P V: along the line from one vector of utilities to another,
//
//	|d/dt Σ P_t V| = |Cov_{P_t}(V, Δu)| ≤ sd(V) sd(Δu) ≤ (H/2) max |Δu − c|   for every number c,
//
// and Δu relative to s⁰ is at most √β_t ‖g‖_{A⁻¹} on the confidence set, up to the curvature of f. β here takes the place
// of all factors of a radius besides H; every ξ serves all steps.
type Swimmer struct {
	o       SwimmerOptions
	kind    algorithm
	r       *River
	moves   int // in all sessions
	most    int // U = max |R|
	family  utility.Model
	core    core
	water   [][]water
	course  Course
	inverse gram.Inverse
	rng     *rand.Rand // of the present plan
	noise   *mat.Dense // M×d, its ξ; nil before the first
}

// water is a move as a swimmer sees it.
type water struct {
	*Move
	u, p   []float64  // at ŵ, of the other states and of all
	g, bar *mat.Dense // (|R|−1)×d and |R|×d, of g and ḡ
	norm   []float64  // |R|, scratch
	bonus  float64
}

// core estimates the parameters of relative utilities. estimate returns ŵ and A, or nil before the first estimate.
type core interface {
	observe(m *water, y vitrine.Choice) error
	estimate() ([]float64, *gram.Matrix)
}

// NewSwimmer returns a swimmer without experience, for a number of sessions. The weights of a network start from rng.
func NewSwimmer(r *River, o SwimmerOptions, sessions int, rng *rand.Rand) (*Swimmer, error) {
	kind, ok := algorithms[o.Algorithm]
	if !ok {
		return nil, fmt.Errorf("there is no algorithm %q: name %s", o.Algorithm,
			strings.Join(slices.Sorted(maps.Keys(algorithms)), ", "))
	}
	if !(o.Beta >= 0 && o.Lambda > 0 && o.Beta+o.Lambda < math.Inf(1)) {
		return nil, fmt.Errorf("beta = %v, lambda = %v: must be finite, beta at least 0 and lambda positive", o.Beta, o.Lambda)
	}
	s := &Swimmer{o: o, kind: kind, r: r, moves: sessions * r.Horizon, course: r.newCourse()}
	s.family = Relative(utility.NewLinear(r.Family.NumFeatures(), false))
	if o.Algorithm == "onl-mdp" {
		s.family = Relative(r.Family)
	}
	d := s.family.NumParams()
	for state := range r.Moves {
		var moves []water
		for a := range r.Moves[state] {
			m := water{Move: &r.Moves[state][a]}
			n := len(m.Reach)
			m.p, s.most = slices.Repeat([]float64{1}, n), max(s.most, n)
			if n > 1 {
				m.u, m.norm, m.g, m.bar = make([]float64, n-1), make([]float64, n), mat.NewDense(n-1, d, nil),
					mat.NewDense(n, d, nil)
				s.family.Gradients(m.g, make([]float64, d), m.Context.Features)
			}
			moves = append(moves, m)
		}
		s.water = append(s.water, moves)
	}
	var err error
	if s.core, err = kind.core(s, rng); err != nil {
		return nil, err
	}
	return s, nil
}

// Plan returns the course of the coming session. It is the swimmer's own and valid until the next call. As long as there
// is no estimate, as in Phase I of ONL-MNL, actions are drawn uniformly, and so are they among the best ones.
func (s *Swimmer) Plan(rng *rand.Rand) Course {
	w, a := s.core.estimate()
	if w == nil {
		for _, actions := range s.course {
			for state := range actions {
				actions[state] = rng.IntN(len(s.water[state]))
			}
		}
		return s.course
	}
	s.look(w, a, rng)
	top := float64(s.r.Horizon)
	backward(s.r.Horizon, len(s.water), func(h, state int, next []float64) float64 {
		best, ties := math.Inf(-1), 0
		for k := range s.water[state] {
			m := &s.water[state][k]
			q := m.value(m.p, next) + m.bonus
			if s.kind.clips {
				q = min(q, top)
			}
			if q > best {
				best, ties = q, 0
			}
			if q == best {
				if ties++; ties == 1 || rng.IntN(ties) == 0 {
					s.course[h][state] = k
				}
			}
		}
		return min(best, top)
	})
	return s.course
}

// look computes the probabilities and bonuses of all moves at ŵ.
func (s *Swimmer) look(w []float64, a *gram.Matrix, rng *rand.Rand) {
	s.inverse, s.noise, s.rng = a.Inverse(), nil, rng
	for _, moves := range s.water {
		for k := range moves {
			if m := &moves[k]; m.Context != nil {
				utility.Linearize(s.family, m.u, m.g, w, m.Context.Features)
				vitrine.Probabilities(m.p, m.u)
				if s.o.Beta > 0 {
					m.bonus = s.kind.bonus(s, m)
				}
			}
		}
	}
}

// longest returns the index of the longest g in the norm of A⁻¹, and its length.
func (s *Swimmer) longest(m *water) (k int, norm float64) {
	s.inverse.Norms(m.norm[1:], m.g)
	k = floats.MaxIdx(m.norm[1:])
	return k, m.norm[1+k]
}

func (s *Swimmer) radius(m *water) float64 {
	_, norm := s.longest(m)
	return s.scale() * norm
}

// scale returns Hβ.
func (s *Swimmer) scale() float64 { return float64(s.r.Horizon) * s.o.Beta }

// second returns the second-order term 3Hβ² max ‖g‖².
func (s *Swimmer) second(m *water) float64 {
	_, norm := s.longest(m)
	return float64(3 * s.scale() * s.o.Beta * norm * norm)
}

// centre stores ḡ of all states in reach.
func (m *water) centre() {
	mean := m.bar.RawRowView(0)
	clear(mean)
	for k, p := range m.p[1:] {
		kernel.Axpy(mean, -p, m.g.RawRowView(k))
	}
	for k := range m.u {
		floats.AddTo(m.bar.RawRowView(k+1), m.g.RawRowView(k), mean)
	}
}

func (s *Swimmer) centred(m *water) float64 {
	bonus := s.second(m)
	m.centre()
	s.inverse.Norms(m.norm, m.bar)
	return bonus + float64(s.scale()*kernel.Dot(m.p, m.norm))
}

func (s *Swimmer) sampled(m *water) float64 {
	k, _ := s.longest(m)
	return s.highest(m.g.RawRowView(k), 1)
}

func (s *Swimmer) sampledCentred(m *water) float64 {
	bonus := s.second(m)
	m.centre()
	for k, p := range m.p {
		bonus += float64(p * s.highest(m.bar.RawRowView(k), s.most))
	}
	return bonus
}

// highest returns max_m gᵀξ^m over M = ⌈1 − log(H·states)/log Φ(1)⌉ draws, the same for all moves of a plan.
func (s *Swimmer) highest(g []float64, states int) float64 {
	if s.noise == nil {
		l, err := s.inverse.Cholesky()
		if err != nil {
			panic(err) // A ≥ λI
		}
		d := len(g)
		m := int(math.Ceil(1 - math.Log(float64(s.r.Horizon*states))/math.Log(math.Erfc(-1/math.Sqrt2)/2)))
		z := mat.NewDense(m, d, nil)
		z.Apply(func(int, int, float64) float64 { return s.scale() * s.rng.NormFloat64() }, z)
		s.noise = mat.NewDense(m, d, nil)
		s.noise.Mul(z, l.T())
	}
	highest, m := math.Inf(-1), s.noise.RawMatrix()
	for i := range m.Rows {
		highest = max(highest, kernel.Dot(g, m.Data[i*m.Stride:][:m.Cols]))
	}
	return highest
}

// Observe learns from a move: the action a in state t led to the state next. It returns an error, and the swimmer stays
// as it was, if the river has no such action or the state is out of its reach.
func (s *Swimmer) Observe(t, a, next int) error {
	if t < 0 || t >= len(s.water) || a < 0 || a >= len(s.water[t]) {
		return fmt.Errorf("the river has no action %d in state %d", a, t)
	}
	m := &s.water[t][a]
	y := slices.Index(m.Reach, next)
	if y < 0 {
		return fmt.Errorf("action %d in state %d led to state %d: must be one of %v", a, t, next, m.Reach)
	}
	if m.Context == nil {
		return nil
	}
	return s.core.observe(m, vitrine.Choice(y))
}

// batch is the maximum likelihood estimate with the Gram matrix of all moves.
type batch struct {
	*mle.Newton
	a *gram.Matrix
}

func newBatch(s *Swimmer, _ *rand.Rand) (core, error) {
	d := s.family.NumParams()
	return batch{mle.NewNewton(s.o.Lambda, make([]float64, d), 1e-6), gram.New(d, s.o.Lambda)}, nil
}

func (b batch) observe(m *water, y vitrine.Choice) error {
	b.Append(make([]float64, len(m.u)), m.g, y)
	addRows(b.a, 1, m.g)
	return nil
}

func (b batch) estimate() ([]float64, *gram.Matrix) {
	b.Minimize()
	return b.Params(), b.a
}

// addRows adds c Σ g gᵀ.
func addRows(a *gram.Matrix, c float64, g *mat.Dense) {
	n, _ := g.Dims()
	for k := range n {
		a.Add(c, g.RawRowView(k))
	}
}

// mirror is online mirror descent.
type mirror struct{ *mle.Online }

func newMirror(s *Swimmer, _ *rand.Rand) (core, error) {
	eta := float64(math.Log(float64(s.most))/2) + 2 // as of OFU-MNL+
	return mirror{mle.NewOnline(s.o.Lambda, make([]float64, s.family.NumParams()), eta, eta)}, nil
}

func (o mirror) observe(m *water, y vitrine.Choice) error {
	o.Update(make([]float64, len(m.u)), m.g, y)
	return nil
}

func (o mirror) estimate() ([]float64, *gram.Matrix) { return o.Params(), o.Hessian() }

// gradient takes the steps θ − A⁻¹∇ℓ, without Hessians.
type gradient struct {
	theta, slope, step []float64
	kappa              float64
	a                  *gram.Matrix
}

func newGradient(s *Swimmer, _ *rand.Rand) (core, error) {
	d := s.family.NumParams()
	return &gradient{make([]float64, d), make([]float64, d), make([]float64, d), s.r.Kappa(), gram.New(d, s.o.Lambda)},
		nil
}

func (l *gradient) observe(m *water, y vitrine.Choice) error {
	for k := range m.u {
		m.u[k] = kernel.Dot(m.g.RawRowView(k), l.theta)
	}
	vitrine.Probabilities(m.p, m.u)
	clear(l.slope)
	for k := range m.u {
		p := m.p[k+1]
		if int(y) == k+1 {
			p--
		}
		kernel.Axpy(l.slope, p, m.g.RawRowView(k))
	}
	addRows(l.a, l.kappa/2, m.g)
	l.a.Solve(l.step, l.slope)
	kernel.Axpy(l.theta, -1, l.step)
	return nil
}

func (l *gradient) estimate() ([]float64, *gram.Matrix) { return l.theta, l.a }

// onl estimates as ONL-MNL. All states in reach but s⁰ are the page.
type onl struct{ *bandit.ONL }

func newONL(update string) func(s *Swimmer, rng *rand.Rand) (core, error) {
	return func(s *Swimmer, rng *rand.Rand) (core, error) {
		page := s.most - 1
		p := bandit.Problem{NumFeatures: s.family.NumFeatures(), Items: page, MaxShown: page, Rounds: s.moves,
			Constraint: assortment.AtMost(page)}
		o := bandit.DefaultONLOptions()
		o.Warmup, o.Pilot, o.Update, o.Lambda = s.o.Warmup*s.r.Horizon, "map", update, s.o.Lambda
		if _, ok := s.r.Family.(utility.LinearInParams); ok {
			o.Pilot, o.PilotWeights = "given", make([]float64, s.family.NumParams()) // all tangents are the same
		}
		l, err := bandit.NewONL(p, s.family, o, rng)
		return onl{l}, err
	}
}

func (l onl) observe(m *water, y vitrine.Choice) error {
	page := make(vitrine.Assortment, len(m.u))
	for k := range page {
		page[k] = k
	}
	return l.Observe(vitrine.Round{Context: m.Context, Offer: vitrine.Offer{Assortment: page}, Choice: y})
}

func (l onl) estimate() ([]float64, *gram.Matrix) {
	e, _ := l.Ellipsoid()
	return e.Center, e.Gram
}
