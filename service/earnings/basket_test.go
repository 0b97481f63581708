package earnings

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// basket returns a closed decision that shows items in order, with the given ones taken.
func basket(entry uint64, mode uint8, taken eventlog.Basket, items ...string) *offer.Closed {
	c := sale(entry, mode, int(taken[0].Place), items...)
	c.Basket = taken
	return c
}

// A page with several units counts once, with all its money; its predictions are compared with its average unit. By
// hand.
func TestBasketsByHand(t *testing.T) {
	var e Earnings
	// 5 for two of b, and 1 for a
	c := expecting(basket(1, offer.ByPolicy, eventlog.Basket{{Place: 1, Quantity: 2, Value: 5},
		{Place: 3, Quantity: 1, Value: 1}}, "b", "c", "a"), 0.5, 1.5)
	e.Offered(1, 0, c.Offer, true)
	e.Closed(atEnd(c, 0), c, 10)
	g := e.Counts.Arms[0]
	if g.Rounds != 1 || g.Purchases != 1 || g.Revenue != precise.Of(6) || g.Squares != precise.Of(36) {
		t.Errorf("%+v", g)
	}
	if k := e.Counts.Calibration; k.Revenue != 2 || k.Predicted != 1.5 || k.Bins[5].Purchases != 1 {
		t.Errorf("%+v", k)
	}
	e.Advance(1, 1)
	expect.Equal(t, e.Drift.all.earned, 2, e.Drift.all)
	want := map[string]*Sold{"b": {Shown: 1, Taken: 1, Revenue: precise.Of(5), Last: 1}, "c": {Shown: 1, Last: 1},
		"a": {Shown: 1, Taken: 1, Revenue: precise.Of(1), Last: 1}}
	expect.Equal(t, e.Items.sold, want)
	if c.Bound() != 6 || sale(1, offer.ByPolicy, 1, "b", "c").Bound() != 4 {
		t.Errorf("the bound is %v", c.Bound())
	}
	// The first one of two items is withdrawn, then the other.
	shown := []string{"b", "c", "a"}
	e.Corrected(&eventlog.Corrected{Decision: "d", Correction: "x", Entry: 1, Mode: offer.ByPolicy, Shown: shown,
		Choice: 1, Others: 1, Before: 6, Value: -5, Withdraws: true}, 10)
	if g := e.Counts.Arms[0]; g.Purchases != 1 || g.Revenue != precise.Of(1) || g.Squares != precise.Of(1) || e.Items.sold["b"].Taken != 0 ||
		e.Items.sold["b"].Revenue != precise.Of(0) {
		t.Errorf("%+v", g)
	}
	e.Corrected(&eventlog.Corrected{Decision: "d", Correction: "y", Entry: 1, Mode: offer.ByPolicy, Shown: shown,
		Choice: 3, Before: 1, Value: -1, Withdraws: true}, 10)
	if g := e.Counts.Arms[0]; g.Purchases != 0 || g.Revenue != precise.Of(0) || g.Squares != precise.Of(0) || e.Items.sold["a"].Taken != 0 {
		t.Errorf("%+v", g)
	}
}

// A basket's bound is not known in advance. With Closed.Bound, which grows with the baskets, the intervals still hold at all
// times: for geometric numbers of units, 1.3 and 3 on average.
func TestCoverageOfBaskets(t *testing.T) {
	const alpha, runs, rounds = 0.1, 400, 1000
	for name, more := range map[string]float64{"1.3 units": 0.3 / 1.3, "3 units": 2. / 3} {
		wrong := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 38))
			var m confseq.Mean
			truth := 0.3 / (1 - more) * 3 // 3 is the mean of 2, 3 and 4
			ever := false
			for range rounds / 20 {
				b := m.Begin()
				for range 20 {
					c := sale(1, offer.ByPolicy, 0, "a", "b", "c")
					if rng.Float64() < 0.3 {
						taken := eventlog.Basket{}
						for place := range int32(3) { // the units of each item, one at least of one
							taken = append(taken, eventlog.Take{Place: place + 1, Quantity: 0})
						}
						for first := true; first || rng.Float64() < more; first = false {
							k := rng.IntN(3)
							taken[k].Quantity++
							taken[k].Value += float64(2 + k)
						}
						c.Choice, c.Basket = 1, taken
					}
					b.Add(c.Earned(), c.Bound())
				}
				m.Add(&b)
				low, high := m.Interval(alpha)
				ever = ever || low > truth || high < truth
			}
			if ever {
				wrong++
			}
		}
		if most := alpha*runs + 3*math.Sqrt(alpha*(1-alpha)*runs); float64(wrong) > most {
			t.Errorf("%s: %d of %d intervals were wrong at some time, at most %.0f may be", name, wrong, runs, most)
		}
	}
}

// A policy that predicts one shopper's choices rightly has no alarm if shoppers take 3 units on average; one that predicts
// three times as much has the alarm about its predictions. The check of sales counts a page's average unit.
func TestGuardOfBaskets(t *testing.T) {
	const rounds, more = 21_500, 2. / 3 // more than a week
	for promise, check := range map[float64]string{1: "", 3: "predictions"} {
		rng := rand.New(rand.NewPCG(1, 38))
		sales, amount := 0., 0. // after the apprenticeship
		e := Earnings{Guard: Guard{Watch: Watch{Mode: api.Learn, Window: 30 * time.Minute}}}
		for n := 1; n <= rounds && e.Guard.Alarm() == nil; n++ {
			now := int64(1e18) + int64(n)*int64(30*time.Second)
			c := expecting(sale(uint64(n), offer.ByPolicy, 0, "a", "b", "c"), 0.7, promise*0.1*(2+3+4))
			c.Time = now
			for k := range c.Probability {
				c.Probability[k] = 0.1
			}
			if rng.Float64() < 0.3 {
				units := [3]int32{}
				for first := true; first || rng.Float64() < more; first = false {
					units[rng.IntN(3)]++
				}
				for k, n := range units {
					if n > 0 {
						c.Basket = append(c.Basket, eventlog.Take{Place: int32(k + 1), Quantity: n,
							Value: float64(n) * float64(2+k)})
					}
				}
				c.Choice = int(c.Basket[0].Place)
				if worth := e.Guard.sales.worth; worth > 0 {
					sales++
					amount += min(c.Basket.Earned()/float64(units[0]+units[1]+units[2])/worth, 1)
				}
			}
			e.Offered(c.Entry, now, c.Offer, true)
			e.Closed(atEnd(c, now), c, 10)
			e.Advance(now, c.Entry)
		}
		if a := e.Guard.Alarm(); (a != nil) != (check != "") || a != nil && a.Check != check {
			t.Errorf("predictions of %v times the truth: the alarm is %+v, want %q", promise, a, check)
		}
		if s := &e.Guard.sales; check == "" {
			have := (s.today[worthOf].Sum.Value() + s.before[worthOf].Sum.Value()) /
				(s.today[taken].Sum.Value() + s.before[taken].Sum.Value())
			if math.Abs(have-amount/sales) > 0.01 || math.Abs(s.worth-3) > 0.2 {
				t.Errorf("a sale has the amount %v in units of %v, want %v in units of 3", have, s.worth, amount/sales)
			}
		}
	}
}
