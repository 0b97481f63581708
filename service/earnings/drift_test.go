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
	got.Fell = false // see TestFell
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
// hold none back, and a copy does not change.
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
			e.Abandoned(c.Entry, now, k%4 == 1)
		}
		e.Advance(now, entry)
	}
	expect.Equal(t, e.Drift.all.decisions, 570, "of 19 cohorts")
	early := offered(1200 * second)
	e.Watch(Watch{Window: 16 * time.Minute, Share: 0.1}, entry)
	late := offered(1201 * second)
	was := e.Copy()
	e.Closed(atEnd(early, 1200*second), early, 10)
	e.Advance(3000*second, entry)
	expect.Equal(t, e.Drift.all.decisions, 570, "with the cohort of an open decision")
	e.Closed(atEnd(late, 1201*second), late, 10)
	e.Advance(3000*second, entry)
	expect.Equal(t, e.Drift.all.decisions, 571, "at the end")
	expect.Equal(t, was.Drift.all.decisions, 570, "the copy")
	expect.Equal(t, was.Drift.total().decisions+1, e.Drift.total().decisions, "the copy's recent decisions")
}

// A shop that reports only sales closes them first. Nothing has fallen.
func TestNoDriftWithSalesAlone(t *testing.T) {
	w := &Watch{Window: time.Hour} // 3,600 decisions
	var d Drift
	one := func(n int64) *offer.Closed { return sale(uint64(n), offer.ByPolicy, max(0, 1-int(n%10)), "a") }
	for n := range int64(20000) {
		now := n * int64(time.Second)
		d.enter(now, w)
		if c := one(n); c.Choice > 0 {
			d.leave(uint64(n+1), now, c, w)
		}
		if was := n - 3600; was >= 0 && one(was).Choice == 0 {
			d.leave(uint64(was+1), was*int64(time.Second), one(was), w)
		}
		if d.advance(now, w.Cohort()); d.Report() != nil && d.Report().Fell {
			t.Fatalf("after %d decisions: %+v", n, d.Report())
		}
	}
	r := d.Report().Before.ByPolicy
	if share := float64(r.Purchases) / float64(r.Rounds); share < 0.099 || share > 0.101 {
		t.Errorf("%v of the earlier decisions sold, want a tenth", share)
	}
}

// Sales have drifted once they are certainly below four fifths of the earlier rate, but not after only 20 decisions.
func TestFell(t *testing.T) {
	for _, c := range []struct {
		recent, before [2]uint64 // pages, and pages that sold
		want           bool
	}{
		{[2]uint64{20, 0}, [2]uint64{4000, 1200}, false},
		{[2]uint64{1000, 260}, [2]uint64{4000, 1200}, false},
		{[2]uint64{1000, 100}, [2]uint64{4000, 1200}, true},
		{[2]uint64{1000, 100}, [2]uint64{20, 6}, false},
		{[2]uint64{1000, 500}, [2]uint64{4000, 1200}, false},
		{[2]uint64{}, [2]uint64{}, false},
	} {
		recent, before := api.Totals{Rounds: c.recent[0], Purchases: c.recent[1]}, api.Totals{Rounds: c.before[0],
			Purchases: c.before[1]}
		expect.Equal(t, fell(&recent, &before, c.recent[0]+c.before[0]), c.want, c.recent, "after", c.before)
	}
}
