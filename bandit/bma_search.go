package bandit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// The number of best units that a search tries, and the number that it remembers.
const (
	searchStarts = 3
	searchMemory = 20
)

// streamOf returns the draws of an expert's fit.
func streamOf(seed uint64, expert, round int) *rand.Rand {
	return stream.New(seed+uint64(expert), round, stream.Learner)
}

// starts returns the parameters from which an expert is fitted besides its
// present mode: one drawn by its family, and for a family of units the linear
// fit with one of the units that a score test finds best.
func (l *BMA) starts(e *expert, history *mle.Choices, rng *rand.Rand) [][]float64 {
	if concave(e.Model) {
		return nil
	}
	if m, ok := e.Model.(*utility.Additive); ok {
		return l.search(e, m, history, rng)
	}
	w := make([]float64, e.Model.NumParams())
	e.Model.Init(w, rng)
	return [][]float64{w}
}

// concave reports a family whose utility is linear in its parameters, so that
// one start is as good as any.
func concave(m utility.Model) bool {
	switch m.(type) {
	case *utility.Linear, *utility.Quadratic:
		return true
	}
	return false
}

// unitStart is a unit that a search looks at.
type unitStart struct {
	theta, gamma []float64
	gain         float64
}

// search returns starts of an expert of units: the linear fit, one of the best
// units with its amplitudes, and the other units at random with amplitude 0.
func (l *BMA) search(e *expert, m *utility.Additive, history *mle.Choices, rng *rand.Rand) [][]float64 {
	test := mle.NewScoreTest(m, history, l.base.posterior, l.o.Sample, rng.IntN(1<<30))
	if test == nil {
		return nil
	}
	prior := m.Theta(e.prior, 0)
	units := make([]unitStart, 0, l.o.Candidates+len(e.units))
	look := func(theta []float64) {
		u := unitStart{theta: theta, gamma: make([]float64, m.Outputs())}
		u.gain = test.Gain(u.gamma, theta)
		units = append(units, u)
	}
	for _, theta := range e.units {
		look(theta)
	}
	for range l.o.Candidates {
		theta := make([]float64, m.Inputs())
		for j := range theta {
			theta[j] = 1.2 * rng.NormFloat64() / math.Sqrt(prior[j])
		}
		look(theta)
	}
	slices.SortStableFunc(units, func(a, b unitStart) int { return cmp.Compare(b.gain, a.gain) })
	e.units = nil
	for _, u := range units[:min(searchMemory, len(units))] {
		e.units = append(e.units, u.theta)
	}
	var starts [][]float64
	var taken []unitStart
	for _, u := range units {
		if len(starts) == searchStarts {
			break
		}
		if slices.ContainsFunc(taken, func(o unitStart) bool { return near(o.theta, u.theta) }) {
			continue
		}
		taken = append(taken, u)
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		for k := range m.Units() {
			clear(m.Gamma(w, k))
		}
		copy(w, l.base.posterior.Mode)
		copy(m.Gamma(w, 0), u.gamma)
		copy(m.Theta(w, 0), u.theta)
		starts = append(starts, w)
	}
	return starts
}

// unitLength returns the length of the units of a family that has them.
func unitLength(m utility.Model) int {
	if m, ok := m.(*utility.Additive); ok {
		return m.Inputs()
	}
	return 0
}

// near reports whether two units are about the same, up to their sign.
func near(a, b []float64) bool {
	minus, plus := 0.0, 0.0
	for j := range a {
		minus += float64((a[j] - b[j]) * (a[j] - b[j]))
		plus += float64((a[j] + b[j]) * (a[j] + b[j]))
	}
	return min(minus, plus) < 0.15
}
