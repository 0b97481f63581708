package earnings

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/offer"
)

// Buckets double in width as they age, so their number grows with the logarithm of time. They keep every decision.
func TestSeriesDoubles(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := new(Series)
	now, n := int64(1e9), uint64(0)
	largest := 0
	for n < 100_000 {
		now += int64(rng.ExpFloat64() * math.Exp2(float64(rng.IntN(14)))) // gaps from seconds to hours
		s.offered(n, now*int64(time.Second), new(Watch))
		n++
		if n%997 != 0 {
			continue
		}
		starts, widths, sum := s.list()
		largest = max(largest, len(starts))
		total := uint64(0)
		for i := range starts {
			total += sum[i]
			switch end := starts[i] + widths[i]; {
			case starts[i]%widths[i] != 0, i > 0 && starts[i] < starts[i-1]+widths[i-1],
				i > 0 && widths[i] > widths[i-1]:
				t.Fatalf("bucket %d is of %d s from %d on, after one of %d s from %d on",
					i, widths[i], starts[i], widths[max(i-1, 0)], starts[max(i-1, 0)])
			case widths[i] > 1 && now-end < 32*widths[i] || widths[i] > 1 && widths[i]*32 > now-starts[i]:
				t.Fatalf("a bucket of %d s is %d s old", widths[i], now-end)
			case now-end >= 200*widths[i]:
				t.Fatalf("a bucket of only %d s is %d s old", widths[i], now-end)
			}
		}
		if total != n {
			t.Fatalf("the buckets have %d of %d decisions", total, n)
		}
	}
	if years := float64(now-1e9) / 3e7; largest > 700 || years < 3 {
		t.Errorf("%d buckets in %.1f years", largest, years)
	}
}

// After the clock was set back, decisions count at their own times, and the series finds them again when they close.
func TestSeriesSetBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := new(Series)
	now := int64(1e9)
	var open []int64
	for n := range uint64(20_000) {
		now += int64(rng.ExpFloat64() * math.Exp2(float64(rng.IntN(10))))
		if n%1000 == 999 {
			now -= int64(rng.IntN(40_000))
		}
		s.offered(n, now*int64(time.Second), new(Watch))
		if open = append(open, now); len(open) > 100 {
			i := rng.IntN(len(open))
			s.closed(n, open[i]*int64(time.Second), nil, new(Watch))
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	made, closed, end := uint64(0), uint64(0), int64(0)
	for i := range s.buckets {
		b := &s.buckets[i]
		if b.start < end {
			t.Fatalf("a bucket begins at %d, before the end of the last one, %d", b.start, end)
		}
		if end = b.end(); b.closed() > b.offered {
			t.Errorf("in the bucket at %d %d of %d decisions have closed", b.start, b.closed(), b.offered)
		}
		made, closed = made+b.offered, closed+b.closed()
	}
	if made != 20_000 || closed != 20_000-100 {
		t.Errorf("%d decisions, %d closed", made, closed)
	}
}

// Where only sales are reported, the others are known when the attribution window ends: the policy's totals end before
// them. A caller that reports everything at once does not wait.
func TestRecentWaits(t *testing.T) {
	const window = 60
	for _, c := range []struct {
		reports bool // what was not sold, too
		rounds  uint64
	}{{false, 40}, {true, 100}} {
		s := new(Series)
		for n := range uint64(100) {
			made := 1000 + int64(n)
			s.offered(n+2, second(float64(made)), new(Watch))
			if n%10 == 5 {
				s.closed(n+2, second(float64(made)), sale(n+2, offer.ByPolicy, 1, "a"), new(Watch))
			} else if c.reports {
				s.closed(n+2, second(float64(made)), sale(n+2, offer.ByPolicy, 0, "a"), new(Watch))
			}
			if old := n - window; n >= window && old%10 != 5 && !c.reports {
				s.closed(old+2, second(float64(1000+old)), sale(old+2, offer.ByPolicy, 0, "a"), new(Watch))
			}
		}
		if p := s.Recent(second(1099.5), 0, window*time.Second).Policy; p.Rounds != c.rounds || p.Purchases != c.rounds/10 {
			t.Errorf("%d of %d decisions sold, want a tenth of %d", p.Purchases, p.Rounds, c.rounds)
		}
		if all, _, rate, seconds := s.Past(second(1099.5), time.Hour, window*time.Second); all.Rounds != c.rounds ||
			rate != 1 || seconds != 100 {
			t.Errorf("%d decisions of the past, %v a second, want %d", all.Rounds, rate, c.rounds)
		}
	}
}

// Decisions that were made before the clock was set back, at times that are yet to come, are not in the past.
func TestPastAfterTheClockWasSetBack(t *testing.T) {
	s := new(Series)
	past := func(now int64) (rate float64) {
		_, _, rate, _ = s.Past(now*int64(time.Second), time.Hour, 0)
		return rate
	}
	for second := range int64(100) {
		s.offered(1, (50_000+second)*int64(time.Second), new(Watch))
	}
	expect.Equal(t, past(50_099), 1, "decisions per second")
	expect.Equal(t, past(49_000), 0, "decisions per second before all")
	expect.Equal(t, past(50_009), 1, "decisions per second up to the tenth")
}

// list returns the buckets' starts and widths in seconds, and their decisions.
func (s *Series) list() (starts, widths []int64, decisions []uint64) {
	for i := range s.buckets {
		b := &s.buckets[i]
		starts, widths, decisions = append(starts, b.start), append(widths, b.end()-b.start), append(decisions,
			b.offered)
	}
	return starts, widths, decisions
}
