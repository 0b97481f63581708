package abtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/api"
)

// The stop rule, applied to intervals by hand. The control is called shop. Every other variant is given by its name and
// its difference, and a pair by two names and the difference of the first to the second.
func TestVerdict(t *testing.T) {
	type variant struct {
		name                string
		low, estimate, high float64
	}
	type pair struct {
		name, over          string
		low, estimate, high float64
	}
	linear, ours := variant{"linear", 4.71, 9.233, 13.76}, variant{"ours", 4.73, 9.170, 13.61}
	tied := []pair{{"linear", "ours", -3.1, 0.063, 3.2}}
	for name, c := range map[string]struct {
		worth    float64
		variants []variant
		pairs    []pair
		ours     bool // whether the last variant shows the placement's own policy
		want     api.Verdict
		reason   string
	}{
		"a tie goes to the placement's policy": {0, []variant{linear, ours}, tied, true,
			api.Verdict{Result: api.Tie, Variant: "ours", Tied: []string{"linear", "ours"}, Gain: 9.170},
			`"linear" and "ours" both earn at least 4.71 EUR more per visit than "shop", and cannot be told apart; "ours" is the placement's own policy, so keeping it changes nothing`},
		"a tie of other policies": {0, []variant{linear, ours}, tied, false,
			api.Verdict{Result: api.Tie, Tied: []string{"linear", "ours"}},
			`"linear" and "ours" both earn at least 4.71 EUR more per visit than "shop", and cannot be told apart`},
		"the placement's policy is surely worse": {0, []variant{linear, ours},
			[]pair{{"linear", "ours", 0.01, 0.063, 3.2}}, true,
			api.Verdict{Result: api.Ship, Variant: "linear", Gain: 9.233},
			`"linear" earns at least 4.71 EUR more per visit than "shop", and more than every other variant`},
		"a tie of three": {0, []variant{linear, ours, {"third", 1, 5, 9}},
			[]pair{{"linear", "ours", -1, 0.063, 1}, {"linear", "third", -1, 4, 9}, {"ours", "third", -1, 4, 9}}, false,
			api.Verdict{Result: api.Tie, Tied: []string{"linear", "ours", "third"}},
			`"linear", "ours" and "third" each earn at least 1.00 EUR more per visit than "shop", and cannot be told apart`},
		"a tie of two, and a third that is worse": {0, []variant{linear, ours, {"third", -1, 1, 3}},
			[]pair{{"linear", "ours", -1, 0.063, 1}, {"linear", "third", 1, 4, 9}, {"ours", "third", -1, 4, 9}}, false,
			api.Verdict{Result: api.Tie, Tied: []string{"linear", "ours"}},
			`"linear" and "ours" both earn at least 4.71 EUR more per visit than "shop", and cannot be told apart`},
		"a third may be better": {0, []variant{linear, ours, {"third", -2, 9, 20}},
			[]pair{{"linear", "ours", 1, 2, 3}, {"linear", "third", -9, 0.2, 9}, {"third", "ours", -9, 0.2, 9}}, true,
			api.Verdict{Result: api.Continue},
			`"linear" earns at least 4.71 EUR more per visit than "shop", but "third" may earn still more`},
		"below worth": {4.72, []variant{linear}, nil, true,
			api.Verdict{Result: api.Continue},
			`no gain of 4.72 EUR is certain yet: "linear" earns between 4.71 EUR and 13.76 EUR more per visit than "shop"`},
		"at worth": {4.71, []variant{linear}, nil, true,
			api.Verdict{Result: api.Ship, Variant: "linear", Gain: 9.233},
			`"linear" earns at least 4.71 EUR more per visit than "shop"`},
		"one of two is at worth": {4.72, []variant{linear, ours}, tied, true,
			api.Verdict{Result: api.Continue},
			`"ours" earns at least 4.73 EUR more per visit than "shop", but "linear" may earn still more`},
		"no change for nothing": {0, []variant{{"same", 0, 0, 0}}, nil, false,
			api.Verdict{Result: api.Continue},
			`no gain is certain yet: "same" earns between 0 EUR and 0 EUR more per visit than "shop"`},
		"no gain is worth it": {14, []variant{linear, ours}, tied, true,
			api.Verdict{Result: api.Stop},
			`no variant can earn 14.00 EUR more per visit than "shop": at best, "linear" earns 13.76 EUR more`},
		"all earn less": {0, []variant{{"linear", -5, -3, -1.5}, {"ours", -6, -2, -1.75}}, tied, true,
			api.Verdict{Result: api.Stop},
			`no variant can earn more per visit than "shop": at best, "linear" earns 1.50 EUR less`},
		"a pair without decisions": {0, []variant{linear, ours}, nil, false,
			api.Verdict{Result: api.Tie, Tied: []string{"linear", "ours"}},
			`"linear" and "ours" both earn at least 4.71 EUR more per visit than "shop", and cannot be told apart`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &api.ExperimentReport{Control: "shop", MinGain: c.worth, Variants: []api.VariantReport{{Name: "shop"}}}
			for _, v := range c.variants {
				r.Variants = append(r.Variants, api.VariantReport{Name: v.name,
					Difference: &api.Interval{Low: v.low, Estimate: v.estimate, High: v.high}})
			}
			for _, p := range c.pairs {
				r.Pairs = append(r.Pairs, api.Pair{Variant: p.name, Over: p.over,
					Difference: api.Interval{Low: p.low, Estimate: p.estimate, High: p.high}})
			}
			own := -1
			if c.ours {
				own = len(c.variants)
			}
			c.want.Reason = c.reason
			expect.Equal(t, verdict(r, "", "", own, "EUR"), c.want, "the verdict")
			r.Ratio = api.Ratio{P: 1e-4, Mismatch: true}
			if v := verdict(r, "", "", own, "EUR"); v.Result != api.Stop || !v.Untrusted {
				t.Errorf("with a mismatch: %+v", v)
			}
			r.Ratio, r.Variants[1].Difference = api.Ratio{}, nil
			if v := verdict(r, "", "", own, "EUR"); v.Result != api.Continue ||
				!strings.Contains(v.Reason, "before both have decisions") {
				t.Errorf("before the first decisions: %+v", v)
			}
		})
	}
}

// Pages are seen less often once the contrast of a pair shows it, at one in 1,000 over all pairs.
func TestErrorOfSeen(t *testing.T) {
	for _, n := range []int{2, 4} {
		d := &api.Experiment{Control: "0"}
		for v := range n {
			d.Variants = append(d.Variants, api.Variant{Name: fmt.Sprint(v), Show: api.ShowUniform,
				Share: 1 / float64(n)})
		}
		e, found := New(1, 0, d, 1), 0
		for k := range 400 {
			b := e.firsts.Begin()
			for v := range n {
				x := 1.
				if v == 1 {
					x = float64(k % 2)
				}
				b.Add(v, x, 1, e.shares)
			}
			e.firsts.Take(b)
			low, _, _, _ := e.firsts.Difference(0, 1, 0.001/float64(n*(n-1)/2))
			if low > 0 {
				found++
			}
			var v api.VariantReport
			e.unseen(1, &v)
			expect.Equal(t, v.SeenLess == "0", low > 0, n, "variants, round", k)
		}
		if found == 0 || found == 400 {
			t.Errorf("%d variants: seen less in %d of 400 rounds", n, found)
		}
	}
}

// Late revenue that could reverse the gain, less than the least gain worth a change, or the lead over any other variant,
// turns ship into weigh. With another cause, the reason names both.
func TestDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		worth float64
		later [3]float64 // of shop, best and rival, in 100 decisions each
		worse bool       // whether best is, in conversion
		want  string     // end of the reason; "" if the verdict stays
	}{
		"a refund that takes less":   {0, [3]float64{0, -490, 0}, false, ""},
		"a refund that takes all":    {0, [3]float64{0, -500, 0}, false, `but revenue that came too late to count could reverse that: -500 EUR of "best", 0 EUR of "shop"`},
		"of more than the least":     {4, [3]float64{0, -100, 0}, false, `but revenue that came too late to count could reverse that: -100 EUR of "best", 0 EUR of "shop"`},
		"of less than the least":     {4, [3]float64{0, -99, 0}, false, ""},
		"the lead over a rival":      {0, [3]float64{0, -200, 0}, false, `but revenue that came too late to count could reverse that: -200 EUR of "best", 0 EUR of "rival"`},
		"what a rival gets":          {0, [3]float64{0, 0, 200}, false, `but revenue that came too late to count could reverse that: 0 EUR of "best", 200 EUR of "rival"`},
		"and a metric that is worse": {0, [3]float64{0, -500, 0}, true, `but its conversion is surely worse, and revenue that came too late to count could reverse the gain: -500 EUR of "best", 0 EUR of "shop"`},
	} {
		r := &api.ExperimentReport{Control: "shop", MinGain: c.worth, Variants: []api.VariantReport{{Name: "shop"},
			{Name: "best", Difference: &api.Interval{Low: 5, Estimate: 6, High: 7}}, {Name: "rival"}},
			Pairs: []api.Pair{{Variant: "best", Over: "rival", Difference: api.Interval{Low: 2, Estimate: 3, High: 4}}},
			Metrics: []api.MetricReport{{Name: "conversion", Variants: []api.VariantMetric{{Variant: "best",
				Worse: c.worse}}}}}
		for v := range r.Variants {
			r.Variants[v].Group.Rounds, r.Variants[v].Later = 100, c.later[v]
		}
		if name == "a refund that takes less" || name == "a refund that takes all" || c.worse {
			r.Pairs = nil
		}
		v := delayed(r, weighed(r, api.Verdict{Result: api.Ship, Variant: "best", Reason: "it is"}), "EUR")
		want := api.Verdict{Result: api.Ship, Variant: "best", Reason: "it is"}
		if c.want != "" {
			want.Result, want.Reason = api.Weigh, "it is, "+c.want
		}
		if v.Result != want.Result || v.Reason != want.Reason {
			t.Errorf("%s: %+v, want %+v", name, v, want)
		}
	}
}

// A schedule may be as far away as a caller likes, such as an end in the year 9999 that means "never".
func TestFarSchedule(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, year := range []int{2200, 2263, 2300, 2800, 9999} {
		far := time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC)
		if r := (&Routes{Design: &api.Experiment{Ends: far}}); !r.Runs(now) {
			t.Errorf("an experiment that ends in %d does not run", year)
		}
		if r := (&Routes{Design: &api.Experiment{Starts: far}}); r.Runs(now) {
			t.Errorf("an experiment that starts in %d runs", year)
		}
	}
}
