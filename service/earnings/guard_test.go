package earnings

import (
	"fmt"
	"testing"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
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

// A test in period j spends a fifth of one percent times 1/(j(j+1)), which sums to the fifth over all periods.
func TestErrorOfPeriods(t *testing.T) {
	lead := block(100, 0.25)
	for period, alpha := range map[uint64]float64{1: 0.001, 2: 0.002 / 6, 9: 0.002 / 90} {
		g := Guard{period: period}
		g.lead.Add(&lead)
		g.earned.Add(&lead)
		g.estimated.Add(&lead)
		g.predicted = 50
		g.baseline.Add(&lead)
		want := map[string][2]float64{
			"chance":      {g.lead.Low(alpha), g.lead.High(alpha)},
			"baseline":    {g.earned.Low(alpha/2) - g.earned.High(0.001), g.earned.High(alpha/2) - g.earned.Low(0.001)},
			"predictions": {g.estimated.Low(alpha/2) / 0.5, g.estimated.High(alpha/2) / 0.5},
		}
		checks := g.checks()
		expect.Equal(fatal.T(t), len(checks), len(want), "checks")
		for _, c := range checks {
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
