// Package mdp is for pages that change what a visitor wants next: a session of H pages, in which every page moves the
// visitor to another state.
//
// In state s of step h the shop shows a page S of the items. The visitor takes an item of S or leaves the page without
// one, action 0, by the MNL model with utilities u(s,a). Action a earns r(s,a) and moves the visitor to s' with
// probability P(s'|s,a); so does action 0. With the item values
//
//	f_h(s,a) = r(s,a) + Σ_s' P(s'|s,a) V_{h+1}(s'),   V_{H+1} = 0,
//
// a page is worth the values of its actions, and the best page is an ordinary assortment problem with values relative
// to buying nothing ([Best]):
//
//	Q_h(s,S) = Σ_{a∈S∪{0}} p(a|s,S) f_h(s,a)
//	V_h(s)   = max_S Q_h(s,S) = f_h(s,0) + max_S Σ_{a∈S} exp(u(s,a)) (f_h(s,a) − f_h(s,0)) / (1 + Σ_{a∈S} exp(u(s,a)))
//
// [World.Solve] is the backward induction of a known world. An [Agent] learns utilities with any learner of package
// bandit and item values by regression, and [Play] measures it. The model is from Lee and Oh, "Combinatorial
// Reinforcement Learning with Preference Feedback", ICML 2025, Section 3, which solves a linear program for the page.
package mdp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/scratch"
)

// Problem describes a world to an agent before the first session.
type Problem struct {
	Horizon  int                // H, the pages of a session
	Features []*mat.Dense       // one N×d matrix for each state: row i is φ(s,i)
	Feasible vitrine.Constraint // the pages; every part of a page must be a page, too
}

// Items returns N.
func (p *Problem) Items() int {
	n, _ := p.Features[0].Dims()
	return n
}

// World is a problem and its truth. Action 0 takes no item, and action i+1 takes item i.
type World struct {
	Problem
	Start   int           // the state of a session's first page
	Utility [][]float64   // S×N, u(s,i)
	Reward  [][]float64   // S×(N+1), r(s,a) ≥ 0; a session earns at most 1
	Next    [][][]float64 // S×(N+1)×S, P(s'|s,a)
}

// Check returns an error if the tables do not fit together, a number is not in its range, a row of Next is not a
// distribution, the family demands items, or a session may earn more than 1, the most that an [Agent] expects. The other
// functions assume a world that passes.
func (w *World) Check() error {
	states := len(w.Features)
	switch {
	case w.Horizon < 1 || states < 1:
		return fmt.Errorf("a world of %d steps and %d states: must have at least 1 of each", w.Horizon, states)
	case w.Start < 0 || w.Start >= states:
		return fmt.Errorf("start = %d: must be a state from 0 to %d", w.Start, states-1)
	case !assortment.Hereditary(w.Feasible):
		return fmt.Errorf("the family %T demands items: the value of a page relative to buying nothing needs one "+
			"without minimums", w.Feasible)
	case len(w.Utility) != states || len(w.Reward) != states || len(w.Next) != states:
		return fmt.Errorf("a world of %d states has utilities of %d, rewards of %d and moves of %d", states,
			len(w.Utility), len(w.Reward), len(w.Next))
	}
	for s := range states {
		if err := w.checkState(s); err != nil {
			return fmt.Errorf("state %d%w", s, err)
		}
	}
	if most := w.most(); !(most <= maxEarned) {
		return fmt.Errorf("a session may earn %v: must earn at most 1, so divide the rewards by %[1]v", most)
	}
	return nil
}

// checkState returns an error that continues the state's name.
func (w *World) checkState(s int) error {
	n, d := w.Features[0].Dims()
	if len(w.Reward[s]) == 0 || !(w.Reward[s][0] >= 0 && w.Reward[s][0] <= math.MaxFloat64) {
		return fmt.Errorf(" has the rewards %v: buying nothing must have one, finite and not negative", w.Reward[s])
	}
	x := vitrine.Context{Features: w.Features[s], Revenue: w.Reward[s][1:], Feasible: w.Feasible}
	if err := x.Check(d); err != nil {
		return fmt.Errorf(": %w", err)
	}
	if x.NumItems() != n || len(w.Utility[s]) != n || len(w.Next[s]) != n+1 {
		return fmt.Errorf(" has features of %d items, %d utilities and the moves of %d actions: want %d, %d and %d",
			x.NumItems(), len(w.Utility[s]), len(w.Next[s]), n, n, n+1)
	}
	for i, u := range w.Utility[s] {
		if !(u <= math.MaxFloat64) {
			return fmt.Errorf(": item %d has the utility %v", i, u)
		}
	}
	states := len(w.Features)
	for a, p := range w.Next[s] {
		if len(p) != states || !(floats.Min(p) >= 0 && math.Abs(floats.Sum(p)-1) < 1e-9) {
			return fmt.Errorf(", action %d: %v is no distribution over %d states", a, p, states)
		}
	}
	return nil
}

// maxEarned bounds the earnings of a session, with room for rounding.
const maxEarned = 1 + 1e-9

// most returns the largest earnings of a session, in which all choices and moves turn out best.
func (w *World) most() float64 {
	v := backward(w.Horizon, len(w.Features), func(h, s int, next []float64) (best float64) {
		for a, r := range w.Reward[s] {
			if a > 0 && !w.Feasible.Contains(vitrine.Assortment{a - 1}) {
				continue
			}
			for t, p := range w.Next[s][a] {
				if p > 0 {
					best = max(best, r+next[t])
				}
			}
		}
		return best
	})
	return v[0][w.Start]
}

// Plan holds the page of every step and state, H×S. It is a policy for one session.
type Plan [][]vitrine.Assortment

func newPlan(horizon, states int) Plan {
	p := make(Plan, horizon)
	for h := range p {
		p[h] = make([]vitrine.Assortment, states)
	}
	return p
}

// Best returns the page of the largest value and its value, for the utilities u of N items and the
// values f of N+1 actions,
//
//	f_0 + max_S Σ_{a∈S} exp(u_a) (f_a − f_0) / (1 + Σ_{a∈S} exp(u_a)),
//
// by [assortment.Maximize] with the revenues max(0, f_a − f_0) over a family that demands no items. An
// item of revenue 0 never helps, and is in no answer. The storage of dst and of gain, scratch for N numbers, is
// used if it suffices.
func Best(dst vitrine.Assortment, c vitrine.Constraint, u, f, gain []float64) (vitrine.Assortment, float64) {
	gain = slices.Grow(gain[:0], len(u))[:len(u)]
	for i := range gain {
		gain[i] = max(0, f[i+1]-f[0])
	}
	page, revenue := assortment.Maximize(dst, c, u, gain)
	return page, f[0] + revenue
}

// value returns f_h(s,a) for the values of the next step.
func (w *World) value(s, a int, next []float64) float64 {
	f := w.Reward[s][a]
	for t, v := range next {
		f += float64(w.Next[s][a][t] * v)
	}
	return f
}

// Solve returns an optimal plan and its values V_h(s), (H+1)×S, by backward induction.
func (w *World) Solve() (Plan, [][]float64) {
	plan := newPlan(w.Horizon, len(w.Features))
	f, gain := make([]float64, w.Items()+1), make([]float64, w.Items())
	v := backward(w.Horizon, len(w.Features), func(h, s int, next []float64) (value float64) {
		for a := range f {
			f[a] = w.value(s, a, next)
		}
		plan[h][s], value = Best(nil, w.Feasible, w.Utility[s], f, gain)
		return value
	})
	return plan, v
}

// Value returns the values V_h(s) of a plan, (H+1)×S. The plan earns V_0(start) in a session, on average.
func (w *World) Value(plan Plan) [][]float64 {
	var p, u []float64
	return backward(w.Horizon, len(w.Features), func(h, s int, next []float64) float64 {
		page := plan[h][s]
		u, p = u[:0], scratch.Grow(p, len(page)+1)
		for _, i := range page {
			u = append(u, w.Utility[s][i])
		}
		vitrine.Probabilities(p, u)
		value := float64(p[0] * w.value(s, 0, next))
		for k, i := range page {
			value += float64(p[k+1] * w.value(s, i+1, next))
		}
		return value
	})
}

// backward fills V_h(s), (H+1)×S, from the last step to the first.
func backward(horizon, states int, value func(h, s int, next []float64) float64) [][]float64 {
	v := make([][]float64, horizon+1)
	v[horizon] = make([]float64, states)
	for h := horizon - 1; h >= 0; h-- {
		v[h] = make([]float64, states)
		for s := range states {
			v[h][s] = value(h, s, v[h+1])
		}
	}
	return v
}

// Myopic returns the plan of the pages that earn most by themselves, whatever comes after.
func (w *World) Myopic() Plan {
	plan, gain := newPlan(w.Horizon, len(w.Features)), make([]float64, w.Items())
	for h := range plan {
		for s := range plan[h] {
			plan[h][s], _ = Best(nil, w.Feasible, w.Utility[s], w.Reward[s], gain)
		}
	}
	return plan
}
