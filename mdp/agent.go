package mdp

import (
	"fmt"
	"math"
	"math/rand/v2"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
)

// Options are how an [Agent] estimates item values.
type Options struct {
	Warmup int     `json:"warmup,omitempty"` // t_0, the first sessions, in which pages are drawn uniformly
	Bonus  float64 `json:"bonus"`            // β_r ≥ 0, the bonus of an action's value
	Myopic bool    `json:"myopic,omitempty"` // whether a value is the reward alone
}

// Agent plans sessions by optimistic value iteration, MNL-VQL of Lee and Oh (2025, Algorithm 1) with σ̄ ≡ 1. The
// utilities come from a learner of package bandit: with OFU-MNL+ it is their algorithm, and with ONL-MNL the same for
// non-linear utilities. The value of action a in state s is a ridge regression on the indicators of (s,a), from n(s,a)
// actions so far and the moves to s' among them:
//
//	f_h(s,a) = min{ (Σ r + Σ_s' n(s,a,s') V_{h+1}(s')) / (n(s,a) + 1) + β_r/√(n(s,a) + 1), 1 }
//
// with the V_{h+1} of the same plan, and one estimate for all steps. Their rule (Eq. 6 and 7) lowers utilities instead
// of raising them if f < f(0) for every item; then the best page is empty whatever the utilities, so there is no second
// case here.
type Agent struct {
	o        Options
	p        *Problem
	learner  vitrine.Learner
	contexts []*vitrine.Context
	sessions int // planned so far

	count, earned [][]float64   // S×(N+1): n(s,a) and Σ r
	moved         [][][]float64 // S×(N+1)×S: n(s,a,s')

	plan    Plan
	f, gain []float64
	index   [][]float64
}

// NewAgent returns an agent without experience. The learner's problem must match the features and pages of p, and its
// policies must explain themselves ([bandit.Explainer]). While they estimate no utilities, as in Phase I of ONL-MNL,
// pages are drawn uniformly.
func NewAgent(p *Problem, l vitrine.Learner, o Options) *Agent {
	states, n := len(p.Features), p.Items()
	a := &Agent{
		o: o, p: p, learner: l, plan: newPlan(p.Horizon, states),
		f: make([]float64, n+1), gain: make([]float64, n), index: make([][]float64, states),
	}
	for _, x := range p.Features {
		a.contexts = append(a.contexts, &vitrine.Context{Features: x})
		a.count, a.earned = append(a.count, make([]float64, n+1)), append(a.earned, make([]float64, n+1))
		moved := make([][]float64, n+1)
		for k := range moved {
			moved[k] = make([]float64, states)
		}
		a.moved = append(a.moved, moved)
	}
	return a
}

// Plan returns the pages of the coming session. The plan is the agent's own and valid until the next call.
func (a *Agent) Plan(rng *rand.Rand) Plan {
	a.sessions++
	clear(a.index)
	if a.sessions > a.o.Warmup {
		policy := a.learner.Policy().(bandit.Explainer)
		for s, x := range a.contexts {
			a.index[s] = policy.Reasons(x, rng).Index
		}
	}
	backward(a.p.Horizon, len(a.contexts), func(h, s int, next []float64) (value float64) {
		if a.index[s] == nil {
			a.plan[h][s] = a.explore(a.plan[h][s], rng)
			return 0
		}
		a.values(s, next)
		a.plan[h][s], value = Best(a.plan[h][s], a.p.Feasible, a.index[s], a.f, a.gain)
		return value
	})
	return a.plan
}

// explore returns a page drawn uniformly, or the best one for uniform gains if the family cannot be sampled.
func (a *Agent) explore(dst vitrine.Assortment, rng *rand.Rand) vitrine.Assortment {
	if sampler, ok := assortment.SamplerOf(a.p.Feasible); ok {
		return sampler.Sample(dst, len(a.gain), rng)
	}
	for i := range a.gain {
		a.gain[i] = 1 - rng.Float64()
	}
	return append(dst[:0], a.p.Feasible.MaxGain(nil, a.gain)...) // a copy: the answer may be the family's own
}

// values stores f_h(s,·) in a.f for the values of the next step.
func (a *Agent) values(s int, next []float64) {
	for k, n := range a.count[s] {
		f := a.earned[s][k]
		if n > 0 && !a.o.Myopic {
			for t, v := range next {
				f += float64(a.moved[s][k][t] * v)
			}
		}
		a.f[k] = min(f/(n+1)+a.o.Bonus/math.Sqrt(n+1), 1)
	}
}

// Observe learns from a page shown in state s: the choice, its reward, and the next state. It returns an error, and the
// agent stays as it was, if a state does not exist, the reward is outside [0, 1], or the learner returns an error.
func (a *Agent) Observe(s int, page vitrine.Assortment, y vitrine.Choice, earned float64, next int) error {
	if n := len(a.contexts); s < 0 || s >= n || next < 0 || next >= n {
		return fmt.Errorf("a move from state %d to state %d: must be states from 0 to %d", s, next, n-1)
	}
	if !(earned >= 0 && earned <= maxEarned) {
		return fmt.Errorf("a page in state %d earned %v: must be from 0 to 1, so divide the rewards by the most that a "+
			"session earns", s, earned)
	}
	round := vitrine.Round{Context: a.contexts[s], Offer: vitrine.Offer{Assortment: page}, Choice: y}
	if err := a.learner.Observe(round); err != nil {
		return err
	}
	k := action(page, y)
	a.count[s][k]++
	a.earned[s][k] += earned
	a.moved[s][k][next]++
	return nil
}

// action returns the action of a choice from a page.
func action(page vitrine.Assortment, y vitrine.Choice) int {
	if y == vitrine.Outside {
		return 0
	}
	return page[y-1] + 1
}
