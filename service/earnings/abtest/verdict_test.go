package abtest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// trial is a shop in an experiment with its first variant as the control. Each variant sells at its own rate, at the
// price 1.
type trial struct {
	worth float64
	rates []float64
	own   int           // the variant that shows the placement's policy, or 0
	after time.Duration // the experiment starts so long after its configuration

	shoppers int // who come back by turns; 0 for new ones

	metric   *api.Metric
	measured func(earned float64) float64 // the metric, reported of nine in ten decisions
	prices   []float64                    // by variant; nil for 1
	lost     [2]int                       // from which decision until which the last variant's sales do not arrive
	times    float64                      // reported value of the last variant's sales, in declared revenues; 0 without
	refunds  []float64                    // share of the sales that are refunded before they count, by variant; nil for 0
	segments func(unit int) (value string,
		own float64) // of a shopper, who buys own times as often; nil without segments
}

const (
	cohort = int64(time.Second)
	window = 16 * time.Second
)

// visitOf returns the decision of a shopper, of one item without a revenue, and its class.
func visitOf(e *abtest.Experiment, shopper string) (o *offer.Offer, class int) {
	unit := abtest.Unit("home", shopper)
	class = e.Class(unit)
	return &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}},
		Estimates: offer.Estimates{Variant: e.Name(class), Unit: unit}}, class
}

// play serves new shoppers, and looks at the verdict every 100 decisions.
func (c *trial) play(seed uint64, decisions int, look func(*api.ExperimentReport)) *abtest.Experiment {
	design := &api.Experiment{Name: "x", Control: "a", MinGain: c.worth}
	if c.after > 0 {
		design.Starts = time.Unix(0, int64(c.after))
	}
	for v := range c.rates {
		of := api.Variant{Name: string(rune('a' + v)), Show: api.ShowUniform,
			Share: float64(abtest.Buckets/len(c.rates)) / abtest.Buckets}
		if v == 0 {
			of.Share = 1 - float64(len(c.rates)-1)*of.Share
		}
		if v == c.own && v > 0 {
			of.Show = api.ShowPolicy
		}
		design.Variants = append(design.Variants, of)
	}
	if c.metric != nil {
		design.Metrics = []api.Metric{*c.metric}
	}
	if c.segments != nil {
		design.Segments = "device"
	}
	rng := rand.New(rand.NewPCG(seed, 11))
	e := abtest.New(1, 0, design, cohort)
	for n := range decisions {
		const every = 100
		entry, now := uint64(n+2), int64(c.after)+int64(n/every)*cohort
		shopper := n
		if c.shoppers > 0 {
			shopper = n % c.shoppers
		}
		o, class := visitOf(e, fmt.Sprint(seed, shopper))
		closed := &offer.Closed{Offer: o, Entry: entry, Time: now}
		if c.prices != nil {
			o.Revenue = c.prices[class : class+1]
		}
		segment, own := "", 1.0
		if c.segments != nil {
			segment, own = c.segments(n)
		}
		last := class == len(c.rates)-1
		if rng.Float64() < c.rates[class]*own && !(last && n >= c.lost[0] && n < c.lost[1]) {
			if closed.Choice = 1; last && c.times > 0 {
				closed.Basket = eventlog.Basket{{Place: 1, Quantity: 2, Value: c.times * 2 * o.Revenue[0]}}
			}
		}
		if c.metric != nil && n%10 > 0 {
			closed.Measured = []eventlog.Measurement{{Name: c.metric.Name, Value: c.measured(closed.Earned())}}
		}
		e.Enter(entry, now, cohort, o)
		e.Leave(entry, now, cohort, closed, segment)
		if earned := closed.Earned(); c.refunds != nil && earned > 0 && rng.Float64() < c.refunds[class] {
			e.Correct(&eventlog.Corrected{Correction: "r", Entry: entry, Made: now, Variant: o.Variant,
				Shown:  []string{"i"},
				Choice: 1, Before: earned, Value: -earned, Withdraws: true, InTime: true, Bound: closed.Bound(),
				Unit:    o.Unit,
				Segment: segment}, cohort)
		}
		if n%every == every-1 {
			e.Advance(now+cohort, cohort)
			look(e.Report("", window, cohort))
		}
	}
	return e
}

// ruled plays a trial repeatedly, and counts how often each verdict was ever given, by rule and variant.
func (c *trial) ruled(runs int) map[string]int {
	count := map[string]int{}
	for seed := range uint64(runs) {
		seen := map[string]bool{}
		c.play(seed, 10_000, func(r *api.ExperimentReport) {
			seen[strings.TrimSpace(r.Verdict.Result+" "+r.Verdict.Variant)] = true
		})
		for verdict := range seen {
			count[verdict]++
		}
	}
	return count
}

// However often one looks, at most 5% of experiments ship a variant that does not gain enough or is not the best, and
// nearly all ship the right one.
func TestVerdictErrs(t *testing.T) {
	runs := *runs / 2
	n := float64(runs)
	for name, c := range map[string]struct {
		trial
		right string
	}{
		"two equal variants gain":      {trial{rates: []float64{0.2, 0.5, 0.5}, own: 2}, "tie c"},
		"three equal variants gain":    {trial{rates: []float64{0.2, 0.6, 0.6, 0.6}}, "tie"},
		"a gain below worth":           {trial{rates: []float64{0.2, 0.3}, worth: 0.12, own: 1}, ""},
		"all equal":                    {trial{rates: []float64{0.3, 0.3, 0.3}}, ""},
		"the best of three":            {trial{rates: []float64{0.1, 0.4, 0.8}, own: 1}, "ship c"},
		"the best, and a gain of half": {trial{rates: []float64{0.1, 0.3, 0.9}, worth: 0.5}, "ship c"},
		"no gain is worth it":          {trial{rates: []float64{0.2, 0.3, 0.2}, worth: 0.4}, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			count := c.ruled(runs)
			t.Logf("verdicts that were given at any time, in %d experiments: %v", runs, count)
			wrong := 0
			for verdict, n := range count {
				if strings.HasPrefix(verdict, api.Ship) && verdict != c.right {
					wrong += n
				}
			}
			if most := 0.05*n + 3*math.Sqrt(0.05*0.95*n); float64(wrong) > most {
				t.Errorf("a wrong variant is shipped in %d of %d experiments, at most %.0f may be: %v",
					wrong, runs, most, count)
			}
			if c.right != "" && count[c.right] < runs*9/10 {
				t.Errorf("%q in %d of %d experiments: %v", c.right, count[c.right], runs, count)
			}
		})
	}
}

// An experiment names no winner once the sales of one variant stop arriving, not even after they are back; and does not
// take a variant that rarely sells for a silent one.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		trial
		silent bool
	}{
		"sells":              {trial{rates: []float64{0.1, 0.14}}, false},
		"sells a tenth":      {trial{rates: []float64{0.3, 0.03}}, false},
		"never sold":         {trial{rates: []float64{0.1, 0.1}, lost: [2]int{0, 6000}}, true},
		"sold until 1,600":   {trial{rates: []float64{0.1, 0.14}, lost: [2]int{1600, 6000}}, true},
		"silent for a while": {trial{rates: []float64{0.1, 0.14}, lost: [2]int{1600, 3000}}, true},
		"silent at first":    {trial{rates: []float64{0.1, 0.1}, lost: [2]int{0, 4000}}, true},
		"a late start":       {trial{rates: []float64{0.1, 0.1}, lost: [2]int{0, 1200}}, true},
		"all are silent":     {trial{rates: []float64{0, 0}}, false},
		"sells a fifteenth":  {trial{rates: []float64{0.3, 0.02}}, false},
		"a sale ends":        {trial{rates: []float64{0.4, 0.4}, segments: from(1, 2000, 0.05)}, false},
		"one in ten returns": {trial{rates: []float64{0.5, 0.5}, shoppers: 20, segments: every(10)}, false},
		"returning, silent": {trial{rates: []float64{0.5, 0.7}, shoppers: 1000, segments: every(5),
			lost: [2]int{1600, 6000}}, true},
		"often, silent": {trial{rates: []float64{0.5, 0.5}, shoppers: 300, segments: every(5),
			lost: [2]int{1600, 6000}}, true},
		"a sale begins": {trial{rates: []float64{0.4, 0.4}, segments: from(0.01, 2000, 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				var last *api.ExperimentReport
				e := c.play(seed, 6000, func(r *api.ExperimentReport) {
					last = r
					named := strings.Contains(r.Verdict.Reason, "in a row")
					if named && !c.silent || !named && c.silent && r.Verdict.Result != api.Continue {
						t.Fatalf("after %d decisions: %+v", r.Decisions, r.Verdict)
					}
				})
				restores(t, e, last)
				if got := strings.Contains(last.Verdict.Reason, `no sale of "b" in `); got != c.silent ||
					got && last.Verdict.Result != api.Stop {
					t.Fatalf("%+v of %+v", last.Verdict, last.Variants)
				}
				if b := last.Variants[1]; b.Worth != nil || c.lost == [2]int{1600,
					6000} && (b.WithoutSale != b.Silence ||
					math.Abs(float64(b.Silence)-2200) > 200) {
					t.Fatalf("%+v", b)
				}
			}
		})
	}
}

// every lets only one in k shoppers buy.
func every(k int) func(int) (string, float64) {
	return func(unit int) (string, float64) {
		if unit%k == 0 {
			return "", 1
		}
		return "", 0
	}
}

// from multiplies the rates of all variants by a number before a shopper, and by another from then on.
func from(before float64, shopper int, then float64) func(int) (string, float64) {
	return func(unit int) (string, float64) {
		if unit < shopper {
			return "", before
		}
		return "", then
	}
}

// A row's limit follows from the sales before it, a row that has ended counts while it is a fiftieth of the decisions,
// and the longest one counts.
func TestLimit(t *testing.T) {
	e := abtest.New(1, 0, &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
		{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, cohort)
	var shoppers [2][]*offer.Offer // in different buckets
	for n, taken := 0, map[int]bool{}; len(shoppers[0])+len(shoppers[1]) < 600; n++ {
		o, class := visitOf(e, fmt.Sprint(n))
		if b := abtest.Bucket(o.Unit, 1); !taken[b] {
			taken[b] = true
			shoppers[class] = append(shoppers[class], o)
		}
	}
	at := 0
	serve := func(cohorts int, sales ...int) (b api.VariantReport, v api.Verdict) {
		for range cohorts {
			now := int64(at) * cohort
			at++
			for n := range 10 * len(sales) {
				class, entry := n%len(sales), uint64(at*100+n)
				closed := &offer.Closed{Entry: entry, Time: now, Offer: shoppers[class][at%200]}
				if n/len(sales) < sales[class] {
					closed.Choice = 1
				}
				e.Enter(entry, now, cohort, closed.Offer)
				e.Leave(entry, now, cohort, closed, "")
			}
			e.Advance(now+cohort, cohort)
		}
		r := e.Report("", window, cohort)
		return r.Variants[1], r.Verdict
	}
	silence := func(b api.VariantReport, v api.Verdict) [2]uint64 { return [2]uint64{b.WithoutSale, b.Silence} }
	serve(100, 1, 1)
	// 100 of 1,000 sell. log(101 · 102/0.001) = 16.1 nats: at least 5.47% sell. This is the 100th row: its error is
	// 0.000375/56/64, whose log is −16.1; and −log(1 − 0.75 · 0.0547) = 0.0419: the limit is 384
	b, v := serve(38, 1, 0)
	expect.Equal(t, silence(b, v), [2]uint64{380, 0}, "below the limit")
	expect.Contains(t, v.Reason, `too few sales of "b"`)
	expect.Equal(t, silence(serve(1, 1, 0)), [2]uint64{390, 390}, "beyond the limit")
	b, v = serve(61, 1, 0)
	expect.Equal(t, silence(b, v), [2]uint64{1000, 1000}, "still without a sale")
	expect.Contains(t, v.Reason, "differences, and find the cause first")
	serve(1, 1, 1)
	serve(95, 1, 0)
	b, v = serve(200, 1, 1)
	expect.Equal(t, silence(b, v), [2]uint64{0, 1000}, "the longest row")
	expect.Contains(t, v.Reason, "differences, find the cause, and begin another experiment")
	b, v = serve(5000-496, 1, 1)
	expect.Equal(t, silence(b, v), [2]uint64{0, 1000}, "a fiftieth")
	expect.Equal(t, v.Result, api.Stop, v.Reason)
	b, v = serve(1, 1, 1)
	expect.Equal(t, silence(b, v), [2]uint64{0, 0}, "less than a fiftieth")
	expect.Equal(t, silence(serve(80, 1, 0)), [2]uint64{800, 800}, "a row that has not ended")
}

// Worth waits until it is precise, and leaves out gifts.
func TestWorth(t *testing.T) {
	for name, c := range map[string]struct {
		sales int
		value func(n int) float64
		want  float64 // 0 for none
	}{
		"few":            {31, func(int) float64 { return 6 }, 0},
		"enough":         {32, func(int) float64 { return 6 }, 3},
		"gifts":          {64, func(n int) float64 { return float64(n % 2 * 6) }, 3},
		"vary":           {126, func(n int) float64 { return 6 * math.Exp(float64(n%2*4-2)) }, 0},
		"vary, and many": {130, func(n int) float64 { return 6 * math.Exp(float64(n%2*4-2)) }, 3},
	} {
		e := abtest.New(1, 0, &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
			{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, cohort)
		for n := range c.sales {
			o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}, Revenue: []float64{2}},
				Estimates: offer.Estimates{Variant: "a"}}
			e.Enter(uint64(n+2), 0, cohort, o)
			e.Leave(uint64(n+2), 0, cohort, &offer.Closed{Offer: o, Choice: 1,
				Basket: eventlog.Basket{{Place: 1, Quantity: 1, Value: c.value(n)}}}, "")
		}
		got := 0.0
		if w := e.Report("", window, cohort).Variants[0].Worth; w != nil {
			got = *w
		}
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// restores checks that a snapshot of an experiment keeps its report.
func restores(t *testing.T, e *abtest.Experiment, want *api.ExperimentReport) {
	t.Helper()
	out := fields.Writer(nil)
	e.Fields(&out)
	in, again := fields.Reader(out.Rest()), abtest.Empty(e.Design)
	again.Fields(&in)
	expect.Equal(t, again.Report("", window, cohort), want, "restored")
}

// Decisions that leave memory do not count, and those that stay have sold too often. An experiment stops, and a hold-out
// has no gain, once they are a fiftieth of a variant's. Fewer widen the intervals by as much as they may hide.
func TestEvictedDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		share, later  float64    // of b, while decisions leave memory and afterwards
		rates, silent [2]float64 // sales, and pages without a sale that leave memory
		visits, until int
		want          string
	}{
		"few":                       {0.5, 0.5, [2]float64{0.1, 0.2}, [2]float64{0.01, 0.01}, 20_000, 20_000, "ship b"},
		"all":                       {0.5, 0.5, [2]float64{0.1, 0.2}, [2]float64{1, 1}, 2000, 2000, "stop"},
		"all of a small variant":    {0.01, 0.01, [2]float64{0.1, 0.08}, [2]float64{0, 1}, 100_000, 100_000, "stop"},
		"a third of a small one":    {0.05, 0.05, [2]float64{0.1, 0.08}, [2]float64{0, 0.35}, 20_000, 20_000, "stop"},
		"3% of one":                 {0.5, 0.5, [2]float64{0.1, 0.1}, [2]float64{0, 0.03}, 20_000, 20_000, "stop"},
		"1.5% of one":               {0.5, 0.5, [2]float64{0.9, 0.9}, [2]float64{0, 0.15}, 60_000, 60_000, "continue"},
		"after it had no share":     {0, 0.5, [2]float64{0.9, 0.9}, [2]float64{0, 0.17}, 250_000, 150_000, "continue"},
		"while the share was small": {0.05, 0.5, [2]float64{0.9, 0.9}, [2]float64{0, 1}, 60_000, 20_000, "continue"},
	} {
		design := func(share float64) *api.Experiment {
			return &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
				{Name: "a", Show: api.ShowUniform, Share: 1 - share}, {Name: "b", Show: api.ShowUniform, Share: share}}}
		}
		for _, e := range []*abtest.Experiment{abtest.New(1, 0, design(c.share), cohort), abtest.NewHoldout(c.share,
			1, 0, cohort)} {
			if e.IsHoldout && c.later != c.share {
				continue
			}
			rng := rand.New(rand.NewPCG(1, 11))
			var last *api.ExperimentReport
			evicted := [2]uint64{}
			for n := range c.visits {
				const every = 100
				entry, now := uint64(n+2), int64(n/every)*cohort
				if n == c.until {
					e.Divide(design(c.later), entry-1, now)
				}
				o, class := visitOf(e, fmt.Sprint(n))
				closed := &offer.Closed{Offer: o, Entry: entry, Time: now}
				if rng.Float64() < c.rates[class] {
					closed.Choice = 1
				}
				mark := e.Enter(entry, now, cohort, o)
				if closed.Choice == 0 && (n < c.until || c.share == 0) && rng.Float64() < c.silent[class] {
					evicted[class]++
					e.Lose(mark, entry)
					closed = nil
				}
				e.Leave(entry, now, cohort, closed, "")
				if n%every < every-1 {
					continue
				}
				e.Advance(now+cohort, cohort)
				if n%1000 < 999 {
					continue
				}
				last = e.Report("", window, cohort)
				if v := last.Verdict; !e.IsHoldout && v.Result != api.Stop && v.Result != api.Continue && c.want != "ship b" {
					t.Errorf("%s: after %d visits %+v", name, n, v)
				}
			}
			restores(t, e, last)
			expect.Equal(t, [2]uint64{last.Variants[0].ExpiredEarly, last.Variants[1].ExpiredEarly}, evicted, name)
			if e.IsHoldout {
				truth := c.rates[0] - c.rates[1]
				g, ok := e.Gain()
				if ok != (c.want != api.Stop) || ok && (g.PerDecision.Low > truth || g.PerDecision.High < truth) {
					t.Errorf("%s: the gain %+v is there: %v", name, g.PerDecision, ok)
				}
				continue
			}
			expect.Equal(t, strings.TrimSpace(last.Verdict.Result+" "+last.Verdict.Variant), c.want, name, ":",
				last.Verdict.Reason)
			expect.Equal(t, len(last.Gains()) == 0, c.want == api.Stop, name, ": the gains")
			if c.want == api.Stop {
				expect.Contains(t, last.Verdict.Reason, `" left memory before their outcome: do not trust the differences`)
			}
		}
	}
	for made, many := range map[uint64]bool{40: true, 1600: true, 1601: false} {
		if api.ManyEvicted(31, made) || api.ManyEvicted(32, made) != many {
			t.Errorf("of %d decisions 31 or 32 left memory", made)
		}
	}
}

// An experiment names no winner among variants whose sales are reported in different units.
func TestUnits(t *testing.T) {
	for times, want := range map[float64]string{0: "", 0.01: "0.01", 1.5: "", 2.5: "", 4: "4", 100: "100"} {
		c := trial{rates: []float64{0.3, 0.3}, times: times, prices: []float64{2, 3}}
		var last *api.ExperimentReport
		e := c.play(1, 4000, func(r *api.ExperimentReport) { last = r })
		restores(t, e, last)
		clause := fmt.Sprintf(`a sale of "b" is worth %s times its declared revenue, one of "a" 1 times`, want)
		if times < 1 {
			clause = fmt.Sprintf(`a sale of "a" is worth 1 times its declared revenue, one of "b" %s times`, want)
		}
		if want == "" {
			clause = "is worth"
		}
		if got := strings.Contains(last.Verdict.Reason, clause); got != (want != "") ||
			got && last.Verdict.Result != api.Stop {
			t.Errorf("%v: %+v", times, last.Verdict)
		}
		if b := last.Variants[1].Worth; b == nil || times > 0 && math.Abs(*b-times) > 1e-9 {
			t.Errorf("%v: %v", times, b)
		}
	}
}

// Half-way to its verdict, an experiment predicts its remaining time within a factor of 2 in most cases. Decisions come
// at 100 a second.
func TestLeft(t *testing.T) {
	const runs = 20
	for name, c := range map[string]trial{"a gain": {rates: []float64{0.3, 0.42}},
		"no gain that is worth it": {rates: []float64{0.3, 0.3}, worth: 0.12},
		"a gain, later":            {rates: []float64{0.3, 0.42}, after: time.Hour}} {
		right := 0
		for seed := range uint64(runs) {
			total := map[uint64]uint64{} // predicted total after a number of decisions
			end := uint64(0)
			c.play(seed, 20_000, func(r *api.ExperimentReport) {
				if l := r.Left; l != nil && r.Verdict.Result == api.Continue && end == 0 {
					total[r.Decisions] = r.Decisions + l.Decisions
					if math.Abs(l.Seconds-float64(l.Decisions)/100) > 1 {
						t.Errorf("%s: %d decisions take %v s", name, l.Decisions, l.Seconds)
					}
				} else if r.Verdict.Result != api.Continue && end == 0 {
					end = r.Decisions
					if l != nil {
						t.Errorf("%s: after the verdict %+v is left", name, l)
					}
				}
			})
			if at := total[end/200*100]; end > 0 && at > end/2 && at < 2*end {
				right++
			}
		}
		if right < runs*3/4 {
			t.Errorf("%s: %d of %d experiments foresee their verdict half-way", name, right, runs)
		}
	}
}

// No number of visits tells the variants of a shop apart that gives everything away.
func TestNothingIsLeft(t *testing.T) {
	c := trial{rates: []float64{0.3, 0.42}, prices: []float64{0, 0}}
	c.play(1, 1000, func(r *api.ExperimentReport) {
		if r.Verdict.Result != api.Continue || r.Left != nil {
			t.Errorf("%s, %+v left", r.Verdict.Result, r.Left)
		}
	})
}

// A variant that sells twice as often, and refunds half of that, earns as much as the other. In at least 95% of
// experiments the interval contains 0 at all looks, and no variant is shipped.
func TestRefundsAreNoGain(t *testing.T) {
	c := trial{rates: []float64{0.25, 0.5}, refunds: []float64{0, 0.5}}
	held := 0
	for seed := range uint64(*runs) {
		ok := true
		c.play(seed, 5000, func(r *api.ExperimentReport) {
			d := r.Variants[1].Difference
			ok = ok && d.Low <= 0 && d.High >= 0 && r.Verdict.Result == api.Continue
		})
		if ok {
			held++
		}
	}
	if n := float64(*runs); float64(held) < 0.95*n-3*math.Sqrt(0.95*0.05*n) {
		t.Errorf("the interval contained 0 in %d of %d experiments", held, *runs)
	}
}

// A refund of more than the sale counts down to 0, an addition up to the bound of the outcome, and the rest is late. So is
// the correction of a cohort that counts, and of an outcome that came late.
func TestRest(t *testing.T) {
	e := abtest.New(1, 0, &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
		{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, cohort)
	unit := uint64(7)
	name := e.Name(e.Class(unit))
	o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}}, Estimates: offer.Estimates{Variant: name,
		Unit: unit}}
	e.Enter(2, 0, cohort, o)
	e.Leave(2, 0, cohort, &offer.Closed{Offer: o, Entry: 2, Choice: 1}, "")
	correct := func(before, value float64, inTime bool) {
		e.Correct(&eventlog.Corrected{Entry: 2, Variant: name, Before: before, Value: value, InTime: inTime, Bound: 1,
			Unit: unit}, cohort)
	}
	want := func(revenue, late float64) {
		t.Helper()
		if v := e.Report("", window, cohort).Variant(name); v.Group.Revenue != revenue || v.Later != late {
			t.Errorf("%v, and %v late, want %v and %v", v.Group.Revenue, v.Later, revenue, late)
		}
	}
	correct(1, -3, true)
	want(0, -2)
	correct(-2, 1000, true)
	want(0, 997)
	correct(998, -997.5, true)
	want(0, 0)
	correct(9, -4, false)
	want(0, -4)
	e.Advance(cohort, cohort)
	want(0.5, -4)
	correct(0.5, -1, true)
	want(0.5, -5)
	if v := e.Report("", window, cohort).Variant(name); v.Mean.High > 1 {
		t.Errorf("additions widened %+v", v.Mean)
	}
}

// If the clock is set back, a cohort that counted begins again. A refund of a decision that counted is late, and leaves
// the other decisions as they were.
func TestCohortsThatBeginAgain(t *testing.T) {
	e := abtest.New(1, 0, &api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
		{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, cohort)
	unit := uint64(7)
	name := e.Name(e.Class(unit))
	sell := func(entry uint64) {
		o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}}, Estimates: offer.Estimates{Variant: name,
			Unit: unit}}
		e.Enter(entry, 0, cohort, o)
		e.Leave(entry, 0, cohort, &offer.Closed{Offer: o, Entry: entry, Choice: 1}, "")
	}
	sell(2)
	e.Advance(cohort, cohort)
	sell(3)
	for entry := range uint64(4) {
		e.Correct(&eventlog.Corrected{Entry: entry, Variant: name, Before: 1, Value: -1, InTime: true, Bound: 1,
			Unit: unit}, cohort)
	}
	e.Advance(2*cohort, cohort)
	if v := e.Report("", window, cohort).Variant(name); v.Group.Revenue != 1 || v.Group.Rounds != 2 || v.Later != -1 {
		t.Errorf("%+v, and %v late", v.Group, v.Later)
	}
}
