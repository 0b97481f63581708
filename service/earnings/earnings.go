// Package earnings sums up the decisions of a placement and their earnings. It reports whether the placement earns more
// than its alternatives, and raises an alarm if it does not. All of it is a bounded function of the log.
//
//	cohort.go      decisions that count together; peaks.go those that earned most
//	contrast.go    how much more one way to decide earns than another
//	gain.go        whether a placement earns more
//	counts.go      totals, and comparisons with the policy's predictions
//	items.go       by item, by place, and in the last decisions
//	series.go      over time; fell.go whether less than before
//	guard.go       earnings in periods, tested at any time, and the alarm; guard_report.go, guard_codec.go
//	sales.go       sales, in the last 50 to 5,000 decisions
//	soundness.go   signs that its predictions are unsound, since the process began
//
// Experiments, which compare variants by the same cohorts and contrasts, are in abtest.
package earnings

import (
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Earnings holds a placement's sums and its guard.
type Earnings struct {
	Counts Counts
	Items  Items
	Drift  Drift
	Series Series
	Guard  Guard
}

// Offered adds the decision with a log entry. own says whether the placement's learner predicted its outcome.
func (e *Earnings) Offered(entry uint64, time int64, o *offer.Offer, own bool) {
	e.Guard.Enter(entry, time, o, own)
	e.Drift.enter(time, &e.Guard.Watch)
	e.Counts.offered(o)
	if o.Mode == offer.ByImport {
		return
	}
	e.Series.offered(entry, time, &e.Guard.Watch)
	if o.Mode == offer.ByBaseline && e.Guard.Watch.Mode != api.Shadow {
		e.Series.elsewhere = true
	}
}

// Ended is a decision that no longer waits for its outcome.
type Ended struct {
	Entry  uint64 // log entry of its offer
	Time   int64  // time of its offer
	Age    int64  // elapsed part of its attribution window
	Chosen bool   // whether an outcome was reported
	Own    bool   // whether the placement's own learner gets its round
}

// Closed adds a decision's outcome. If c is nil, there is no round, and the decision is only counted. At most twice
// maxItems items get counts of their own.
func (e *Earnings) Closed(d Ended, c *offer.Closed, maxItems int) {
	e.Counts.closed(d.Chosen, c)
	e.Series.closed(d.Entry, d.Time, c, &e.Guard.Watch)
	e.Drift.leave(d.Entry, d.Time, c, &e.Guard.Watch)
	if c != nil {
		e.Items.closed(c, maxItems)
		e.Guard.Sold(c, d.Age)
	}
	if !d.Own {
		c = nil
	}
	e.Guard.Leave(d.Entry, d.Time, c)
}

// Abandoned counts a decision that ended without an outcome. isLost says whether it may have had one: it was evicted, and
// its page had been shown.
func (e *Earnings) Abandoned(entry uint64, time int64, mode uint8, isEvicted, isLost bool) {
	e.Counts.abandoned(isEvicted)
	if isLost {
		cohort := time / e.Guard.Watch.Cohort()
		e.Guard.cohorts.Lose(cohort)
		e.Drift.pending.Lose(cohort)
		e.Series.evicted(entry, time, mode, &e.Guard.Watch)
	}
	e.Series.closed(entry, time, nil, &e.Guard.Watch)
	e.Drift.leave(entry, time, nil, &e.Guard.Watch)
	e.Guard.Leave(entry, time, nil)
}

// Watch sets how the placement decides after an entry. Comparisons with chance exclude earlier decisions. So does the
// drift, if its cohorts get another length.
func (e *Earnings) Watch(w Watch, entry uint64) {
	if w.Cohort() != e.Guard.Watch.Cohort() {
		e.Drift.since, e.Drift.pending = entry, nil // it forgets the open decisions
	}
	e.Guard.Watch = w
	e.Series.leads, e.Series.since = nil, entry
}

// Advance takes the decisions that are due at a time: see [Guard.Advance].
func (e *Earnings) Advance(now int64, entry uint64) (raised bool, over *Doubt) {
	e.Series.advance(now, e.Guard.Watch.Cohort())
	e.Drift.advance(now, e.Guard.Watch.Cohort())
	return e.Guard.Advance(now, entry)
}

// Copy returns a deep copy.
func (e *Earnings) Copy() Earnings {
	return Earnings{e.Counts, e.Items.Copy(), e.Drift.Copy(), e.Series.Copy(), e.Guard.Copy()}
}

// Fields encodes or decodes the sums.
func (e *Earnings) Fields(f *fields.Fields) {
	e.Counts.fields(f)
	e.Series.fields(f)
	e.Items.fields(f)
	e.Drift.fields(f)
	e.Guard.Fields(f)
}

func comparison(f *fields.Fields, c *api.Comparison) {
	f.Uvarint(&c.Rounds, &c.Agreements, &c.Estimated)
	f.Float(&c.Policy, &c.Baseline)
}
