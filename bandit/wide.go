package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/scratch"
	"vitrine/internal/state"
)

// The widths at which [NewAuto] chooses.
const (
	maxAllExperts = 30  // features of which BMA-MNL has all experts
	maxLinear     = 100 // features of which BMA-MNL has its linear experts, if their kinds are not known
)

// isWide reports whether a problem has more features than BMA-MNL learns from at once.
func (p Problem) isWide() bool {
	return p.Features > maxLinear || p.Features > maxAllExperts && p.Numeric != nil
}

// inner returns the problem of the BMA-MNL within Wide: the first 29 numeric columns, and the index.
func (p Problem) inner() Problem {
	p.Features, p.Numeric = min(len(p.Numeric), maxAllExperts-1)+1, nil
	return p
}

// AutoExperts returns the experts of the learner that [NewAuto] makes.
func AutoExperts(p Problem) []Expert {
	if p.isWide() {
		p = p.inner()
	}
	return DefaultExperts(p.Features)
}

// AutoOptions say what no learner can know. The zero value is right if the items of a page are not shown in places.
type AutoOptions struct {
	// Rounds tell the places by the order of their offers. [Wide] cannot learn them.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned; up to 30 features"`
	// A linear utility that was fitted to earlier choices, for features as they come: aᵀx + b with (a, b) ~ N(mean, covariance).
	// Nothing is known of a parameter whose row of the covariance is 0. [Wide] has no such prior.
	PriorMean       []float64 `toml:"prior_mean,omitempty" doc:"a linear utility that is known: its slopes, and then its intercept"`
	PriorCovariance []float64 `toml:"prior_covariance,omitempty" doc:"the covariance of prior_mean, row after row"`
}

// NewAuto returns the learner that needs no choice. Up to 30 features it is BMA-MNL with
// its default experts. Wider it is [Wide]; but if the problem does not say which columns are
// numeric, only beyond 100.
func NewAuto(p Problem, o AutoOptions, rng *rand.Rand) (vitrine.Learner, error) {
	if p.isWide() {
		if o.PositionEffects {
			return nil, fmt.Errorf("position_effects = true: auto learns places of items with at most %d features, and these have %d: name fewer, or the policy ucb-mnl", maxAllExperts, p.Features)
		}
		if len(o.PriorMean) > 0 || len(o.PriorCovariance) > 0 {
			return nil, fmt.Errorf("prior_mean: auto takes a prior of at most %d features, and these have %d: name fewer, or the policy onl-mnl with pilot_weights", maxAllExperts, p.Features)
		}
		l, err := NewWide(p, rng)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	known, err := newLinearPrior(o.PriorMean, o.PriorCovariance, p.Features)
	if err != nil {
		return nil, err
	}
	averaged := DefaultBMAOptions()
	averaged.PositionEffects = o.PositionEffects
	l, err := newBMAKnowing(known, p, DefaultExperts(p.Features), averaged, rng)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Wide is BMA-MNL for many features, most of which are indicators: hashed ids, words, crosses. A
// linear posterior of the effects φ of all columns gives each item the index of its indicators,
//
//	s_i = Σ_j φ_j x_ij
//
// and BMA-MNL learns from the numeric features and s. So its experts may bend the numeric
// features and the main effect of the indicators, and a round costs O(K d) and a bounded
// amount. The effects of indicators have a common variance, learned from the data, which shrinks them.
//
// For each slot the effects are drawn again, φ ~ N(φ̂, b_t² V), so that what is not known of an item is
// explored.
type Wide struct {
	learner
	line     *wideLine
	seen     moments // of the numeric features of all items
	bma      *BMA
	nextMove int // the round after which moments and σ are looked at

	scan    indicators // scratch
	effect  []float64
	offered scratch.Matrix
}

// NewWide returns a learner at its first round. It uses the first 29 numeric columns of the
// problem as such, and takes all others for indicators.
func NewWide(p Problem, rng *rand.Rand) (*Wide, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	inner := p.inner()
	numeric := slices.Clone(p.Numeric[:inner.Features-1])
	bma, err := NewBMA(inner, DefaultExperts(inner.Features), DefaultBMAOptions(), rng)
	if err != nil {
		return nil, err
	}
	l := &Wide{line: newWideLine(p.Features, numeric), seen: newMoments(len(numeric)), bma: bma, nextMove: 1}
	l.learner = learner{p: p, self: l, identity: p.identify("wide", 3, fmt.Sprintf("numeric columns %v", numeric), nil, nil)}
	l.identity.oldest = 1
	return l, nil
}

// learn implements algorithm.
func (l *Wide) learn(r vitrine.Round) {
	x := *r.Context
	if r.Context.Features != nil {
		l.scan.scan(l.line, r.Context.Features)
		l.effect = l.scan.modes(l.effect, l.line)
		x.Features = l.line.reduce(new(scratch.Matrix), r.Context.Features, &l.scan, l.effect)
		l.seen.add(l.numeric(x.Features))
	}
	if l.line.z.shift == nil && l.seen.n > 0 {
		l.line.standardise(l.seen.standardisation())
	}
	if err := l.bma.Observe(vitrine.Round{Context: &x, Offer: r.Offer, Choice: r.Choice}); err != nil {
		// The index is beyond the bound of features: the experts sit the round out.
		if err = l.bma.Observe(vitrine.Round{Context: new(vitrine.Context), Choice: vitrine.Outside}); err != nil {
			panic(fmt.Sprintf("bandit: an empty round is refused: %v", err))
		}
	}
	if s := r.Offer.Assortment; len(s) > 0 {
		l.line.learn(l.offered.Rows(r.Context.Features, s), r.Choice)
	}
	if l.rounds >= l.nextMove {
		l.nextMove = max(l.rounds+1, int(min(1.2*float64(l.rounds), 1<<30-1)))
		if l.seen.n > 0 {
			if now := l.seen.standardisation(); !l.line.z.stands(now) {
				l.line.standardise(now)
			}
		}
		l.line.shrink()
	}
}

// numeric returns the numeric columns of reduced features.
func (l *Wide) numeric(reduced *mat.Dense) *mat.Dense {
	n, d := reduced.Dims()
	if d == 1 {
		return nil
	}
	return reduced.Slice(0, n, 0, d-1).(*mat.Dense)
}

// reduce stores in dst the numeric features of each item and its index under the given effects of the
// distinct indicators.
func (l *wideLine) reduce(dst *scratch.Matrix, x *mat.Dense, rows *indicators, effect []float64) *mat.Dense {
	n, _ := x.Dims()
	reduced := dst.Reshape(n, len(l.numeric)+1)
	for i := range n {
		from, to := x.RawRowView(i), reduced.RawRowView(i)
		for k, j := range l.numeric {
			to[k] = from[j]
		}
		to[len(l.numeric)] = rows.sum(i, effect)
	}
	return reduced
}

// freeze implements algorithm.
func (l *Wide) freeze() vitrine.Policy {
	line := *l.line
	line.effect, line.pull = slices.Clone(line.effect), slices.Clone(line.pull)
	return &widePolicy{l.p, &line, l.bma.Policy().(*mixture)}
}

// widePolicy is Wide's policy: for each slot a draw of the effects of indicators, and a family.
type widePolicy struct {
	p     Problem
	line  *wideLine // only what belongs to the indicators
	inner *mixture
}

// wideScratch is what an offer of Wide needs besides memory for its answer.
type wideScratch struct {
	rows    indicators
	effect  []float64
	reduced scratch.Matrix
}

var wides = sync.Pool{New: func() any { return new(wideScratch) }}

// Offer implements vitrine.Policy. The propensity has no closed form;
// [Propensity] estimates it.
func (o *widePolicy) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	if x.NumItems() == 0 {
		return vitrine.Offer{Assortment: vitrine.Assortment{}}
	}
	family := o.p.Family(x)
	w, s := mixtures.Get().(*mixtureScratch), wides.Get().(*wideScratch)
	defer mixtures.Put(w)
	defer wides.Put(s)
	o.sample(w, s, x, rng)
	return o.inner.pick(w, family, x.Revenue)
}

// sample leaves the sampled utilities of all slots in w.
func (o *widePolicy) sample(w *mixtureScratch, s *wideScratch, x *vitrine.Context, rng *rand.Rand) {
	o.inner.begin(w, x, rng)
	if w.n == 0 {
		return
	}
	s.rows.scan(o.line, x.Features)
	for k := range w.expert {
		s.effect = s.rows.modes(s.effect, o.line)
		for a, j := range s.rows.distinct {
			s.effect[a] += float64(o.inner.width * math.Sqrt(o.line.variance(j)) * rng.NormFloat64())
		}
		o.inner.fillSlots(w, o.line.reduce(&s.reduced, x.Features, &s.rows, s.effect), k, k+1)
	}
}

// Utilities stores in dst what BMA-MNL's policy stores, at the modes of the effects.
func (o *widePolicy) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	if x.NumItems() == 0 {
		return
	}
	s := wides.Get().(*wideScratch)
	defer wides.Put(s)
	s.rows.scan(o.line, x.Features)
	s.effect = s.rows.modes(s.effect, o.line)
	o.inner.Utilities(dst, &vitrine.Context{Features: o.line.reduce(&s.reduced, x.Features, &s.rows, s.effect)})
}

// encode implements algorithm.
func (l *Wide) encode(e *state.Encoder) {
	e.Count(l.nextMove)
	l.seen.encode(e)
	l.line.encode(e)
	l.bma.encode(e)
}

// decode implements algorithm. Version v has version v + 3 of BMA-MNL within.
func (l *Wide) decode(d *state.Decoder, version, rounds int) func() {
	next, seen := d.Count(), newMoments(len(l.line.numeric))
	seen.decode(d)
	line := l.line.decode(d)
	inner := l.bma.decode(d, version+3, rounds)
	return func() {
		l.nextMove, l.seen, l.line = next, seen, line
		inner()
		l.bma.rounds, l.bma.policy = rounds, nil
	}
}
