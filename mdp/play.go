package mdp

import (
	"math/rand/v2"

	"vitrine"
	"vitrine/internal/stream"
)

// Play plays sessions in a world. Before each it calls each with the session's number and its plan's average earnings,
// V_0(start) of [World.Value]; the regret of the session is the optimum minus that. A seed's visitors bring the same
// shocks for every agent. Play ends early with an error of each or of the agent.
func Play(w *World, a *Agent, sessions int, seed uint64, each func(k int, value float64) error) error {
	shock := make([]float64, w.Items()+1)
	var plan Plan
	return play(w.Horizon, w.Start, sessions, seed, each, func(rng *rand.Rand) float64 {
		plan = a.Plan(rng)
		return w.Value(plan)[0][w.Start]
	}, func(h, s int, rng *rand.Rand) (next int, err error) {
		vitrine.DrawShocks(shock, rng)
		page := plan[h][s]
		y := vitrine.Choose(page, w.Utility[s], shock)
		act := action(page, y)
		next = draw(w.Next[s][act], rng.Float64())
		return next, a.Observe(s, page, y, w.Reward[s][act], next)
	})
}

// Swim is [Play] in a river.
func Swim(r *River, a *Swimmer, sessions int, seed uint64, each func(k int, value float64) error) error {
	var course Course
	return play(r.Horizon, r.Start, sessions, seed, each, func(rng *rand.Rand) float64 {
		course = a.Plan(rng)
		return r.Value(course)[0][r.Start]
	}, func(h, s int, rng *rand.Rand) (next int, err error) {
		m := &r.Moves[s][course[h][s]]
		next = m.Reach[draw(m.P, rng.Float64())]
		return next, a.Observe(s, course[h][s], next)
	})
}

// play calls plan and each before every session, and move for every step.
func play(horizon, start, sessions int, seed uint64, each func(k int, value float64) error,
	plan func(*rand.Rand) float64, move func(h, s int, rng *rand.Rand) (int, error)) error {
	var draws stream.Stream
	for k := range sessions {
		err := each(k, plan(draws.At(seed, k, stream.Policy)))
		for h, s := 0, start; h < horizon && err == nil; h++ {
			s, err = move(h, s, draws.At(seed, k*horizon+h, stream.Customers))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// draw returns the state at a point of the unit interval, which a distribution divides.
func draw(p []float64, at float64) (s int) {
	for s < len(p)-1 && at >= p[s] {
		at -= p[s]
		s++
	}
	return s
}
