package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// LogBarrierOptions are the options of the log-barrier strategy.
type LogBarrierOptions struct {
	Constants string  `toml:"constants" range:"theory|tuned" doc:"γ_t of the theory, from err_constant and err_rate, or γ√t"`
	Gamma     float64 `toml:"gamma" range:"(0, inf)" doc:"γ of constants = tuned, in 1/revenue: in round t the barrier weighs 1/(γ√t)"`
	Limit     int     `toml:"limit" range:"[1, 1000000]" doc:"the most assortments that a decision may enumerate"`
	ErrorOptions
	RegressionOptions
	// The order of a round's offer says which place each item had.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
}

// DefaultLogBarrierOptions returns an offline oracle, and at most 100,000
// assortments.
func DefaultLogBarrierOptions() LogBarrierOptions {
	return LogBarrierOptions{Constants: "tuned", Gamma: 10, Limit: 100_000, ErrorOptions: DefaultErrorOptions(),
		RegressionOptions: DefaultRegressionOptions()}
}

// maxBarrierItems bounds N: a step of the program takes N³.
const maxBarrierItems = 1000

func (o LogBarrierOptions) check(p Problem) error {
	if err := p.checkOptions(o); err != nil {
		return err
	}
	if err := assortment.AtMost(p.MaxShown).CheckCount(p.Items, o.Limit); err != nil {
		return fmt.Errorf("%w: the log-barrier strategy weighs every one of them in every round: show fewer "+
			"items, raise the limit, or choose another policy", err)
	}
	if p.Items > maxBarrierItems {
		return fmt.Errorf("items = %d: the log-barrier strategy decides among at most %d: announce fewer, or choose "+
			"another policy", p.Items, maxBarrierItems)
	}
	return nil
}

// LogBarrier is the log-barrier strategy (Zhang and Luo 2024): in round t it draws S_t from the distribution q on the
// family that solves
//
//	maximise  Σ_S q_S R_S(ŵ_t) + (1/γ_t) Σ_i log Σ_{S∋i} q_S
//
// where R_S(w) is the expected revenue of S under f_w, and ŵ_t the estimate of a regression oracle. Items of good
// assortments are shown often, and every item is shown sometimes. γ_t is, in this order, with tuned constants, with the
// theory's for an offline oracle in epoch m, and with the theory's for an online oracle,
//
//	γ √t
//	max{1, √(N (K+1)⁴ / Err(2^{m−2}))} / (K+1)⁴
//	K² √(N / Err(T)) / (K+1)⁴
//
// The last two are γ of Zhang and Luo's Equations 5 and 10, whose barrier weighs (K+1)⁴/γ. They assume exp(u) ≤ 1,
// which utilities here need not satisfy. Err is the oracle's error, [ErrorOptions].
//
// With position effects R_S is the revenue of S in its best order, in which it is shown.
//
// The program is solved exactly, over all Σ_{l≤K} C(N, l) assortments, so the strategy is not tractable.
type LogBarrier struct {
	regressor
	o LogBarrierOptions
}

// NewLogBarrier returns a learner at its first round, with initial weights from rng. It returns an error if the problem
// allows more assortments than the limit.
func NewLogBarrier(p Problem, m utility.Model, o LogBarrierOptions, rng *rand.Rand) (*LogBarrier, error) {
	if err := o.check(p); err != nil {
		return nil, err
	}
	oracle, err := newRegressor("NewLogBarrier", p, m, newPlaces(p, o.PositionEffects), o.RegressionOptions, rng)
	if err != nil {
		return nil, err
	}
	l := &LogBarrier{regressor: oracle, o: o}
	l.self, l.identity = l, p.identify("log-barrier-mnl", 1, utility.Identity(m), o)
	return l, nil
}

// freeze implements algorithm.
func (l *LogBarrier) freeze() vitrine.Policy {
	return &logBarrier{
		onGreedy: newOnGreedy(l.p, l.model, l.params(), l.places),
		gamma:    l.gamma(),
		limit:    l.o.Limit,
		p:        l.p,
	}
}

// gamma returns γ_t of the coming round for N items.
func (l *LogBarrier) gamma() func(n int) float64 {
	k, root := float64(l.p.MaxShown), math.Sqrt(float64(l.rounds+1))
	squared, err := (k+1)*(k+1), l.err(l.o.ErrorOptions)
	switch {
	case l.o.Constants == "tuned":
		return func(int) float64 { return l.o.Gamma * root }
	case l.online != nil:
		return func(n int) float64 { return k * k * math.Sqrt(float64(n)/err) / (squared * squared) }
	default:
		return func(n int) float64 { return max(1, squared*math.Sqrt(float64(n)/err)) / (squared * squared) }
	}
}

// logBarrier is the policy of a round.
type logBarrier struct {
	onGreedy
	gamma func(n int) float64
	limit int
	p     Problem
}

// Offer implements vitrine.Policy. The propensity is q_S. If a request brings more than 1000 items, or so many that the
// assortments exceed the limit, or if the family contains only the empty set, Offer shows the best assortment under f_ŵ.
func (o *logBarrier) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	w := barriers.Get().(*barrierScratch)
	defer barriers.Put(w)
	q := o.distribution(w, x)
	if q == nil {
		return o.greedy.Offer(x, rng)
	}
	last := len(q) - 1
	left := rng.Float64()
	for s, p := range q {
		if left -= p; left < 0 || s == last {
			offer := vitrine.Offer{Assortment: append(vitrine.Assortment(nil), w.sets.At(s)...), Propensity: p}
			if o.effects != nil {
				offer.Order = slices.Clone(w.order.of(offer.Assortment, w.u, o.effects, x.Revenue))
			}
			return offer
		}
	}
	panic("bandit: a distribution on no sets")
}

// Propensity returns the probability that Offer shows s.
func (o *logBarrier) Propensity(x *vitrine.Context, s vitrine.Assortment) float64 {
	w := barriers.Get().(*barrierScratch)
	defer barriers.Put(w)
	q := o.distribution(w, x)
	if q == nil && slices.Equal(s, o.greedy.Offer(x, nil).Assortment) {
		return 1
	}
	for k, p := range q {
		if slices.Equal(w.sets.At(k), s) {
			return p
		}
	}
	return 0
}

// distribution returns q, or nil if the family is not enumerated or contains only the empty set.
func (o *logBarrier) distribution(w *barrierScratch, x *vitrine.Context) []float64 {
	n := x.NumItems()
	if n > maxBarrierItems {
		return nil
	}
	if _, err := assortment.Enumerate(&w.sets, o.p.Family(x), o.p.MaxShown, n, o.limit); err != nil ||
		w.sets.Len() == 0 {
		return nil
	}
	w.u = scratch.Grow(w.u, n)
	o.greedy.Utilities(w.u, x)
	w.revenue = scratch.Grow(w.revenue, w.sets.Len())
	for s := range w.revenue {
		if o.effects == nil {
			w.revenue[s] = vitrine.ExpectedRevenue(w.sets.At(s), w.u, x.Revenue)
			continue
		}
		order := w.order.of(w.sets.At(s), w.u, o.effects, x.Revenue)
		w.revenue[s] = vitrine.OrderedRevenue(order, w.u, o.effects, x.Revenue)
	}
	q, _ := w.barrier.solve(&w.sets, w.revenue, n, o.gamma(n))
	return q
}

// barrierScratch is a decision's working memory.
type barrierScratch struct {
	sets       assortment.Sets
	u, revenue []float64
	order      bestOrder
	barrier    barrier
}

var barriers = sync.Pool{New: func() any { return new(barrierScratch) }}

// Reasons implements [Explainer].
func (o *logBarrier) Reasons(x *vitrine.Context, _ *rand.Rand) Reasons {
	r := o.greedy.Reasons(x, nil) // without drawing
	w := barriers.Get().(*barrierScratch)
	defer barriers.Put(w)
	if o.distribution(w, x) != nil {
		r.By, r.IsBest = ByWeight, false
	}
	return r
}
