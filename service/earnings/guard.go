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
// The test of predictions begins with decisions made after the learner's first 500 ended. In a shop that reports only
// sales they end with their attribution window: until then its policy knows little but sales.
//
// An alarm about earnings stays until an operator clears it. An alarm about sales ends by itself once sales are back.
type Guard struct {
	Watch    Watch
	Currency string     // of revenues, in the words of alarms
	Earnings *api.Alarm // without its fallback; nil if there is no alarm
	Sales    *api.Alarm // without its fallback; nil if there is no alarm
	Entry    uint64     // last entry before the period

	since  uint64 // only later entries are watched
	period uint64
	start  int64 // start of the period
	begun  int64 // start of period 1

	sums                  // for the period
	first    confseq.Mean // earnings in the first week
	baseline confseq.Mean // earnings from the caller's sets in the mode shadow, in all periods
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
func (g *Guard) FallsBack() bool {
	return g.Sales != nil || g.Earnings != nil && (g.Earnings.Check != predictions || g.estimated.Sum.Value() < g.predicted)
}

// Needs reports whether a version decides during one of the alarms.
func (g *Guard) Needs(version uint64) bool {
	return g.Sales != nil && g.Sales.Version == version || g.Earnings != nil && g.Earnings.Version == version
}

// sums are the earnings in a period.
type sums struct {
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
	minPeriod      = 24 * time.Hour
	minPeriodSize  = 5000 // decisions
	firstWeek      = 7 * 24 * time.Hour
	cohortShare    = 16 // of the attribution window
	leastRatio     = 0.8
	mostRatio      = 1.25
	predictions    = "predictions" // the check's name
)

// Restart drops the sums and ends any alarm. Watching starts after an entry. How late sales are reported is still known:
// a checkout that breaks with the change that restarts the guard must ring, too.
func (g *Guard) Restart(entry uint64) {
	*g = Guard{Watch: g.Watch, Currency: g.Currency, since: entry, Entry: entry, baseline: g.baseline,
		sales: g.sales.again(g.Watch.Window)}
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
		c := g.cohorts.Next(now / length)
		if c == nil {
			return false, nil
		}
		g.take(&c.Sums, c.Number*length, entry)
		if check, detail := g.test(); check != "" {
			g.Earnings = &api.Alarm{Check: check, Detail: detail, Time: time.Unix(0, now).UTC(), Entry: entry,
				Chance: g.alpha()}
			g.cohorts = nil
			return true, nil
		}
	}
	return false, nil
}

// take adds a cohort that began at a time, and starts the next period if this one is over.
func (g *Guard) take(c *guarded, at int64, entry uint64) {
	g.baseline.Add(&c.baseline)
	over := g.period == 0 && g.earned.N+c.earned.Sums.N > apprenticeship ||
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
	g.lead.Add(&c.lead)
	if g.sales.taught += c.estimated.Sums.N; c.compared {
		g.estimated.Add(&c.estimated)
		g.predicted += c.predicted
		g.bins.merge(&c.bins)
	}
	if g.period > 0 && at-g.begun < int64(firstWeek) {
		g.first.Add(&c.earned)
	}
}

// checks returns the tests of the policy's earnings in the present period.
func (g *Guard) checks() (all []api.GuardCheck) {
	if g.period == 0 {
		return nil
	}
	one, alpha := guardError/5, g.alpha()
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
		add(predictions, g.estimated.N, low/mean, high/mean, leastRatio, g.estimated.Average()/mean)
	}
	return all
}

// alpha returns the error of each check of earnings in the present period.
func (g *Guard) alpha() float64 { return guardError / 5 / float64(g.period*(g.period+1)) }

// finite clamps a number to the range of JSON.
func finite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// test returns the first failing check and its explanation.
func (g *Guard) test() (check, detail string) {
	less := func(c api.GuardCheck, than string) (check, detail string) {
		return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %s less a decision than %s", c.Decisions,
			api.Amount(-*c.High, g.Currency), than)
	}
	for _, c := range g.checks() {
		switch {
		case c.Name == predictions && (*c.High < leastRatio || *c.Low > mostRatio):
			return c.Name, fmt.Sprintf("in %d decisions the policy earned between %.3g and %.3g times what it "+
				"predicted", c.Decisions, max(*c.Low, 0), *c.High)
		case c.Name == predictions || *c.High >= 0:
		case c.Name == "chance":
			return less(c, "sets drawn by chance")
		case c.Name == "baseline":
			return less(c, "the baseline did")
		default:
			return less(c, "in its first week")
		}
	}
	return "", ""
}
