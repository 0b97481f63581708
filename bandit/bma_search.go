package bandit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

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

// starts returns the parameters from which an expert is fitted in addition to its present mode: one drawn by its
// family, and for a family of units the linear fit with one of the units that a score test finds best.
//
// If rounds are folded, a start with units takes the base's anchor and the prior of the units. Other families then get
// no starts: they are anchored only at their mode.
func (f *fitting) starts(e *expert, history *mle.Choices, rng *rand.Rand) (starts []start) {
	if m, ok := e.Model.(*utility.Additive); ok {
		if from := f.before[e]; from != nil && !f.moved {
			anchor, err := from.anchorOf(m, e.prior)
			if err != nil {
				return nil
			}
			for _, w := range f.searchUnits(e, m, from, history, rng) {
				starts = append(starts, start{w, anchor})
			}
			return starts
		}
		var anchor *mle.Laplace
		if f.base.anchor != nil {
			var err error
			if anchor, err = f.base.anchor.Extended(m.Linear(), e.prior[m.Linear():m.NumParams()]); err != nil {
				return nil
			}
		}
		for _, w := range f.searchUnits(e, m, f.base, history, rng) {
			starts = append(starts, start{w, anchor})
		}
		return starts
	}
	if concave(e.Model) || e.anchor != nil {
		return nil
	}
	w := make([]float64, len(e.prior))
	e.Model.Init(w[:e.Model.NumParams()], rng)
	return []start{{w: w}}
}

// waiting is the wake of an expert that waits until another holds most of the weight.
const waiting = 1<<30 - 1

// awaited returns the expert for which e waits, or nil: the one with one unit less, or the one of the same family
// without a memory. Linear experts do not wait.
func (b *beliefs) awaited(e *expert) *expert {
	if _, linear := e.Model.(*utility.Linear); linear || e.MemoryRounds == 0 {
		return b.fewer(e)
	}
	for _, o := range b.experts {
		if o.MemoryRounds == 0 && utility.Identity(o.Model) == utility.Identity(e.Model) {
			return o
		}
	}
	return nil
}

// fewer returns the expert of the same family with one unit less, or nil.
func (b *beliefs) fewer(e *expert) *expert {
	m, ok := e.additive()
	if !ok {
		return nil
	}
	for _, o := range b.experts {
		if n, ok := o.additive(); ok && m.Extends(n) {
			return o
		}
	}
	return nil
}

// anchorOf returns the expert's anchor for a family with one more unit, or nil if the expert is not anchored.
func (e *expert) anchorOf(m *utility.Additive, prior []float64) (*mle.Laplace, error) {
	if e.anchor == nil {
		return nil, nil
	}
	last := m.Units() - 1
	own, err := e.anchor.Extended(e.Model.NumParams(), m.Theta(prior, last))
	if err != nil {
		return nil, err
	}
	return own.Extended(m.Linear()+last*m.Outputs(), m.Gamma(prior, last))
}

// concave reports a family whose utility is linear in its parameters, so that one start is as good as any.
func concave(m utility.Model) bool {
	switch m.(type) {
	case *utility.Linear, *utility.Expansion:
		return true
	}
	return false
}

// unitStart is a unit that a search looks at.
type unitStart struct {
	theta      []float64
	amplitudes *mle.Amplitudes
	gain       float64
}

// alongTheLine is the number of candidates along the line for each random one.
const alongTheLine = 0.7

// searchUnits returns starts of an expert of units: the linear fit, one of the best units with its amplitudes, and the
// other units at random with amplitude 0. The candidates are the best of the last search, draws from the prior, and
// draws from the prior along a draw of the linear fit's slopes: if a function depends on one direction, its linear fit
// points there.
func (f *fitting) searchUnits(e *expert, m *utility.Additive, from *expert, history *mle.Choices,
	rng *rand.Rand) [][]float64 {
	test := mle.NewScoreTestBeside(from.model, m, history, from.posterior, f.o.Sample, rng.IntN(1<<30))
	if test == nil {
		return nil
	}
	prior := m.Theta(e.prior, 0)
	thetas := slices.Clone(e.units)
	line := make([]float64, len(from.prior))
	for k := range int((1 + alongTheLine) * float64(f.o.Candidates)) {
		theta := make([]float64, m.Inputs())
		for j := range theta {
			theta[j] = 1.2 * rng.NormFloat64() / math.Sqrt(prior[j])
		}
		if k >= f.o.Candidates {
			from.posterior.Deviation(line, 1, rng)
			floats.Add(line, from.posterior.Mode)
			direction := m.Direction(theta)
			norm := floats.Norm(direction, 2)
			floats.ScaleTo(direction, norm/floats.Norm(line[:len(direction)], 2), line[:len(direction)])
		}
		thetas = append(thetas, theta)
	}
	units := make([]unitStart, len(thetas))
	for i, a := range test.Amplitudes(thetas...) {
		units[i] = unitStart{thetas[i], a, test.Gain(a, thetas[i])}
	}
	slices.SortStableFunc(units, func(a, b unitStart) int { return cmp.Compare(b.gain, a.gain) })
	e.units = nil
	for _, u := range units[:min(searchMemory, len(units))] {
		e.units = append(e.units, u.theta)
	}
	var starts [][]float64
	var taken []unitStart
	for _, u := range units {
		if len(starts) == searchStarts || u.amplitudes == nil {
			break
		}
		if slices.ContainsFunc(taken, func(o unitStart) bool { return near(o.theta, u.theta) }) {
			continue
		}
		taken = append(taken, u)
		w := make([]float64, len(e.prior))
		m.Init(w[:m.NumParams()], rng)
		for k := range m.Units() {
			clear(m.Gamma(w, k))
		}
		last := 0
		if o, ok := from.Model.(*utility.Additive); ok {
			last = o.Units()
			for k := range last {
				copy(m.Gamma(w, k), o.Gamma(from.posterior.Mode, k))
				copy(m.Theta(w, k), o.Theta(from.posterior.Mode, k))
			}
		}
		copy(w, from.posterior.Mode[:m.Linear()])
		copy(w[m.NumParams():], from.posterior.Mode[from.Model.NumParams():])
		copy(m.Gamma(w, last), u.amplitudes.Mode)
		copy(m.Theta(w, last), u.theta)
		starts = append(starts, w)
	}
	return starts
}

// unitLength returns the length of a family's units.
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
