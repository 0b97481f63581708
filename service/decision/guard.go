package decision

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// guard watches what a placement earns a decision: against its uniformly drawn sets, the baselines that were shown in
// the mode shadow, its own first week, and its predictions. The tests may be looked at any time: see [confseq.Mean].
//
// Outcomes that are reported come before expiries, so decisions do not close in their order, and sales would come
// first. The guard takes them by the time of the decision, in cohorts: one whose decisions have all closed is added to
// the sums as a whole. Its centres were known when it began.
//
// The sums begin again with each period, so that a late decline does not hide behind good months. The error of all
// tests in all periods sums to guardError: a test has a quarter of it, and of this 1/(j(j+1)) in period j. Period 0 is
// the learner's apprenticeship, and is not tested.
type guard struct {
	since  uint64 // later entries are watched
	period uint64
	start  int64  // of the period, a time
	begun  int64  // of period 1
	entry  uint64 // the last one before the period

	sums                  // of the period
	first    confseq.Mean // earned in the first week
	baseline confseq.Mean // what the caller's sets earned, in all periods
	cohorts  []*cohort    // the oldest first
	alarm    *alarm
	late     bool // whether it began with a snapshot of an earlier program, and not with the placement
}

// sums are what the decisions of a period have earned.
type sums struct {
	earned    confseq.Mean // by sets of the policy
	estimated confseq.Mean // by sets with a prediction
	predicted float64      // by the policy, of the same sets
	lead      confseq.Mean // of the policy over chance: see cohort.add
}

// cohort are the decisions of a part of the attribution window.
type cohort struct {
	number    int64 // time / length
	open      uint64
	earned    confseq.Block
	estimated confseq.Block
	predicted float64
	lead      confseq.Block
	baseline  confseq.Block
}

// alarm is a test that failed. It stays until an operator clears it, or the learner begins again or rolls
// back.
type alarm struct {
	check   string
	detail  string
	time    int64
	entry   uint64
	version uint64 // that decides with the fallback "version"; 0 if there is none
}

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

// restart forgets the sums. What is watched comes after an entry.
func (g *guard) restart(sequence uint64) {
	*g = guard{since: sequence, entry: sequence, baseline: g.baseline, late: g.late}
}

// restartGuard restarts the guard after an entry, and ends its alarm.
func (p *placement) restartGuard(sequence uint64) {
	p.guard.restart(sequence)
	p.worker.substitute.Store(nil)
}

// sameWatch reports whether the guard goes on under another configuration.
func (c *Config) sameWatch(o *Config) bool {
	share := func(c *Config) float64 {
		if c.ExploreShare == nil {
			return 0
		}
		return *c.ExploreShare
	}
	return c.Mode == o.Mode && c.Explore == o.Explore && share(c) == share(o) && c.window == o.window
}

// cohortOf returns the cohort of a decision, nil if it is not watched.
func (p *placement) cohortOf(r *record) *cohort {
	g := &p.guard
	if r.entry <= g.since || g.alarm != nil {
		return nil
	}
	number := r.time / p.config.cohortLength()
	at, found := slices.BinarySearchFunc(g.cohorts, number, func(c *cohort, n int64) int { return int(min(max(c.number-n, -1), 1)) })
	if !found {
		g.cohorts = slices.Insert(g.cohorts, at, &cohort{number: number, earned: g.earned.Begin(), estimated: g.estimated.Begin(), baseline: g.baseline.Begin()})
	}
	return g.cohorts[at]
}

func (c *Config) cohortLength() int64 { return max(int64(c.window)/cohortShare, 1) }

// watch adds an open decision.
func (p *placement) watch(r *record) {
	if c := p.cohortOf(r); c != nil {
		c.open++
	}
}

// unwatch takes a decision that has closed; o is nil if there is no round of it.
func (p *placement) unwatch(r *record, o *offer.Closed) {
	c := p.cohortOf(r)
	if c == nil || c.open == 0 {
		return
	}
	c.open--
	if o != nil {
		c.add(o, p.config)
	}
}

// add adds a round. With exploration the lead of the policy over chance in a round is
//
//	D = (x − m)(A/(1 − ε) − (1 − A)/ε),   E D = E[x | policy] − E[x | chance]
//
// where A says that the policy was drawn, with probability 1 − ε, and m is what sets of the policy earned before. A centre may be
// larger than all revenues of the round: a cohort that began before a period has the centre of more expensive sets.
func (c *cohort) add(o *offer.Closed, config *Config) {
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
	}
	if lead, ok := config.lead(o.Mode, x, c.earned.Centre); ok {
		share := *config.ExploreShare
		most := max(bound, c.earned.Centre) / min(share, 1-share)
		c.lead.Add(lead, most)
	}
}

// lead returns D of a round that the guard watches, around a centre: see cohort.add.
func (p *placement) lead(c *offer.Closed, centre float64) (lead float64, ok bool) {
	if c.Entry <= p.guard.since {
		return 0, false
	}
	return p.config.lead(c.Mode, c.Earned(), centre)
}

// lead returns D of a round that earned x, with the centre m. ok is false unless sets are drawn by chance.
func (c *Config) lead(mode uint8, x, m float64) (lead float64, ok bool) {
	share := c.ExploreShare
	if c.Mode != api.Explore || c.Explore == api.BySlots || *share >= 1 {
		return 0, false
	}
	switch mode {
	case offer.ByPolicy:
		return (x - m) / (1 - *share), true
	case offer.ByChance:
		return -(x - m) / *share, true
	}
	return 0, false
}

// advance adds the cohorts that are complete by a time, and tests what they earned. It reports a new alarm.
func (p *placement) advance(now int64, sequence uint64) bool {
	g := &p.guard
	length := p.config.cohortLength()
	for len(g.cohorts) > 0 && g.alarm == nil {
		c := g.cohorts[0]
		if c.open > 0 || c.number >= now/length {
			return false
		}
		g.cohorts = slices.Delete(g.cohorts, 0, 1)
		g.take(c, c.number*length, sequence)
		if check, detail := g.test(); check != "" {
			g.alarm = &alarm{check: check, detail: detail, time: now, entry: sequence, version: p.lastGood()}
			g.cohorts = nil
			p.fallBack()
			return true
		}
	}
	return false
}

// take adds a cohort that began at a time, and begins the next period if this one is over.
func (g *guard) take(c *cohort, at int64, sequence uint64) {
	g.baseline.Add(&c.baseline)
	over := g.period == 0 && g.earned.N+c.earned.N > apprenticeship ||
		g.period > 0 && g.earned.N >= minPeriodSize && at-g.start >= int64(minPeriod) ||
		g.period > 0 && g.start-g.begun < int64(firstWeek) && at-g.begun >= int64(firstWeek)
	if over {
		g.period++
		g.sums, g.start, g.entry = sums{}, at, sequence
		if g.period == 1 {
			g.begun = at
		}
	}
	g.earned.Add(&c.earned)
	g.estimated.Add(&c.estimated)
	g.predicted += c.predicted
	g.lead.Add(&c.lead)
	if g.period > 0 && at-g.begun < int64(firstWeek) {
		g.first.Add(&c.earned)
	}
}

// checks are the tests of the guard in the present period.
func (g *guard) checks() (all []api.GuardCheck) {
	if g.period == 0 {
		return nil
	}
	one := guardError / 4
	alpha := one / float64(g.period*(g.period+1))
	if g.lead.N > 0 {
		all = append(all, api.GuardCheck{Name: "chance", Decisions: g.lead.N, Low: g.lead.Low(alpha), High: g.lead.High(alpha)})
	}
	against := func(name string, m *confseq.Mean) {
		if m.N > 0 && g.earned.N > 0 {
			all = append(all, api.GuardCheck{
				Name: name, Decisions: g.earned.N,
				Low: g.earned.Low(alpha/2) - m.High(one/2), High: g.earned.High(alpha/2) - m.Low(one/2),
			})
		}
	}
	against("baseline", &g.baseline)
	if g.start-g.begun >= int64(firstWeek) {
		against("first-week", &g.first)
	}
	if g.predicted > 0 {
		low, high := g.estimated.Interval(alpha)
		mean := g.predicted / float64(g.estimated.N)
		all = append(all, api.GuardCheck{Name: "predictions", Decisions: g.estimated.N, Low: finite(low / mean), High: finite(high / mean)})
	}
	return all
}

// finite returns a number that JSON has.
func finite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// test returns the first check that fails, and what is wrong.
func (g *guard) test() (check, detail string) {
	for _, c := range g.checks() {
		switch {
		case c.Name == "predictions" && (c.High < leastRatio || c.Low > mostRatio):
			return c.Name, fmt.Sprintf("in %d decisions the policy earned between %.3g and %.3g times what it predicted", c.Decisions, max(c.Low, 0), c.High)
		case c.Name == "predictions" || c.High >= 0:
		case c.Name == "chance":
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than sets drawn by chance", c.Decisions, -c.High)
		case c.Name == "baseline":
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than the baseline did", c.Decisions, -c.High)
		default:
			return c.Name, fmt.Sprintf("in %d decisions the policy earned at least %.3g less a decision than in its first week", c.Decisions, -c.High)
		}
	}
	return "", ""
}

// lastGood returns the version that decides after an alarm: the last one of the learner from before the period in which
// the test failed, or else its oldest one; 0 if it has none.
func (p *placement) lastGood() (number uint64) {
	for _, v := range p.versions {
		if v.learner == p.worker && (number == 0 || v.number <= p.guard.entry) {
			number = v.number
		}
	}
	return number
}

// fallsBack returns what decides instead of the policy: "" unless there is an alarm and a fallback.
func (p *placement) fallsBack() string {
	if p.guard.alarm == nil {
		return ""
	}
	return p.config.Fallback
}

// fallBack has the learner make the policy of the last good version, if it is needed.
func (p *placement) fallBack() {
	if p.fallsBack() != api.FallbackVersion || p.guard.alarm.version == 0 {
		return
	}
	version := p.guard.alarm.version
	p.worker.send(task{what: toCall, call: func(w *worker) { w.recallPolicy(version) }})
}

// recallPolicy makes the policy of a kept version the substitute of the current one.
func (w *worker) recallPolicy(version uint64) {
	k := stateOf(w.kept, version)
	if k == nil {
		return
	}
	_, _ = safely(func() error {
		l, err := w.restored(k.data)
		if err == nil {
			w.substitute.Store(&published{l.Policy(), version})
		}
		return err
	})
}

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. Without an alarm
// nothing changes. Errors are ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) ClearAlarm(ctx context.Context, name string, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if p.guard.alarm == nil {
			return nil, nil
		}
		return new(eventlog.AlarmCleared), nil
	})
}

// report returns the guard's state for the statistics.
func (p *placement) guardReport() *api.Guard {
	g := &p.guard
	r := &api.Guard{Period: g.period, Decisions: g.earned.N, Checks: g.checks()}
	if a := g.alarm; a != nil {
		r.Alarm = &api.Alarm{Check: a.check, Detail: a.detail, Time: time.Unix(0, a.time).UTC(), Entry: a.entry, Fallback: p.fallsBack()}
		if r.Alarm.Fallback == api.FallbackVersion {
			r.Alarm.Version = a.version
		}
	}
	return r
}
