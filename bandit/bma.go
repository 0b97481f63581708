package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// BMAOptions are the options of BMA-MNL.
type BMAOptions struct {
	// Amplitudes of units are drawn in round t with the width
	//
	//	max(b_t, 0.6),  b_t = max(Width, min(1, √(Anneal/(d t))))
	Width      float64 `toml:"width" range:"[0, inf)" doc:"the least width of draws of amplitudes of units, at least 0.6 in effect"`
	Anneal     float64 `toml:"anneal" range:"[0, inf)" doc:"a: in round t the width of these draws is √(a/(d t)), at most 1"`
	Growth     float64 `toml:"growth" range:"(1, inf)" doc:"the factor between the rounds of full fits"`
	Candidates int     `toml:"candidates" range:"[0, 10000]" doc:"random units that a search looks at, and 0.7 as many along the line"`
	Sample     int     `toml:"sample" range:"[1, 10000]" doc:"the most rounds on which a search compares its candidates"`
	// The order of a round's offer says which place each item had.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
}

// DefaultBMAOptions returns the recommended setting.
func DefaultBMAOptions() BMAOptions {
	return BMAOptions{Width: 0.3, Anneal: 60, Growth: 1.2, Candidates: 150, Sample: 150}
}

// Expert is a utility family with parameters that are constant or drift.
type Expert struct {
	Model utility.Model
	// MemoryRounds is 0 for constant parameters. Otherwise it is the number of rounds, at
	// least 1, after which 1/e of a round's information is left; such an expert is
	// updated round by round, without full fits.
	MemoryRounds float64
}

// String returns the expert's name.
func (e Expert) String() string {
	if s, ok := e.Model.(fmt.Stringer); ok {
		return e.called(s.String())
	}
	return e.called(fmt.Sprintf("%T", e.Model))
}

// called returns the name of an expert with the named family.
func (e Expert) called(family string) string {
	if e.MemoryRounds == 0 {
		return family
	}
	return family + fmt.Sprintf(" of memory %v", e.MemoryRounds)
}

// maxProducts is the largest d with which all products of features, and steps of each, are among the defaults.
const maxProducts = 10

// maxUnits is the largest d with which families of units are among the defaults: a round of one costs
// O(K (3d)²), and among many features units are hard to find.
const maxUnits = 30

// movingRounds is the memory, in rounds, of the default experts for tastes that move.
const movingRounds = 200

// The most units of a default family, and the most parameters of a default family with several units: a round of an
// expert that is awake costs their cube.
const (
	maxEach       = 3
	maxEachParams = 36
)

// DefaultExperts returns the recommended experts for items of d ≥ 1 features: fewer if d is large, so that a round stays
// cheap, and the quadratic family and steps only if they need not many more parameters than the others.
func DefaultExperts(d int) []Expert {
	experts := []Expert{
		{Model: utility.NewLinear(d, true)},
		{Model: utility.NewLinear(d, true), MemoryRounds: movingRounds},
	}
	if d <= maxUnits {
		for units := 1; units <= maxEach; units++ {
			for _, m := range []*utility.Additive{utility.NewRadial(d, units), utility.NewSpectral(d, units)} {
				if units == 1 || m.NumParams() <= maxEachParams {
					experts = append(experts, Expert{Model: m})
				}
			}
		}
	}
	if d <= maxProducts {
		experts = append(experts, Expert{Model: utility.NewQuadratic(d)}, Expert{Model: utility.NewSteps(d)},
			Expert{Model: utility.NewQuadratic(d), MemoryRounds: movingRounds})
	}
	return experts
}

// BMA is BMA-MNL: Bayesian model averaging of utility families, the experts, with a family drawn for each slot of the
// assortment. An expert e keeps the posterior mode ŵ_e, its precision H_e and its evidence by [mle.Laplace], and the
// weight
//
//	π_e ∝ evidence_e
//
// An additive expert adds two more beliefs with weights of their own: a posterior over one unit next to a linear fit,
// and one next to a linear fit with slopes near 0. The linear expert adds one belief, with slopes near 0.
//
// For each slot a belief is drawn by weight, and a belief in units also draws a unit and its amplitudes. The slot takes
// the best remaining item under the index
//
//	f_ŵ(x) + α √(∇f_ŵ(x)ᵀ H⁻¹ ∇f_ŵ(x)),  α = 1, or 0.3 for unequal revenues
//
// where the linear parameters stand for all if a unit is drawn. So an assortment combines the answers of several
// hypotheses: a wrong one costs a slot, and the choice between the items tests the experts' disagreements.
//
// A full fit starts after rounds 1, 2, … that grow by the factor Growth. It runs alongside Observe on a copy of the
// beliefs. A later round, determined by the number of rounds only, adopts its result. In between, every round is one
// step of a Kalman filter at constant cost.
//
// The last 4096 to 8192 rounds are kept for the fits, K·d numbers each. Of older rounds each expert keeps only the
// posterior.
//
// Features are standardised by the mean and the standard deviation of each coordinate over all items of all contexts.
// Each full fit compares the moments in use with the moments of all items so far. If they moved too far, all experts
// learn again from the first round on with the new moments; an expert with a memory does so by its filter. The moments
// converge, so this stops happening, at the latest when the first rounds are no longer kept.
//
// An expert that cannot use a round skips it.
type BMA struct {
	learner
	o    BMAOptions
	seed uint64

	*beliefs
	job        *fitJob  // nil if no fit runs
	seen       moments  // of the features of all items
	outliers   outliers // values of these
	nextFit    int
	nextSearch int
	history    *mle.Choices  // the rounds that are kept, as they came
	folded     int           // rounds before them
	window     int           // the most that are kept
	cost       time.Duration // of the last fit, for each round that is kept; 0 if it is not known

	items   scratch.Matrix // scratch
	tamed   scratch.Matrix
	tangent tangent
}

// NewBMA returns a learner at its first round.
func NewBMA(p Problem, experts []Expert, o BMAOptions, rng *rand.Rand) (*BMA, error) {
	return newBMAKnowing(nil, p, experts, o, rng)
}

// newBMAKnowing is NewBMA with a prior, if that is not nil.
func newBMAKnowing(known *linearPrior, p Problem, experts []Expert, o BMAOptions, rng *rand.Rand) (*BMA, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if err := CheckExperts(p.NumFeatures, experts); err != nil {
		return nil, err
	}
	l := &BMA{
		o: o, seed: rng.Uint64(),
		beliefs: &beliefs{intercept: 1},
		nextFit: 1, nextSearch: 8,
		window: maxRounds,
	}
	k := newPlaces(p, o.PositionEffects)
	l.seen, l.history = k.moments(p.NumFeatures), mle.NewChoices(p.NumFeatures+int(k))
	l.seen.extremes = newExtremes(p.NumFeatures)
	if known == nil {
		l.seen.sketches = newSketches(p.NumFeatures)
	}
	var err error
	if l.base, err = newExpert(Expert{Model: utility.NewLinear(p.NumFeatures, true)}, k, nil); err != nil {
		return nil, err
	}
	if known == nil {
		if l.flat, err = l.base.flattened(); err != nil {
			return nil, err
		}
	}
	var families []string
	for i, x := range experts {
		e, err := newExpert(x, k, rng)
		if err != nil {
			return nil, fmt.Errorf("expert %d, %v: %w", i+1, x, err)
		}
		if l.awaited(e) != nil {
			e.wake = waiting
		} else if m, ok := e.additive(); ok {
			rng := streamOf(l.seed, i, 0)
			for b := range l.bases() {
				e.unit[b] = newUnits(m, e.prior, int(k), rng)
			}
		}
		l.experts = append(l.experts, e)
		families = append(families, e.called(utility.Identity(x.Model)))
	}
	l.learner = learner{p: p, self: l, identity: p.identify("bma-mnl", 2, strings.Join(families, " "), o), places: k}
	if known != nil {
		if err := l.know(known); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// know gives the learner a prior. Until features are seen, the prior is in their raw units.
func (l *BMA) know(known *linearPrior) error {
	width := len(l.seen.mean)
	l.known, l.z = known, standardisation{shift: make([]float64, width), scale: slices.Repeat([]float64{1}, width)}
	l.identity.facts = append(l.identity.facts,
		fact{key: "prior", value: fmt.Sprint(known.mean, known.covariance.RawSymmetric().Data)})
	if err := l.assume(); err != nil {
		return err
	}
	for _, e := range l.all() {
		if err := e.restart(); err != nil {
			return err
		}
	}
	return nil
}

const maxExperts = 100

// CheckExperts returns an error if there are no experts, or more than 100, or names the first that is a duplicate or
// does not fit items of d features.
func CheckExperts(d int, experts []Expert) error {
	if len(experts) == 0 {
		return fmt.Errorf("there are no experts: name at least one utility family")
	}
	if len(experts) > maxExperts {
		return fmt.Errorf("there are %d experts: name at most %d", len(experts), maxExperts)
	}
	known := map[string]int{}
	for i, x := range experts {
		if isNil(x.Model) {
			return fmt.Errorf("the model of expert %d is nil: give it a family, such as "+
				"utility.NewLinear(%d, true)", i+1, d)
		}
		name := x.String()
		first, twice := known[name]
		known[name] = i
		switch {
		case x.Model.NumFeatures() != d:
			return fmt.Errorf("expert %d, %s, has %d features, the problem has %d", i+1, name, x.Model.NumFeatures(), d)
		case x.Model.NumParams() < 1:
			return fmt.Errorf("expert %d, %s, has no parameters: there is nothing to learn", i+1, name)
		case x.MemoryRounds != 0 && !(x.MemoryRounds >= 1 && !math.IsInf(x.MemoryRounds, 0)):
			return fmt.Errorf("expert %d, %s: memory_rounds = %v: must be finite and at least 1, or 0 for "+
				"constant parameters", i+1, name, x.MemoryRounds)
		case twice:
			return fmt.Errorf("experts %d and %d are both %s: an expert counts once", first+1, i+1, name)
		}
	}
	return nil
}

// learn implements algorithm.
func (l *BMA) learn(r vitrine.Round) {
	bounds := l.seen.bounds()
	most := l.outliers.note(bounds, r.Context.Features, nil)
	if l.outliers.prevails() {
		l.beginAgain()
		bounds, most = nil, false
	}
	all := bounds.rows(&l.tamed, r.Context.Features, nil)
	if !most {
		l.seen.add(all)
	}
	var x *mat.Dense
	if s := r.Offer.Assortment; len(s) > 0 {
		x = l.items.Rows(all, s)
	}
	l.history.AppendRows(x, r.Choice, r.More...)
	if l.z.shift == nil && l.seen.n > 0 {
		l.z = l.seen.standardisation()
	}
	if x != nil {
		l.beliefs.learn(l.history.Round(l.history.Rounds()-1), l.isDue() && l.lag() == 0, &l.tangent)
	}
	l.fit()
}

// beginAgain forgets all rounds before this one.
func (l *BMA) beginAgain() {
	l.wait()
	var experts []Expert
	for _, e := range l.experts {
		experts = append(experts, e.Expert)
	}
	n, err := newBMAKnowing(l.known, l.p, experts, l.o, stream.New(l.seed, l.rounds, stream.Learner))
	if err != nil {
		panic(fmt.Sprintf("bandit: a learner cannot be made again: %v", err))
	}
	n.outliers = l.outliers.again()
	*l = *n
	l.self, l.rounds = l, 1
}

// together returns the weight of each expert, summed over its beliefs.
func (b *beliefs) together(s portions) []float64 {
	sum := slices.Clone(s.modes)
	for _, u := range s.units {
		floats.Add(sum, u)
	}
	if i := b.line(); i >= 0 {
		sum[i] += s.flat
	}
	return sum
}

// The prior weights of two beliefs. The others' are 1.
const (
	weightOfLine = 2    // the linear family
	weightOfFlat = 0.25 // the linear family with slopes near 0
)

// line returns the index of the linear family with an intercept and constant parameters, or −1.
func (b *beliefs) line() int {
	return slices.IndexFunc(b.experts, func(e *expert) bool {
		m, ok := e.Model.(*utility.Linear)
		return ok && m.NumParams() > m.NumFeatures() && e.MemoryRounds == 0
	})
}

// portions are the weights of the experts' modes, of their units next to each base, and of the linear family with
// slopes near 0.
type portions struct {
	modes []float64
	units [2][]float64
	flat  float64
}

// split returns the weights in each view, which sum to 1. If all modes rest, they share the weight equally.
func (b *beliefs) split() (all []portions) {
	var pi []float64
	for _, v := range b.views() {
		pi = append(pi, v.logWeights()...)
	}
	if math.IsInf(slices.Max(pi), -1) {
		clear(pi[:len(b.experts)])
	}
	softmax(pi)
	for _, v := range b.views() {
		n := len(v.experts)
		all = append(all, portions{pi[:n:n], [2][]float64{pi[n : 2*n : 2*n], pi[2*n : 3*n : 3*n]}, pi[3*n]})
		pi = pi[3*n+1:]
	}
	return all
}

// logWeights returns the logarithms of the weights of one view, in the order of portions.
func (b *beliefs) logWeights() []float64 {
	n, line := len(b.experts), b.line()
	pi := slices.Repeat([]float64{math.Inf(-1)}, 3*n+1)
	if line >= 0 && b.flat != nil {
		pi[len(pi)-1] = b.flat.posterior.LogEvidence + portable.Log(weightOfFlat)
	}
	for i, e := range b.experts {
		if e.wake == 0 {
			pi[i] = e.posterior.LogEvidence
			if i == line {
				pi[i] += portable.Log(weightOfLine)
			}
		}
		for k, base := range b.bases() {
			if e.unit[k] != nil {
				pi[n*(1+k)+i] = base.posterior.LogEvidence + e.unit[k].logMean
			}
		}
	}
	return pi
}

// Diagnostics returns the weight of each expert.
func (l *BMA) Diagnostics() map[string]float64 {
	d := map[string]float64{}
	all := l.split()
	for k, v := range l.views() {
		for i, p := range v.together(all[k]) {
			d[named(v.experts[i].Expert, v.z)] = p
		}
	}
	return d
}

// width returns b_t for the coming round.
func (l *BMA) width() float64 {
	return max(l.o.Width, min(1, math.Sqrt(l.o.Anneal/float64(l.p.NumFeatures*(l.rounds+1)))))
}

// freeze implements algorithm.
func (l *BMA) freeze() vitrine.Policy {
	pi := &mixture{p: l.p, width: l.width(), unknown: l.rounds < firstRounds && l.known == nil, outliers: l.outliers.Outliers,
		places: l.places}
	all, bounds := l.split(), l.seen.bounds()
	for k, v := range l.views() {
		pi.views = append(pi.views, view{z: v.z, bounds: bounds.standardised(v.z)})
		v.freeze(pi, k, all[k])
	}
	if l.known != nil && l.seen.n == 0 {
		// The other families have priors for features with known moments.
		pi.beliefs, pi.weights = []belief{{family: l.base.Model, model: l.base.model, posterior: l.base.posterior}},
			[]float64{1}
	}
	pi.estimateEffects()
	return pi
}

// freeze adds the beliefs of one view to a policy.
func (b *beliefs) freeze(pi *mixture, view int, s portions) {
	add := func(e *expert, p *mle.Laplace, unit *unitPosterior, weight float64) {
		if weight > 0 {
			pi.beliefs = append(pi.beliefs, belief{e.Model, e.model, p, unit, e.MemoryRounds, view})
			pi.weights = append(pi.weights, weight)
		}
	}
	if b.flat != nil {
		add(b.flat, b.flat.posterior, nil, s.flat)
	}
	for i, e := range b.experts {
		add(e, e.posterior, nil, s.modes[i])
		for k, base := range b.bases() {
			add(e, base.posterior, e.unit[k], s.units[k][i])
		}
	}
}
