package mdp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// River is an MNL-MDP (Hwang and Oh 2023): an action a of a swimmer in state s earns r(s,a), and the current chooses the
// next state among those in reach, R(s,a), by MNL:
//
//	P(s'|s,a) = exp f(φ(s,a,s')) / Σ_{t∈R(s,a)} exp f(φ(s,a,t))
//
// There is no outside option, so the first state in reach, s⁰, takes its place: the other states have the utilities
// f(φ(s,a,s')) − f(φ(s,a,s⁰)), of the family [Relative].
type River struct {
	Horizon, Start int
	Moves          [][]Move      // S×A
	Family         utility.Model // the family for a learner of f
}

// Move is an action in a state.
type Move struct {
	Reward  float64
	Reach   []int            // s⁰ and the other states in reach
	P       []float64        // their probabilities
	Context *vitrine.Context // a row φ(s,a,s'), φ(s,a,s⁰) for each other state; nil if only s⁰ is in reach
}

// value returns r(s,a) + Σ_s' P(s'|s,a) V(s') for probabilities of the states in reach.
func (m *Move) value(p, next []float64) float64 {
	q := m.Reward
	for k, t := range m.Reach {
		q += float64(p[k] * next[t])
	}
	return q
}

// Course holds the action of every step and state, H×S. It is a policy for one session.
type Course [][]int

func (r *River) newCourse() Course {
	c := make(Course, r.Horizon)
	for h := range c {
		c[h] = make([]int, len(r.Moves))
	}
	return c
}

// Solve returns an optimal course and its values V_h(s), (H+1)×S, by backward induction.
func (r *River) Solve() (Course, [][]float64) {
	course := r.newCourse()
	return course, backward(r.Horizon, len(r.Moves), func(h, s int, next []float64) float64 {
		q := r.values(s, next)
		course[h][s] = floats.MaxIdx(q)
		return floats.Max(q)
	})
}

// Value returns the values V_h(s) of a course, (H+1)×S.
func (r *River) Value(c Course) [][]float64 {
	return backward(r.Horizon, len(r.Moves), func(h, s int, next []float64) float64 {
		return r.values(s, next)[c[h][s]]
	})
}

// Uniform returns the values of actions drawn uniformly.
func (r *River) Uniform() [][]float64 {
	return backward(r.Horizon, len(r.Moves), func(_, s int, next []float64) float64 {
		q := r.values(s, next)
		return floats.Sum(q) / float64(len(q))
	})
}

// values returns the values of the actions in a state for the values of the next step.
func (r *River) values(s int, next []float64) (q []float64) {
	for _, m := range r.Moves[s] {
		q = append(q, m.value(m.P, next))
	}
	return q
}

// Kappa returns κ = min P(s'|s,a) P(t|s,a) over two states in reach.
func (r *River) Kappa() float64 {
	kappa := 1.0
	for _, moves := range r.Moves {
		for _, m := range moves {
			for i, p := range m.P {
				for _, q := range m.P[:i] {
					kappa = min(kappa, p*q)
				}
			}
		}
	}
	return kappa
}

// Relative returns the family f_w(x) − f_w(y) of the rows (x, y).
func Relative(m utility.Model) utility.Model {
	return relative{m, &sync.Pool{New: func() any { return new(halves) }}}
}

type relative struct {
	utility.Model
	scratch *sync.Pool // of *halves
}

// halves are the columns of x and y, and the results of y.
type halves struct {
	x, y, g mat.Dense
	u       []float64
}

func (r relative) NumFeatures() int { return 2 * r.Model.NumFeatures() }

func (r relative) split(xy *mat.Dense) *halves {
	h, raw := r.scratch.Get().(*halves), xy.RawMatrix()
	if raw.Cols != r.NumFeatures() {
		panic(fmt.Sprintf("mdp: pairs of %d features, want %d", raw.Cols, r.NumFeatures()))
	}
	raw.Cols /= 2
	h.x.SetRawMatrix(raw)
	if raw.Rows > 0 {
		raw.Data = raw.Data[raw.Cols:]
	}
	h.y.SetRawMatrix(raw)
	return h
}

func (r relative) Utilities(dst, w []float64, xy *mat.Dense) {
	h := r.split(xy)
	defer r.scratch.Put(h)
	r.Model.Utilities(dst, w, &h.x)
	h.u = scratch.Grow(h.u, len(dst))
	r.Model.Utilities(h.u, w, &h.y)
	floats.Sub(dst, h.u)
}

func (r relative) Gradients(dst *mat.Dense, w []float64, xy *mat.Dense) {
	h := r.split(xy)
	defer r.scratch.Put(h)
	r.Model.Gradients(dst, w, &h.x)
	h.g.Reset()
	h.g.ReuseAs(dst.Dims())
	r.Model.Gradients(&h.g, w, &h.y)
	dst.Sub(dst, &h.g)
}

// RiverSwim returns the river of Strehl and Littman (2008) with S states and H = 3S, as Cho and others (2024) use it. A
// swimmer in the first state earns 0.005 by action 0, left, which is sure to succeed, and in the last state 1 by action
// 1, right, against the current. φ is the indicator of (s,s'), so f is linear. RiverSwim panics unless S ≥ 2.
func RiverSwim(states int) *River {
	r := &River{Horizon: 3 * states, Family: utility.NewLinear(3*states-2, false)}
	k := 0
	for s := range states {
		p, first := []float64{0.05, 0.6, 0.35}, s-1
		switch s {
		case 0:
			p, first = []float64{0.4, 0.6}, 0
		case states - 1:
			p = []float64{0.4, 0.6}
		}
		x := mat.NewDense(len(p), 3*states-2, nil)
		for i := range p {
			x.Set(i, k, 1)
			k++
		}
		left := NewMove([]int{max(s-1, 0)}, nil, nil)
		right := NewMove([]int{first, first + 1, first + 2}[:len(p)], x, func(dst []float64, _ *mat.Dense) {
			for i, q := range p {
				dst[i] = portable.Log(q)
			}
		})
		r.Moves = append(r.Moves, []Move{left, right})
	}
	r.reward()
	return r
}

// NewMove returns a move without reward to the states in reach, s⁰ first, with a row of features and a utility for each.
// If only one is in reach, it needs neither.
func NewMove(reach []int, x *mat.Dense, utilities func(dst []float64, x *mat.Dense)) Move {
	n := len(reach)
	m := Move{Reach: reach, P: []float64{1}}
	if n == 1 {
		return m
	}
	u := make([]float64, n)
	utilities(u, x)
	floats.AddConst(-u[0], u)
	m.P = make([]float64, n)
	vitrine.Probabilities(m.P, u[1:])
	_, d := x.Dims()
	pairs := mat.NewDense(n-1, 2*d, nil)
	for i := range n - 1 {
		copy(pairs.RawRowView(i), x.RawRowView(i+1))
		copy(pairs.RawRowView(i)[d:], x.RawRowView(0))
	}
	m.Context = &vitrine.Context{Features: pairs}
	return m
}

// The rivers with lanes: states, steps, features of a move.
const (
	riverStates   = 20
	riverSteps    = 60
	riverFeatures = 4
)

// NetworkRiver returns a river of 20 states, H = 60 and two lanes, and the number of instances that were rejected.
// Action a in state s is a step in lane a, with a current c(s,a) from U[−1, 1], which leads to a neighbour or nowhere:
//
//	φ(s,a,s') = (δ, |δ|, δ s/S, δ c(s,a)),   δ = s' − s
//
// so that linear f know the current, too. f is a network of three sigmoid units with weights from U[−6, 6]. Rewards are
// those of [RiverSwim]. Accepted is an instance in which the optimum is at least 3, and more than twice what lane 1 alone
// earns.
func NetworkRiver(rng *rand.Rand) (r *River, rejected int) {
	return accepted(func() env.Truth { return env.NewFamily(lanesFamily(), -networkScale, networkScale, rng) }, rng)
}

// CosineRiver is a [NetworkRiver] with f(φ) = cos(2π φᵀw) − ½ φᵀw, w from U[−1, 1]⁴, as in the misspecified setting of
// the bandits.
func CosineRiver(rng *rand.Rand) (r *River, rejected int) {
	return accepted(func() env.Truth { return env.NewCosine(riverFeatures, 0, rng) }, rng)
}

func lanesFamily() utility.Model { return utility.NewMLP(riverFeatures, []int{3}, utility.Sigmoid) }

// accepted returns the first instance in which it pays to plan, and the number of others before it.
func accepted(truth func() env.Truth, rng *rand.Rand) (r *River, rejected int) {
	for {
		r = lanes(truth(), rng)
		_, v := r.Solve()
		if best := v[0][r.Start]; best >= 3 && best > 2*r.Value(r.Always(1))[0][r.Start] {
			return r, rejected
		}
		rejected++
	}
}

// lanes returns a river with lanes.
func lanes(truth env.Truth, rng *rand.Rand) *River {
	r := &River{Horizon: riverSteps, Family: lanesFamily()}
	for s := range riverStates {
		moves := make([]Move, 2)
		for a := range moves {
			c := 2*rng.Float64() - 1
			var reach []int
			var rows []float64
			for t := max(s-1, 0); t <= min(s+1, riverStates-1); t++ {
				reach = append(reach, t)
				delta := float64(t - s)
				rows = append(rows, delta, math.Abs(delta), delta*float64(s)/riverStates, delta*c)
			}
			moves[a] = NewMove(reach, mat.NewDense(len(reach), riverFeatures, rows), truth.Utilities)
		}
		r.Moves = append(r.Moves, moves)
	}
	r.reward()
	return r
}

// reward sets the rewards of the first and the last state.
func (r *River) reward() {
	r.Moves[0][0].Reward, r.Moves[len(r.Moves)-1][1].Reward = 0.005, 1
}

// Always returns the course of a single action.
func (r *River) Always(a int) Course {
	c := r.newCourse()
	for h := range c {
		for s := range c[h] {
			c[h][s] = a
		}
	}
	return c
}
