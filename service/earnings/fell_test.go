package earnings

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/long"
	"vitrine/internal/precise"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// months is a simulated placement. Hour 0 is a Monday's.
type months struct {
	perDay   float64
	business bool // whether shoppers come only on working days from 8 to 18 h
	days     int
	from     int                    // hour of the first decision by the policy
	rate     func(hour int) float64 // of decisions with a sale
	outages  bool                   // 18 h every four days
	evicted  float64                // share of decisions
}

// play returns the first and the last day on which earnings are lower than before, 0 without any, and how often such days
// began.
func (m *months) play(seed uint64) (first, last, times int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	down := 0
	var s Series
	for hour := range m.days * 24 {
		perHour := m.perDay / 24
		if m.business {
			perHour = m.perDay / 10
			if hour/24%7 >= 5 || hour%24 < 8 || hour%24 >= 18 {
				perHour = 0.25
			}
		}
		if m.outages && down == 0 && rng.IntN(4*24) == 0 {
			down = int(18 * rng.ExpFloat64())
		}
		now := int64(1e18) + int64(hour)*int64(time.Hour)
		if n := uint64(max(perHour+math.Sqrt(perHour)*rng.NormFloat64(), 0)); down == 0 && n > 0 {
			s.offered(0, now, new(Watch))
			b, sold := s.at(now), uint64(0)
			b.offered += n - 1
			if hour >= m.from {
				for range n {
					if rng.Float64() < m.rate(hour) {
						sold++
					}
				}
				g := &b.arms[0]
				g.Rounds, g.Purchases, b.bound = g.Rounds+n, g.Purchases+sold, 1
				g.Revenue.Add(float64(sold))
				g.Squares.Join(precise.Of(float64(sold)))
				b.timely = *g
				if late := s.at(now - int64(28*day)); late != nil { // as much again
					late.arms[0].Revenue.Join(late.timely.Revenue)
				}
				b.evicted[0] += uint64(m.evicted * float64(n))
			} else {
				b.abandoned += n
			}
		}
		down = max(down-1, 0)
		s.advance(now, int64(time.Hour))
		if hour%24 == 0 && s.Fell(time.Minute) != nil {
			if last < hour/24-1 {
				times++
			}
			if last = hour / 24; first == 0 {
				first = last
			}
		}
	}
	return first, last, times
}

// Earnings that fell are noticed within weeks, until they have been low for some months. Weekends, outages, a policy that
// begins on a Saturday, and evictions are no fall.
func TestFell(t *testing.T) {
	falls := func(rate, to float64, day int) func(int) float64 {
		return func(h int) float64 {
			if h >= day*24 {
				return rate * to
			}
			return rate
		}
	}
	weekends := func(share float64) func(int) float64 {
		return func(h int) float64 {
			if h/24%7 >= 5 {
				return .3 * share
			}
			return .3
		}
	}
	seeds := 3
	if long.Wanted() {
		seeds = 20
	}
	for name, c := range map[string]struct {
		months
		from, until, ends int // days: of the first one at least and at most, and of the last one at most
	}{
		"1,000 on working days": {months: months{perDay: 1000, business: true, days: 250, rate: falls(.2,
			.65, 30)}, from: 49, until: 63, ends: 104},
		"150 a day": {months: months{perDay: 150, days: 250, rate: falls(.3, .6, 63)},
			from: 84, until: 112, ends: 125},
		"5,000 a day": {months: months{perDay: 5000, days: 250, rate: falls(.3, .75, 30)},
			from: 49, until: 56, ends: 111},
		"5,000 a day, outages": {months: months{perDay: 5000, days: 250, rate: falls(.3, .7, 30),
			outages: true}, from: 49, until: 56, ends: 130},
		"5,000 a day, after half a year": {months: months{perDay: 5000, days: 320, rate: falls(.3, .7, 182)},
			from: 189, until: 210, ends: 290},
		"3% a week": {months: months{perDay: 5000, days: 250,
			rate: func(h int) float64 { return .3 * math.Pow(.97, float64(h)/168) }}, from: 70, until: 84, ends: 249},
		"a fall by 7%": {months: months{perDay: 5000, days: 150, rate: falls(.3, .93, 30)}},
		"evictions": {months: months{perDay: 5000, days: 150, rate: falls(.3, .7, 30),
			evicted: .03}},
		"quiet weekends":          {months: months{perDay: 5000, days: 150, rate: weekends(.6)}},
		"quiet weekends, outages": {months: months{perDay: 5000, days: 150, rate: weekends(.5), outages: true}},
		"busy weekends, from a Saturday": {months: months{perDay: 5000, days: 150, rate: weekends(1.6),
			from: (28 + 5) * 24}},
		"quiet weekends, from a Thursday": {months: months{perDay: 5000, days: 150, rate: weekends(.4),
			from: (28 + 3) * 24}},
	} {
		for seed := range uint64(seeds) {
			first, last, times := c.play(seed)
			if first < c.from || first > c.until || last > c.ends || times > 2 {
				t.Errorf("%s, seed %d: earnings are lower from day %d to %d, %d times", name, seed, first, last, times)
			}
		}
	}
	s := Series{now: 1e18}
	expect.Equal(t, s.Fell(time.Minute), nil)
}

// Late outcomes and corrections do not count as timely, and neither do other arms.
func TestTimely(t *testing.T) {
	var s Series
	w := &Watch{Window: time.Minute}
	for entry, mode := range []uint8{offer.ByPolicy, offer.ByBaseline} {
		s.offered(uint64(entry), 0, w)
		s.closed(uint64(entry), 0, &offer.Closed{Offer: &offer.Offer{Offered: &eventlog.Offered{Mode: mode}}}, w)
	}
	s.offered(2, 0, w)
	s.closed(2, 0, nil, w)
	for _, c := range []eventlog.Corrected{{Entry: 0, Value: 2}, {Entry: 2, Value: 2, Counts: true}} {
		c.Mode = offer.ByPolicy
		s.corrected(&c, w)
	}
	expect.Equal(t, s.buckets[0].timely, offer.Totals{Rounds: 1})
	expect.Equal(t, s.buckets[0].arms[0].Revenue.Value(), 4)
}
