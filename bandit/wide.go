package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// The widths at which [NewAuto] chooses.
const (
	maxAllExperts = 30  // features up to which BMA-MNL uses all experts
	maxLinear     = 128 // features up to which BMA-MNL uses its linear experts, if all are numeric or their kinds are unknown
)

// isWide reports whether a problem offers more features than BMA-MNL learns from at once.
func (p Problem) isWide() bool {
	return p.NumFeatures > maxLinear || p.NumFeatures > maxAllExperts && p.Numeric != nil &&
		len(p.Numeric) < p.NumFeatures
}

// inner returns the problem of the BMA-MNL within Wide: the first numeric columns, and the index.
func (p Problem) inner() Problem {
	most := maxAllExperts
	if len(p.Numeric) >= most {
		most = maxLinear
	}
	direct, customer := p.Numeric[:min(len(p.Numeric), most-1)], p.Customer
	p.NumFeatures, p.Numeric, p.Customer = len(direct)+1, nil, nil
	for k, j := range direct {
		p.Numeric = append(p.Numeric, k)
		if slices.Contains(customer, j) {
			p.Customer = append(p.Customer, k)
		}
	}
	return p
}

// AutoExperts returns the experts of the learner that [NewAuto] makes for a valid problem.
func AutoExperts(p Problem) []Expert {
	if p.isWide() {
		p = p.inner()
	}
	return append(DefaultExperts(p.NumFeatures), numericProducts(p)...)
}

// The largest numbers of parameters of families with products of numeric features, and with squares only.
const (
	maxProductParams = 120
	maxSquareParams  = 160
	maxCrossParams   = 160
)

// numericProducts returns experts with the products of the numeric features with each other, and with all features,
// unless these are among the defaults or too many. If the first are too many, the expert takes squares only.
func numericProducts(p Problem) (experts []Expert) {
	add := func(m *utility.Expansion, maxParams int) bool {
		fits := m.NumParams() <= maxParams
		if fits {
			experts = append(experts, Expert{Model: m})
		}
		return fits
	}
	indicators, many := len(p.Numeric) < p.NumFeatures, p.NumFeatures > maxProducts
	if n := len(p.Customer); many && n > 0 && n < p.NumFeatures {
		add(utility.NewCrossed(p.NumFeatures, p.Customer), maxCrossParams)
	}
	if len(p.Numeric) == 0 {
		return experts
	}
	if (indicators || many) && !add(utility.NewProducts(p.NumFeatures, p.Numeric, false), maxProductParams) {
		add(utility.NewSquares(p.NumFeatures, p.Numeric), maxSquareParams)
	}
	if indicators && many {
		add(utility.NewProducts(p.NumFeatures, p.Numeric, true), maxProductParams)
	}
	return experts
}

// AutoBlock returns the largest order of [Wide]'s covariance matrix, or 0 if [NewAuto] makes another learner.
func AutoBlock(p Problem) int {
	if !p.isWide() {
		return 0
	}
	return p.block()
}

// block returns the largest order of Wide's covariance matrix.
func (p Problem) block() int { return min(p.NumFeatures+1, maxBlock) }

// AutoOptions hold facts that no learner can find out. The zero value is right unless places differ.
type AutoOptions struct {
	// The order of a round's offer says which place each item had. [Wide] cannot learn them.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently; up to 30 columns, or 128 numbers"`
	// A linear utility fitted to earlier choices, for unscaled features: aᵀx + b with (a, b) ~ N(mean, covariance). A
	// row of 0 in the covariance means that its parameter is unknown. [Wide] does not support this prior.
	PriorMean       []float64 `toml:"prior_mean,omitempty" doc:"a linear utility that is known: its slopes, and then its intercept"`
	PriorCovariance []float64 `toml:"prior_covariance,omitempty" doc:"the covariance of prior_mean, row after row"`
}

// NewAuto returns the learner that needs no choice. Up to 30 features it is BMA-MNL with the experts of [AutoExperts].
// Beyond that it is [Wide], or only beyond 128 if all columns are numeric or the problem does not say which are.
func NewAuto(p Problem, o AutoOptions, rng *rand.Rand) (vitrine.Learner, error) {
	if p.isWide() {
		if o.PositionEffects {
			return nil, fmt.Errorf("position_effects = true: auto learns places of items with at most %d columns, "+
				"or %d if all are numbers, and these have %d: name fewer features, or the policy ucb-mnl",
				maxAllExperts, maxLinear, p.NumFeatures)
		}
		if len(o.PriorMean) > 0 || len(o.PriorCovariance) > 0 {
			return nil, fmt.Errorf("prior_mean: auto takes a prior of at most %d columns, or %d if all are "+
				"numbers, and these have %d: name fewer features, or the policy onl-mnl with pilot_weights",
				maxAllExperts, maxLinear, p.NumFeatures)
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
	known, err := newLinearPrior(o.PriorMean, o.PriorCovariance, p.NumFeatures)
	if err != nil {
		return nil, err
	}
	averaged := DefaultBMAOptions()
	averaged.PositionEffects = o.PositionEffects
	l, err := newBMAKnowing(known, p, AutoExperts(p), averaged, rng)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Wide is BMA-MNL for many features, mostly indicators: hashed ids, words, crosses. A linear posterior of all columns
// gives each item the index of its indicators,
//
//	s_i = Σ_j φ_j x_ij
//
// and BMA-MNL learns from the numeric features and s. So its experts may bend the numeric features and the main effect
// of the indicators. The effects of indicators share a variance, learned from the data, which shrinks them. With 30 or
// more numeric features BMA-MNL uses linear experts and, up to 79, their squares. Numeric features beyond the 127th are
// in the index.
//
// A policy adds to s a share of its posterior standard deviation, to explore items with unknown effects.
type Wide struct {
	learner
	line     *wideLine
	seen     moments  // of the numeric columns of all items
	outliers outliers // values of these
	bma      *BMA
	nextMove int // the round after which moments, τ and σ are looked at

	scan    entries // scratch
	numbers scratch.Matrix
	tamed   scratch.Matrix
	offered scratch.Matrix
}

// NewWide returns a learner at its first round. It treats numeric columns beyond the 255th as indicators.
func NewWide(p Problem, rng *rand.Rand) (*Wide, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	inner := p.inner()
	numeric := slices.Clone(p.Numeric[:min(len(p.Numeric), maxBlock-1)])
	bma, err := NewBMA(inner, AutoExperts(inner), DefaultBMAOptions(), rng)
	if err != nil {
		return nil, err
	}
	bma.seen.extremes = nil                                     // it sees only values within bounds
	bma.seen.sketches = bma.seen.sketches[:inner.NumFeatures-1] // the index keeps its own scale
	l := &Wide{line: newWideLine(p.NumFeatures, p.block(), numeric, inner.NumFeatures-1),
		seen: newMoments(len(numeric)), bma: bma, nextMove: 1}
	l.seen.extremes = newExtremes(len(numeric))
	columns := fmt.Sprintf("numeric columns %v", numeric)
	if len(inner.Customer) > 0 { // an expert may cross them
		columns += fmt.Sprintf(", the customer's at positions %v", inner.Customer)
	}
	l.learner = learner{p: p, self: l, identity: p.identify("wide", 2, columns, nil)}
	return l, nil
}

// learn implements algorithm.
func (l *Wide) learn(r vitrine.Round) {
	x := *r.Context
	if bounds := l.seen.bounds(); len(l.line.numeric) > 0 && x.NumItems() > 0 {
		most := l.outliers.note(bounds, x.Features, l.line.numeric)
		if l.outliers.prevails() {
			l.beginAgain()
			bounds, most = nil, false
		}
		x.Features = bounds.rows(&l.tamed, x.Features, l.line.numeric)
		r.Context = &vitrine.Context{Features: x.Features}
		if !most {
			l.seen.add(l.line.numbers(&l.numbers, x.Features))
		}
	}
	if r.Context.NumItems() > 0 {
		if len(l.line.numeric) > 0 && l.line.z.shift == nil {
			l.line.z = l.seen.standardisation()
		}
		l.scan.scan(l.line, r.Context.Features)
		x.Features = l.line.reduce(new(scratch.Matrix), r.Context.Features, &l.scan, 0)
	}
	if err := l.bma.Observe(vitrine.Round{Context: &x, Offer: r.Offer, Choice: r.Choice, More: r.More}); err != nil {
		// The index is beyond the bound of features: the experts sit the round out.
		if err = l.bma.Observe(vitrine.Round{Context: new(vitrine.Context), Choice: vitrine.Outside}); err != nil {
			panic(fmt.Sprintf("bandit: an empty round is refused: %v", err))
		}
	}
	if s := r.Offer.Assortment; len(s) > 0 {
		l.line.learn(l.offered.Rows(r.Context.Features, s), append([]vitrine.Choice{r.Choice}, r.More...))
	}
	if l.rounds >= l.nextMove {
		l.nextMove = max(l.rounds+1, int(min(1.2*float64(l.rounds), 1<<30-1)))
		z := l.line.z
		if l.seen.n > 0 {
			if now := l.seen.standardisation(); !z.stands(now) {
				z = now
			}
		}
		l.line.renew(z)
	}
}

// beginAgain forgets all rounds before this one.
func (l *Wide) beginAgain() {
	l.bma.wait()
	n, err := NewWide(l.p, stream.New(l.bma.seed, l.rounds, stream.Learner))
	if err != nil {
		panic(fmt.Sprintf("bandit: a learner cannot be made again: %v", err))
	}
	n.outliers = l.outliers.again()
	*l = *n
	l.self, l.rounds = l, 1
}

// freeze implements algorithm.
func (l *Wide) freeze() vitrine.Policy {
	return &widePolicy{p: l.p, line: l.line.freeze(), inner: l.bma.Policy().(*mixture), bounds: l.seen.bounds(),
		outliers: l.outliers.Outliers}
}

// widePolicy is Wide's policy: BMA-MNL's for the numeric features and the index, with its bonus.
type widePolicy struct {
	p     Problem
	line  *wideLine // frozen
	inner *mixture

	bounds   *bounds // of the numeric columns
	outliers Outliers
}

// Outliers counts the feature values that the learner left out.
func (o *widePolicy) Outliers() Outliers { return o.outliers }

// reduced returns the features and the indices of the items of x, which the inner policy reads. It uses s.
func (o *widePolicy) reduced(s *wideScratch, x *mat.Dense, optimism float64) *mat.Dense {
	x = o.bounds.rows(&s.tamed, x, o.line.numeric)
	s.rows.scan(o.line, x)
	return o.line.reduce(&s.reduced, x, &s.rows, optimism)
}

// wideScratch is an offer's working memory.
type wideScratch struct {
	rows    entries
	tamed   scratch.Matrix
	reduced scratch.Matrix
}

// indexOptimism is the index's share of α: BMA-MNL adds its own. The bonus works by the slope of the index, so only
// once that is learned.
const indexOptimism = 0.5

var wides = sync.Pool{New: func() any { return new(wideScratch) }}

// Offer implements vitrine.Policy. [Propensity] estimates the propensity, which cannot be computed in closed form.
func (o *widePolicy) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	if x.NumItems() == 0 {
		return vitrine.Offer{Assortment: vitrine.Assortment{}}
	}
	family := o.p.Family(x)
	if o.inner.unknown {
		return o.inner.chance(family, x, rng)
	}
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
	o.inner.fillSlots(w, o.reduced(s, x.Features, indexOptimism*w.optimism), 0, len(w.expert))
}

// Utilities stores in dst what BMA-MNL's policy stores, at the modes of the effects.
func (o *widePolicy) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	if x.NumItems() == 0 {
		return
	}
	s := wides.Get().(*wideScratch)
	defer wides.Put(s)
	o.inner.Utilities(dst, &vitrine.Context{Features: o.reduced(s, x.Features, 0)})
}

// fields implements algorithm.
func (l *Wide) fields(f *fields.Fields, rounds int) func() {
	n := *l
	if f.Reads() {
		n.seen.extremes = newExtremes(len(l.line.numeric))
	}
	f.Count(&n.nextMove)
	n.seen.fields(f)
	n.outliers.fields(f, n.seen.extremes)
	n.line = l.line.fields(f)
	inner := l.bma.fields(f, rounds)
	return func() {
		*l = n
		inner()
		l.bma.rounds, l.bma.policy = rounds, nil
	}
}

// Families returns the weights of the families of the BMA-MNL within.
func (o *widePolicy) Families() []Weight { return o.inner.Families() }

// Value implements [Explainer]. The variance assumes an index of indicators one standard deviation above or below its
// mean: the mean of the variances there, plus the variance of the means.
func (o *widePolicy) Value(mean, sd []float64, x *mat.Dense) (hasMean, hasSD bool) {
	n, _ := x.Dims()
	s := wides.Get().(*wideScratch)
	defer wides.Put(s)
	reduced := o.reduced(s, x, 0)
	_, d := reduced.Dims()
	around, variances := mat.NewDense(2*n, d, nil), make([]float64, n)
	o.line.indexVariances(variances, &s.rows, 0, n)
	for i := range n {
		for side, sign := range []float64{-1, 1} {
			row := around.RawRowView(2*i + side)
			copy(row, reduced.RawRowView(i))
			row[d-1] += float64(sign * math.Sqrt(variances[i]))
		}
	}
	moved, spread := make([]float64, 2*n), make([]float64, 2*n)
	o.inner.Value(moved, spread, around)
	o.inner.Value(mean, sd, reduced)
	for i := range sd {
		within := (float64(spread[2*i]*spread[2*i]) + float64(spread[2*i+1]*spread[2*i+1])) / 2
		sd[i] = math.Hypot(math.Sqrt(within), (moved[2*i+1]-moved[2*i])/2)
	}
	return true, true
}

// IsLinear implements [Explainer].
func (o *widePolicy) IsLinear() bool { return o.inner.IsLinear() }

// Reasons implements [Explainer].
func (o *widePolicy) Reasons(x *vitrine.Context, rng *rand.Rand) Reasons {
	if o.inner.unknown {
		return Reasons{By: ByChance}
	}
	w, s := mixtures.Get().(*mixtureScratch), wides.Get().(*wideScratch)
	defer mixtures.Put(w)
	defer wides.Put(s)
	o.sample(w, s, x, rng)
	return o.inner.reasons(w, o.p.Family(x), x.Revenue)
}
