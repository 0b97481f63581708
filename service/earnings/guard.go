package earnings

import (
	"fmt"
	"math"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Guard watches a placement's earnings per decision. It compares them with uniformly drawn sets, with the baselines
// shown in shadow mode, with the placement's own first week, and with its predictions. The tests are valid at any time:
// see [confseq.Mean].
//
// The sums restart with each period, so that good months cannot hide a late decline. The error over all tests and
// periods sums to guardError: each of these four tests spends a fifth of it, and 1/(j(j+1)) of that fifth in period j.
// The test in sales, which is faster, spends the last fifth. Period 0 is the learner's apprenticeship, and is not
// tested.
//
// Demand varies by weekday and by season, and only the sets drawn by chance see the same demand as the policy. The other
// tests fail only if earnings collapse. [Series.Fell] notes smaller falls.
//
// The test of predictions begins once the learner learned from 500 decisions in complete cohorts. If a shop reports only
// sales, a cohort is complete after the attribution window. Until then the policy knows little but sales.
//
// An alarm about earnings stays until an operator clears it. An alarm about sales ends by itself once sales are back.
type Guard struct {
	Watch    Watch
	Currency string     // of revenues, in the words of alarms
	Earnings *api.Alarm // without its fallback; nil if there is no alarm
	Sales    *api.Alarm // without its fallback; nil if there is no alarm

	keeps  bool   // whether the policy decides during the alarm about earnings
	since  uint64 // only later entries are watched
	period uint64
	start  int64 // start of the period

	sums                  // for the period
	baseline confseq.Mean // earnings from the caller's sets in the mode shadow, in all periods
	first    confseq.Mean // earnings in the first week after the apprenticeship
	began    int64        // start of that week
	isOver   bool         // whether that week is over
	cohorts  Cohorts[guarded]
	sales    sales
}

// Doubt describes decisions with outcomes that were probably not reported.
type Doubt struct {
	From, Until uint64 // entries of the first one, and after the last one; empty without any
	Expired     bool   // whether only expired decisions are in doubt, because reports came after all, though late
}

// Doubtful returns the decisions in doubt under a no-sale alarm, from the first one without a sale until an entry.
func (g *Guard) Doubtful(until uint64) Doubt {
	if g.Sales == nil || g.Sales.Check != noSale {
		return Doubt{}
	}
	return Doubt{From: g.Sales.Since, Until: until}
}

// Has reports whether a decision is in doubt.
func (d *Doubt) Has(entry uint64, isExpired bool) bool {
	return entry >= d.From && entry < d.Until && (isExpired || !d.Expired)
}

// Fields passes over the range.
func (d *Doubt) Fields(f *fields.Fields) {
	f.Uvarint(&d.From, &d.Until)
	f.Flag(&d.Expired)
}

// Alarm returns the alarm in force, or nil. An alarm about sales takes precedence.
func (g *Guard) Alarm() *api.Alarm {
	if g.Sales != nil {
		return g.Sales
	}
	return g.Earnings
}

// FallsBack reports whether an alarm calls for the fallback. A policy that earns more than it predicted keeps its pages.
func (g *Guard) FallsBack() bool { return g.Sales != nil || g.Earnings != nil && !g.keeps }

// Needs reports whether a version decides during one of the alarms.
func (g *Guard) Needs(version uint64) bool {
	return g.Sales != nil && g.Sales.Version == version || g.Earnings != nil && g.Earnings.Version == version
}

// sums are the policy's earnings in a period, after an entry.
type sums struct {
	Entry     uint64
	earned    confseq.Mean // by the policy's sets
	estimated confseq.Mean // by sets with a prediction
	predicted float64      // prediction by the policy for the same sets
	lead      confseq.Mean // lead of the policy over chance: see Contrast
	bins      bins
}

// guarded are a cohort's sums.
type guarded struct {
	compared  bool // whether its predictions are compared
	earned    confseq.Block
	estimated confseq.Block
	predicted float64
	lead      confseq.Block
	baseline  confseq.Block
	bins      bins
}

// Watch describes how a placement decides while a guard watches.
type Watch struct {
	Mode    string  // api.Learn, …
	Explore string  // api.BySets, …
	Share   float64 // share of random sets, in the mode explore
	Window  time.Duration
}

// Cohort returns a cohort's length in nanoseconds.
func (w *Watch) Cohort() int64 { return max(int64(w.Window)/cohortShare, 1) }

const (
	guardError     = 0.01
	apprenticeship = 500 // decisions
	day            = 24 * time.Hour
	week           = 7 * day
	minPeriod      = day
	minPeriodSize  = 5000          // decisions
	cohortShare    = 16            // of the attribution window
	collapse       = 0.5           // least earnings as a multiple
	predictions    = "predictions" // the check's name
)

// Restart drops the sums and ends any alarm. Watching starts after an entry. How late sales are reported is still known:
// a checkout that breaks with the change that restarts the guard must ring, too. Your own pages stay known.
func (g *Guard) Restart(entry uint64) {
	*g = Guard{Watch: g.Watch, Currency: g.Currency, since: entry, baseline: g.baseline,
		sales: g.sales.again(g.Watch.Window)}
	g.Entry = entry
}

// Taught returns how many decisions the deciding learner learned from, as far as the guard knows.
func (g *Guard) Taught() uint64 { return g.sales.taught }

// SetTaught sets how many decisions the deciding learner, another one, learned from. Its predictions are trusted, until
// sales disagree, if it learned enough. Call SetTaught before Restart.
func (g *Guard) SetTaught(decisions uint64) {
	known := 0.
	if g.sales.taught = decisions; g.sales.compares() {
		known = minClaimed
	}
	g.sales.claimed, g.sales.kept = [amounts]float64{known, known}, [amounts]float64{known, known}
}

// Forget drops the delays of sales and the revenue of an average sale. Call it before Restart if either may change.
func (g *Guard) Forget() {
	g.sales = sales{taught: g.sales.taught, claimed: g.sales.claimed, kept: g.sales.kept}
}

// watches reports whether a decision counts in a cohort, given its entry.
func (g *Guard) watches(entry uint64) bool { return entry > g.since && g.Alarm() == nil }

// Enter adds an open decision. own says whether the placement's learner predicted its outcome.
func (g *Guard) Enter(entry uint64, time int64, o *offer.Offer, own bool) {
	if g.watches(entry) {
		g.cohorts.Enter(time/g.Watch.Cohort(), func() guarded {
			return guarded{compared: g.sales.compares(), earned: g.earned.Begin(), estimated: g.estimated.Begin(),
				baseline: g.baseline.Begin()}
		})
	}
	g.sales.enter(entry, time, o, own)
}

// Leave removes a closed decision. o is its outcome, or nil if the placement's learner gets no round.
func (g *Guard) Leave(entry uint64, time int64, o *offer.Closed) {
	if !g.watches(entry) {
		return
	}
	if c := g.cohorts.Leave(time / g.Watch.Cohort()); c != nil && o != nil {
		c.add(o, &g.Watch)
	}
}

// Sold records a decision's outcome, whichever learner made it. age is the elapsed part of its attribution window.
func (g *Guard) Sold(c *offer.Closed, age int64) { g.sales.leave(c, age, g.Watch.Window, g.Sales) }

// MoveClock shifts the attribution windows of open decisions. Cohorts keep their times: they wait for their last
// outcome however long that takes.
func (g *Guard) MoveClock(by int64) { g.sales.move(by) }

// add adds a round. Its centre may exceed all of the round's revenues: a cohort that began before a period uses the
// centre of more expensive sets.
func (c *guarded) add(o *offer.Closed, watch *Watch) {
	x, bound := o.Earned(), o.Bound()
	switch o.Mode {
	case offer.ByPolicy:
		c.earned.Add(x, max(bound, c.earned.Centre))
	case offer.ByBaseline:
		if watch.Mode == api.Shadow {
			c.baseline.Add(x, max(bound, c.baseline.Centre))
		}
	}
	if o.Predicted {
		c.estimated.Add(o.PerUnit(), max(bound, c.estimated.Centre))
		c.predicted += o.Expected
		c.bins.add(o)
	}
	if way := wayOf(o.Mode); way != Neither && watch.drawsSets() {
		watch.contrast().Add(&c.lead, way, x, c.earned.Centre, bound)
	}
}

// drawsSets reports whether some sets are random and others not.
func (w *Watch) drawsSets() bool {
	return w.Mode == api.Explore && w.Explore != api.BySwaps && w.Share < 1
}

// contrast compares the policy with random sets.
func (w *Watch) contrast() Contrast { return Contrast{1 - w.Share, w.Share} }

func wayOf(mode uint8) int {
	switch mode {
	case offer.ByPolicy:
		return First
	case offer.ByChance:
		return Second
	}
	return Neither
}

// Advance takes and tests the decisions that are due at a time. It reports whether an alarm was raised. If an alarm
// about sales ended, over is the result of Doubtful.
func (g *Guard) Advance(now int64, entry uint64) (raised bool, over *Doubt) {
	switch what, alarm := g.sales.judge(now, g.Sales); what {
	case rang:
		g.Sales, g.cohorts = alarm, nil
		g.Sales.Time, g.Sales.Entry = time.Unix(0, now).UTC(), entry
		return true, nil
	case ended:
		over = new(g.Doubtful(g.sales.back))
		over.Expired = g.sales.late
		g.Sales = nil
		g.since = max(g.since, entry)
		return false, over
	}
	length := g.Watch.Cohort()
	for g.Alarm() == nil {
		c := g.cohorts.Take(now / length)
		if c == nil {
			return false, nil
		}
		if g.sales.taught += c.Sums.estimated.Sums.N; c.Lost() {
			continue
		}
		g.take(&c.Sums, c.Number*length, entry)
		if c := g.test(); c != nil {
			g.Earnings = &api.Alarm{Check: c.Name, Detail: g.detail(c), Time: time.Unix(0, now).UTC(), Entry: entry,
				Chance: c.alpha}
			g.keeps = *c.Low > c.most
			g.cohorts = nil
			return true, nil
		}
	}
	return false, nil
}

// take adds a cohort that began at a time, and starts the next period if this one is over.
func (g *Guard) take(c *guarded, from int64, entry uint64) {
	g.baseline.Add(&c.baseline)
	if g.period == 0 && g.earned.N+c.earned.Sums.N > apprenticeship ||
		g.period > 0 && g.earned.N >= minPeriodSize && (from-g.start >= int64(minPeriod) || from < g.start) {
		g.period++
		g.sums, g.start = sums{Entry: entry}, from
	}
	g.earned.Add(&c.earned)
	g.lead.Add(&c.lead)
	if c.compared {
		g.estimated.Add(&c.estimated)
		g.predicted += c.predicted
		g.bins.merge(&c.bins)
	}
	if g.period > 0 && !g.isOver {
		g.takeFirst(c, from)
	}
}

// takeFirst adds a cohort that began at a time to the first week. The week begins again if the clock was set back.
func (g *Guard) takeFirst(c *guarded, from int64) {
	if g.began == 0 || from < g.began {
		g.first, g.began = confseq.Mean{}, from
	}
	if g.isOver = from-g.began >= int64(week); !g.isOver {
		g.first.Add(&c.earned)
	}
}

// check is a test of the policy's earnings.
type check struct {
	api.GuardCheck
	least, most float64 // it fails below and above
	alpha       float64
}

// checks returns the tests with enough decisions. Both sides of a test share its error, as do the two means of a
// comparison with earnings at another time.
func (g *Guard) checks() (all []check) {
	if g.period == 0 {
		return nil
	}
	alpha := alphaOf(g.period)
	if g.lead.N > 0 {
		c := check{most: math.Inf(1), alpha: alpha}
		c.set("chance", g.lead.N, g.lead.Low(alpha), g.lead.High(alpha), g.earned.Average())
		all = append(all, c)
	}
	add := func(name string, m *confseq.Mean, low, mean, high, most float64) {
		if low <= 0 || m.N == 0 {
			return
		}
		c := check{least: collapse, most: most, alpha: alpha}
		c.set(name, m.N, m.Low(alpha/2)/high, m.High(alpha/2)/low, m.Average()/mean)
		all = append(all, c)
	}
	past := func(name string, m *confseq.Mean) {
		low, high := m.Interval(guardError / 5)
		add(name, &g.earned, low, m.Average(), high, math.Inf(1))
	}
	past("baseline", &g.baseline)
	if g.isOver {
		past("first-week", &g.first)
	}
	mean := g.predicted / float64(g.estimated.N)
	add(predictions, &g.estimated, mean, mean, mean, 1/collapse)
	return all
}

// set sets what the check has seen: an interval around an estimate.
func (c *check) set(name string, n uint64, low, high, estimate float64) {
	low, high = finite(low), finite(high)
	c.Name, c.Decisions, c.Low, c.High = name, n, &low, &high
	if sees := (high - c.least) / estimate; sees > 0 && sees < 1 {
		c.Sees = &sees
	}
}

// alphaOf returns the error of the test of a number, from 1 on.
func alphaOf(number uint64) float64 { return guardError / 5 / float64(number*(number+1)) }

// finite clamps a number to the range of JSON.
func finite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// test returns the first failing check, or nil.
func (g *Guard) test() *check {
	for _, c := range g.checks() {
		if *c.High < c.least || *c.Low > c.most {
			return &c
		}
	}
	return nil
}

// detail explains a failing check.
func (g *Guard) detail(c *check) string {
	if c.Name == "chance" {
		return fmt.Sprintf("in %d decisions the policy earned at least %s less a decision than sets drawn by chance",
			c.Decisions, api.Amount(-*c.High, g.Currency))
	}
	return fmt.Sprintf("in %d decisions the policy earned between %.3g and %.3g times what %s", c.Decisions,
		max(*c.Low, 0), *c.High, map[string]string{"baseline": "the baseline did", "first-week": "it did in its first week",
			predictions: "it predicted"}[c.Name])
}
