package abtest_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// gallery is a shop that defers all decisions, in an experiment with two variants.
type gallery struct {
	shoppers int                                                 // who come back by turns; 0 for new ones
	seen     func(shopper, visit, class int) float64             // probability that a page is seen
	sells    [2]float64                                          // share of the seen pages of a variant that sell, at once
	shares   func(visit int) float64                             // of the last variant; nil for a half
	look     func(e *abtest.Experiment, r *api.ExperimentReport) // after every 200 visits
}

func (g *gallery) play(seed uint64, visits int) (alarms bool) {
	const every, wait = 50, 8 // visits in a cohort, and cohorts until a decision expires
	design := func(share float64) *api.Experiment {
		return &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
			{Name: "a", Show: api.ShowUniform, Share: 1 - share}, {Name: "b", Show: api.ShowUniform, Share: share}}}
	}
	share := 0.5
	e := abtest.New(1, 0, design(share), cohort)
	rng := rand.New(rand.NewPCG(seed, 12))
	type open struct {
		mark   abtest.Mark
		closed *offer.Closed
		seen   bool
	}
	var waiting []open
	leave := func(o open) {
		c := o.closed
		if o.seen {
			e.See(o.mark, c.Entry, c.Time, cohort)
		}
		if !o.seen {
			e.Leave(c.Entry, c.Time, cohort, nil, "")
			return
		}
		e.Leave(c.Entry, c.Time, cohort, c, "")
	}
	for n := range visits {
		entry, now := uint64(2*n+2), int64(n/every)*cohort
		if g.shares != nil && g.shares(n) != share {
			share = g.shares(n)
			e.Divide(design(share), entry-1, now)
		}
		shopper := n
		if g.shoppers > 0 {
			shopper = n % g.shoppers
		}
		unit := abtest.Unit("home", fmt.Sprint(seed, shopper))
		class := e.Class(unit)
		o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}},
			Estimates: offer.Estimates{Variant: e.Name(class), Unit: unit, Deferred: true}}
		one := open{mark: e.Enter(entry, now, cohort, o), closed: &offer.Closed{Offer: o, Entry: entry, Time: now}}
		if one.seen = rng.Float64() < g.seen(shopper, n, class); one.seen && rng.Float64() < g.sells[class] {
			one.closed.Choice = 1
			leave(one)
		} else {
			waiting = append(waiting, one)
		}
		for len(waiting) > wait*every {
			leave(waiting[0])
			waiting = waiting[1:]
		}
		if n%200 == 199 {
			e.Advance(now+cohort, cohort)
			r := e.Report("", window, cohort)
			alarms = alarms || strings.Contains(r.Verdict.Reason, "were seen")
			if g.look != nil {
				g.look(e, r)
			}
		}
	}
	return alarms
}

// While all variants' pages are seen alike, at most one experiment in 1,000 finds a difference at any time, however often
// shoppers return, whatever the variants sell, and if shares and rates drift.
func TestSeenAlike(t *testing.T) {
	half := func(int, int, int) float64 { return 0.5 }
	for name, g := range map[string]gallery{
		"new shoppers": {seen: half},
		"a few return often, and see all pages or none": {shoppers: 150, seen: func(shopper, _, _ int) float64 {
			return float64(shopper * 7919 % 13 % 2)
		}},
		"one sells at once": {seen: half, sells: [2]float64{1, 0}},
		"shares and rates change": {seen: func(_, visit, _ int) float64 { return 0.9 - 0.8*float64(visit/1500) },
			shares: func(visit int) float64 { return 0.1 + 0.8*float64(visit/1500) }},
		"hardly less": {seen: func(_, _, class int) float64 { return 1 - 0.015*float64(class) }},
	} {
		t.Run(name, func(t *testing.T) {
			n := float64(*runs / 3)
			count := 0
			for seed := range uint64(*runs / 3) {
				if g.play(seed, 3000) {
					count++
				}
			}
			if most := 0.001*n + 3*math.Sqrt(0.001*0.999*n); float64(count) > most {
				t.Errorf("%d alarms in %v experiments, at most %.1f may be", count, n, most)
			}
		})
	}
}

// The verdict says so if half of the pages of one variant fail before they are seen, and does not call a sure difference
// of less than a fiftieth. Snapshots keep the sign.
func TestSeenLess(t *testing.T) {
	for name, c := range map[string]struct {
		rates  [2]float64
		visits int
		want   bool
	}{
		"half of 80%":      {[2]float64{0.8, 0.4}, 2000, true},
		"half of 10%":      {[2]float64{0.1, 0.05}, 15_000, true},
		"half of 80% of a": {[2]float64{0.4, 0.8}, 2000, true},
		"a thirtieth":      {[2]float64{1, 0.966}, 15_000, true},
		"a sixtieth":       {[2]float64{1, 0.984}, 30_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			var last *api.ExperimentReport
			g := gallery{seen: func(_, _, class int) float64 { return c.rates[class] }, sells: [2]float64{0.2, 0.2},
				look: func(e *abtest.Experiment, r *api.ExperimentReport) {
					if last = r; r.Decisions%5000 < 100 {
						restores(t, e, r)
					}
				}}
			for seed := range uint64(3) {
				if g.play(seed, c.visits) != c.want {
					t.Errorf("%+v of %+v", last.Verdict, last.Variants)
				}
			}
			less, more := &last.Variants[1], &last.Variants[0]
			if c.rates[1] > c.rates[0] {
				less, more = more, less
			}
			want := ""
			if c.want {
				want = more.Name
				expect.Equal(t, last.Verdict, api.Verdict{Result: api.Stop, Reason: fmt.Sprintf(
					"%.3g%% of the deferred first decisions of %q were seen, and %.3g%% of %q: do not trust the differences, "+
						"find the cause, and begin another experiment", 100*float64(less.Seen)/float64(less.Deferred), less.Name,
					100*float64(more.Seen)/float64(more.Deferred), more.Name)})
			}
			expect.Equal(t, cmp.Or(less.SeenLess, more.SeenLess), want)
			if share := less.SeenShare() / 100; math.Abs(share-min(c.rates[0], c.rates[1])) > 0.06 {
				t.Errorf("%v of %d were seen", share, less.Deferred)
			}
		})
	}
}
