package mdp

import (
	"vitrine"
	"vitrine/internal/stream"
)

// Play plays sessions in a world. Before each it calls each with the session's number and its plan's average earnings,
// V_0(start) of [World.Value]; the regret of the session is the optimum minus that. A seed's visitors bring the same
// shocks for every agent. Play ends early with an error of each or of the agent.
func Play(w *World, a *Agent, sessions int, seed uint64, each func(k int, value float64) error) error {
	var draws stream.Stream
	shock := make([]float64, w.Items()+1)
	for k := range sessions {
		plan := a.Plan(draws.At(seed, k, stream.Policy))
		if err := each(k, w.Value(plan)[0][w.Start]); err != nil {
			return err
		}
		s := w.Start
		for h := range w.Horizon {
			rng := draws.At(seed, k*w.Horizon+h, stream.Customers)
			vitrine.DrawShocks(shock, rng)
			page := plan[h][s]
			y := vitrine.Choose(page, w.Utility[s], shock)
			act := action(page, y)
			next := draw(w.Next[s][act], rng.Float64())
			if err := a.Observe(s, page, y, w.Reward[s][act], next); err != nil {
				return err
			}
			s = next
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
