package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/mle"
	"vitrine/utility"
)

// expert is a family and its posterior.
type expert struct {
	Expert
	model     utility.Model     // the family, with the effects of places
	prior     []float64         // precisions
	start     []float64         // where it is before the first round
	anchor    *mle.Laplace      // the posterior of the rounds that are not kept; nil for the prior
	posterior *mle.Laplace      // never nil
	unit      [2]*unitPosterior // an additive expert's, next to each base's fit; nil for others
	units     [][]float64       // the best of the last search
	wake      int               // it rests until the first fit after this round; 0 if it does not rest
}

// additive returns the family of an additive expert that is fitted.
func (e *expert) additive() (*utility.Additive, bool) {
	m, ok := e.Model.(*utility.Additive)
	return m, ok && e.MemoryRounds == 0
}

// loss returns the loss of rounds in addition to the anchor, or to the prior if that is nil.
func (e *expert) loss(c *mle.Choices, anchor *mle.Laplace) *mle.NLL {
	return &mle.NLL{Model: e.model, Choices: c, Prior: e.prior, Anchor: anchor}
}

// newExpert returns a family at its prior: around 0 if the utility is linear
// in its parameters, for a family of units at random units of amplitude 0, and
// elsewhere around initial parameters. The effects of places are around 0, with the standard deviation 1.
func newExpert(x Expert, k places, rng *rand.Rand) (*expert, error) {
	e := &expert{Expert: x, model: k.family(x.Model)}
	e.prior = make([]float64, e.model.NumParams())
	utility.Precisions(x.Model, e.prior[:x.Model.NumParams()])
	for j := x.Model.NumParams(); j < len(e.prior); j++ {
		e.prior[j] = 1
	}
	m := x.Model
	w := make([]float64, len(e.prior))
	if !concave(m) {
		m.Init(w[:m.NumParams()], rng)
	}
	if m, ok := m.(*utility.Additive); ok {
		for k := range m.Units() {
			clear(m.Gamma(w, k))
		}
	}
	e.start = w
	return e, e.restart()
}

// flatSlope is the standard deviation of the slopes near 0.
const flatSlope = 0.1

// flattened returns a linear expert before its first round, with slopes near 0.
func (e *expert) flattened() (*expert, error) {
	n := e.twin(1)
	for j := range e.Model.NumFeatures() {
		n.prior[j] = 1 / (flatSlope * flatSlope)
	}
	return n, n.restart()
}

// restart resets the posterior to the anchor's.
func (e *expert) restart() error {
	p, err := mle.NewLaplace(e.loss(mle.NewChoices(e.model.NumFeatures()), e.anchor), e.start)
	if err != nil {
		return err
	}
	if e.MemoryRounds != 0 {
		// Without fits, the evidence would keep judging the starting point by the prior.
		p.LogEvidence = 0
	}
	e.posterior = p
	return nil
}

// learn moves the posterior by a round. If a utility or a gradient is not finite, or a gradient is beyond
// [vitrine.MaxUnscaled], the expert sits the round out: its parameters stay, and it is charged the linear family's
// forecast,
//
//	log evidence ← log evidence + log p(i_s | S_s, ŵ_base)
//
// or the forecast of a guess if base is nil or cannot learn the round either.
func (e *expert) learn(round *mle.Choices, base *expert, t *tangent) {
	if e.MemoryRounds > 0 {
		if p, err := e.posterior.Forget(1-1/e.MemoryRounds, e.prior); err == nil {
			e.posterior = p
		}
	}
	if takes(e.model, e.posterior.Mode, round, t) {
		if p, err := e.posterior.Step(t.loss(e.model, round)); err == nil {
			e.posterior = p
			return
		}
	}
	p := *e.posterior
	p.LogEvidence -= base.forecast(round)
	e.posterior = &p
}

// forecast returns the log loss of a round at the mode. If e is nil or that loss is not finite, it returns the loss of
// a guess: among |S| + 1 outcomes, and for each further take among |S|.
func (e *expert) forecast(round *mle.Choices) float64 {
	if e != nil {
		if loss := (&mle.NLL{Model: e.model, Choices: round}).Value(e.posterior.Mode); !math.IsNaN(loss) &&
			!math.IsInf(loss, 0) {
			return loss
		}
	}
	guess := portable.Log(float64(round.Rows() + 1))
	if further := len(round.More(0)); further > 0 {
		guess += float64(float64(further) * portable.Log(float64(round.Rows())))
	}
	return guess
}

// takes reports whether a model at w can take a step on a round.
func takes(m utility.Model, w []float64, round *mle.Choices, t *tangent) bool {
	_, size := t.of(m, w, round.Features())
	return size <= vitrine.MaxUnscaled
}

// start is the parameters at which a fit may begin, and an anchor for the folded rounds there.
type start struct {
	w      []float64
	anchor *mle.Laplace
}

// fit moves the expert to the start that leads to the largest evidence, its present mode among them. If every fit
// fails, the expert sits out the rounds that it cannot take at its mode, as in learn. If that fails too, it stays, and
// fit returns false.
func (e *expert) fit(c *mle.Choices, base *expert, starts []start) bool {
	starts = append([]start{{e.posterior.Mode, e.anchor}}, starts...)
	best, anchor := e.best(c, starts)
	if best == nil {
		taken, charge := e.taken(c, base)
		if best, anchor = e.best(taken, starts); best == nil {
			return false
		}
		best.LogEvidence -= charge
	}
	e.posterior, e.anchor = best, anchor
	return true
}

// taken returns the rounds that the expert can take at its mode, the others without
// their items, and the log loss of the base at the others.
func (e *expert) taken(c *mle.Choices, base *expert) (taken *mle.Choices, charge float64) {
	var t tangent
	taken = mle.NewChoices(e.model.NumFeatures())
	for s := range c.Rounds() {
		round := c.Round(s)
		if round.Rows() > 0 && !takes(e.model, e.posterior.Mode, round, &t) {
			charge += base.forecast(round)
			taken.AppendRows(nil, vitrine.Outside)
			continue
		}
		taken.AppendAll(round)
	}
	return taken, charge
}

// shortRounds is the number of rounds to which the starts of a search are fitted first.
const shortRounds = 1024

// best returns the posterior of the largest evidence and its anchor, or nil. The first start gets more steps than the
// others. After a long history the others are fitted to a sample first, and only the best of them goes on.
func (e *expert) best(c *mle.Choices, starts []start) (best, anchor *mle.Laplace) {
	if len(starts) > 2 && c.Rounds() > 2*shortRounds {
		p, at := e.fromBest(c.Sample(shortRounds, 0), starts[1:], 15, 15)
		starts = starts[:1:1]
		if p != nil {
			starts = append(starts, start{p.Mode, at})
		}
	}
	return e.fromBest(c, starts, 20, 15)
}

// fromBest returns the best fit from some starts, as best does, with at most first steps from the first start and
// others from the rest.
func (e *expert) fromBest(c *mle.Choices, starts []start, first, others int) (best, anchor *mle.Laplace) {
	nll := e.loss(c, nil)
	for k, s := range starts {
		nll.Anchor = s.anchor
		w, steps := slices.Clone(s.w), others
		if k == 0 {
			steps = first
		}
		p, err := mle.LevenbergMarquardt{Steps: steps, Tolerance: 1e-4}.Laplace(nll, w)
		if err == nil && (best == nil || p.LogEvidence > best.LogEvidence) {
			best, anchor = p, s.anchor
		}
	}
	return best, anchor
}

// fold makes the posterior of rounds, which are then dropped, the anchor. An expert that cannot be fitted to them keeps
// its anchor and gets the base's forecasts.
func (e *expert) fold(c *mle.Choices, base *expert) {
	w := e.posterior
	if e.fit(c, base, nil) {
		e.anchor, e.posterior = e.posterior, w
		return
	}
	at := e.start
	if e.anchor != nil {
		at = e.anchor.Mode
	}
	p, err := mle.NewLaplace(e.loss(mle.NewChoices(e.model.NumFeatures()), e.anchor), at)
	if err != nil {
		return // cannot happen: it was made in the same way
	}
	for s := range c.Rounds() {
		p.LogEvidence -= base.forecast(c.Round(s))
	}
	e.anchor = p
}
