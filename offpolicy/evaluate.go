package offpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/mle"
	"vitrine/utility"
)

// Round is a logged decision.
type Round struct {
	Decision    string             // its name in messages; "" if unknown
	Context     *vitrine.Context   // all N items
	Items       []string           // names that identify items across rounds
	Shown       vitrine.Assortment // S_t
	Order       []int              // the items of Shown from the first place on, as in [vitrine.Offer]; nil without places
	Choice      vitrine.Choice
	More        []vitrine.Choice // further takes, see [vitrine.Round]
	Earned      []float64        // earnings of each item of Shown; nil if every take earned its revenue
	Shopper     string           // rounds of one shopper may depend on each other; "" if unknown
	Propensity  float64          // μ(S_t); 0 if unknown, or if Law determines it
	SamplingLaw SamplingLaw      // μ; nil if unknown
}

// Revenue returns ρ_t, the page's earnings.
func (r *Round) Revenue() float64 {
	switch {
	case r.Earned != nil:
		return floats.Sum(r.Earned)
	case r.Choice == vitrine.Outside:
		return 0
	}
	earned := r.price(r.Shown[r.Choice-1])
	for _, c := range r.More {
		earned += r.price(r.Shown[c-1])
	}
	return earned
}

// takes counts the round's takes, and takesOf the takes of item i.
func (r *Round) takes() int {
	if r.Choice == vitrine.Outside {
		return 0
	}
	return 1 + len(r.More)
}

func (r *Round) takesOf(i int) (n int) {
	if r.Choice != vitrine.Outside && r.Shown[r.Choice-1] == i {
		n++
	}
	for _, c := range r.More {
		if r.Shown[c-1] == i {
			n++
		}
	}
	return n
}

// earnedBy returns the earnings of item i.
func (r *Round) earnedBy(i int) float64 {
	if r.Earned == nil {
		return float64(r.takesOf(i)) * r.price(i)
	}
	if k := slices.Index(r.Shown, i); k >= 0 {
		return r.Earned[k]
	}
	return 0
}

// isBounded reports whether the page earned between 0 and the revenue of the only item taken.
func (r *Round) isBounded() bool {
	earned := r.Revenue()
	return earned >= 0 && len(r.More) == 0 && (earned == 0 ||
		r.Choice != vitrine.Outside && earned <= r.price(r.Shown[r.Choice-1]))
}

func (r *Round) price(i int) float64 {
	return vitrine.RevenueOf(r.Context.Revenue, i)
}

// propensity returns μ(s), and whether it is known.
func (r *Round) propensity(s vitrine.Assortment) (float64, bool) {
	switch {
	case r.SamplingLaw != nil:
		return r.SamplingLaw.Propensity(s), true
	case r.Propensity > 0 && equal(s, r.Shown):
		return r.Propensity, true
	case r.Propensity > 0:
		return 0, true // any page other than the one shown gets weight 0
	}
	return 0, false
}

func equal(s, t vitrine.Assortment) bool { return len(s) == len(t) && overlap(s, t) == len(s) }

// Options configure [NewLog] and [Log.Evaluate]. The zero value is a sensible default.
type Options struct {
	Model     utility.Model // utility family; nil means linear with an intercept
	Ridge     float64       // precision of a penalty on the parameters, see NewLog; 0 means 10⁻³
	Folds     int           // number of cross-fitting folds; 0 means 5
	Level     float64       // confidence level of the intervals; 0 means 0.95
	Resamples int           // number of bootstrap resamples; 0 means 1000
	Seed      uint64        // seeds the bootstrap and a model's initial parameters
}

func (o Options) resolve(rounds []Round) (Options, error) {
	if len(rounds) == 0 {
		return o, errors.New("the log has no decision with an outcome")
	}
	d := 0
	for t := range rounds {
		r := &rounds[t]
		if r.Context == nil || r.Context.NumItems() == 0 {
			return o, fmt.Errorf("round %d has no items", t+1)
		}
		if t == 0 {
			_, d = r.Context.Features.Dims()
		}
		if err := r.check(d); err != nil {
			return o, fmt.Errorf("round %d: %w", t+1, err)
		}
	}
	if o.Model == nil {
		o.Model = utility.NewLinear(d, true)
	}
	if o.Model.NumFeatures() != d {
		return o, fmt.Errorf("the model has %d features, and the log %d", o.Model.NumFeatures(), d)
	}
	o.Ridge = cmp.Or(o.Ridge, 1e-3)
	o.Folds = cmp.Or(o.Folds, 5)
	o.Level = cmp.Or(o.Level, 0.95)
	o.Resamples = cmp.Or(o.Resamples, 1000)
	switch {
	case !(o.Ridge > 0):
		return o, fmt.Errorf("the ridge is %v: want a positive number", o.Ridge)
	case o.Folds < 2 || o.Folds > len(rounds):
		return o, fmt.Errorf("%d folds of %d rounds: want at least 2, and at most one a round", o.Folds, len(rounds))
	case !(o.Level > 0 && o.Level < 1):
		return o, fmt.Errorf("the level is %v: want a number between 0 and 1", o.Level)
	case o.Resamples < 1:
		return o, fmt.Errorf("%d resamples: want at least 1", o.Resamples)
	}
	return o, nil
}

// check reports whether the round, of d features, is possible.
func (r *Round) check(d int) error {
	if err := (vitrine.Round{Context: r.Context, Offer: vitrine.Offer{Assortment: r.Shown, Order: r.Order},
		Choice: r.Choice, More: r.More}).Check(d); err != nil {
		return err
	}
	switch law := r.SamplingLaw; {
	case r.Items != nil && len(r.Items) != r.Context.NumItems():
		return fmt.Errorf("%d names for %d items", len(r.Items), r.Context.NumItems())
	case r.Earned != nil && len(r.Earned) != len(r.Shown):
		return fmt.Errorf("%d earnings for %d items shown", len(r.Earned), len(r.Shown))
	case !(math.Abs(r.Revenue()) < math.Inf(1)):
		return fmt.Errorf("the earnings are %v", r.Revenue())
	case !(r.Propensity >= 0 && r.Propensity <= 1):
		return fmt.Errorf("the propensity is %v: want a number in (0, 1], or 0 if it is not known", r.Propensity)
	case law == nil:
	case law.Items() != r.Context.NumItems():
		return fmt.Errorf("the law is one of %d items, and the request has %d", law.Items(), r.Context.NumItems())
	case !(law.Propensity(r.Shown) > 0):
		return fmt.Errorf("the law gives the page %v, which was shown, the probability %v", r.Shown,
			law.Propensity(r.Shown))
	}
	return nil
}

// Log is a log with a fitted choice model.
type Log struct {
	Rounds []Round

	o       Options
	all     *fitted // to all rounds
	inverse *mat.SymDense
	folds   []*fitted // to the rounds outside each fold
	early   []*fitted // to no rounds, and to the first 50, 100, 200 and so on

	mean, unit []float64 // by feature: the model's is (x − mean)/unit
	shoppers   shoppers
}

// firstEarly is the number of rounds for the first fit of an interval that holds at any time.
const firstEarly = 50

// NewLog fits the model to all rounds, and to the rounds outside each fold. Round t is in fold t mod Folds. A linear model
// with an intercept measures each feature in standard deviations from its mean, both of the first 50 rounds, so that
// the ridge does not depend on units. A feature that is constant in those rounds keeps its own. Errors name the round.
func NewLog(ctx context.Context, rounds []Round, o Options) (*Log, error) {
	o, err := o.resolve(rounds)
	if err != nil {
		return nil, err
	}
	l := &Log{Rounds: rounds, o: o, folds: make([]*fitted, o.Folds), shoppers: shoppersOf(rounds)}
	l.measure()
	if l.all, err = l.fit(ctx, func(int) bool { return true }); err != nil {
		return nil, err
	}
	var chol mat.Cholesky
	l.inverse = mat.NewSymDense(len(l.all.w), nil)
	if !chol.Factorize(l.all.nll.Fisher(nil, l.all.w)) {
		return nil, errors.New("the information about the parameters is not positive definite: make the ridge larger")
	}
	if err := chol.InverseTo(l.inverse); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) {
			return nil, err
		}
	}
	for f := range l.folds {
		if l.folds[f], err = l.fit(ctx, func(t int) bool { return t%o.Folds != f }); err != nil {
			return nil, err
		}
	}
	for n := 0; n < len(rounds); n = max(firstEarly, 2*n) {
		fitted, err := l.fit(ctx, func(t int) bool { return t < n })
		if err != nil {
			return nil, err
		}
		l.early = append(l.early, fitted)
	}
	return l, nil
}

// measure sets the units of the features to their means and standard deviations in the first rounds. For all families
// but linear ones with an intercept, these would be other utilities: they keep the log's units.
func (l *Log) measure() {
	_, linear := l.o.Model.(*utility.Linear)
	d := l.o.Model.NumFeatures()
	for j := range d {
		var column []float64
		for t := range min(firstEarly, len(l.Rounds)) {
			column = append(column, mat.Col(nil, j, l.Rounds[t].Context.Features)...)
		}
		mean, sd := stat.MeanStdDev(column, nil)
		switch {
		case !linear || l.o.Model.NumParams() == d:
			mean, sd = 0, 1
		case !(sd > 1e-9*math.Abs(mean)): // constant
			sd = 1
		}
		l.mean, l.unit = append(l.mean, mean), append(l.unit, sd)
	}
}

// rows returns the model's features of some items.
func (l *Log) rows(r *Round, s vitrine.Assortment) *mat.Dense {
	x := mat.NewDense(len(s), len(l.mean), nil)
	for k, i := range s {
		row := x.RawRowView(k)
		floats.SubTo(row, r.Context.Features.RawRowView(i), l.mean)
		floats.Div(row, l.unit)
	}
	return x
}

// utilities stores the utilities of a round's items under w in dst.
func (l *Log) utilities(dst, w []float64, t int) {
	r := &l.Rounds[t]
	all := make(vitrine.Assortment, len(dst))
	for i := range all {
		all[i] = i
	}
	l.o.Model.Utilities(dst, w, l.rows(r, all))
}

// Takes returns the mean number of takes of the visits with any, and its standard error. The direct and doubly robust
// methods expect so many of every page that sells. The error is 0 if all visits have as many takes.
func (l *Log) Takes() (mean, se float64) {
	mean = l.all.number
	square := 0.0
	for t := range l.Rounds {
		if n := l.Rounds[t].takes(); n > 0 {
			d := float64(n) - mean
			square += d * d
		}
	}
	return mean, math.Sqrt(square / max(1, l.all.visits*(l.all.visits-1)))
}

// before returns what was fitted only to rounds before round t.
func (l *Log) before(t int) *fitted {
	k := 0
	for n := firstEarly; n <= t; n *= 2 {
		k++
	}
	return l.early[k]
}

// fitted holds parameters and the likelihood that they maximise.
type fitted struct {
	nll    *mle.NLL
	w      []float64
	visits float64 // rounds with a take
	number float64 // their mean number of takes, or 1 without any
}

// fit fits the model to some of the rounds.
func (l *Log) fit(ctx context.Context, of func(t int) bool) (*fitted, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	choices := mle.NewChoices(l.o.Model.NumFeatures())
	f := &fitted{nll: &mle.NLL{Model: l.o.Model, Choices: choices, Ridge: l.o.Ridge},
		w: make([]float64, l.o.Model.NumParams())}
	takes := 0
	for t := range l.Rounds {
		if of(t) {
			r := &l.Rounds[t]
			var x *mat.Dense
			if len(r.Shown) > 0 {
				x = l.rows(r, r.Shown)
			}
			choices.AppendRows(x, r.Choice, r.More...)
			if n := r.takes(); n > 0 {
				f.visits++
				takes += n
			}
		}
	}
	f.number = 1
	if f.visits > 0 {
		f.number = float64(takes) / f.visits
	}
	l.o.Model.Init(f.w, rand.New(rand.NewPCG(l.o.Seed, 0)))
	if _, err := (mle.LevenbergMarquardt{Steps: 500, Tolerance: 1e-9}).Minimize(f.nll, f.w); err != nil {
		return nil, err
	}
	return f, nil
}

// Utilities stores in dst the utilities of a round's items under the parameters fitted without the round's fold. To
// judge a greedy policy that learns from the log, derive its pages from these utilities.
func (l *Log) Utilities(dst []float64, t int) {
	l.utilities(dst, l.folds[t%l.o.Folds].w, t)
}

// Estimate is the value per page of a policy by one method.
type Estimate struct {
	Method        string
	Value         float64  // expected revenue per page
	StandardError float64  // NaN, like the next two intervals, if Sales is below [MinSales]
	Normal        Interval // value ± z standard errors, or t with shoppers who return
	Bootstrap     Interval // percentiles over resampled shoppers, or rounds if none is known to return
	// holds after all rounds simultaneously, even in finite samples, see [Log.Evaluate]; NaN if unavailable
	Anytime Interval
	ESS     float64 // effective sample size of the weights, see [Support]; NaN without weights, and for the method items
	Sales   float64 // effective sample size of the weights of rounds that earned something; NaN for the method direct
	None    string  // why there is no number; "" if there is one

	influence []float64 // by round, mean 0
	steps     []step    // by round; nil without an interval for any time
}

// Interval is a confidence interval.
type Interval struct{ Low, High float64 }

// MinESS is the minimum effective sample size for using weights of whole pages.
const MinESS = 50

// MinSales is the minimum [Estimate.Sales] for a standard error, a normal or bootstrap interval, and a verdict on the
// model: with fewer sales, the variance of the log says little about the variance of an estimate.
const MinSales = 5

// Report judges a policy by a log.
type Report struct {
	Policy    string
	Support   Support
	Estimates []Estimate

	// Alarm is the paired difference between a doubly robust method and the direct one, in units of its standard error.
	// Beyond 2, the model's family is probably wrong. AlarmMethod is dr-pi, or dr-sets if dr-pi gives no number. If
	// neither does, AlarmMethod is empty and Alarm is NaN. Alarm is also NaN if AlarmMethod counts too few sales.
	Alarm       float64
	AlarmMethod string

	log       *Log // that the policy was judged on
	shoppers  shoppers
	level     float64
	resamples int
	seed      uint64
}

// Methods lists the methods of a report, in order.
func Methods() []string { return []string{"direct", "dr-pi", "pi", "items", "snips", "dr-sets"} }

// Estimate returns a method's estimate.
func (r *Report) Estimate(method string) *Estimate {
	for i := range r.Estimates {
		if r.Estimates[i].Method == method {
			return &r.Estimates[i]
		}
	}
	return nil
}

var nan = math.NaN()

// Evaluate estimates the earnings of a policy that shows pages[t] in round t. For a randomized policy, draw one page
// per round. If a page contains items that the request does not, Evaluate returns an error that names the round.
//
// The Anytime intervals are confidence sequences (see [confseq.Lower]) for the mean earnings of the policy's page over
// the log's requests. While a log grows, all its intervals hold simultaneously with the probability Level, so you may
// look after every round and stop at any time. Models for dr-pi and dr-sets are then fitted only to earlier rounds. The
// intervals hold if the log's laws are right, pages[t] is determined before the outcome of round t, and no page earns
// less than 0 or more than its most expensive item. A log with several takes in a visit therefore gets no Anytime
// intervals. For dr-pi and pi, the assumption behind their weights must hold too. If pages depend on later rounds, call
// [Report.Learned].
func (l *Log) Evaluate(policy string, pages []vitrine.Assortment) (*Report, error) {
	if len(pages) != len(l.Rounds) {
		return nil, fmt.Errorf("%d pages for %d rounds", len(pages), len(l.Rounds))
	}
	for t, page := range pages {
		if err := page.Check(l.Rounds[t].Context.NumItems()); err != nil {
			return nil, fmt.Errorf("round %d: the policy's page: %w", t+1, err)
		}
	}
	r := &Report{Policy: policy, Alarm: nan, log: l, shoppers: l.shoppers, level: l.o.Level, resamples: l.o.Resamples, seed: l.o.Seed}
	j := l.judge(pages)
	r.Support = j.support
	for _, e := range []Estimate{l.direct(pages), j.doublyRobust(), j.pseudoInverse(), j.items(), j.snips(),
		j.setsRobust()} {
		if e.None == "" && l.all.visits == 0 { // its standard error is 0
			e.None = "nothing was taken in any round"
		}
		r.finish(&e)
		r.Estimates = append(r.Estimates, e)
	}
	r.Support.Tail = r.tail(j)
	const ridge = 1e-3 // on the logged pages the model errs only by its ridge
	direct := r.Estimate("direct")
	for _, method := range []string{"dr-pi", "dr-sets"} {
		d := r.difference(r.Estimate(method), direct)
		if d.None == "" && !(d.StandardError <= ridge*direct.StandardError) {
			r.Alarm, r.AlarmMethod = d.Value/d.StandardError, method
			break
		}
	}
	return r, nil
}

// Learned removes the intervals that hold at any time. Call it if the policy learned from rounds later than the ones it
// is judged by.
func (r *Report) Learned() {
	for i := range r.Estimates {
		r.Estimates[i].steps, r.Estimates[i].Anytime = nil, Interval{nan, nan}
	}
}

// Balance compares the features of the items on the log's pages with pages drawn by the log's laws. For a feature φ
// as the model measures it (see [NewLog]), and for the constant 1,
//
//	D_t = Σ_i (1{i ∈ S_t} − P_t(i ∈ S)) φ(x_ti)
//
// has mean 0 and variance φᵀΓφ − (Σ_i P_t(i ∈ S) φ(x_ti))² given the past, if page S_t was drawn by the law of its
// round.
type Balance struct {
	Rounds  int     // rounds with a law
	Feature int     // column that is farthest off; −1 for the number of items
	Z       float64 // Σ_t D_t for this column in standard deviations
	// largest |Z| that chance explains, by Bernstein's inequality: with an error of 0.1%, shared by all columns
	Limit float64
}

// Wrong reports whether the pages were not drawn as the log says.
func (b Balance) Wrong() bool { return math.Abs(b.Z) > b.Limit }

// Balance tests the log's laws. If the log contains no laws, Balance counts no rounds.
func (l *Log) Balance() Balance {
	d := l.o.Model.NumFeatures()
	sum, variance, most := make([]float64, d+1), make([]float64, d+1), make([]float64, d+1)
	b := Balance{Feature: -1}
	var column []float64
	for t := range l.Rounds {
		r := &l.Rounds[t]
		if r.SamplingLaw == nil {
			continue
		}
		b.Rounds++
		n := r.Context.NumItems()
		column = slices.Grow(column[:0], n)[:n]
		for j := range sum {
			off, mean := 0.0, 0.0
			for i := range column {
				column[i] = 1
				if j < d {
					column[i] = (r.Context.Features.At(i, j) - l.mean[j]) / l.unit[j]
				}
				mean += r.SamplingLaw.Inclusion(i) * column[i]
			}
			for _, i := range r.Shown {
				off += column[i]
			}
			// A deterministic law gives a variance of 0, up to rounding.
			second := square(r.SamplingLaw, column)
			if v := second - mean*mean; v > tolerance*second {
				sum[j] += off - mean
				variance[j] += v
				most[j] = max(most[j], float64(r.SamplingLaw.MaxSize())*floats.Norm(column, math.Inf(1))+math.Abs(mean))
			}
		}
	}
	farthest := -1.0
	for j, v := range variance {
		sd := math.Sqrt(v)
		z, limit := ratio(sum[j], sd), ratio(deviation(v, most[j], lawError/float64(d+1)), sd)
		if far := math.Abs(ratio(z, limit)); far > farthest {
			farthest, b.Z, b.Limit = far, z, limit
			if b.Feature = j; j == d {
				b.Feature = -1
			}
		}
	}
	return b
}

// direct is the direct method, V = (1/n) Σ_t R̂(π(x_t)), with the influence R̂_t − V and that of the parameters.
func (l *Log) direct(pages []vitrine.Assortment) Estimate {
	n := float64(len(pages))
	e := Estimate{Method: "direct", ESS: nan, Sales: nan, influence: make([]float64, len(pages))}
	for t, page := range pages {
		e.influence[t] = l.revenue(l.all, t, page)
		e.Value += e.influence[t] / n
	}
	for t := range e.influence {
		e.influence[t] -= e.Value
	}
	l.addParameters(e.influence, func(t int, of func(c float64, page vitrine.Assortment)) { of(1, pages[t]) })
	return e
}

// addParameters adds the influence of the fitted parameters on V = (1/n) Σ_t Σ c R̂_t(S), over the pages S and numbers
// c that each hands to of:
//
//	n s_tᵀ H⁻¹ ∇V + 1{m_t ≥ 1} (m_t − μ̂) V n/(n₊ μ̂)
//
// where s_t is the score of round t, H the total information, m_t the number of takes, and μ̂ its mean over the n₊
// rounds with a take. R̂ has the factor μ̂.
func (l *Log) addParameters(influence []float64, each func(t int, of func(c float64, page vitrine.Assortment))) {
	n := float64(len(influence))
	w, number, visits := l.all.w, l.all.number, l.all.visits
	d := len(w)
	gradient, total := make([]float64, d), 0.0
	scores := make([]float64, len(influence)*d)
	var m moments
	for t := range l.Rounds {
		r := &l.Rounds[t]
		each(t, func(c float64, page vitrine.Assortment) {
			p := m.at(l, w, r, page)
			value := 0.0
			for k, i := range page {
				value += p[k+1] * r.price(i)
			}
			for k, i := range page {
				floats.AddScaled(gradient, c*number*p[k+1]*(r.price(i)-value)/n, m.g.RawRowView(k))
			}
			total += c * value * number / n
		})
		p := m.at(l, w, r, r.Shown)
		if further := len(r.More); further > 0 { // the expected takes
			floats.Scale(1+float64(further)/floats.Sum(p[1:]), p[1:])
		}
		for k, i := range r.Shown {
			floats.AddScaled(scores[t*d:(t+1)*d], float64(r.takesOf(i))-p[k+1], m.g.RawRowView(k))
		}
	}
	a := mat.NewVecDense(d, nil)
	a.MulVec(l.inverse, mat.NewVecDense(d, gradient))
	for t := range influence {
		if m := l.Rounds[t].takes(); m > 0 {
			influence[t] += (float64(m) - number) * total * n / (visits * number)
		}
		for j := range d {
			influence[t] += n * scores[t*d+j] * a.AtVec(j)
		}
	}
}

// moments holds a page's choice probabilities and the gradients of its utilities.
type moments struct {
	u, p []float64
	g    *mat.Dense
}

// at returns the probabilities of the outside option and of a page's items.
func (m *moments) at(l *Log, w []float64, r *Round, page vitrine.Assortment) []float64 {
	k := len(page)
	m.u, m.p = make([]float64, k), make([]float64, k+1)
	if k > 0 {
		m.g = mat.NewDense(k, len(w), nil)
		utility.Linearize(l.o.Model, m.u, m.g, w, l.rows(r, page))
	}
	vitrine.Probabilities(m.p, m.u)
	return m.p
}

// revenue returns a page's R̂ in round t, for all takes of the visit.
func (l *Log) revenue(f *fitted, t int, page vitrine.Assortment) float64 {
	if len(page) == 0 {
		return 0
	}
	r := &l.Rounds[t]
	u, p := make([]float64, len(page)), make([]float64, len(page)+1)
	l.o.Model.Utilities(u, f.w, l.rows(r, page))
	vitrine.Probabilities(p, u)
	value := 0.0
	for k, i := range page {
		value += p[k+1] * r.price(i)
	}
	return f.number * value
}

func (r *Report) finish(e *Estimate) {
	var sums []float64
	if e.None = cmp.Or(e.None, r.shoppers.few()); e.None == "" {
		sums = r.shoppers.sums(e.influence)
		e.StandardError = stat.StdDev(sums, nil) / math.Sqrt(float64(len(sums)))
		if !(e.StandardError < math.Inf(1)) {
			e.None = "the squares of its weights overflow: look for tiny propensities"
		}
	}
	if e.None != "" {
		e.Value, e.StandardError = nan, nan
		e.Normal, e.Bootstrap, e.Anytime = Interval{nan, nan}, Interval{nan, nan}, Interval{nan, nan}
		return
	}
	e.Anytime = anytime(e.steps, r.level)
	if e.Sales < MinSales {
		e.StandardError, e.Normal, e.Bootstrap = nan, Interval{nan, nan}, Interval{nan, nan}
		return
	}
	z := r.shoppers.quantile(r.level)
	e.Normal = Interval{e.Value - z*e.StandardError, e.Value + z*e.StandardError}
	e.Bootstrap = bootstrap(e.Value, sums, r.level, r.resamples, r.seed)
}

// difference returns the paired difference of two estimates on the same rounds.
func (r *Report) difference(a, b *Estimate) Estimate {
	d := Estimate{Method: a.Method, Value: a.Value - b.Value, ESS: nan, Sales: a.Sales}
	if b.Sales < d.Sales {
		d.Sales = b.Sales
	}
	for _, e := range []*Estimate{a, b} {
		if e.None != "" {
			d.None = e.None
			break
		}
	}
	if d.None == "" {
		d.influence = make([]float64, len(a.influence))
		for t := range d.influence {
			d.influence[t] = a.influence[t] - b.influence[t]
		}
		if a.steps != nil && b.steps != nil {
			d.steps = make([]step, len(a.steps))
			for t := range d.steps {
				d.steps[t] = a.steps[t].minus(b.steps[t])
			}
		}
	}
	r.finish(&d)
	return d
}

// Difference returns how much more r's policy earns than other's, by each method, paired by round. It is an error if
// the reports belong to different logs.
func (r *Report) Difference(other *Report) ([]Estimate, error) {
	if r.log != other.log {
		return nil, fmt.Errorf("%s was judged on another log than %s", r.Policy, other.Policy)
	}
	var list []Estimate
	for i := range r.Estimates {
		list = append(list, r.difference(&r.Estimates[i], &other.Estimates[i]))
	}
	return list, nil
}
