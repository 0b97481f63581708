package abtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/long"
)

// A corrected decision changes its segment as if it had earned that at once. Values without a segment of their own share
// one, wherever it is in the list.
func TestRecountSegment(t *testing.T) {
	for first, want := range map[string][2]float64{"": {14, 28}, "0": {4, 8}} {
		c := newCounter(t)
		for _, value := range []string{first, "1", "2", "3", "4", "5", "6", "7"} {
			c.value = value
			if entry := c.sell(1, 10); value == "7" {
				c.correct(entry, 10, 4)
			}
		}
		c.advance()
		s, sum := &c.parts[c.segmentOf("7")], 0.0
		for _, d := range s.sums[1] {
			sum += math.Abs(d)
		}
		expect.Equal(t, s.value, "", "value")
		expect.Equal(t, [2]float64{s.groups[c.Class(1)].Revenue.Value(), sum}, want, first, "revenue and Σ D")
	}
}

// Some shoppers come back often, and buy nearly always or never. Others come once, and spend more. In at least 95% of
// experiments with equal variants, no segment ever shows a difference.
func TestSegmentsOfMembers(t *testing.T) {
	runs := 24
	if long.Wanted() {
		runs = 200
	}
	wrong := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 99))
		buys := [40]float64{} // by member
		for i := range buys {
			if rng.Float64() < 0.3 {
				buys[i] = 0.9
			}
		}
		c, failed := newCounter(t), false
		c.price = 30
		for n := range 20_000 {
			unit, rate, worth := Unit("home", fmt.Sprint(seed, " ", n)), 0.1, 30.
			if c.value = "guest"; rng.Float64() < 0.6 {
				i := rng.IntN(len(buys))
				c.value, unit, rate, worth = "member", Unit("home", fmt.Sprint(seed, " member ", i)), buys[i], 1
			}
			if rng.Float64() >= rate {
				worth = 0
			}
			if c.sell(unit, worth); n%1000 < 999 {
				continue
			}
			c.advance()
			for _, s := range c.Report("", 16, cohortLength).Segments {
				d := s.Variants[1].Difference
				failed = failed || d != nil && (d.Low > 0 || d.High < 0)
			}
		}
		if failed {
			wrong++
		}
	}
	if most := 0.05*float64(runs) + 3*math.Sqrt(0.05*0.95*float64(runs)); float64(wrong) > most {
		t.Errorf("an interval was wrong in %d of %d experiments, want at most %.0f", wrong, runs, most)
	}
}

// Shoppers of seven buckets show no difference.
func TestSmallSegments(t *testing.T) {
	c := newCounter(t)
	for n := range 8 {
		c.sell(Unit("home", fmt.Sprint(n)), 1)
		c.advance()
		expect.Equal(t, c.Report("", 16, cohortLength).Segments[0].Variants[1].Difference != nil, n == 7, n+1,
			"shoppers")
	}
}
