package earnings

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// shop is a simulated placement that shows one item per decision.
type shop struct {
	rate     func(n int) float64 // probability that decision n sells
	predicts func(n int) float64 // the policy's prediction; nil for no predictions
	price    func() float64
	gap      time.Duration        // time between decisions
	delay    func() time.Duration // time until a sale is reported
	evicts   func(n int) bool     // whether decision n makes room for others if it sells nothing; nil for none
	nulls    bool                 // whether the shop reports at once that a decision sold nothing
	window   time.Duration

	walksAway func() time.Duration // time until it is reported that a decision sold nothing; nil for nulls or never

	over *Doubt // decisions in doubt after the last alarm
}

// outcome is an outcome still to be reported.
type outcome struct {
	at int64
	of *offer.Closed
}

// run plays decisions until an alarm, and returns the last one.
func (s *shop) run(g *Guard, rng *rand.Rand, from, to int, queue *[]outcome) int {
	const begun = int64(1e18)
	for n := from; n <= to; n++ {
		now := begun + int64(n)*int64(s.gap)
		for len(*queue) > 0 && (*queue)[0].at <= now {
			if c := (*queue)[0].of; c.Choice == 0 && s.evicts != nil && s.evicts(int(c.Entry)) {
				g.cohorts.Lose(c.Time / g.Watch.Cohort())
				g.Leave(c.Entry, c.Time, nil)
			} else {
				g.Sold(c, (*queue)[0].at-c.Time)
				g.Leave(c.Entry, c.Time, c)
			}
			if s.advance(g, (*queue)[0].at, n) {
				return n
			}
			*queue = (*queue)[1:]
		}
		price := s.price()
		o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}, Revenue: []float64{price},
			Mode: offer.ByPolicy}}
		if s.predicts != nil {
			p := s.predicts(n)
			o.Probability, o.Outside, o.Expected = []float64{p}, 1-p, p*price
		}
		g.Enter(uint64(n), now, o, true)
		c := &offer.Closed{Offer: o, Entry: uint64(n), Time: now, Predicted: s.predicts != nil}
		wait := time.Duration(0)
		if rng.Float64() < s.rate(n) {
			c.Choice, wait = 1, s.delay()
		} else if s.walksAway != nil {
			wait = s.walksAway()
		} else if !s.nulls {
			wait = s.window + 1
		}
		if c.Choice > 0 && wait > s.window {
			c.Choice, wait = 0, s.window+1
		}
		at := outcome{now + int64(wait), c}
		i, _ := slices.BinarySearchFunc(*queue, at.at, func(o outcome, at int64) int { return cmp.Compare(o.at, at) })
		*queue = slices.Insert(*queue, i, at)
		if s.advance(g, now, n) {
			return n
		}
	}
	return 0
}

// advance reports whether an alarm was raised, and notes the decisions in doubt if one ended.
func (s *shop) advance(g *Guard, now int64, n int) bool {
	raised, over := g.Advance(now, uint64(n))
	s.over = cmp.Or(over, s.over)
	return raised
}

func at[T any](v T) func() T { return func() T { return v } }

func always(p float64) func(int) float64 { return func(int) float64 { return p } }

// sellsNothing returns the number of decisions from an outage to its alarm, or 0 without an alarm.
func sellsNothing(t *testing.T, seed uint64, rate float64, predicts bool) int {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &Guard{Watch: Watch{Window: 30 * time.Minute}}
	const good = 3000
	s := &shop{price: func() float64 { return 1 + rng.Float64() }, gap: time.Minute, delay: at(time.Duration(0)),
		window: 30 * time.Minute, rate: always(rate)}
	level := rate
	if predicts {
		s.predicts = func(int) float64 { return level }
	}
	var queue []outcome
	if n := s.run(g, rng, 1, good, &queue); n > 0 {
		t.Fatalf("a shop that sells %v has the alarm %+v at %d", rate, g.Alarm(), n)
	}
	s.rate = func(int) float64 { level *= 0.99; return 0 } // predictions fall too
	return max(s.run(g, rng, good+1, good+5000, &queue)-good, 0)
}

// Until the first window of a shop that reports only sales ends, its learner knows little but sales and predicts too
// many of them. That is no outage, also after a restart of the guard; another learner begins in the same way. Later
// predictions are compared, though many decisions end without an outcome.
func TestOnlySalesAreReported(t *testing.T) {
	const window = 2 * time.Hour // 7,200 decisions
	for _, c := range []struct {
		rate   float64
		evicts bool
	}{{0.05, false}, {0.05, true}, {0.2, false}, {0.2, true}} {
		began, level := 0, c.rate
		s := &shop{price: at(1.), gap: time.Second, delay: at(time.Duration(0)), window: window, rate: always(c.rate),
			predicts: func(n int) float64 {
				if n-began < 7200+apprenticeship {
					return 0.97
				}
				return level
			}}
		if c.evicts {
			s.evicts = func(n int) bool { return n%2 == 0 }
		}
		g := &Guard{Watch: Watch{Window: window}}
		var queue []outcome
		play := func(from, to int) {
			t.Helper()
			if n := s.run(g, rand.New(rand.NewPCG(1, 1)), from, to, &queue); n > 0 {
				t.Fatalf("%+v: the alarm %+v at %d", c, g.Alarm(), n)
			}
		}
		play(1, 5000)
		g.Restart(5000)
		play(5001, 25000)
		began = 25000
		g.SetTaught(0)
		g.Restart(25000)
		play(25001, 45000)
		g.Restart(45000)
		level = 0.97
		n := s.run(g, rand.New(rand.NewPCG(1, 1)), 45001, 60000, &queue)
		if n < 45000+apprenticeship || n > 46000 || !strings.Contains(g.Alarm().Detail, "expected") {
			t.Errorf("%+v: too high predictions have the alarm %+v at %d", c, g.Alarm(), n)
		}
	}
}

// An outage raises an alarm after about as many decisions as docs/operations.md says.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		rate            float64
		own, predicting int
	}{{.8, 30, 30}, {.5, 60, 50}, {.3, 100, 80}, {.2, 170, 120}, {.1, 420, 240}, {.05, 1600, 460}, {.02, 0, 1100}} {
		for seed := range uint64(4) {
			for predicts, most := range map[bool]int{false: c.own, true: c.predicting} {
				if n := sellsNothing(t, seed, c.rate, predicts); n > most || (n == 0) != (most == 0) {
					t.Errorf("rate %v, predicted %v, seed %d: an alarm after %d decisions, want at most %d",
						c.rate, predicts, seed, n, most)
				}
			}
		}
	}
}

// A restart keeps the wait, at most as long as the window, and forgets it on request.
func TestWaitAtARestart(t *testing.T) {
	g := &Guard{Watch: Watch{Window: time.Hour}, sales: sales{wait: int64(time.Hour), worth: 2,
		claimed: [amounts]float64{5, 6}, kept: [amounts]float64{3, 4}}}
	g.Watch.Window = time.Minute
	if g.Restart(7); g.sales.wait != int64(time.Minute) || g.sales.worth != 2 {
		t.Errorf("it waits %v for sales of %v", time.Duration(g.sales.wait), g.sales.worth)
	}
	g.Forget()
	if g.Restart(8); g.sales.wait != 0 || g.sales.worth != 0 || g.sales.claimed != [amounts]float64{5, 6} ||
		g.sales.kept != [amounts]float64{3, 4} {
		t.Errorf("it still knows %+v", g.sales)
	}
}

// A checkout that breaks with a restart of the guard, as by a roll back, rings after the apprenticeship; one that still
// sells does not.
func TestOutageAtARestart(t *testing.T) {
	for seed := range uint64(20) {
		for _, sells := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(seed, 3))
			g := &Guard{Watch: Watch{Window: 30 * time.Minute}}
			s := &shop{price: at(2.), gap: time.Minute, delay: at(time.Minute), window: 30 * time.Minute,
				rate: always(0.2), predicts: always(0.2)}
			var queue []outcome
			if n := s.run(g, rng, 1, 3000, &queue); n > 0 {
				t.Fatalf("alarm after decision %d of a healthy shop", n)
			}
			if g.Restart(3000); !sells {
				s.rate = always(0)
			}
			n := s.run(g, rng, 3001, 6000, &queue)
			rings := n > 3000+apprenticeship && n <= 3000+apprenticeship+250 && g.Alarm().Check == noSale
			if rings == sells || sells && n > 0 {
				t.Errorf("seed %d, sells %v: alarm after %d decisions", seed, sells, n-3000)
			}
		}
	}
}

// Shops with normal variation raise no alarm: a learner that starts with poor sets, days and nights, changing tastes,
// biased predictions, prices that vary a hundredfold, and late reports.
func TestHealthyShopsAreSilent(t *testing.T) {
	shops, decisions := 200, 2000
	if long.Wanted() {
		shops = 800
	}
	for seed := range uint64(shops) {
		expect.Equal(t, healthy(seed, decisions), "", "shop", seed)
	}
}

// healthy plays a shop and returns its alarm.
func healthy(seed uint64, decisions int) string {
	rng := rand.New(rand.NewPCG(seed, 2))
	base := math.Exp(math.Log(.01) + rng.Float64()*math.Log(60)) // 1% to 60%
	learns := 300 + rng.Float64()*1500
	amplitude := .3 * rng.Float64()
	phase := 2 * math.Pi * rng.Float64()
	gaps := []time.Duration{time.Minute, 20 * time.Second, 5 * time.Second, time.Second}
	gap := gaps[rng.IntN(len(gaps))]
	window := []time.Duration{10 * time.Minute, 30 * time.Minute, 2 * time.Hour}[rng.IntN(3)]
	mean := float64(window) * math.Exp(-rng.Float64()*6)
	biased := .85 + .3*rng.Float64()
	walk, believed := 0.0, .5
	rate := 0.0
	s := &shop{
		gap: gap, window: window, nulls: rng.IntN(3) == 0,
		price: func() float64 { return math.Exp(.7 * rng.NormFloat64()) },
		delay: func() time.Duration { return time.Duration(mean * rng.ExpFloat64()) },
		rate: func(n int) float64 {
			walk += .003 * rng.NormFloat64()
			walk *= .9999
			day := 1 + amplitude*math.Sin(phase+2*math.Pi*float64(n)*gap.Hours()/24)
			rate = min(base*(1-.5*math.Exp(-float64(n)/learns))*day*math.Exp(walk), .95)
			return rate
		},
		predicts: func(n int) float64 {
			believed += (rate - believed) * max(1/float64(n+1), .002)
			return min(believed*biased, .99)
		},
	}
	g := &Guard{Watch: Watch{Window: window}}
	var queue []outcome
	if n := s.run(g, rng, 1, decisions, &queue); n > 0 {
		return fmt.Sprintf("decision %d, with the rate %.3g: %+v", n, rate, g.Alarm())
	}
	return ""
}

// The shares of the tests' error match the doc comment, and sum to 1.
func TestSpentError(t *testing.T) {
	for j, want := range map[uint64]float64{1: 1. / 2, 2: 1. / 12, 3: 1. / 12, 4: 1. / 48, 7: 1. / 48, 8: 1. / 160} {
		expect.Equal(t, spent(j), want, "test", j, "spends")
	}
	sum := 0.0
	for j := uint64(1); j < 1<<16; j++ {
		sum += spent(j)
	}
	if math.Abs(sum-(1-1./17)) > 1e-9 { // Σ 1/((e+1)(e+2)) over e < 16
		t.Errorf("all tests up to 2¹⁶ spend %v", sum)
	}
	if all := ratesError + noSaleError + fallError; math.Abs(all+4*guardError/5-0.01) > 1e-15 {
		t.Errorf("the checks of sales spend %v", all)
	}
}

func TestEvidence(t *testing.T) {
	// b = 1/4, 10 decisions that sold 0 or 1
	want := map[float64]float64{
		0: math.Log((math.Pow(.9375/.75, 10) + math.Pow(.875/.75, 10) + math.Pow(.8125/.75, 10)) / 3),
		1: math.Log((math.Pow(.9375/.75, 9)/4 + math.Pow(.875/.75, 9)/2 + math.Pow(.8125/.75, 9)*3/4) / 3),
	}
	for sum, want := range want {
		if got := evidence(10, sum, .25); math.Abs(got-want) > 1e-12 {
			t.Errorf("10 decisions that sold %v are evidence %v, want %v", sum, got, want)
		}
	}
	if got := evidence(10, 2.5, .25); !math.IsInf(got, -1) {
		t.Errorf("as many sales as the boundary are evidence %v", got)
	}
	// 0.000375/2 is left of the first stretch's error: log 5333.3 = 8.58, and −log(1 − 0.375) = 0.470
	expect.Equal(t, MaxSilence(.5, 1), 19, "half of the decisions sell, and n without a sale are an alarm")
}

// At the boundary, where a sound placement is as bad as it may be, a check fails as rarely as its error promises.
func TestErrorOfSales(t *testing.T) {
	const rate, shops = .6, 600
	for check, share := range map[string]float64{noSale: noSaleShare, fall: fallShare} {
		alarms := 0
		for seed := range uint64(shops) {
			rng := rand.New(rand.NewPCG(seed, 3))
			g := &Guard{Watch: Watch{Window: time.Minute}}
			s := &shop{price: at(1.), gap: time.Second, delay: at(time.Duration(0)), nulls: true, window: time.Minute,
				predicts: always(rate), rate: func(n int) float64 {
					if n < 600 {
						return rate
					}
					return share * rate
				}}
			var queue []outcome
			if s.run(g, rng, 1, 1400, &queue); g.Sales != nil && g.Sales.Check == check {
				alarms++
			}
		}
		if most := noSaleError*shops + 3*math.Sqrt(noSaleError*shops); float64(alarms) > most {
			t.Errorf("%s: %d of %d placements at the boundary have an alarm, want at most %.1f",
				check, alarms, shops, most)
		}
	}
}

// decided returns a decision for an item of price 2.
func decided(entry uint64, time int64, choice int) *offer.Closed {
	o := &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}, Revenue: []float64{2}, Mode: offer.ByPolicy}}
	return &offer.Closed{Offer: o, Entry: entry, Time: time, Choice: choice}
}

// Nine tenths of sales are reported within three seconds. Decisions count at twice the next power of two. Later it takes
// a fifth of the latest sales to wait longer.
func TestWait(t *testing.T) {
	s := new(sales)
	const second = int64(time.Second)
	for n := range uint64(600) {
		c := decided(n, int64(n), 1)
		s.enter(n, c.Time, c.Offer, false)
	}
	for n := range 18 {
		s.leave(decided(uint64(n), 0, 1), 3*second, time.Hour, nil)
	}
	if want := 8 * second; s.wait != want || s.worth != 2 {
		t.Errorf("it waits %v for sales of %v", time.Duration(s.wait), s.worth)
	}
	leave := func(s *sales, n int, delay int64) {
		for range n {
			s.leave(decided(0, 0, 1), delay, time.Hour, nil)
		}
	}
	leave(s, 3, 100*second)
	expect.Equal(t, s.wait, 8*second, "with a few later sales it waits", time.Duration(s.wait))
	leave(s, 3, 100*second)
	expect.Equal(t, s.wait, 256*second, "with later sales it waits", time.Duration(s.wait))
	leave(s, 10_000, second)
	expect.Equal(t, s.wait, 256*second, "with earlier sales it waits", time.Duration(s.wait))
	again := s.again(time.Hour)
	leave(&again, 10, 1000*second) // of 64 to 128 latest sales
	expect.Equal(t, again.wait, 256*second, "with few later sales it waits", time.Duration(again.wait))
	leave(&again, 40, 1000*second)
	expect.Equal(t, again.wait, 2048*second, "with later sales in the next apprenticeship it waits",
		time.Duration(again.wait))
	for day := range int64(200) {
		again.fade((1 + day) * int64(25*time.Hour))
	}
	if again.wait < 2000*second {
		t.Errorf("while the latest sales need %v, it waits %v", 2048*second, time.Duration(again.wait))
	}
	leave(&again, 1000, second)
	for day := range int64(25) {
		again.fade((201 + day) * int64(25*time.Hour))
	}
	if again.wait < 900*second || again.wait > 1000*second {
		t.Errorf("25 days after the last late sales it waits %v", time.Duration(again.wait))
	}
}

// play goes on after alarms, and returns their number and the decision after which the last one ended.
func (s *shop) play(g *Guard, rng *rand.Rand, from, to int, queue *[]outcome) (alarms, ended int) {
	for n := from; n <= to; n++ {
		before := g.Sales
		s.run(g, rng, n, n, queue)
		if g.Sales != nil && before == nil {
			alarms++
		} else if g.Sales == nil && before != nil {
			ended = n
		}
	}
	return alarms, ended
}

// A shop that reported at once begins to report every hour, or half an hour later. That is silence at first, so an alarm
// may ring; it ends with the first reports and does not come back, not even after it is cleared, and a real outage still
// rings. An old shop adapts as fast as a young one.
func TestReportsComeLater(t *testing.T) {
	const changes, perHour = 1000, 240
	for _, c := range []struct {
		old    int
		rate   float64
		hourly bool
		clears bool
	}{{0, .5, true, false}, {0, .5, false, true}, {20_000, .5, true, false}, {20_000, .5, false, true},
		{0, .1, true, true}, {20_000, .1, false, false}} {
		from := c.old + changes
		n := 0
		gap := time.Hour / perHour
		s := &shop{price: at(1.), gap: gap, window: 24 * time.Hour, nulls: true,
			rate: func(at int) float64 { n = at; return c.rate },
			delay: func() time.Duration {
				switch {
				case n < from:
					return time.Second
				case c.hourly:
					return time.Duration(perHour-n%perHour) * gap
				}
				return 30 * time.Minute
			}}
		rng := rand.New(rand.NewPCG(1, 8))
		g := &Guard{Watch: Watch{Window: s.window}}
		var queue []outcome
		if alarms, _ := s.play(g, rng, 1, from-1, &queue); alarms > 0 {
			t.Fatalf("%+v: an alarm before reports come later", c)
		}
		if c.clears {
			for s.run(g, rng, n+1, n+1, &queue) == 0 && n < from+perHour {
			}
			g.Restart(uint64(n))
		}
		alarms, ended := s.play(g, rng, n+1, from+5000, &queue)
		if alarms > 1 || g.Sales != nil || ended > from+perHour+60 {
			t.Errorf("%+v: %d alarms, the last one ended after %d decisions, and the present one is %+v", c, alarms,
				ended-from, g.Sales)
		}
		if wait := time.Duration(g.sales.wait); wait < 30*time.Minute || wait > 3*time.Hour {
			t.Errorf("%+v: it waits %v", c, wait)
		}
		s.rate = always(0)
		most := int(float64(perHour)*time.Duration(g.sales.wait).Hours()) + int(60/c.rate)
		if rang := s.run(g, rng, from+5001, from+5001+most, &queue); rang == 0 || g.Alarm().Check != noSale {
			t.Errorf("%+v: in an outage the alarm after %d decisions is %+v", c, most, g.Alarm())
		}
	}
}

// A shop raises no alarm while its reports become ever slower, or when most of them come later from some decision on.
// One that is sound never rings because of a few reports that come much later.
func TestDelaysChange(t *testing.T) {
	for seed := range uint64(60) {
		for _, how := range []string{"ever slower", "partly", "rarely"} {
			rng := rand.New(rand.NewPCG(seed, 9))
			n, rate := 0, math.Exp(-3*rng.Float64())*.6
			gap := time.Duration(1+rng.IntN(20)) * time.Second
			s := &shop{price: at(1.), gap: gap, window: 4 * time.Hour, nulls: rng.IntN(2) == 0,
				rate: func(at int) float64 { n = at; return rate },
				delay: func() time.Duration {
					switch later := rng.Float64(); {
					case how == "ever slower":
						slow := min(math.Exp(float64(max(n-1000, 0))/500), 1800)
						return time.Duration((.5 + later) * slow * float64(time.Second))
					case n > 1000 && (how == "partly" && later < .45 || later < .01):
						return time.Hour
					}
					return time.Duration(rng.Float64() * 3 * float64(time.Second))
				}}
			g := &Guard{Watch: Watch{Window: s.window}}
			var queue []outcome
			if at := s.run(g, rng, 1, 8000, &queue); at > 0 {
				t.Errorf("seed %d, %s: the alarm %+v after decision %d", seed, how, g.Alarm(), at)
			}
			if how == "rarely" && g.sales.wait > int64(time.Minute) && rate*float64(time.Hour/gap) > 100 {
				t.Errorf("seed %d: with one late sale in a hundred it waits %v", seed, time.Duration(g.sales.wait))
			}
		}
	}
}

// Steady delays do not let decisions wait ever longer.
func TestSteadyDelays(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 13))
		s := &sales{watched: apprenticeship}
		leave := func(n int) {
			for range n {
				s.leave(decided(0, 0, 1), int64(rng.ExpFloat64()*200*float64(time.Second)), 24*time.Hour, nil)
			}
		}
		leave(latestSales - 2)
		s.watched++
		leave(1)
		first := s.wait
		if leave(20_000); first == 0 || s.wait > first {
			t.Errorf("seed %d: it waits %v, at first %v", seed, time.Duration(s.wait), time.Duration(first))
		}
	}
}

// silenced returns a guard that rang, and the decision at which it did: its shop, whose outcomes are queued, makes no sale
// after 2,000 decisions.
func silenced(t *testing.T) (g *Guard, s *shop, rng *rand.Rand, queue []outcome, rang int) {
	t.Helper()
	rng = rand.New(rand.NewPCG(1, 10))
	g = &Guard{Watch: Watch{Window: time.Hour}}
	s = &shop{price: at(1.), gap: time.Second, delay: at(time.Second), window: time.Hour, rate: always(.5)}
	s.run(g, rng, 1, 2000, &queue)
	s.rate = always(0)
	if rang = s.run(g, rng, 2001, 2100, &queue); rang == 0 {
		t.Fatal("no alarm")
	}
	return g, s, rng, queue, rang
}

// One late sale does not end an alarm about missing sales, but a few of its decisions' sales do. Then only its expired
// decisions are in doubt. Sales of earlier decisions do not count.
func TestLateSalesEndAnAlarm(t *testing.T) {
	g, _, _, _, rang := silenced(t)
	late := func(entry uint64) *Doubt {
		at := int64(1e18) + int64(entry)*int64(time.Second)
		g.Sold(decided(entry, at, 1), 20*int64(time.Second))
		_, over := g.Advance(int64(1e18)+int64(rang)*int64(time.Second), uint64(rang))
		return over
	}
	for entry := range uint64(3) {
		if late(1950+entry) != nil {
			t.Fatal("a sale from before the silence has ended the alarm")
		}
	}
	if late(2012) != nil || late(2010) != nil {
		t.Error("two late sales have ended the alarm")
	}
	expect.Equal(t, g.sales.wait, 8*int64(time.Second), "after two sales of 20 s it waits")
	if g.Report("").Alarm.Detail != g.Sales.Detail || g.Report("").Alarm.Chance != g.Sales.Chance {
		t.Errorf("after late sales the alarm is %+v, was %+v", g.Report("").Alarm, g.Sales)
	}
	over := late(2014)
	if over == nil || *over != (Doubt{over.From, 2010,
		true}) || over.From < 1990 || over.From > 2010 || g.Sales != nil {
		t.Errorf("after late sales the decisions %+v are in doubt, with the alarm %+v", over, g.Sales)
	}
	if over != nil && (!over.Has(over.From, true) || over.Has(over.From, false) || over.Has(2010, true)) {
		t.Error("other decisions are in doubt")
	}
}

// Sales that come in time while an alarm rings do not hide that sales of its decisions came late, and only expired
// decisions are in doubt. But late sales that silence followed explain nothing, and all its decisions are in doubt.
func TestLateSalesDuringAnAlarm(t *testing.T) {
	for _, returnsFirst := range []bool{true, false} {
		g, s, rng, queue, n := silenced(t)
		since := g.Sales.Since
		play := func(goesOn func() bool) {
			for end := n + 500; s.over == nil && goesOn() && n < end; {
				n++
				s.run(g, rng, n, n, &queue)
			}
		}
		if returnsFirst {
			s.rate = always(.3)
			play(func() bool { return g.sales.silent > 0 })
		}
		for entry := range uint64(2) {
			g.Sold(decided(2005+entry, int64(1e18)+int64(2005+entry)*int64(time.Second), 1), 60*int64(time.Second))
		}
		if g.Sales == nil || !g.sales.late || g.sales.back != 2005 {
			t.Fatalf("after late sales the alarm is %+v, with evidence since %d", g.Sales, g.sales.back)
		}
		if !returnsFirst {
			play(func() bool { return g.sales.rise > 0 })
			expect.Equal(t, g.Report("").Alarm.Detail, g.Sales.Detail, "the alarm says, in spite of late sales")
		}
		s.rate = always(.5)
		play(func() bool { return true })
		if d := s.over; d == nil || d.From != since || d.Expired != returnsFirst || (d.Until == 2005) != returnsFirst {
			t.Errorf("returns first %v: in doubt are %+v", returnsFirst, d)
		}
	}
}

// A single sale hours late does not blind the guard, but several in a row let it wait for such sales.
func TestTardySales(t *testing.T) {
	s := &sales{watched: apprenticeship, wait: int64(time.Minute), silent: 1, day: 1}
	for n, want := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		s.leave(decided(uint64(n+1), 0, 1), int64(9*time.Hour), 24*time.Hour, nil)
		expect.Equal(t, time.Duration(s.wait), want, n+1, "sales were 9 h late, and it waits")
	}
	s.leave(decided(9, 0, 1), int64(9*time.Minute), 24*time.Hour, nil)
	expect.Equal(t, time.Duration(s.wait), 13*time.Minute+30*time.Second, "a sale was 9 minutes late, and it waits")
	s.leave(decided(9, 0, 1), int64(time.Hour), 14*time.Minute, nil)
	expect.Equal(t, time.Duration(s.wait), 14*time.Minute, "with a window of 14 minutes it waits")
}

// The wait shrinks by a 32nd each day, also in small shops and during alarms, but not while the service does not run.
func TestWaitFades(t *testing.T) {
	const perDay = 200
	const gap = int64(24*time.Hour) / perDay
	s := &sales{wait: int64(3 * time.Hour), worth: 1, watched: apprenticeship, day: 1}
	s.delays[0] = 64
	var alarm *api.Alarm
	n, clock := uint64(0), int64(0)
	play := func(decisions int) {
		for range decisions {
			n++
			clock += gap
			s.enter(n, clock, decided(n, clock, 0).Offer, false)
			s.leave(decided(n, clock, 0), 0, 24*time.Hour, alarm)
			s.judge(clock, alarm)
		}
	}
	want := float64(3 * time.Hour)
	check := func(days float64) {
		t.Helper()
		if want *= math.Pow(31./32, days); math.Abs(float64(s.wait)/want-1) > 1e-3 {
			t.Errorf("it waits %v, want %v", time.Duration(s.wait), time.Duration(want))
		}
	}
	play(10 * perDay)
	check(9) // the first day only begins
	alarm = &api.Alarm{Check: noSale}
	play(10*perDay + perDay/2)
	check(11)
	by := int64(30 * 24 * time.Hour)
	clock += by
	s.move(by)
	kept := s.again(24 * time.Hour)
	kept.day, kept.watched, s = 1, apprenticeship, &kept
	play(perDay / 4)
	check(0)
	play(perDay / 2)
	check(1)
}

// A late sale restarts the tests, because their decisions were judged too early. So do sales that come in time, but so
// slowly that decisions wait longer from then on.
func TestLateSalesRestartTheTests(t *testing.T) {
	for _, isLate := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(1, 12))
		g := &Guard{Watch: Watch{Window: time.Hour}}
		s := &shop{price: at(1.), gap: time.Second, delay: at(time.Second), window: time.Hour, rate: always(.5)}
		var queue []outcome
		s.run(g, rng, 1, 2000, &queue)
		s.rate = always(0)
		if s.run(g, rng, 2001, 2020, &queue); g.sales.run.n < 10 || g.sales.octaves[7].pair[0].n == 0 {
			t.Fatalf("%d decisions without a sale, %d before", g.sales.run.n, g.sales.octaves[7].pair[0].n)
		}
		if isLate {
			g.Sold(decided(2010, 0, 1), 10*int64(time.Second))
		} else {
			for range 40 {
				g.Sold(decided(1000, 0, 1), 2*int64(time.Second))
			}
		}
		runs := g.sales.runs
		g.Sold(decided(2010, 0, 1), int64(time.Second))
		expect.Equal(t, g.sales.runs, runs, "after another late sale, with no decision judged since, tests began")
		if g.sales.run.n > 0 || g.sales.octaves[7].pair[0].n > 0 {
			t.Errorf("late %v: the tests go on after %d decisions without a sale, %d before", isLate, g.sales.run.n,
				g.sales.octaves[7].pair[0].n)
		}
	}
}

// Where reports come once a night, predictions may be far too high until the second night: they are not trusted before
// they came true.
func TestPredictionsOfABatch(t *testing.T) {
	const day = 2000
	for seed := range uint64(10) {
		n := 0
		s := &shop{price: at(1.), gap: 24 * time.Hour / day, window: 48 * time.Hour, predicts: func(at int) float64 {
			switch {
			case at < 2*day:
				return .4
			case at < 4*day:
				return .03
			}
			return .06
		}}
		night := func() time.Duration { return time.Duration(day-n%day) * s.gap }
		s.rate = func(at int) float64 { n = at; return .03 }
		s.delay, s.walksAway = night, night
		g := &Guard{Watch: Watch{Window: s.window}}
		var queue []outcome
		if at := s.run(g, rand.New(rand.NewPCG(seed, 11)), 1, 6*day, &queue); at > 0 && g.Sales != nil {
			t.Errorf("seed %d: the alarm %+v after decision %d", seed, g.Alarm(), at)
		}
	}
}

// Decisions count in the order in which they were made, once all decisions in a lot are closed or overdue. A later sale
// does not count if another decision's sale was judged since.
func TestLots(t *testing.T) {
	const wait = int64(160 * time.Second) // lots span ten seconds
	const second = int64(time.Second)
	s := &sales{wait: wait, worth: 4, watched: apprenticeship}
	enter := func(entry uint64, at int64) { s.enter(entry, at, decided(entry, at, 0).Offer, false) }
	leave := func(entry uint64, made, at int64, choice int) {
		s.leave(decided(entry, made, choice), at-made, time.Hour, nil)
	}
	judged := func(now int64, decisions uint64, taken, worth float64) {
		t.Helper()
		s.judge(now, nil)
		if s.judged != decisions || s.today[0].Sum.Value() != taken || s.today[1].Sum.Value() != worth {
			t.Errorf("at %d s %d decisions sold %v and %v, want %d, %v and %v",
				now/second, s.judged, s.today[0].Sum.Value(), s.today[1].Sum.Value(), decisions, taken, worth)
		}
	}
	enter(1, 0)
	enter(2, 9*second)
	enter(3, 10*second) // the second lot
	leave(3, 10*second, 11*second, 1)
	judged(21*second, 0, 0, 0) // the first lot is open
	leave(1, 0, 22*second, 1)
	leave(2, 9*second, 23*second, 0)
	judged(23*second, 3, 2, 1) // a sale of 2 is half an average one
	enter(4, 30*second)
	enter(5, 50*second)
	leave(5, 50*second, 60*second, 1)
	judged(190*second, 3, 2, 1) // decision 4 is 160 s old
	judged(191*second, 5, 3, 1.5)
	leave(4, 30*second, 195*second, 1) // too late
	judged(300*second, 5, 3, 1.5)
	enter(6, 300*second)
	leave(6, 300*second, 301*second, 1)
	judged(309*second, 5, 3, 1.5) // the lot is still the present one
	judged(310*second, 6, 4, 2)
	enter(7, 400*second)
	leave(7, 400*second, 571*second, 1) // late, and not judged yet
	judged(571*second, 7, 5, 2.5)
	expect.Equal(t, s.wait, wait, "it waits")
}

// However long an outage lasts, it does not become normal.
func TestLongOutage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	g := &Guard{Watch: Watch{Window: 30 * time.Minute}}
	s := &shop{price: at(1.), gap: time.Minute, delay: at(time.Minute), window: 30 * time.Minute, rate: always(.5)}
	var queue []outcome
	s.run(g, rng, 1, 3000, &queue)
	s.rate = always(0)
	rang := s.run(g, rng, 3001, 3200, &queue)
	s.run(g, rng, rang+1, rang+8000, &queue)
	if g.Sales == nil || g.Sales.Check != noSale || g.sales.run.n < 7900 {
		t.Errorf("after %d decisions without a sale the alarm is %+v", g.sales.run.n, g.Sales)
	}
}

// Predictions count once half of their sales and of their revenue came true. Then the latest ones weigh most.
func TestPredictionsCount(t *testing.T) {
	for _, c := range []struct {
		taken, worth float64
		holds        bool
	}{{.5, .5, true}, {.4, .5, false}, {.5, .4, false}} {
		s := new(sales)
		add := func(share [amounts]float64) {
			l := &lot{n: 10, foreseen: [amounts]float64{8, 4}}
			for i := range share {
				l.hits[i] = share[i] * l.foreseen[i]
			}
			s.remember(l)
		}
		for range 4 {
			if s.predictionsHold() {
				t.Errorf("%+v: they count after %v predicted sales", c, s.claimed[taken])
			}
			add([amounts]float64{c.taken, c.worth})
		}
		expect.Equal(t, s.predictionsHold(), c.holds, c, "they count")
		for range 1000 {
			add([amounts]float64{1, 1})
		}
		for range 80 { // 640 sales, of 1,024 at most
			add([amounts]float64{})
		}
		expect.Equal(t, s.predictionsHold(), false, c, "they count after many that failed")
	}
}

// Until a rate is known, a change of the wait does not begin the first run without a sale.
func TestTheFirstRunWaitsForARate(t *testing.T) {
	s := new(sales)
	s.resume(false)
	s.frozen = .5
	if s.lengthen(&lot{n: 1}); s.runs != 1 || s.run.rates[predicted] != .5 {
		t.Errorf("run %d has the rates %v", s.runs, s.run.rates)
	}
}

// A lot that began before predictions are compared counts neither them nor the sales of its predicted decisions.
func TestLotsBeforePredictionsAreCompared(t *testing.T) {
	for _, taught := range []uint64{apprenticeship - 1, apprenticeship} {
		s := &sales{wait: int64(time.Hour), worth: 2, watched: apprenticeship, taught: taught}
		c := decided(1, 0, 1)
		c.Probability, c.Outside, c.Predicted = []float64{.8}, .2, true
		s.enter(1, 0, c.Offer, true)
		s.taught = apprenticeship
		s.leave(c, 0, time.Hour, nil)
		n := float64(taught + 1 - apprenticeship)
		if l := s.lots[0]; l.sum[taken] != 1 || float64(l.predicted) != n || l.hits[taken] != n ||
			l.hits[worthOf] != n || l.foreseen[taken] != .8*n {
			t.Errorf("after %d decisions the lot has %+v", taught, l)
		}
	}
}

// Predictions are compared only with predicted decisions: two thirds of the decisions belong to a variant that sells
// nothing, and the placement's own decisions sell as predicted.
func TestOnlyPredictedDecisionsAreCompared(t *testing.T) {
	g := &Guard{Watch: Watch{Window: time.Minute}}
	rng := rand.New(rand.NewPCG(1, 6))
	for n := range uint64(6000) {
		now := int64(n) * int64(time.Second)
		c := decided(n, now, 0)
		own := n%3 == 0
		if own {
			c.Probability, c.Outside = []float64{.8}, .2
			if c.Predicted = true; rng.Float64() < .8 {
				c.Choice = 1
			}
		}
		g.Enter(n, now, c.Offer, own)
		g.Sold(c, 0)
		if raised, _ := g.Advance(now, n); raised {
			t.Fatalf("decision %d: %+v", n, g.Sales)
		}
	}
}

// Sales are frozen for a whole day of at least 5,000 decisions.
func TestDays(t *testing.T) {
	s := new(sales)
	day := int64(minPeriod)
	add := func(n uint64, sold float64, at int64) {
		s.remember(&lot{n: n, sum: [amounts]float64{sold, sold}, begun: at})
	}
	add(6000, 3000, 0)
	add(6000, 3000, day-1)
	if s.day != 1 || s.before[taken].N != 0 {
		t.Errorf("within a day it is day %d, after one of %d decisions", s.day, s.before[taken].N)
	}
	m := s.today[taken]
	if got, want := s.sold(taken), m.Low(0.002/4/2/2); got != want || got < .45 || got > .5 {
		t.Errorf("on the first day it sold %v, want %v", got, want)
	}
	add(4000, 400, day)
	if s.day != 2 || s.before[taken] != m || s.today[taken].N != 4000 || s.sold(taken) != m.Low(0.002/4/2/2) {
		t.Errorf("on day %d the day before had %d decisions, and this one has %d",
			s.day, s.before[taken].N, s.today[taken].N)
	}
	add(500, 50, 2*day)
	expect.Equal(t, s.day, 2, "a day ends with 4,500 decisions")
	add(500, 50, 2*day+1)
	add(1, 1, 2*day+2)
	if want := s.before[taken]; s.day != 3 || want.N != 5000 || s.sold(taken) != want.Low(0.002/4/2/6) {
		t.Errorf("day %d is after one of %d decisions", s.day, want.N)
	}
}

// A fall of sales to a fifth raises an alarm. It ends when sales are back, or after a day of at least 5,000 decisions,
// when the lower level becomes normal.
func TestFall(t *testing.T) {
	for seed := range uint64(3) {
		for _, recovers := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(seed, 4))
			g := &Guard{Watch: Watch{Window: 30 * time.Minute}}
			s := &shop{price: at(1.), gap: 30 * time.Second, delay: at(time.Minute), window: 30 * time.Minute,
				rate: always(.5)}
			var queue []outcome
			if n := s.run(g, rng, 1, 4000, &queue); n > 0 {
				t.Fatalf("a healthy shop has the alarm %+v", g.Alarm())
			}
			s.rate = always(.1)
			n := s.run(g, rng, 4001, 5000, &queue)
			if n == 0 || n > 4700 || g.Alarm().Check != fall {
				t.Fatalf("a shop that sells a fifth has the alarm %+v after %d decisions", g.Alarm(), n-4000)
			}
			most := n + 5200
			if recovers {
				s.rate, most = always(.5), n+100
			}
			over := n
			for over < most && g.Sales != nil {
				over++
				s.run(g, rng, over, over, &queue)
			}
			if g.Sales != nil || !recovers && over < n+minPeriodSize {
				t.Errorf("recovers %v: %d decisions after the alarm it is %+v", recovers, over-n, g.Sales)
			}
			if again := s.run(g, rng, over+1, over+3000, &queue); again > 0 {
				t.Errorf("recovers %v: after the alarm there is %+v", recovers, g.Alarm())
			}
		}
	}
}

// During an outage sales cannot be reported: no lot becomes overdue because of it, later sales still count, and their
// delay is the time that the service ran.
func TestSalesMoveWithTheClock(t *testing.T) {
	const second = int64(time.Second)
	const wait = 160 * second
	for _, by := range []int64{3 * int64(time.Hour), -3 * int64(time.Hour)} {
		s := &sales{wait: wait, worth: 2, day: 1, watched: apprenticeship}
		s.enter(1, 0, decided(1, 0, 0).Offer, false)
		s.enter(2, 20*second, decided(2, 20*second, 0).Offer, false)
		s.move(by)
		now := 30*second + by
		if s.judge(now, nil); s.judged != 0 {
			t.Errorf("after a move by %v %d decisions are judged", time.Duration(by), s.judged)
		}
		s.leave(decided(1, 0, 1), 30*second, time.Hour, nil)
		s.leave(decided(2, 20*second, 1), 10*second, time.Hour, nil)
		if s.judge(now, nil); s.judged != 2 || s.today[taken].Sum.Value() != 2 || s.began != by || s.delays[5] != 1 ||
			s.delays[4] != 1 {
			t.Errorf("after a move by %v %d decisions sold %v, the day began at %v, and the delays are %v",
				time.Duration(by), s.judged, s.today[taken].Sum.Value(), time.Duration(s.began), s.delays)
		}
	}
}

// Where few decisions sell, predictions count only after thousands of decisions, and the guard says so in advance.
func TestNeededDecisionsOfRareSales(t *testing.T) {
	s := &shop{price: at(1.), gap: time.Minute, window: 24 * time.Hour, nulls: true, rate: always(.01),
		predicts: always(.01), delay: at(time.Second)}
	g := &Guard{Watch: Watch{Window: s.window}}
	rng := rand.New(rand.NewPCG(2, 1))
	var queue []outcome
	needs := map[int]uint64{}
	for n := 1; ; n++ {
		s.run(g, rng, n, n, &queue)
		checks := g.Report("").Checks
		if needs[n] = checks[0].Needs; checks[0].Silence == 0 && n < 6000 {
			continue
		}
		for _, at := range []int{1200, 1600, 2600, n - 100} {
			if off := at + int(needs[at]) - n; off < -100 || off > 100 {
				t.Errorf("decision %d: it needs %d more, but the rate was known at %d", at, needs[at], n)
			}
		}
		return
	}
}
