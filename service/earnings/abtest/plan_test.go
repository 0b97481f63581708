package abtest_test

import (
	"fmt"
	"math"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/offer"
)

// Of simulated experiments with the planned gain, the planned share has shipped it after the planned number of
// decisions, and fewer than half after half of it.
func TestPlan(t *testing.T) {
	const runs = 60
	for _, c := range []struct {
		rates  []float64
		shares []float64
	}{
		{[]float64{0.3, 0.42}, []float64{0.5, 0.5}},
		{[]float64{0.1, 0.16}, []float64{0.5, 0.5}},
	} {
		mean := (c.rates[0] + c.rates[1]) / 2
		b := &abtest.Basis{Totals: api.Totals{Rounds: 1000, Revenue: 1000 * mean, Squares: 1000 * mean}, Bound: 1}
		n := b.Plan(c.shares, c.rates[1]-c.rates[0])
		half, end := 0, 0
		for seed := range uint64(runs) {
			w := trial{rates: c.rates, own: 1}
			last := uint64(0)
			w.play(seed, int(n), func(r *api.ExperimentReport) {
				if r.Verdict.Result == api.Ship && last == 0 {
					last = r.Decisions
				}
			})
			if last > 0 {
				end++
			}
			if last > 0 && float64(last) <= n/2 {
				half++
			}
		}
		if end < runs*7/10 || half > runs/2 {
			t.Errorf("rates %v: planned are %.0f decisions for 80%% of %d experiments; %d have shown the gain by "+
				"then, and %d half-way", c.rates, n, runs, end, half)
		}
	}
}

// Half the gain takes about four times as long, a smaller share of the second variant and a holdout take longer, and
// what is not known is not said.
func TestPlanReport(t *testing.T) {
	b := &abtest.Basis{Totals: api.Totals{Rounds: 10_000, Purchases: 500, Revenue: 20_000, Squares: 1_000_000},
		Bound: 80, Rate: 2}
	r := b.Report([]float64{0.5, 0.5}, 0, []float64{0.1, 0.2}, 1800)
	if r.Mean != 2 || r.Conversion != 0.05 || math.Abs(r.SD-math.Sqrt(96)) > 1e-12 || r.PerDay != 2*86_400 ||
		r.Power != 0.8 || len(r.Gains) != 2 || r.Gains[0].Gain != 0.2 {
		t.Fatalf("%+v", r)
	}
	small, large := *r.Gains[0].Decisions, *r.Gains[1].Decisions
	if small < 3.5*large || small > 4.5*large || math.Abs(*r.Gains[0].Seconds-(small/2+1800)) > 1e-9 {
		t.Errorf("%v and %v decisions, %v s", small, large, *r.Gains[0].Seconds)
	}
	// by the sizes of classical tests, which look once: 2σ²(z + z')²/δ² a variant
	if classic := 4 * 96 * math.Pow(1.96+0.84, 2) / 0.04; small < classic || small > 5*classic {
		t.Errorf("%v decisions, %v of a test with a single look", small, classic)
	}
	uneven := *b.Report([]float64{0.9, 0.1}, 0, []float64{0.2}, 0).Gains[0].Decisions
	out := *b.Report([]float64{0.5, 0.5}, 0.2, []float64{0.2}, 0).Gains[0].Decisions
	three := *b.Report([]float64{0.5, 0.25, 0.25}, 0, []float64{0.2}, 0).Gains[0].Decisions
	if uneven < 2*large || math.Abs(out-large/0.8) > 1 || three < large {
		t.Errorf("%v decisions in halves, %v in tenths, %v with a holdout, %v of three", large, uneven, out, three)
	}
	b.Dispersion = 4
	if again := *b.Report([]float64{0.5, 0.5}, 0, []float64{0.2},
		0).Gains[0].Decisions; again < 3*large || again > 4*large {
		t.Errorf("%v decisions if shoppers come back, %v if not", again, large)
	}
	if r := (&abtest.Basis{}).Report([]float64{0.5, 0.5}, 0, nil, 0); r.Mean != 0 || len(r.Gains) != 0 {
		t.Errorf("without decisions: %+v", r)
	}
	one := &abtest.Basis{Totals: api.Totals{Rounds: 1, Purchases: 1, Revenue: 2.5, Squares: 6.25}}
	if r := one.Report([]float64{0.5, 0.5}, 0, nil, 0); r.Mean != 2.5 || r.Conversion != 1 || len(r.Gains) != 0 {
		t.Errorf("the plan after one decision is %+v", r)
	}
	b.Rate = 0
	if r := b.Report([]float64{1, 0}, 0, nil, 0); len(r.Gains) != 6 || r.Gains[0].Decisions != nil ||
		r.Gains[0].Seconds != nil {
		t.Errorf("without a share: %+v", r)
	}
}

// With prices of 1 the conversion is the revenue.
func TestConversion(t *testing.T) {
	c := trial{rates: []float64{0.2, 0.3, 0.25}}
	c.play(3, 4000, func(r *api.ExperimentReport) {
		m := r.Metrics[0]
		if m.Name != "conversion" || m.Better != "higher" || len(m.Variants) != 3 || m.Variants[0].Difference != nil {
			t.Fatalf("%+v", m)
		}
		for v, of := range m.Variants[1:] {
			revenue := r.Variants[v+1]
			if math.Abs(of.Mean.Estimate-revenue.Mean.Estimate) > 1e-12 ||
				math.Abs(of.Difference.Estimate-revenue.Difference.Estimate) > 1e-12 {
				t.Fatalf("variant %d sells %+v, and earns %+v", v, of, revenue)
			}
			if of.Difference.High-of.Difference.Low > 1.1*(revenue.Difference.High-revenue.Difference.Low) { // of four, not of three
				t.Fatalf("variant %d: %+v is wider than %+v", v, of.Difference, revenue.Difference)
			}
		}
	})
}

// A metric that the caller reports is compared as revenue is; values beyond its largest count as that, and a lower one
// is better where lower is.
func TestMetric(t *testing.T) {
	for better, worse := range map[string]bool{api.BetterHigher: false, api.BetterLower: true} {
		c := trial{rates: []float64{0.2, 0.7}, metric: &api.Metric{Name: "cost", Max: 6, Better: better}, own: 1,
			measured: func(earned float64) float64 { return 1 + 10*earned }}
		c.play(2, 6000, func(r *api.ExperimentReport) {
			m := r.Metrics[2]
			if r.Decisions < 5000 {
				return
			}
			rate := m.Variants[1].Mean.Estimate - m.Variants[0].Mean.Estimate
			if d := m.Variants[1].Difference; m.Name != "cost" || m.Reported != r.Decisions*9/10 || d.Low > 0.9*5*0.5 ||
				d.High < 0.9*5*0.5 || math.Abs(rate-0.9*5*0.5) > 0.3 || m.Variants[1].Worse != worse {
				t.Fatalf("%s is better: %+v of %d decisions, %v", better, m, r.Decisions, rate)
			}
			expect.Equal(fatal.T(t), r.Verdict.Result, map[bool]string{false: api.Ship, true: api.Weigh}[worse],
				better, "is better", r.Verdict)
		})
	}
}

// A metric of −3 or 3, or 0 in the tenth without a report, has 7.3 times the standard deviation of the conversion, and
// 6 times its range: its intervals are about as much wider.
func TestMetricOfBothSigns(t *testing.T) {
	c := trial{rates: []float64{0.02, 0.05}, metric: &api.Metric{Name: "margin", Max: 3},
		measured: func(earned float64) float64 { return 6*earned - 3 }}
	c.play(4, 2000, func(r *api.ExperimentReport) {
		width := func(m *api.MetricReport) float64 {
			return m.Variants[1].Difference.High - m.Variants[1].Difference.Low
		}
		if one, both := width(&r.Metrics[0]), width(&r.Metrics[2]); r.Decisions >= 500 && both < 7.2*one {
			t.Fatalf("after %d decisions: %v, want about 7.3 times %v", r.Decisions, both, one)
		}
	})
}

// A variant that sells half as often at four times the price earns more, and is weighed against its conversion.
func TestWeigh(t *testing.T) {
	c := trial{rates: []float64{0.4, 0.2}, prices: []float64{1, 4}, own: 1}
	last := api.Verdict{}
	c.play(1, 8000, func(r *api.ExperimentReport) {
		if last = r.Verdict; last.Result == api.Ship && r.Metrics[0].Variants[1].Worse {
			t.Fatalf("ships a variant that sells less: %+v", r.Metrics[0])
		}
	})
	if last.Result != api.Weigh || last.Variant != "b" {
		t.Errorf("the verdict is %+v", last)
	}
}

// The segments' sums add up to the experiment's. In at least 95% of experiments all true differences lie in the
// intervals of all segments at all looks.
func TestSegments(t *testing.T) {
	worth := func(unit int) (string, float64) {
		k := unit * 7919 % 11
		return fmt.Sprint("d", k), float64(k) / 10
	}
	c := trial{rates: []float64{0.3, 0.6}, segments: worth, own: 1}
	held := 0
	for seed := range uint64(*runs) {
		ok := true
		c.play(seed, 3000, func(r *api.ExperimentReport) {
			if len(r.Segments) != 8 || r.Segments[7].Value != "" || r.SegmentBy != "device" {
				t.Fatalf("%d segments by %q", len(r.Segments), r.SegmentBy)
			}
			var sum [2]api.Totals
			total, n := 0.0, 0.0
			for _, s := range r.Segments {
				rounds := 0.0
				for v := range sum {
					sum[v].Add(&s.Variants[v].Group)
					rounds += float64(s.Variants[v].Group.Rounds)
				}
				d := s.Variants[1].Difference
				if d == nil {
					continue
				}
				total, n = total+rounds*d.Estimate, n+rounds
				if k := 0; s.Value != "" {
					_, _ = fmt.Sscanf(s.Value, "d%d", &k)
					ok = ok && d.Low <= 0.03*float64(k) && 0.03*float64(k) <= d.High
				}
			}
			if sum[0] != r.Variants[0].Group || sum[1] != r.Variants[1].Group {
				t.Fatalf("the segments have %+v, the experiment %+v and %+v", sum, r.Variants[0].Group,
					r.Variants[1].Group)
			}
			if d := r.Variants[1].Difference; d != nil && n == float64(r.Decisions) &&
				math.Abs(total/n-d.Estimate) > 1e-9 {
				t.Fatalf("the segments differ by %v, the variants by %v", total/n, d.Estimate)
			}
		})
		if ok {
			held++
		}
	}
	n := float64(*runs)
	if least := 0.95*n - 3*math.Sqrt(0.95*0.05*n); float64(held) < least {
		t.Errorf("the intervals held in %d of %.0f experiments, want %.0f", held, n, least)
	}
}

// Shoppers who come back twenty times, and always buy or never, count like one visit each.
func TestDispersion(t *testing.T) {
	for visits, want := range map[int]float64{1: 1, 20: 20} {
		e := abtest.New(1, 0, &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
			{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, cohort)
		expect.Equal(t, e.Dispersion(), 1, "before decisions")
		for n := range 400 * visits {
			entry := uint64(n + 2)
			o, _ := visitOf(e, fmt.Sprint(n/visits))
			e.Enter(entry, 0, cohort, o)
			e.Leave(entry, 0, cohort, &offer.Closed{Offer: o, Entry: entry, Choice: n / visits % 2}, "")
		}
		e.Advance(cohort, cohort)
		if got := e.Dispersion(); math.Abs(got/want-1) > 0.25 {
			t.Errorf("%d visits each: %v", visits, got)
		}
	}
}
