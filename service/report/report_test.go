package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

var write = flag.String("report.write", "", "a file for the page of the test, to look at")

// example is an experiment of three variants in which b gains.
func example() *api.ExperimentReport {
	begun := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	r := &api.ExperimentReport{
		Name: "Summer <sale>", Number: 7, Begun: begun, Control: "shop", Learn: api.LearnOwn, MinGain: 0.01,
		Decisions: 123456,
		Variants: []api.VariantReport{
			{Name: "shop", Show: api.ShowBaseline, Share: 0.45, Made: 55700, Units: 20100,
				Group: api.Totals{Rounds: 55600, Purchases: 2780, Revenue: 55600 * 1.1},
				Mean:  api.Interval{Low: 1.04, Estimate: 1.1, High: 1.17}},
			{Name: "ours", Show: api.ShowPolicy, Share: 0.45, Made: 55500, Units: 19900,
				Group:      api.Totals{Rounds: 55400, Purchases: 3100, Revenue: 55400 * 1.25},
				Mean:       api.Interval{Low: 1.18, Estimate: 1.25, High: 1.32},
				Difference: &api.Interval{Low: 0.021, Estimate: 0.15, High: 0.28},
				Learner:    &api.LearnerReport{Policy: map[string]any{"name": "auto"}}},
			{Name: "a-rival-with-a-very-long-name-that-goes-on-and-on-and-on-and-on", Show: api.ShowPolicy, Share: 0.1,
				Made: 12400, Units: 4500, Group: api.Totals{Rounds: 12456, Purchases: 600, Revenue: 12456 * 1.05},
				Mean:       api.Interval{Low: 0.91, Estimate: 1.05, High: 1.2},
				Difference: &api.Interval{Low: -0.29, Estimate: -0.05, High: 0.19},
				Learner:    &api.LearnerReport{Policy: map[string]any{"name": "ts-mnl"}, Own: true}},
		},
		Metrics: []api.MetricReport{{Name: "conversion", Better: "higher",
			Variants: []api.VariantMetric{{Variant: "shop"}, {Variant: "ours", Mean: api.Interval{Estimate: 0.056},
				Difference: &api.Interval{Low: -0.02, Estimate: -0.01, High: -0.005}, Worse: true}}},
			{Name: "items", Better: "lower", Variants: []api.VariantMetric{{Variant: "ours", Difference: &api.Interval{Low: -2, High: -1}}}}},
		SegmentBy: "device", Segments: []api.SegmentReport{{Value: "phone",
			Variants: []api.SegmentVariant{{Variant: "ours", Group: api.Totals{Rounds: 900},
				Difference: &api.Interval{Low: -1, Estimate: 0.2, High: 1.4}}}},
			{Variants: []api.SegmentVariant{{Variant: "ours", Group: api.Totals{Rounds: 90},
				Difference: &api.Interval{Low: -3, Estimate: 0.5, High: 4}}}}},
		Pairs: []api.Pair{{Variant: "ours", Over: "a-rival-with-a-very-long-name-that-goes-on-and-on-and-on-and-on",
			Difference: api.Interval{Low: 0.004, Estimate: 0.2, High: 0.4}}},
		Ratio: api.Ratio{Units: 46840, P: 0.42},
		Verdict: api.Verdict{Result: api.Ship, Variant: "ours", Gain: 0.15,
			Reason: `"ours" earns at least 0.021 more per visit than "shop"`},
		Phases: []api.Phase{
			{Entry: 7, Time: begun, Shares: []float64{0.8, 0.1, 0.1}},
			{Entry: 90000, Time: begun.Add(4 * 24 * time.Hour), Shares: []float64{0.45, 0.45, 0.1}, Moved: 0.35},
		},
	}
	for k := range 120 {
		n := float64(k + 1)
		width := 1.4 / math.Sqrt(n)
		p := api.ReportPoint{Time: begun.Add(time.Duration(k) * 3 * time.Hour), Decisions: uint64(k+1) * 1029}
		for v, mean := range []float64{1.1, 1.25, 1.05} {
			mean += 0.2 * math.Sin(n/9+float64(v)) / math.Sqrt(n)
			p.Means = append(p.Means, api.Interval{Low: max(mean-width, 0), Estimate: mean, High: mean + width})
			difference := api.Interval{}
			if v > 0 {
				d := mean - 1.1
				difference = api.Interval{Low: d - 1.3*width, Estimate: d, High: d + 1.3*width}
			}
			p.Differences = append(p.Differences, difference)
		}
		r.Points = append(r.Points, p)
	}
	return r
}

func pageOf(t *testing.T, r *api.ExperimentReport) string {
	t.Helper()
	var b bytes.Buffer
	fatal.If(t, Page(&b, "home", "EUR", r, time.Date(2026, 6, 16, 9, 30, 0, 0, time.UTC)))
	return b.String()
}

// plain is the text of a page.
func plain(page string) string {
	_, body, _ := strings.Cut(page, "<body>")
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "")
	return strings.Join(strings.Fields(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'",
		"&#43;", "+").Replace(text)), " ")
}

// The page shows the report, escapes names, asks no other host and needs no script.
func TestPage(t *testing.T) {
	page := pageOf(t, example())
	if *write != "" {
		fatal.If(t, os.WriteFile(*write, []byte(page), 0o644))
	}
	text := plain(page)
	for _, want := range []string{
		`Summer <sale>`, `Experiment on the placement “home”, 1 June 2026 to 16 June 2026, 09:30 UTC, still running. 123,456 of 123,600 visits count.`,
		`Ship “ours”. “ours” earns at least 0.021 more per visit than “shop”. The whole`,
		`shopwhat the shop shows by itself45%55,6005% 1.101.04 to 1.17 –`,
		`oursthe policy auto, the one of the placement45%55,4005.6% 1.251.18 to 1.32 +0.15+0.021 to +0.28`,
		`the policy ts-mnl, which learns for this variant10%12,4564.82% 1.050.91 to 1.20 −0.05−0.29 to +0.19`,
		`ours over a-rival-with-a-very-long-name-that-goes-on-and-on-and-on-and-on+0.20+0.004 to +0.40`,
		`With “ours” in all 123,456 visits the shop would have earned +18,518 EUR against “shop”: from +2,593 to +34,568.`,
		`A change is worth making if it gains 0.01 EUR per visit.`,
		`Revenue per visit, in EUR, with intervals`,
		`Nothing speaks against it (p = 0.42`, `shop20,10045%`,
		`5 June 2026, 08:00 UTC: 45% shop, 45% ours, 10% a-rival`, `35% of the shoppers got another variant`,
		`The learner of a variant learns from its own shoppers only.`,
		`oursvisits with a sale5.6% −1 points−2 points to −0.5 pointsclearly worse`, `−1clearly not worse`,
		`phoneours900+0.20−1.00 to +1.40`, `all othersours90+0.50−3.00 to +4.00`,
	} {
		expect.Contains(t, text, want, "the page")
	}
	expect.Equal(t, regexp.MustCompile(`(?i)<script|https?://|<sale>|url\(|@import| style=`).FindString(page), "",
		"the page has")
	expect.Equal(t, strings.Count(page, "<svg"), 2, "pictures")
	if len(page) > 100_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// The verdicts in words.
func TestSentences(t *testing.T) {
	for want, change := range map[string]func(*api.ExperimentReport){
		"Keep going. It is early. The differences": func(r *api.ExperimentReport) {
			r.Verdict = api.Verdict{Result: api.Continue, Reason: "it is early"}
		},
		"“home”, not before 4 July 2027, 00:00 UTC. ": func(r *api.ExperimentReport) {
			r.Verdict, r.Starts = api.Verdict{Result: api.Continue}, time.Date(2027, 7, 4, 0, 0, 0, 0, time.UTC)
		},
		"It never started. It is early. ": func(r *api.ExperimentReport) {
			r.Verdict, r.Starts = api.Verdict{Result: api.Continue, Reason: "it is early"}, r.Begun.Add(time.Hour)
			r.Ended = new(r.Begun.Add(time.Minute))
		},
		"About 12,000 more visits should settle it, by 17 June 2026 at the present rate.": func(r *api.ExperimentReport) {
			r.Verdict, r.Left = api.Verdict{Result: api.Continue}, &api.Left{Decisions: 12_000, Seconds: 86_400}
		},
		`A tie, so keep “ours”. “ours” and “b” both earn more. You may stop now.`: func(r *api.ExperimentReport) {
			r.Verdict = api.Verdict{Result: api.Tie, Variant: "ours", Tied: []string{"b", "ours"},
				Reason: `"ours" and "b" both earn more`}
		},
		"A tie: keep “b” or “c”. It is one.": func(r *api.ExperimentReport) {
			r.Verdict = api.Verdict{Result: api.Tie, Tied: []string{"b", "c"}, Reason: "it is one"}
		},
		"0 of 123,600 visits count; the first ones by 3 June 2026, 22:04 UTC.": func(r *api.ExperimentReport) {
			r.Decisions, r.Counts = 0, new(time.Date(2026, 6, 3, 22, 4, 0, 0, time.UTC))
		},
		"Stop, and stay with “shop”. No gain.": func(r *api.ExperimentReport) {
			r.Verdict = api.Verdict{Result: api.Stop, Reason: "no gain"}
		},
		"Stop, and find out what went wrong. Half of “b” is lost. With “ours”": func(r *api.ExperimentReport) {
			r.Verdict = api.Verdict{Result: api.Stop, Untrusted: true, Reason: `half of "b" is lost`}
		},
		"Stop, and find out why the shoppers are not divided as planned.": func(r *api.ExperimentReport) {
			r.Verdict, r.Ratio = api.Verdict{Result: api.Stop, Reason: "x"}, api.Ratio{P: 1e-6, Mismatch: true}
		},
		"the placement “home”, 2 June 2026 to": func(r *api.ExperimentReport) {
			r.Starts = time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
		},
		"the placement “home”, 1 June 2026 to": func(r *api.ExperimentReport) {
			r.Starts = time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
		},
		"to 3 June 2026, 00:00 UTC. 123,456 of 123,600": func(r *api.ExperimentReport) {
			r.Ended = new(time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC))
		},
		"Your choice: “ours” earns more, and something suffers. “ours” earns": func(r *api.ExperimentReport) {
			r.Verdict.Result = api.Weigh
		},
		"money that came late could reverse that. “ours” earns": func(r *api.ExperimentReport) {
			r.Verdict.Result, r.Metrics = api.Weigh, nil
		},
		"is missing from it. Add the amounts below before you decide.": func(r *api.ExperimentReport) {
			r.Verdict.Result, r.Metrics, r.Variants[1].Later = api.Weigh, nil, -5000
		},
		"but something suffers, and money that came late could reverse the gain. “ours”": func(r *api.ExperimentReport) {
			r.Verdict.Result, r.Variants[1].Later = api.Weigh, -5000
		},
		"Add the amounts below, and decide whether the rest is worth the harm below.": func(r *api.ExperimentReport) {
			r.Verdict.Result, r.Variants[1].Later = api.Weigh, -5000
		},
		"are missing from all other numbers: 0.00 EUR of “shop”, −1,308 EUR of": func(r *api.ExperimentReport) {
			r.Variants[1].Later = -1308
		},
		"No winner, so stay with “shop”. X. The experiment is over": func(r *api.ExperimentReport) {
			r.Verdict, r.Ends = api.Verdict{Result: api.Continue, Reason: "x"},
				time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC)
		},
		"All learners learn from all shoppers": func(r *api.ExperimentReport) {
			r.Learn = api.LearnAll
		},
		"The picture begins with the second point in time.": func(r *api.ExperimentReport) { r.Points = r.Points[:1] },
		"0%0– – –": func(r *api.ExperimentReport) { // a variant without visits
			r.Variants[2].Share, r.Variants[2].Group, r.Variants[2].Difference = 0, api.Totals{}, nil
		},
		"VariantShareVisitsFirst pages seenBoughtRevenue": func(r *api.ExperimentReport) { r.Variants[0].Deferred = 1 },
		"oursthe policy auto, the one of the placement45%55,40062.5%5.6%": func(r *api.ExperimentReport) {
			r.Variants[1].Deferred, r.Variants[1].Seen, r.Variants[1].SeenLess = 1600, 1000, "shop"
		},
		"0 of 0 visits count.": func(r *api.ExperimentReport) {
			*r = api.ExperimentReport{Name: "new", Control: "a",
				Variants: []api.VariantReport{{Name: "a", Show: api.ShowUniform}, {Name: "b", Show: api.ShowPolicy}},
				Verdict:  api.Verdict{Result: api.Continue}}
		},
	} {
		r := example()
		change(r)
		if text := plain(pageOf(t, r)); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
}

// The pictures are well-formed, stay within their frame, and show all points; the band goes around the line.
func TestChart(t *testing.T) {
	r := example()
	c := chart{label: `a "label" <x>`, names: []string{"shop", "<b>", "c"}, skip: 0, zero: true}
	for _, p := range r.Points {
		c.add(p.Time, p.Differences)
	}
	picture := string(c.draw())
	d := xml.NewDecoder(strings.NewReader("<x>" + picture + "</x>"))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			fatal.If(t, err, picture)
		}
	}
	if strings.Contains(picture, "<b>") || !strings.Contains(picture, "a &#34;label&#34; &lt;x&gt;") {
		t.Error("names and labels are not escaped")
	}
	paths := regexp.MustCompile(`<path class="(band|line) c(\d)" d="([^"]*)"`).FindAllStringSubmatch(picture, -1)
	if len(paths) != 4 || paths[0][2] != "2" || paths[3][2] != "3" {
		t.Fatalf("%d paths, of %q", len(paths), paths[0][:3])
	}
	for _, p := range paths {
		points := regexp.MustCompile(`[ML]([-\d.]+) ([-\d.]+)`).FindAllStringSubmatch(p[3], -1)
		expect.Equal(t, len(points), map[string]int{"band": 240, "line": 120}[p[1]], "a", p[1], "has n points")
		for k, q := range points {
			var x, y float64
			fmt.Sscan(q[1]+" "+q[2], &x, &y)
			if x < chartLeft || x > chartWidth-chartRight || y < chartTop-0.05 || y > chartHeight-chartBottom+0.05 {
				t.Fatalf("point %d of a %s is at %v, %v", k, p[1], x, y)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {-0.3, 0.28}, {1.0412, 1.0498}, {0, 123456}, {-5, 1e6}} {
		all := ticks(c[0], c[1])
		if len(all) < 3 || len(all) > 9 || all[0] < c[0] || all[len(all)-1] > c[1] {
			t.Errorf("from %v to %v: %v", c[0], c[1], all)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234567: "1,234,567", -0.01234567: "−0.0123", 0.007196: "0.0072", 999.96: "1,000",
		12.5: "12.5", 1e-9: "0.000000001", 100: "100", -1000: "−1,000"} {
		expect.Equal(t, number(v), want, v, "is written as")
	}
	expect.Equal(t, signed(2.5), "+2.5", "signed")
	expect.Equal(t, count(1000), "1,000", "count")
}

// Amounts have two digits after the point, everywhere the same, and negative ones a true minus. The labels
// of the picture's times differ.
func TestAmounts(t *testing.T) {
	for v, want := range map[float64]string{3.6524: "3.65", -14.044: "−14.04", 0.0123: "0.0123", 1234.5: "1,234", 3.5: "3.50",
		-4: "−4.00", 0: "0.00", 123.4: "123", 0.05: "0.05"} {
		expect.Equal(t, money(v), want, fmt.Sprint(v))
	}
	for v, want := range map[float64]string{-5.336: "-5.34 EUR", 14.04: "14.04 EUR", 0.0213: "0.0213 EUR", 123.4: "123 EUR"} {
		expect.Equal(t, api.Amount(v, "EUR"), want, fmt.Sprint(v))
	}
	expect.Equal(t, sentence("it earns between -5.34 EUR and 14.04 EUR"), "It earns between −5.34 EUR and 14.04 EUR.", "a reason")
	for every, want := range map[time.Duration]string{2 * time.Second: "08:00:00 08:00:14 08:00:28 08:00:42",
		6 * time.Second: "08:00:00 08:00:42 08:01:24 08:02:06", 4 * time.Hour: "1 Jun 2 Jun 3 Jun 4 Jun",
		3 * time.Hour: "1 Jun 08:00 2 Jun 05:00 3 Jun 02:00 3 Jun 23:00"} {
		r := example()
		r.Points = r.Points[:22] // 42 seconds, 2 minutes, 63 or 84 hours
		for k := range r.Points {
			r.Points[k].Time = r.Begun.Add(time.Duration(k) * every)
		}
		var labels []string
		for _, l := range regexp.MustCompile(`class="time"[^>]*>([^<]*)`).FindAllStringSubmatch(pageOf(t, r), 4) {
			labels = append(labels, l[1])
		}
		expect.Equal(t, strings.Join(labels, " "), want, "labels every", every)
	}
}
