package abtest_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/offer"
)

// gallery is a shop that defers all decisions, in an experiment with two variants, three, or a hold-out.
type gallery struct {
	shoppers int                                                 // who come back by turns; 0 for new ones
	seen     func(shopper, visit, class int) float64             // probability that a page is seen
	variants int                                                 // 0 for two
	holdout  bool                                                // the shares stay
	sells    [3]float64                                          // share of the seen pages of a variant that sell, at once
	shares   func(visit int) float64                             // of the last variant; nil for a half
	look     func(e *abtest.Experiment, r *api.ExperimentReport) // after every 200 visits
}

func (g *gallery) play(seed uint64, visits int) (alarms bool) {
	const every, wait = 50, 8 // visits in a cohort, and cohorts until a decision expires
	design := func(share float64) *api.Experiment {
		d := &api.Experiment{Name: "x", Control: "a"}
		for v := range max(g.variants, 2) - 1 {
			d.Variants = append(d.Variants, api.Variant{Name: string(rune('a' + v)), Show: api.ShowUniform,
				Share: (1 - share) / float64(max(g.variants, 2)-1)})
		}
		d.Variants = append(d.Variants, api.Variant{Name: string(rune('a' + len(d.Variants))),
			Show: api.ShowUniform, Share: share})
		return d
	}
	share := 0.5
	if g.shares != nil {
		share = g.shares(0)
	}
	e := abtest.New(1, 0, design(share), cohort)
	if g.holdout {
		e = abtest.NewHoldout(share, 1, 0, cohort)
	}
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
		o, class := visitOf(e, fmt.Sprint(seed, shopper))
		o.Deferred = true
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
		"one sells at once": {seen: half, sells: [3]float64{1, 0}},
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

// The verdict says so if half of the pages of one variant fail before they are seen, also while shares and rates change,
// and does not call a sure difference whose estimate stays below a fiftieth. It names the variant that lost most, and
// the one that lost least. Snapshots keep the sign.
func TestSeenLess(t *testing.T) {
	for name, c := range map[string]struct {
		rates  []float64
		visits int
		turn   int // the visit from which the rates and shares are others
		want   string
	}{
		"half of 80%":         {[]float64{0.8, 0.4}, 2000, 0, "ba"},
		"half of 10%":         {[]float64{0.1, 0.05}, 15_000, 0, "ba"},
		"half of 80% of a":    {[]float64{0.4, 0.8}, 2000, 0, "ab"},
		"a thirtieth":         {[]float64{1, 0.966}, 15_000, 0, "ba"},
		"a forty-fifth":       {[]float64{1, 0.978}, 40_000, 0, "ba"},
		"a sixtieth":          {[]float64{1, 0.984}, 30_000, 0, ""},
		"half, with a turn":   {[]float64{0.2, 0.1}, 6000, 3000, "ba"},
		"half, a later turn":  {[]float64{0.2, 0.1}, 20_000, 10_000, "ba"},
		"two of three":        {[]float64{1, 0.6, 0.3}, 3000, 0, "ca"},
		"the middle of three": {[]float64{0.6, 0.3, 1}, 3000, 0, "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			var last *api.ExperimentReport
			turned := func(visit int) bool { return c.turn > 0 && visit >= c.turn }
			g := gallery{variants: len(c.rates), sells: [3]float64{0.2, 0.2, 0.2},
				seen: func(_, visit, class int) float64 {
					if turned(visit) {
						return 4 * c.rates[class]
					}
					return c.rates[class]
				},
				look: func(e *abtest.Experiment, r *api.ExperimentReport) {
					if last = r; r.Decisions%5000 < 100 {
						restores(t, e, r)
					}
				}}
			if c.turn > 0 {
				g.shares = func(visit int) float64 {
					if turned(visit) {
						return 0.9
					}
					return 0.1
				}
			}
			for seed := range uint64(3) {
				if g.play(seed, c.visits) != (c.want != "") {
					t.Errorf("%+v of %+v", last.Verdict, last.Variants)
				}
			}
			if c.want == "" {
				for _, v := range last.Variants {
					expect.Equal(t, v.SeenLess, "")
				}
				return
			}
			less, more := last.Variant(c.want[:1]), last.Variant(c.want[1:])
			expect.Equal(t, less.SeenLess, more.Name)
			var points float64
			_, err := fmt.Sscanf(last.Verdict.Reason, fmt.Sprintf("deferred first decisions of %q were seen less often than of "+
				"%q, by about %%f percentage points: do not trust the differences, find the cause, and begin another experiment",
				less.Name, more.Name), &points)
			want := 100 * (c.rates[more.Name[0]-'a'] - c.rates[less.Name[0]-'a'])
			if c.turn > 0 {
				want *= 2.5
			}
			if err != nil || last.Verdict.Result != api.Stop || math.Abs(points-want) > 8 {
				t.Errorf("%+v: %v, want %v points", last.Verdict, err, want)
			}
			if share := float64(less.Seen) / float64(less.Deferred); c.turn == 0 && math.Abs(share-c.rates[less.Name[0]-'a']) > 0.06 {
				t.Errorf("%v of %d were seen", share, less.Deferred)
			}
		})
	}
}

// A hold-out whose pages are not seen begins again otherwise than an experiment.
func TestHoldoutSeenLess(t *testing.T) {
	var last *api.ExperimentReport
	g := gallery{holdout: true, seen: func(_, _, class int) float64 { return 1 - 0.4*float64(class) },
		look: func(_ *abtest.Experiment, r *api.ExperimentReport) { last = r }}
	g.play(1, 3000)
	expect.Equal(t, strings.HasSuffix(last.Verdict.Reason,
		": do not trust the differences, find the cause, and set holdout_share to 0 and back to compare again"),
		true, last.Verdict.Reason)
}

// A copy stays as it is while the experiment goes on. Decisions of an earlier experiment are not seen in a later one.
func TestSeenElsewhere(t *testing.T) {
	encoded := func(e *abtest.Experiment) []byte {
		out := fields.Writer(nil)
		e.Fields(&out)
		return out.Rest()
	}
	var copied *abtest.Experiment
	var want []byte
	g := gallery{seen: func(_, _, class int) float64 { return 1 - 0.5*float64(class) },
		look: func(e *abtest.Experiment, _ *api.ExperimentReport) {
			if copied != nil {
				return
			}
			copied, want = e.Copy(), encoded(e)
			const first = 1 + abtest.MaxVariants         // of the first variant
			e.See(first+1, e.Number, 3*cohort, cohort)   // an earlier decision, at the time of the latest
			e.See(first+2, e.Number+1, 3*cohort, cohort) // of a third variant
			e.Lose(first+1, e.Number)
			e.Lose(first+2, e.Number+1)
			expect.Equal(t, bytes.Equal(encoded(e), want), true, "after an earlier decision was seen and lost")
		}}
	g.play(1, 1000)
	expect.Equal(t, bytes.Equal(encoded(copied), want), true, "the copy")
}
