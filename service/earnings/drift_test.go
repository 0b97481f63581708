package earnings

import (
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// close plays a decision from its offer to its outcome.
func (d *Drift) close(entry uint64, time int64, o *offer.Closed, w *Watch) {
	d.enter(time, w)
	d.leave(entry, time, o, w)
	d.advance(time, w.Cohort())
}

// The recent decisions are at least 1,000 in whole cohorts, here of 50 decisions in spans of two. Open decisions, and all later ones, do not count yet.
func TestDriftByHand(t *testing.T) {
	const second = int64(time.Second)
	w := &Watch{Window: 800 * time.Second}
	var d Drift
	for k := range int64(1200) {
		o := sale(uint64(k+1), offer.ByPolicy, 1, "a") // 2
		if k < 100 {
			expecting(o, 0.5, 3)
		} else if o.Choice = 0; k == 1190 {
			o = nil // without an outcome
		}
		d.close(uint64(k+1), k*second, o, w)
		expect.Equal(t, d.Report() == nil, k < 1100, "after", k+1, "decisions there is no earlier one")
	}
	d.enter(1200*second, w)
	d.close(1202, 1201*second, sale(1202, offer.ByPolicy, 1, "a"), w)
	d.advance(5000*second, w.Cohort())
	got := *d.Report()
	expect.Equal(t, got, api.Drift{
		Before: api.Span{Decisions: 100, Estimated: 100, Earned: 200, Predicted: 300,
			ByPolicy: api.Totals{Rounds: 100, Purchases: 100, Revenue: 200, Squares: 400}},
		Recent: api.Span{Decisions: 1099, ByPolicy: api.Totals{Rounds: 1099}},
	}, "the drift")
	d.leave(1201, 1200*second, sale(1201, offer.ByImport, 1, "a"), w)
	d.advance(5000*second, w.Cohort())
	expect.Equal(t, d.Report().Recent, api.Span{Decisions: 1001,
		ByPolicy: api.Totals{Rounds: 1000, Purchases: 1, Revenue: 2, Squares: 4}}, "with the last cohort")
}

// Decisions that are open at a change of the watch do not count, nor in the place of later ones. Those without an outcome
// delay no cohort, evicted ones keep theirs from counting, and a copy does not change.
func TestDriftWithGaps(t *testing.T) {
	const second = int64(time.Second)
	var e Earnings
	e.Watch(Watch{Window: 16 * time.Minute}, 0)
	entry := uint64(0)
	offered := func(now int64) *offer.Closed {
		entry++
		c := sale(entry, offer.ByPolicy, 1, "a")
		e.Offered(entry, now, c.Offer, true)
		return c
	}
	for k := range int64(1200) {
		now := k * second
		if c := offered(now); k%2 == 0 {
			e.Closed(atEnd(c, now), c, 10)
		} else {
			e.Abandoned(c.Entry, now, c.Mode, true, k == 61 || k == 63)
		}
		e.Advance(now, entry)
	}
	expect.Equal(t, e.Drift.all.decisions, 540, "of 19 cohorts, one of which lost two of its 60 decisions")
	kept := offered(1200 * second)
	e.Watch(Watch{Window: 16 * time.Minute, Share: 0.1}, entry) // with cohorts of the same length
	e.Closed(atEnd(kept, 1200*second), kept, 10)
	e.Advance(1300*second, entry)
	expect.Equal(t, e.Drift.all.decisions, 571, "with a decision open at a change of the share")
	early := offered(1310 * second)
	e.Watch(Watch{Window: 8 * time.Minute}, entry)
	late := offered(1311 * second)
	was := e.Copy()
	e.Closed(atEnd(early, 1310*second), early, 10)
	e.Advance(3000*second, entry)
	expect.Equal(t, e.Drift.all.decisions, 571, "with the cohort of an open decision")
	e.Closed(atEnd(late, 1311*second), late, 10)
	e.Advance(3000*second, entry)
	expect.Equal(t, e.Drift.all.decisions, 572, "at the end")
	expect.Equal(t, was.Drift.all.decisions, 571, "the copy")
	expect.Equal(t, was.Drift.total().decisions+1, e.Drift.total().decisions, "the copy's recent decisions")
}

// A shop that reports only sales closes them first. As many decisions sell as before.
func TestDriftWithSalesAlone(t *testing.T) {
	const window, all = 3600, 20_000 // decisions
	w := &Watch{Window: window * time.Second}
	var d Drift
	one := func(n int64) *offer.Closed { // a tenth sells
		return sale(uint64(n+1), offer.ByPolicy, max(0, 1-int(n%10)), "a")
	}
	for n := range int64(all) {
		now := n * int64(time.Second)
		d.enter(now, w)
		if c := one(n); c.Choice > 0 {
			d.leave(c.Entry, now, c, w)
		}
		if was := n - window; was >= 0 && one(was).Choice == 0 {
			d.leave(uint64(was+1), was*int64(time.Second), one(was), w)
		}
		d.advance(now, w.Cohort())
	}
	for _, g := range []api.Totals{d.Report().Before.ByPolicy, d.Report().Recent.ByPolicy} {
		if share := float64(g.Purchases) / float64(g.Rounds); share < 0.099 || share > 0.101 {
			t.Errorf("%v of the decisions sold, want a tenth", share)
		}
	}
}
