// Package guard watches whether the policy of a placement fails: a test of what it earns that may be looked at any time, and
// signs that its predictions are unsound.
//
//	guard.go      what it earns, in cohorts and periods, and the alarm
//	sales.go      what it sells, in the last 50 to 5,000 decisions
//	report.go     what it says of itself
//	codec.go      the guard in a snapshot
//	soundness.go  its predictions, since the process began
package guard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Guard watches what a placement earns a decision: against its uniformly drawn sets, the baselines that were shown in
// the mode shadow, its own first week, and its predictions. The tests may be looked at any time: see [confseq.Mean].
//
// Outcomes that are reported come before expiries, so decisions do not close in their order, and sales would come
// first. The guard takes them by the time of the decision, in cohorts: one whose decisions have all closed is added to
// the sums as a whole. Its centres were known when it began.
//
// The sums begin again with each period, so that a late decline does not hide behind good months. The error of all
// tests in all periods sums to guardError: each of these four tests spends a fifth of it, and 1/(j(j+1)) of that fifth in
// period j. sales, which is faster, spends the last fifth. Period 0 is the learner's apprenticeship, and is not tested.
//
// An alarm about earnings stays until somebody clears it. An alarm about sales ends by itself once sales are back.
type Guard struct {
	Watch    Watch
	Earnings *api.Alarm // without its fallback; nil if there is none
	Sales    *api.Alarm // the same
	Entry    uint64     // the last one before the period

	since  uint64 // later entries are watched
	period uint64
	start  int64 // of the period, a time
	begun  int64 // of period 1

	sums                  // of the period
	first    confseq.Mean // earned in the first week
	baseline confseq.Mean // what the caller's sets earned, in all periods
	cohorts  []*cohort    // the oldest first
	sales    sales
}

// Doubtful returns the range of entries [first, second) of the decisions whose outcomes were probably not reported.
// Under an alarm of no-sale, the range runs from the first decision without a sale to until; otherwise it is empty.
func (g *Guard) Doubtful(until uint64) [2]uint64 {
	if g.Sales == nil || g.Sales.Check != noSale {
		return [2]uint64{}
	}
	return [2]uint64{g.Sales.Since, until}
}

// Alarm returns the alarm in force, nil if there is none. One about sales is more urgent.
func (g *Guard) Alarm() *api.Alarm {
	if g.Sales != nil {
		return g.Sales
	}
	return g.Earnings
}

// sums are what the decisions of a period have earned.
type sums struct {
	earned    confseq.Mean // by sets of the policy
	estimated confseq.Mean // by sets with a prediction
	predicted float64      // by the policy, of the same sets
	lead      confseq.Mean // of the policy over chance: see cohort.add
	bins      bins
}

// bins are decisions with a prediction by the predicted probability of a sale, as [api.Calibration] has them.
type bins [10]api.Bin

// bin returns the bin of a prediction.
func (b *bins) bin(outside float64) *api.Bin { return &b[min(max(int(10*(1-outside)), 0), len(b)-1)] }

// cohort are the decisions of a part of the attribution window.
type cohort struct {
	number    int64 // time / length
	open      uint64
	earned    confseq.Block
	estimated confseq.Block
	predicted float64
	lead      confseq.Block
	baseline  confseq.Block
	bins      bins
}

// Watch says how a placement decides while a guard watches.
type Watch struct {
	Mode    string  // api.Learn, …
	Explore string  // api.BySets, …
	Share   float64 // of sets drawn by chance, in the mode explore
	Window  time.Duration
}

// Cohort is the length of a cohort in nanoseconds.
func (w *Watch) Cohort() int64 { return max(int64(w.Window)/cohortShare, 1) }

const (
	guardError     = 0.01
	apprenticeship = 500 // decisions
	minPeriod      = 24 * time.Hour
	minPeriodSize  = 5000 // decisions
	firstWeek      = 7 * 24 * time.Hour
	cohortShare    = 16 // of the attribution window
	leastRatio     = 0.8
	mostRatio      = 1.25
)

// Restart forgets the sums, and ends an alarm. What is watched comes after an entry.
func (g *Guard) Restart(entry uint64) {
	*g = Guard{Watch: g.Watch, since: entry, Entry: entry, baseline: g.baseline}
}

// cohortOf returns the cohort of the decision of an entry, nil if it is not watched.
func (g *Guard) cohortOf(entry uint64, time int64) *cohort {
	if entry <= g.since || g.Alarm() != nil {
		return nil
	}
	number := time / g.Watch.Cohort()
	at, found := slices.BinarySearchFunc(g.cohorts, number, func(c *cohort, n int64) int { return cmp.Compare(c.number, n) })
	if !found {
		g.cohorts = slices.Insert(g.cohorts, at, &cohort{number: number, earned: g.earned.Begin(), estimated: g.estimated.Begin(), baseline: g.baseline.Begin()})
	}
	return g.cohorts[at]
}

// Enter adds an open decision. own says whether the placement's learner predicted its outcome.
func (g *Guard) Enter(entry uint64, time int64, o *offer.Offer, own bool) {
	if c := g.cohortOf(entry, time); c != nil {
		c.open++
	}
	g.sales.enter(entry, time, o, own)
}

// Leave takes a decision that has closed. o is its outcome, nil if there is no round of the placement's learner.
func (g *Guard) Leave(entry uint64, time int64, o *offer.Closed) {
	c := g.cohortOf(entry, time)
	if c == nil || c.open == 0 {
		return
	}
	c.open--
	if o != nil {
		c.add(o, &g.Watch)
	}
}

// Sold notes the outcome of a decision, whichever learner made it. age is the part of its attribution window that is over.
func (g *Guard) Sold(c *offer.Closed, age int64) { g.sales.leave(c, age, g.Watch.Window) }

// MoveClock moves the attribution windows of the open decisions. Cohorts keep their times: they wait for their last outcome
// however long that takes.
func (g *Guard) MoveClock(by int64) { g.sales.move(by) }

// add adds a round. With exploration the lead of the policy over chance in a round is
//
//	D = (x − m)(A/(1 − ε) − (1 − A)/ε),   E D = E[x | policy] − E[x | chance]
//
// where A says that the policy was drawn, with probability 1 − ε, and m is what sets of the policy earned before. A centre may be
// larger than all revenues of the round: a cohort that began before a period has the centre of more expensive sets.
func (c *cohort) add(o *offer.Closed, watch *Watch) {
	x, bound := o.Earned(), o.Bound()
	switch o.Mode {
	case offer.ByPolicy:
		c.earned.Add(x, max(bound, c.earned.Centre))
	case offer.ByBaseline:
		c.baseline.Add(x, max(bound, c.baseline.Centre))
	}
	if o.Predicted {
		c.estimated.Add(x, max(bound, c.estimated.Centre))
		c.predicted += o.Expected
		b := c.bins.bin(o.Outside)
		b.Rounds++
		b.Predicted += 1 - o.Outside
		if o.Choice > 0 {
			b.Purchases++
		}
	}
	if lead, ok := watch.lead(o, c.earned.Centre); ok {
		most := max(bound, c.earned.Centre) / min(watch.Share, 1-watch.Share)
		c.lead.Add(lead, most)
	}
}

// Lead returns D of a round, with the centre m. ok is false unless the round is watched and sets are drawn by chance.
func (g *Guard) Lead(c *offer.Closed, m float64) (lead float64, ok bool) {
	if c.Entry <= g.since {
		return 0, false
	}
	return g.Watch.lead(c, m)
}

// drawsSets reports whether some sets are drawn by chance, and others not.
func (w *Watch) drawsSets() bool {
	return w.Mode == api.Explore && w.Explore != api.BySwaps && w.Share < 1
}

func (w *Watch) lead(c *offer.Closed, m float64) (lead float64, ok bool) {
	if !w.drawsSets() {
		return 0, false
	}
	switch c.Mode {
	case offer.ByPolicy:
		return (c.Earned() - m) / (1 - w.Share), true
	case offer.ByChance:
		return -(c.Earned() - m) / w.Share, true
	}
	return 0, false
}

// Advance takes the decisions that are due by a time, and tests them. It reports whether an alarm was raised. If an alarm
// about sales has ended, over is what Doubtful says of it.
func (g *Guard) Advance(now int64, entry uint64) (raised bool, over *[2]uint64) {
	switch what, alarm := g.sales.judge(now, g.Sales); what {
	case rang:
		g.Sales, g.cohorts = alarm, nil
		g.Sales.Time, g.Sales.Entry = time.Unix(0, now).UTC(), entry
		return true, nil
	case ended:
		over = new(g.Doubtful(g.sales.back))
		g.Sales = nil
		g.since = max(g.since, entry)
		return false, over
	}
	length := g.Watch.Cohort()
	for len(g.cohorts) > 0 && g.Alarm() == nil {
		c := g.cohorts[0]
		if c.open > 0 || c.number >= now/length {
			return false, nil
		}
		g.cohorts = slices.Delete(g.cohorts, 0, 1)
		g.take(c, c.number*length, entry)
		if check, detail := g.test(); check != "" {
			g.Earnings = &api.Alarm{Check: check, Detail: detail, Time: time.Unix(0, now).UTC(), Entry: entry}
			g.cohorts = nil
			return true, nil
		}
	}
	return false, nil
}

// take adds a cohort that began at a time, and begins the next period if this one is over.
func (g *Guard) take(c *cohort, at int64, entry uint64) {
	g.baseline.Add(&c.baseline)
	over := g.period == 0 && g.earned.N+c.earned.N > apprenticeship ||
		g.period > 0 && g.earned.N >= minPeriodSize && at-g.start >= int64(minPeriod) ||
		g.period > 0 && g.start-g.begun < int64(firstWeek) && at-g.begun >= int64(firstWeek)
	if over {
		g.period++
		g.sums, g.start, g.Entry = sums{}, at, entry
		if g.period == 1 {
			g.begun = at
		}
	}
	g.earned.Add(&c.earned)
	g.estimated.Add(&c.estimated)
	g.predicted += c.predicted
	g.lead.Add(&c.lead)
	for i := range g.bins {
		to, from := &g.bins[i], &c.bins[i]
		to.Rounds, to.Purchases = to.Rounds+from.Rounds, to.Purchases+from.Purchases
		to.Predicted += from.Predicted
	}
	if g.period > 0 && at-g.begun < int64(firstWeek) {
		g.first.Add(&c.earned)
	}
}

// checks are the tests of what the policy earns in the present period.
func (g *Guard) checks() (all []api.GuardCheck) {
	if g.period == 0 {
		return nil
	}
	one := guardError / 5
	alpha := one / float64(g.period*(g.period+1))
	add := func(name string, n uint64, low, high, limit, scale float64) {
		low, high = finite(low), finite(high)
		c := api.GuardCheck{Name: name, Decisions: n, Low: &low, High: &high}
		if sees := (high - limit) / scale; sees > 0 && sees < 1 {
			c.Sees = &sees
		}
		all = append(all, c)
	}
	earned := g.earned.Average()
	if g.lead.N > 0 {
		add("chance", g.lead.N, g.lead.Low(alpha), g.lead.High(alpha), 0, earned)
	}
	against := func(name string, m *confseq.Mean) {
		if m.N > 0 && g.earned.N > 0 {
			add(name, g.earned.N, g.earned.Low(alpha/2)-m.High(one/2), g.earned.High(alpha/2)-m.Low(one/2), 0, earned)
		}
	}
	against("baseline", &g.baseline)
	if g.start-g.begun >= int64(firstWeek) {
		against("first-week", &g.first)
	}
	if g.predicted > 0 {
		low, high := g.estimated.Interval(alpha)
		mean := g.predicted / float64(g.estimated.N)
		add("predictions", g.estimated.N, low/mean, high/mean, leastRatio, g.estimated.Average()/mean)
	}
	return all
}

// finite returns a number that JSON has.
func finite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// test returns the first check that fails, and what is wrong.
func (g *Guard) test() (check, detail string) {
	for _, c := range g.checks() {
		switch {
		case c.Name == "predictions" && (*c.High < leastRatio || *c.Low > mostRatio):
			return c.Name, fmt.Sprintf("in %d decisions the policy earned between %.3g and %.3g times what it predicted", c.Decisions, max(*c.Low, 0), *c.High)
		case c.Name == "predictions" || *c.High >= 0:
		case c.Name == "chance":
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than sets drawn by chance", c.Decisions, -*c.High)
		case c.Name == "baseline":
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than the baseline did", c.Decisions, -*c.High)
		default:
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than in its first week", c.Decisions, -*c.High)
		}
	}
	return "", ""
}
