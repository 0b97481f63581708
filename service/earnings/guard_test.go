package earnings

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Every round lies within its bound of its cohort's centre, even if the sets are now cheaper than the centre: a period
// may begin with such a cohort, and knows no earlier bound.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ centre, revenue, want float64 }{{5, 1, 5}, {0.5, 2, 2}} {
		at := confseq.Block{Centre: c.centre}
		of := &guarded{earned: at, estimated: at, baseline: at}
		o := &offer.Closed{Offer: &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0},
			Revenue: []float64{c.revenue}, Mode: offer.ByPolicy}}, Choice: 1, Predicted: true}
		of.add(o, new(Watch))
		o.Mode = offer.ByBaseline
		of.add(o, &Watch{Mode: api.Shadow})
		for _, bound := range []float64{of.earned.Sums.Bound, of.estimated.Sums.Bound, of.baseline.Sums.Bound} {
			if bound != c.want {
				t.Errorf("a revenue of at most %v has the bound %v around %v", c.revenue, bound, c.centre)
			}
		}
	}
}

// block returns n observations of x, with the centre 0.
func block(n int, x float64) (b confseq.Block) {
	for range n {
		b.Add(x, 1)
	}
	return b
}

// A test in period j spends a fifth of one percent times 1/(j(j+1)), which sums to the fifth over all periods. Both
// sides share it, except for chance; earnings at another time spend half.
func TestErrorOfPeriods(t *testing.T) {
	lead, past := block(100, 0.25), block(4000, 0.25)
	for period, alpha := range map[uint64]float64{1: 0.001, 2: 0.002 / 6, 9: 0.002 / 90} {
		g := Guard{period: period}
		g.lead.Add(&lead)
		g.earned.Add(&lead)
		g.estimated.Add(&lead)
		g.predicted = 50
		g.baseline.Add(&past)
		low, high := g.earned.Low(alpha/2), g.earned.High(alpha/2)
		want := map[string][2]float64{
			"chance":      {g.lead.Low(alpha), g.lead.High(alpha)},
			"baseline":    {low / g.baseline.High(0.001), high / g.baseline.Low(0.001)},
			"predictions": {low / 0.5, high / 0.5},
		}
		checks := g.checks()
		expect.Equal(fatal.T(t), len(checks), len(want), "checks")
		for _, c := range checks {
			expect.Equal(t, c.alpha, alpha, c.Name)
			if got := [2]float64{*c.Low, *c.High}; got != want[c.Name] {
				t.Errorf("period %d, %s: the interval is %v, want %v", period, c.Name, got, want[c.Name])
			}
		}
	}
}

// A cohort counts once it is over and all its decisions have closed, and only after all earlier cohorts.
func TestCohortsAreWhole(t *testing.T) {
	g := Guard{Watch: Watch{Window: 16}} // cohorts of length 1
	closed := func(entry uint64, at int64) *offer.Closed {
		o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}, Revenue: []float64{1}, Mode: offer.ByPolicy}}
		return &offer.Closed{Offer: o, Entry: entry, Time: at, Choice: 1}
	}
	counted := func(now int64, want uint64) {
		t.Helper()
		g.Advance(now, 9)
		expect.Equal(t, g.earned.N, want, "at", now, "decisions count")
	}
	for entry, at := range []int64{100, 100, 101, 102} {
		g.Enter(uint64(entry+1), at, closed(0, at).Offer, true)
	}
	leave := func(entry uint64, at int64) { g.Leave(entry, at, closed(entry, at)) }
	leave(1, 100)
	leave(3, 101)
	counted(200, 0) // decision 2 is open
	leave(2, 100)
	counted(100, 0) // the first cohort is still the present one
	counted(101, 2)
	counted(102, 3)
	leave(4, 102)
	counted(102, 3)
	counted(103, 4)
}

// Predictions are far off once they are certainly wrong by more than a fifth, in the present period alone.
func TestFarOff(t *testing.T) {
	for _, c := range []struct {
		rounds, purchases uint64
		predicted         float64
		off               bool
	}{
		{20, 2, 0.45, false},     // 20 decisions prove too little
		{5, 1, 0.999, false},     // and so do five
		{2000, 860, 0.45, false}, // 0.43
		{2000, 780, 0.45, false}, // 0.39 exceeds four fifths of 0.45
		{2000, 500, 0.45, true},
		{2000, 1300, 0.45, true},
		{2000, 1960, 0.93, true}, // 2% do not buy, predicted 7%
	} {
		g := Guard{period: 1}
		*g.bins.bin(1 - c.predicted) = api.Bin{Rounds: c.rounds, Purchases: c.purchases,
			Predicted: c.predicted * float64(c.rounds)}
		g.bins[0] = api.Bin{Rounds: 100, Purchases: 5, Predicted: 5}
		if b := g.farOff(); (b != nil) != c.off ||
			b != nil && (b.Rounds != c.rounds || b.Observed != float64(c.purchases)/float64(c.rounds)) {
			t.Errorf("%+v: far off is %+v", c, b)
		}
		if g.period = 0; g.farOff() != nil {
			t.Error("predictions of the apprenticeship are judged")
		}
	}
}

// A fresh guard reports the conditions it waits for.
func TestReport(t *testing.T) {
	g := Guard{Watch: Watch{Mode: api.Explore, Share: 0.1, Window: time.Hour}}
	needs := func() (list []string) {
		for _, c := range g.Report("").Checks {
			list = append(list, fmt.Sprint(c.Name, " ", c.Needs))
		}
		return list
	}
	expect.Equal(t, needs(), []string{"no-sale 551", "sales 601", "chance 501", "first-week 501", "predictions 501"})
	g.sales.watched = 400
	g.sales.delays[2] = 4
	b := block(400, 0.2)
	g.earned.Add(&b)
	expect.Equal(t, needs(), []string{"no-sale 1250", "sales 1300", "chance 101", "first-week 101", "predictions 101"})
	g.Watch.Mode = api.Shadow
	expect.Equal(t, needs(), []string{"no-sale 1250", "sales 1300"})
	g.Watch.Mode, g.period, g.earned = api.Learn, 1, confseq.Mean{}
	for taught, want := range map[uint64][]string{0: nil, 1: {"predictions 500"}, 9000: {"predictions 1"}} {
		g.sales.taught = taught
		expect.Equal(t, needs()[2:], append([]string{"first-week 0"}, want...), taught)
	}
	g.Watch.Mode = api.Shadow
	// the first stretch spends half of 0.002 · 3/8 / 2 / 8; its logarithm is −10.661
	if sees, ok := smallestFall(len(lengths)-1, 1, 0.5); !ok || evidence(5000, 2500*(1-sees), 0.25) < 10.661 ||
		evidence(5000, 2500*(1.002-sees), 0.25) > 10.661 {
		t.Errorf("5,000 decisions see a fall by %v, %v", sees, ok)
	}
	if _, ok := smallestFall(0, 1, 0.05); ok {
		t.Error("50 decisions of which two sell see a fall")
	}
}

// A shop that sells less or more at weekends and at night raises no alarm, whether its predictions know that or not. A
// policy that earns less than half of what it did before, of what your own pages did, or of its predictions gets an
// alarm, and the placement falls back.
func TestCollapses(t *testing.T) {
	const begun, perDay, rate, changes = int64(1e18), 5000, 0.3, 8
	seeds, days := 1, 15
	if long.Wanted() {
		seeds, days = 4, 40
	}
	for name, c := range map[string]struct {
		weekend, night float64
		predicts       float64 // the predictions, as a multiple of the sales on an average day; 0 if they are exact
		sells, daily   float64 // sales from the ninth day on, as a multiple, which falls by a factor each day
		days           int     // number of days before, on which the caller's sets are shown
		own            float64 // sales of those, as a multiple
		check          string
		from, until    float64 // days between which the alarm is raised
		evicts         bool    // whether a quarter of the busy hours' decisions leave memory
	}{
		"quiet weekends":                {weekend: .6, night: .3, sells: 1},
		"quiet weekends, not predicted": {weekend: .6, night: .3, predicts: 1, sells: 1},
		"busy weekends, not predicted":  {weekend: 1.4, night: .3, predicts: 1, sells: 1},
		"evictions in the busy hours":   {weekend: 1, night: .5, sells: 1, evicts: true},
		"a loss":                        {weekend: .7, sells: .75},
		"a collapse":                    {weekend: 1, sells: .36, check: "sales first-week", from: 8, until: 11},
		"a decline":                     {weekend: 1, sells: 1, daily: .85, check: "first-week", from: 12, until: 15},
		"better own pages":              {weekend: 1, sells: 1, days: 7, own: 1.4},
		"much better own pages":         {weekend: 1, sells: 1, days: 5, own: 3, check: "baseline", until: 1},
		"high predictions":              {weekend: 1, predicts: 1.6, sells: 1},
		"false predictions":             {weekend: 1, predicts: 2.6, sells: 1, check: predictions, until: 3},
	} {
		for seed := range uint64(seeds) {
			demand := func(n int) float64 {
				d := float64(n)/perDay + float64(seed)
				r := rate * (1 + float64(c.night*math.Sin(2*math.Pi*d)))
				if int(d)%7 >= 5 {
					r *= c.weekend
				}
				return r
			}
			s := &shop{gap: day / perDay, window: time.Hour, nulls: true, price: at(1.), delay: at(time.Duration(0))}
			s.rate = func(n int) float64 {
				if n < changes*perDay {
					return demand(n)
				}
				if c.daily > 0 {
					return demand(n) * math.Pow(c.daily, float64(n)/perDay-changes)
				}
				return demand(n) * c.sells
			}
			if s.predicts = s.rate; c.predicts > 0 {
				s.predicts = always(c.predicts * rate * (5 + 2*c.weekend) / 7)
			}
			if c.evicts {
				s.evicts = func(n int) bool { return n%4 == 0 && demand(n) >= rate }
			}
			g := &Guard{Watch: Watch{Window: s.window}}
			for d := range c.days {
				var own guarded
				for n := range perDay {
					x := 0.0
					if float64(n) < perDay*rate*c.own {
						x = 1
					}
					own.baseline.Add(x, 1)
				}
				at := begun - int64(d)*int64(day)
				g.take(&own, at, 0)
			}
			var queue []outcome
			n := float64(s.run(g, rand.New(rand.NewPCG(seed, 4)), 1, days*perDay, &queue)) / perDay
			if a := g.Alarm(); a == nil && c.check != "" || a != nil && (!strings.Contains(c.check,
				a.Check) || n < c.from ||
				n > c.until || !g.FallsBack()) {
				t.Errorf("%s, seed %d: on day %.2f the alarm is %+v, and falls back %v", name, seed, n, a,
					g.FallsBack())
			}
		}
	}
}

// The first week begins again if the clock is set back to before it. Later weeks are not part of it.
func TestFirstWeek(t *testing.T) {
	g := Guard{period: 1}
	for _, c := range []struct {
		day    int64
		want   uint64
		isOver bool
	}{{400, 1, false}, {3, 1, false}, {9, 2, false}, {10, 2, true}, {2, 2, true}, {4, 2, true}} {
		one := guarded{earned: block(1, 0.5)}
		g.take(&one, c.day*int64(day), 0)
		expect.Equal(t, g.first.N, c.want, "on day", c.day)
		expect.Equal(t, g.isOver, c.isOver, "on day", c.day)
	}
}
