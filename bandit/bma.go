package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/internal/option"
	"vitrine/internal/panics"
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

// Expert is a utility family whose parameters stand, or move.
type Expert struct {
	Model utility.Model
	// Memory is 0, for parameters that stand, or the number of rounds, at least
	// 1, after which the share 1/e of the information of a round is left. An
	// expert with a memory is followed round by round, without full fits.
	Memory float64
}

// String returns how the expert is called.
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

// mostProducts is the largest d with which products are among the defaults.
const mostProducts = 10

// DefaultExperts returns the recommended experts for items of d features: the
// quadratic family only where it has not many more parameters than the others.
func DefaultExperts(d int) []Expert {
	experts := []Expert{
		{Model: utility.NewLinear(d, true)},
		{Model: utility.NewLinear(d, true), Memory: 200},
		{Model: utility.NewRadial(d, 1)},
		{Model: utility.NewSpectral(d, 1)},
	}
	if d <= mostProducts {
		experts = append(experts, Expert{Model: utility.NewQuadratic(d)})
	}
	return experts
}

// BMA is BMA-MNL: Bayesian model averaging of utility families, the experts, and
// posterior sampling for each slot of the assortment. Features are standardised
// by the mean and the standard deviation of each coordinate over the items of
// the first context that has any. An expert e has the posterior mode ŵ_e, its
// precision H_e and its evidence by [mle.Laplace], and the weight
//
//	π_e ∝ evidence_e
//
// For each slot an expert e ~ π and a parameter w ~ N(ŵ_e, b_t² H_e⁻¹) are
// drawn, and the slot takes the best item left under the utilities f linearised
// at ŵ_e. So an assortment holds the answers of several hypotheses: a wrong one
// costs a slot, and the items of one page contrast what the experts dispute.
//
// Full fits are made after the rounds 1, 2, …, each Growth times the one before;
// in between each round is a step of a Kalman filter, whose cost does not grow.
// All rounds are kept for the fits, K·d numbers each.
type BMA struct {
	p       Problem
	o       BMAOptions
	seed    uint64
	experts []*expert

	shift, scale []float64 // of the features; nil before the first items
	rounds       int
	nextFit      int
	nextSearch   int
	history      *mle.Choices
	base         *expert // linear: units are searched beside its fit

	policy  vitrine.Policy
	items   matrix // scratch
	pool    *mixturePool
	tangent tangent
}

// expert is a family and its posterior.
type expert struct {
	Expert
	prior     []float64    // precisions
	posterior *mle.Laplace // never nil
	units     [][]float64  // the best of the last search
	wake      int          // it rests until the first fit after so many rounds, 0 where it does not
}

// NewBMA returns a learner at its first round.
func NewBMA(p Problem, experts []Expert, o BMAOptions, rng *rand.Rand) (*BMA, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := option.Check(o); err != nil {
		return nil, err
	}
	if err := CheckExperts(p.Features, experts); err != nil {
		return nil, err
	}
	l := &BMA{
		p: p, o: o, seed: rng.Uint64(),
		nextFit: 1, nextSearch: 8,
		history: mle.NewChoices(p.Features),
		pool:    new(mixturePool),
	}
	for i, x := range experts {
		e, err := newExpert(x, rng)
		if err != nil {
			return nil, fmt.Errorf("expert %d, %v: %w", i+1, x, err)
		}
		l.experts = append(l.experts, e)
	}
	var err error
	l.base, err = newExpert(Expert{Model: utility.NewLinear(p.Features, true)}, nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// CheckExperts reports the first expert that items of d features cannot have, or
// that is there twice, or that there is none.
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
			return fmt.Errorf("expert %d, %s, is of %d features, the problem has %d", i+1, name, x.Model.NumFeatures(), d)
		case x.Model.NumParams() < 1:
			return fmt.Errorf("expert %d, %s, has no parameters: there is nothing to learn", i+1, name)
		case x.Memory != 0 && !(x.Memory >= 1 && !math.IsInf(x.Memory, 0)):
			return fmt.Errorf("expert %d, %s: memory = %v: must be finite and at least 1 round, or 0 for parameters that stand", i+1, name, x.Memory)
		case twice:
			return fmt.Errorf("experts %d and %d are both %s: an expert counts once", first+1, i+1, name)
		}
	}
	return nil
}

// newExpert returns a family at its prior: around 0 where the utility is linear
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
	var err error
	e.posterior, err = mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(m.NumFeatures()), Prior: e.prior}, w)
	if err != nil {
		return nil, err
	}
	if x.Memory != 0 {
		// Never fitted, it would keep the prior's verdict on where it starts.
		e.posterior.LogEvidence = 0
	}
	return e, nil
}

// Observe implements vitrine.Learner.
func (l *BMA) Observe(r vitrine.Round) error {
	if err := r.Check(l.p.Features); err != nil {
		return err
	}
	shift, scale := l.shift, l.scale
	if shift == nil && r.Context.NumItems() > 0 {
		shift, scale = moments(r.Context.Features)
	}
	round := mle.NewChoices(l.p.Features)
	var x *mat.Dense
	s := r.Offer.Assortment
	if len(s) > 0 {
		x = l.items.rows(r.Context.Features, s)
		standardise(x, x, shift, scale)
		for i, e := range l.experts {
			if e.wake > 0 {
				continue
			}
			if _, size := l.tangent.of(e.Model, e.posterior.Mode, x); !(size <= vitrine.LargestFeature) {
				return fmt.Errorf("expert %d, %v: a utility or a gradient is beyond %v: scale the features", i+1, e, vitrine.LargestFeature)
			}
		}
		round.AppendRows(x, r.Choice)
	}
	if round.Rows() > 0 {
		steps := make([]*mle.Laplace, len(l.experts))
		for i, e := range l.experts {
			if e.wake > 0 || e.Memory == 0 && l.rounds+1 >= l.nextFit {
				continue
			}
			next, err := e.step(round)
			if err != nil {
				return fmt.Errorf("expert %d, %v: %w", i+1, e, err)
			}
			steps[i] = next
		}
		for i, e := range l.experts {
			if steps[i] != nil {
				e.posterior = steps[i]
			}
		}
	}
	l.shift, l.scale = shift, scale
	l.history.AppendRows(x, r.Choice)
	l.rounds++
	l.policy = nil
	if l.rounds >= l.nextFit {
		l.fit()
	}
	return nil
}

// fit fits all experts to the history, side by side. A panic of a model is the
// caller's.
func (l *BMA) fit() {
	l.nextFit = l.later(1)
	search := l.rounds >= l.nextSearch
	if search {
		l.nextSearch = l.later(3)
	}
	l.base.fit(l.history, nil)
	var group sync.WaitGroup
	var fits panics.Catcher
	for i, e := range l.experts {
		if e.Memory > 0 || l.rounds < e.wake {
			continue
		}
		e.wake = 0
		group.Go(func() {
			defer fits.Catch()
			var starts [][]float64
			if search {
				starts = l.starts(e, streamOf(l.seed, i, l.rounds))
			}
			if !e.fit(l.history, starts) {
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

// later returns the round Growth times as late as now, at least so many rounds
// from now, and within what an int and a snapshot hold.
func (l *BMA) later(least int) int {
	return max(l.rounds+least, int(min(l.o.Growth*float64(l.rounds), 1<<30-1)))
}

// negligible is the weight below which an expert rests until the rounds have
// doubled: it has no weight, and is neither fitted nor moved.
const negligible = 1e-6

// step returns the posterior after a round.
func (e *expert) step(round *mle.Choices) (*mle.Laplace, error) {
	p := e.posterior
	if e.Memory > 0 {
		var err error
		if p, err = p.Forget(1-1/e.Memory, e.prior); err != nil {
			return nil, err
		}
	}
	return p.Step(&mle.NLL{Model: e.Model, Choices: round})
}

// fit moves the expert to the start from which the evidence is largest, its
// present mode among them. One that cannot be fitted from anywhere stays, and
// false is returned.
func (e *expert) fit(c *mle.Choices, starts [][]float64) bool {
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
	if best != nil {
		e.posterior = best
	}
	return best != nil
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
	most := floats.Max(pi)
	for i := range pi {
		pi[i] = math.Exp(pi[i] - most)
		if math.IsInf(most, -1) {
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

// Policy implements vitrine.Learner.
func (l *BMA) Policy() vitrine.Policy {
	if l.policy == nil {
		pi := &mixture{
			p: l.p, weights: l.weights(), width: l.width(),
			shift: l.shift, scale: l.scale, pool: l.pool,
		}
		for _, e := range l.experts {
			pi.experts = append(pi.experts, belief{e.Model, e.posterior})
		}
		l.policy = pi
	}
	return l.policy
}

// moments returns the mean and the standard deviation of each column of x. Where
// the latter is next to nothing, as it is of a single item, the size of the mean
// or 1 stands for it.
func moments(x *mat.Dense) (mean, sd []float64) {
	n, d := x.Dims()
	mean, sd = make([]float64, d), make([]float64, d)
	column := make([]float64, n)
	for j := range d {
		m, v := stat.PopMeanVariance(mat.Col(column, j, x), nil)
		mean[j], sd[j] = m, math.Sqrt(v)
		if size := max(1, math.Abs(m)); !(sd[j] > 1e-6*size) {
			sd[j] = size
		}
	}
	return mean, sd
}

// standardise stores (x − shift) / scale in dst, which may be x.
func standardise(dst, x *mat.Dense, shift, scale []float64) {
	n, _ := x.Dims()
	for i := range n {
		to := dst.RawRowView(i)
		for j, v := range x.RawRowView(i) {
			to[j] = (v - shift[j]) / scale[j]
		}
	}
}

func (l *BMA) kind() kind {
	k := l.p.kind("bma-mnl", 1, nil, l.o, DefaultBMAOptions())
	for _, e := range l.experts {
		k.tail += " " + e.called(utility.Identity(e.Model))
	}
	return k
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (l *BMA) MarshalBinary() ([]byte, error) {
	e := l.kind().encoder()
	for _, n := range []int{l.rounds, l.nextFit, l.nextSearch} {
		e.Count(n)
	}
	e.Uint64(l.seed)
	e.Floats(l.shift)
	e.Floats(l.scale)
	l.history.Encode(e)
	l.base.posterior.Encode(e)
	for _, x := range l.experts {
		x.posterior.Encode(e)
		e.Count(x.wake)
		e.Count(len(x.units))
		for _, u := range x.units {
			e.Floats(u)
		}
	}
	return e.Bytes()
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. A learner that
// returns an error, as it does for a snapshot of another problem, experts or
// options, is unchanged.
func (l *BMA) UnmarshalBinary(data []byte) error {
	d, err := l.kind().decoder(data)
	if err != nil {
		return err
	}
	n := &BMA{p: l.p, o: l.o, pool: l.pool, history: mle.NewChoices(l.p.Features)}
	n.rounds, n.nextFit, n.nextSearch = d.Count(), d.Count(), d.Count()
	n.seed = d.Uint64()
	n.shift, n.scale = d.FloatSlice(), d.FloatSlice()
	if len(n.shift) == 0 && len(n.scale) == 0 {
		n.shift, n.scale = nil, nil // no items before the snapshot
	} else if len(n.shift) != l.p.Features || len(n.scale) != l.p.Features {
		d.Fail(fmt.Errorf("snapshot has the moments of %d features, want %d", len(n.shift), l.p.Features))
	}
	for _, v := range n.scale {
		if !(v > 0) {
			d.Fail(fmt.Errorf("snapshot has the standard deviation %v", v))
		}
	}
	n.history.Decode(d)
	if have := n.history.Rounds(); have != n.rounds {
		d.Fail(fmt.Errorf("snapshot has the data of %d rounds, and counts %d", have, n.rounds))
	}
	if n.shift == nil && n.history.Rows() > 0 {
		d.Fail(fmt.Errorf("snapshot has the data of %d items, and no moments of their features", n.history.Rows()))
	}
	n.base = &expert{Expert: l.base.Expert, prior: l.base.prior, posterior: mle.DecodeLaplace(d, len(l.base.prior))}
	for _, x := range l.experts {
		restored := &expert{Expert: x.Expert, prior: x.prior, posterior: mle.DecodeLaplace(d, len(x.prior)), wake: d.Count()}
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
	if err := d.Close(); err != nil {
		return err
	}
	*l = *n
	return nil
}
