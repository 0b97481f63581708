package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/option"
	"vitrine/internal/panics"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/internal/state"
	"vitrine/mle"
	"vitrine/utility"
)

// BMAOptions are the options of BMA-MNL.
type BMAOptions struct {
	// The width of the draws in round t is
	//
	//	b_t = max(Width, min(1, √(Anneal/(d t))))
	Width      float64 `toml:"width" range:"[0, inf)" doc:"the least width of the draws, in posterior standard deviations"`
	Anneal     float64 `toml:"anneal" range:"[0, inf)" doc:"a: in round t the width of the draws is √(a/(d t)), at most 1"`
	Growth     float64 `toml:"growth" range:"(1, inf)" doc:"the factor between the rounds of full fits"`
	Candidates int     `toml:"candidates" range:"[0, 1e6]" doc:"the random units that a search for a new unit looks at"`
	Sample     int     `toml:"sample" range:"[1, inf)" doc:"the most rounds on which a search compares its candidates"`
}

// DefaultBMAOptions returns the recommended setting.
func DefaultBMAOptions() BMAOptions {
	return BMAOptions{Width: 0.3, Anneal: 60, Growth: 1.2, Candidates: 150, Sample: 150}
}

// Expert is a utility family whose parameters are constant or drift.
type Expert struct {
	Model utility.Model
	// Memory is 0 for constant parameters. Otherwise it is the number of rounds, at
	// least 1, after which 1/e of a round's information is left; such an expert is
	// updated round by round, without full fits.
	Memory float64
}

// String returns the expert's name.
func (e Expert) String() string {
	if s, ok := e.Model.(fmt.Stringer); ok {
		return e.called(s.String())
	}
	return e.called(fmt.Sprintf("%T", e.Model))
}

// called returns the name of an expert whose family has the given one.
func (e Expert) called(family string) string {
	if e.Memory == 0 {
		return family
	}
	return family + fmt.Sprintf(" of memory %v", e.Memory)
}

// maxProducts is the largest d with which products are among the defaults.
const maxProducts = 10

// maxUnits is the largest d with which families of units are among the defaults: a round of one costs
// O(K (3d)²), and among many features units are hard to find.
const maxUnits = 30

// DefaultExperts returns the recommended experts for items of d features: fewer if there are many features, so
// that a round stays cheap, and the quadratic family only if it has not many more parameters than the others.
func DefaultExperts(d int) []Expert {
	experts := []Expert{
		{Model: utility.NewLinear(d, true)},
		{Model: utility.NewLinear(d, true), Memory: 200},
	}
	if d <= maxUnits {
		experts = append(experts, Expert{Model: utility.NewRadial(d, 1)}, Expert{Model: utility.NewSpectral(d, 1)})
	}
	if d <= maxProducts {
		experts = append(experts, Expert{Model: utility.NewQuadratic(d)})
	}
	return experts
}

// BMA is BMA-MNL: Bayesian model averaging of utility families, the experts, and
// posterior sampling for each slot of the assortment. An expert e has the posterior mode ŵ_e, its
// precision H_e and its evidence by [mle.Laplace], and the weight
//
//	π_e ∝ evidence_e
//
// For each slot an expert e ~ π and a parameter w ~ N(ŵ_e, b_t² H_e⁻¹) are drawn, and
// the slot takes the best remaining item under the utilities f linearised at ŵ_e. So an
// assortment has the answers of several hypotheses: a wrong one costs a slot, and the
// choice between the items tests what the experts disagree about.
//
// Full fits happen after rounds 1, 2, … that grow by the factor Growth. Every round
// between is one step of a Kalman filter, whose cost does not grow. All rounds are kept
// for the fits, K·d numbers each.
//
// Features are standardised by the mean and the standard deviation of each coordinate
// over all items of all contexts. Each full fit compares the moments in use with those
// of all items so far. If they have moved too far, all experts are learned again from
// the first round on with the new moments, those with a memory by their filter. The
// moments converge, so this ends.
//
// An expert that cannot use a round skips it: see [expert.learn].
type BMA struct {
	learner
	o       BMAOptions
	seed    uint64
	experts []*expert

	seen       moments         // of the features of all items
	z          standardisation // in use; none before the first items
	nextFit    int
	nextSearch int
	history    *mle.Choices // as they came
	base       *expert      // linear: units are searched beside its fit

	items   scratch.Matrix // scratch
	tangent tangent
}

// expert is a family and its posterior.
type expert struct {
	Expert
	prior     []float64    // precisions
	start     []float64    // where it is before the first round
	posterior *mle.Laplace // never nil
	units     [][]float64  // the best of the last search
	wake      int          // it rests until the first fit after this round; 0 if it does not rest
}

// NewBMA returns a learner at its first round.
func NewBMA(p Problem, experts []Expert, o BMAOptions, rng *rand.Rand) (*BMA, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := option.Check(o); err != nil {
		return nil, err
	}
	if err := CheckExperts(p.Features, experts); err != nil {
		return nil, err
	}
	l := &BMA{
		o: o, seed: rng.Uint64(),
		nextFit: 1, nextSearch: 8,
		seen:    newMoments(p.Features),
		history: mle.NewChoices(p.Features),
	}
	var families []string
	for i, x := range experts {
		e, err := newExpert(x, rng)
		if err != nil {
			return nil, fmt.Errorf("expert %d, %v: %w", i+1, x, err)
		}
		l.experts = append(l.experts, e)
		families = append(families, e.called(utility.Identity(x.Model)))
	}
	l.learner = learner{p: p, self: l, identity: p.identify("bma-mnl", 2, strings.Join(families, " "), o, DefaultBMAOptions())}
	l.identity.oldest = 1
	var err error
	l.base, err = newExpert(Expert{Model: utility.NewLinear(p.Features, true)}, nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// CheckExperts returns an error if there are no experts, or for the first that is a
// duplicate or does not fit items of d features.
func CheckExperts(d int, experts []Expert) error {
	if len(experts) == 0 {
		return fmt.Errorf("there are no experts: name at least one utility family")
	}
	known := map[string]int{}
	for i, x := range experts {
		if isNil(x.Model) {
			return fmt.Errorf("NewBMA: the model of expert %d is nil: give it a family, such as utility.NewLinear(%d, true)", i+1, d)
		}
		name := x.String()
		first, twice := known[name]
		known[name] = i
		switch {
		case x.Model.NumFeatures() != d:
			return fmt.Errorf("expert %d, %s, has %d features, the problem has %d", i+1, name, x.Model.NumFeatures(), d)
		case x.Model.NumParams() < 1:
			return fmt.Errorf("expert %d, %s, has no parameters: there is nothing to learn", i+1, name)
		case x.Memory != 0 && !(x.Memory >= 1 && !math.IsInf(x.Memory, 0)):
			return fmt.Errorf("expert %d, %s: memory = %v: must be finite and at least 1 round, or 0 for constant parameters", i+1, name, x.Memory)
		case twice:
			return fmt.Errorf("experts %d and %d are both %s: an expert counts once", first+1, i+1, name)
		}
	}
	return nil
}

// newExpert returns a family at its prior: around 0 if the utility is linear
// in its parameters, for a family of units at random units of amplitude 0, and
// elsewhere around initial parameters.
func newExpert(x Expert, rng *rand.Rand) (*expert, error) {
	m := x.Model
	e := &expert{Expert: x, prior: make([]float64, m.NumParams())}
	utility.Precisions(m, e.prior)
	w := make([]float64, len(e.prior))
	if !concave(m) {
		m.Init(w, rng)
	}
	if m, ok := m.(*utility.Additive); ok {
		for k := range m.Units() {
			clear(m.Gamma(w, k))
		}
	}
	e.start = w
	return e, e.restart()
}

// restart makes the posterior that of no rounds.
func (e *expert) restart() error {
	p, err := mle.NewLaplace(&mle.NLL{Model: e.Model, Choices: mle.NewChoices(e.Model.NumFeatures()), Prior: e.prior}, e.start)
	if err != nil {
		return err
	}
	if e.Memory != 0 {
		// Never fitted, it would keep the prior's verdict on where it starts.
		p.LogEvidence = 0
	}
	e.posterior = p
	return nil
}

// learn implements algorithm.
func (l *BMA) learn(r vitrine.Round) {
	l.seen.add(r.Context.Features)
	var x *mat.Dense
	if s := r.Offer.Assortment; len(s) > 0 {
		x = l.items.Rows(r.Context.Features, s)
	}
	l.history.AppendRows(x, r.Choice)
	full := l.rounds >= l.nextFit
	moved := (full || l.z.shift == nil) && l.standardise()
	if x != nil {
		l.z.of(x, x)
		round := mle.NewChoices(l.p.Features)
		round.AppendRows(x, r.Choice)
		for _, e := range l.experts {
			if e.wake == 0 && !(full && (moved || e.Memory == 0)) {
				e.learn(round, &l.tangent)
			}
		}
	}
	if full {
		l.fit(moved)
	}
}

// standardise takes the moments of all items so far where those in use do not stand
// still, and reports whether rounds were learned from in the latter.
func (l *BMA) standardise() bool {
	if l.seen.n == 0 {
		return false
	}
	now, before := l.seen.standardisation(), l.z
	if before.shift != nil && before.stands(now) {
		return false
	}
	l.z = now
	return before.shift != nil
}

// fit fits all experts to the history, side by side. Where the standardisation has
// moved those with a memory learn it again, and no expert rests. A panic of a model
// is the caller's.
func (l *BMA) fit(moved bool) {
	l.nextFit = l.later(1)
	search := moved || l.rounds >= l.nextSearch
	if search {
		l.nextSearch = l.later(3)
	}
	history := l.history
	if l.z.shift != nil {
		history = l.history.Standardised(l.z.shift, l.z.scale)
	}
	l.base.fit(history, l.origin(l.base, moved))
	var group sync.WaitGroup
	var fits panics.Catcher
	for i, e := range l.experts {
		switch {
		case moved:
			e.units = nil
		case e.Memory > 0 || l.rounds < e.wake:
			continue
		}
		e.wake = 0
		group.Go(func() {
			defer fits.Catch()
			if e.Memory > 0 {
				e.replay(history)
				return
			}
			starts := l.origin(e, moved)
			if search {
				starts = append(starts, l.starts(e, history, streamOf(l.seed, i, l.rounds))...)
			}
			if !e.fit(history, starts) {
				e.wake = l.rounds + 1
			}
		})
	}
	group.Wait()
	fits.Repanic()
	for i, p := range l.weights() {
		if e := l.experts[i]; p < negligible && e.Memory == 0 && e.wake == 0 {
			e.wake = 2 * l.rounds
		}
	}
}

// origin returns where an expert starts as a start of its fit, if the mode that it
// has is of another standardisation.
func (l *BMA) origin(e *expert, moved bool) [][]float64 {
	if !moved {
		return nil
	}
	return [][]float64{e.start}
}

// later returns the round Growth times as late as now, at least the given number of
// rounds from now, and within what an int and a snapshot hold.
func (l *BMA) later(minimum int) int {
	return max(l.rounds+minimum, int(min(l.o.Growth*float64(l.rounds), 1<<30-1)))
}

// negligible is the weight below which an expert rests until the rounds have
// doubled: it has no weight, and is neither fitted nor moved.
const negligible = 1e-6

// learn moves the posterior by a round. An expert that cannot take it, because a
// utility or a gradient is not finite or a gradient is beyond
// [vitrine.MaxFeature], sits it out: its parameters stay, and it is held to
// have guessed,
//
//	log evidence ← log evidence − log(|S| + 1)
//
// which is as lawful a forecast as any, and wins and loses weight as any does.
func (e *expert) learn(round *mle.Choices, t *tangent) {
	if e.Memory > 0 {
		if p, err := e.posterior.Forget(1-1/e.Memory, e.prior); err == nil {
			e.posterior = p
		}
	}
	if takes(e.Model, e.posterior.Mode, round, t) {
		if p, err := e.posterior.Step(&mle.NLL{Model: e.Model, Choices: round}); err == nil {
			e.posterior = p
			return
		}
	}
	p := *e.posterior
	p.LogEvidence -= guess(round)
	e.posterior = &p
}

// takes reports whether a model at w has what a step needs of a round.
func takes(m utility.Model, w []float64, round *mle.Choices, t *tangent) bool {
	_, size := t.of(m, w, round.Features())
	return size <= vitrine.MaxFeature
}

// guess returns the log loss of one who knows nothing of a round.
func guess(round *mle.Choices) float64 { return portable.Log(float64(round.Rows() + 1)) }

// replay learns a history from its first round on.
func (e *expert) replay(c *mle.Choices) {
	if e.restart() != nil {
		return // as it was made, it cannot be
	}
	var t tangent
	for s := range c.Rounds() {
		if round := c.Round(s); round.Rows() > 0 {
			e.learn(round, &t)
		}
	}
}

// fit moves the expert to the start from which the evidence is largest, its
// present mode among them. Where it cannot be fitted from anywhere it sits out the
// rounds that it cannot take at its mode, as learn has it. Where that does not help
// it stays, and false is returned.
func (e *expert) fit(c *mle.Choices, starts [][]float64) bool {
	best := e.best(c, starts)
	if best == nil {
		taken, charge := e.taken(c)
		if best = e.best(taken, starts); best == nil {
			return false
		}
		best.LogEvidence -= charge
	}
	e.posterior = best
	return true
}

// taken returns the rounds that the expert can take at its mode, the others without
// their items, and the log loss of a guess at the others.
func (e *expert) taken(c *mle.Choices) (taken *mle.Choices, charge float64) {
	var t tangent
	taken = mle.NewChoices(e.Model.NumFeatures())
	for s := range c.Rounds() {
		round := c.Round(s)
		if round.Rows() > 0 && !takes(e.Model, e.posterior.Mode, round, &t) {
			charge += guess(round)
			taken.AppendRows(nil, vitrine.Outside)
			continue
		}
		taken.AppendRows(round.Features(), c.Choice(s))
	}
	return taken, charge
}

// best returns the posterior of the largest evidence, nil if there is none.
func (e *expert) best(c *mle.Choices, starts [][]float64) *mle.Laplace {
	nll := &mle.NLL{Model: e.Model, Choices: c, Prior: e.prior}
	var best *mle.Laplace
	for k := -1; k < len(starts); k++ {
		w := append([]float64(nil), e.posterior.Mode...)
		steps := 20
		if k >= 0 {
			copy(w, starts[k])
			steps = 15
		}
		if _, err := (mle.LevenbergMarquardt{Steps: steps, Tolerance: 1e-4}).Minimize(nll, w); err != nil {
			continue
		}
		p, err := mle.NewLaplace(nll, w)
		if err == nil && (best == nil || p.LogEvidence > best.LogEvidence) {
			best = p
		}
	}
	return best
}

// weights returns the π_e, equal ones where all rest.
func (l *BMA) weights() []float64 {
	pi := make([]float64, len(l.experts))
	for i, e := range l.experts {
		pi[i] = e.posterior.LogEvidence
		if e.wake > 0 {
			pi[i] = math.Inf(-1)
		}
	}
	maximum := floats.Max(pi)
	for i := range pi {
		pi[i] = portable.Exp(pi[i] - maximum)
		if math.IsInf(maximum, -1) {
			pi[i] = 1
		}
	}
	floats.Scale(1/floats.Sum(pi), pi)
	return pi
}

// Diagnostics returns the weight of each expert.
func (l *BMA) Diagnostics() map[string]float64 {
	d := map[string]float64{}
	for i, p := range l.weights() {
		d[l.experts[i].String()] = p
	}
	return d
}

// width returns b_t for the coming round.
func (l *BMA) width() float64 {
	return max(l.o.Width, min(1, math.Sqrt(l.o.Anneal/float64(l.p.Features*(l.rounds+1)))))
}

// freeze implements algorithm.
func (l *BMA) freeze() vitrine.Policy {
	pi := &mixture{
		p: l.p, weights: l.weights(), width: l.width(),
		z: l.z,
	}
	for _, e := range l.experts {
		pi.experts = append(pi.experts, belief{e.Model, e.posterior})
	}
	return pi
}

// encode implements algorithm.
func (l *BMA) encode(e *state.Encoder) {
	for _, n := range []int{l.nextFit, l.nextSearch} {
		e.Count(n)
	}
	e.Uint64(l.seed)
	e.Floats(l.z.shift)
	e.Floats(l.z.scale)
	l.seen.encode(e)
	l.history.Encode(e)
	l.base.posterior.Encode(e)
	for _, x := range l.experts {
		e.Floats(x.start)
		x.posterior.Encode(e)
		e.Count(x.wake)
		e.Count(len(x.units))
		for _, u := range x.units {
			e.Floats(u)
		}
	}
}

// decode implements algorithm. Version 1 has the moments of the first context's items, and
// the history standardised by them. What it lacks, the moments of all items, is
// made up from those that were offered.
func (l *BMA) decode(d *state.Decoder, version, rounds int) func() {
	first := version == 1
	n := *l
	n.history, n.seen, n.experts = mle.NewChoices(l.p.Features), newMoments(l.p.Features), nil
	n.nextFit, n.nextSearch = d.Count(), d.Count()
	n.seed = d.Uint64()
	n.z = standardisation{d.FloatSlice(), d.FloatSlice()}
	if len(n.z.shift) == 0 && len(n.z.scale) == 0 {
		n.z = standardisation{} // no items before the snapshot
	} else if len(n.z.shift) != l.p.Features || len(n.z.scale) != l.p.Features {
		d.Fail(fmt.Errorf("snapshot has the moments of %d features, want %d", len(n.z.shift), l.p.Features))
	}
	for _, v := range n.z.scale {
		if !(v > 0) {
			d.Fail(fmt.Errorf("snapshot has the standard deviation %v", v))
		}
	}
	if !first {
		n.seen.decode(d)
	}
	n.history.Decode(d)
	if have := n.history.Rounds(); have != rounds {
		d.Fail(fmt.Errorf("snapshot has the data of %d rounds, and counts %d", have, rounds))
	}
	if n.z.shift == nil && n.history.Rows() > 0 {
		d.Fail(fmt.Errorf("snapshot has the data of %d items, and no moments of their features", n.history.Rows()))
	}
	if !first && (n.seen.n < n.history.Rows() || (n.seen.n > 0) != (n.z.shift != nil)) {
		d.Fail(fmt.Errorf("snapshot has the moments of %d items, and the data of %d", n.seen.n, n.history.Rows()))
	}
	n.base = &expert{Expert: l.base.Expert, prior: l.base.prior, start: l.base.start, posterior: mle.DecodeLaplace(d, len(l.base.prior))}
	for _, x := range l.experts {
		restored := &expert{Expert: x.Expert, prior: x.prior, start: slices.Clone(x.start)}
		if !first {
			d.Floats(restored.start)
		}
		restored.posterior, restored.wake = mle.DecodeLaplace(d, len(x.prior)), d.Count()
		for range d.Count() {
			if d.Err() != nil {
				break
			}
			theta := make([]float64, unitLength(x.Model))
			d.Floats(theta)
			restored.units = append(restored.units, theta)
		}
		n.experts = append(n.experts, restored)
	}
	return func() {
		if first && n.history.Rows() > 0 {
			back := n.z.inverse()
			n.history = n.history.Standardised(back.shift, back.scale)
			n.seen.add(n.history.Features())
		}
		*l = n
	}
}
