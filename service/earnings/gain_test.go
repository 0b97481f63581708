package earnings

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/fields"
	"vitrine/internal/long"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// A cohort counts once it is over, all its decisions have closed, and all earlier cohorts have counted.
func TestCohorts(t *testing.T) {
	var l Cohorts[int]
	enter := func(number int64) { l.Enter(number, func() int { return int(100 * number) }) }
	for _, number := range []int64{5, 3, 5} {
		enter(number)
	}
	leave := func(number int64, by int) {
		if sums := l.Leave(number); sums != nil {
			*sums += by
		} else {
			t.Errorf("no decision of cohort %d is open", number)
		}
	}
	leave(5, 1)
	leave(5, 2)
	if l.Leave(5) != nil || l.Leave(4) != nil {
		t.Error("a decision leaves a cohort that it never entered")
	}
	copied := l.Copy(func(sums *int) int { return *sums })
	if c := l.Next(9); c != nil {
		t.Errorf("cohort %d counts before all decisions of an earlier one have closed", c.Number)
	}
	leave(3, 4)
	if c := l.Next(3); c != nil {
		t.Error("the present cohort counts")
	}
	var have []Cohort[int]
	for c := l.Next(6); c != nil; c = l.Next(6) {
		have = append(have, *c)
	}
	expect.Equal(t, have, []Cohort[int]{{Number: 3, Made: 1, Sums: 304}, {Number: 5, Made: 2, Sums: 503}})
	for k := range 99 {
		number := int64(6 + min(k/49, 1)) // 49 and 50 decisions
		enter(number)
		l.Leave(number)
	}
	l.Lose(6) // as late as that
	l.Lose(7)
	l.Lose(8)
	out := fields.Writer(nil)
	l.Fields(&out, func() int { return 0 }, func(*int, *fields.Fields) {})
	in := fields.Reader(out.Rest())
	l.Fields(&in, func() int { return 7 }, func(*int, *fields.Fields) {})
	if c := l.Next(8); c == nil || c.Number != 7 || len(l) != 0 {
		t.Errorf("after a cohort that lost more than a fiftieth comes %+v", c)
	}
	if len(copied) != 2 || copied[0].Open != 1 || copied[1].Sums != 503 {
		t.Errorf("a copy changes with the original: %+v", copied)
	}
}

// randomized is a placement that shows one item of price 3, chosen by the policy or at random. Sales are reported
// early, and the other decisions expire after the attribution window.
type randomized struct {
	of   Earnings
	rng  *rand.Rand
	open []open
	now  int64
	n    uint64
	over float64 // sum of the policy's true lead

	evicts int // how many times as many decisions expire as are evicted; 0 for no evictions
}

type open struct {
	at int64
	c  *offer.Closed
}

func (r *randomized) decide(policy, chance float64) {
	const price = 3
	r.now += int64(time.Second) / 10
	r.n++
	o := &offer.Offer{Offered: &eventlog.Offered{ItemIDs: []string{"a"}, Shown: []int32{0}, Revenue: []float64{price},
		Mode: offer.ByPolicy}}
	rate := policy
	if r.rng.Float64() < drawing.Share {
		o.Mode, rate = offer.ByChance, chance
	}
	r.over += price * (policy - chance)
	c := open{r.now + int64(drawing.Window), &offer.Closed{Offer: o, Entry: r.n + 1, Time: r.now}}
	if r.rng.Float64() < rate {
		c.c.Choice, c.at = 1, r.now+int64(r.rng.ExpFloat64()*2e9)
	}
	r.of.Offered(c.c.Entry, r.now, o, true)
	at := sort.Search(len(r.open), func(i int) bool { return r.open[i].at >= c.at })
	r.open = slices.Insert(r.open, at, c)
	r.expire()
}

func (r *randomized) expire() {
	for len(r.open) > 0 && r.open[0].at <= r.now {
		c := r.open[0].c
		if r.open = r.open[1:]; r.evicts > 0 && c.Choice == 0 && c.Entry%uint64(r.evicts) == 0 {
			r.of.Abandoned(c.Entry, c.Time, c.Mode, true, true)
		} else {
			r.of.Closed(atEnd(c, c.Time), c, 16)
		}
	}
	r.of.Advance(r.now, r.n+1)
}

// In at least 95% of placements, the interval of the gain contains the policy's true lead at all looks: whether it
// leads or not, and if the rates drift. Decisions in the last window do not count yet, so that their sales do not count
// before the rest.
func TestCoverageOfGains(t *testing.T) {
	placements, decisions := 60, 2500
	if long.Wanted() {
		placements = 400
	}
	for name, gain := range map[string]float64{"no gain": 0, "a gain": 0.08} {
		held, won, sum, squares := 0.0, 0, 0.0, 0.0
		for seed := range uint64(placements) {
			r := &randomized{rng: rand.New(rand.NewPCG(seed, 9))}
			r.of.Watch(drawing, 1)
			isIn, isSure := true, false
			var over []float64 // by decision
			for n := range decisions {
				base := 0.1 + 0.2*float64(n)/float64(decisions)
				r.decide(base+gain, base)
				over = append(over, r.over)
				if n%50 > 0 {
					continue
				}
				for _, g := range r.of.Series.Recent(r.now, 0, 0).Gains {
					truth := over[g.Decisions-1] / float64(g.Decisions)
					isIn = isIn && g.PerDecision.Low <= truth && truth <= g.PerDecision.High
					isSure = isSure || g.PerDecision.Low > 0
				}
			}
			if isIn {
				held++
			}
			if isSure {
				won++
			}
			r.now += 2 * int64(drawing.Window)
			r.expire()
			all := r.of.Series.Recent(r.now, 0, 0).Gains[0]
			if all.Decisions != uint64(decisions) || all.Total.Estimate != float64(decisions)*all.PerDecision.Estimate {
				t.Fatalf("%s: at the end %+v", name, all)
			}
			x := all.PerDecision.Estimate - 3*gain
			sum += x
			squares += x * x
		}
		n := float64(placements)
		if least := 0.95*n - 3*math.Sqrt(0.95*0.05*n); held < least {
			t.Errorf("%s: the intervals held in %.0f of %.0f placements, want at least %.0f", name, held, n, least)
		}
		if (gain == 0) != (won == 0) && (gain == 0 || won < placements/2) {
			t.Errorf("%s: it is certain in %d of %d placements", name, won, placements)
		}
		if se := math.Sqrt(squares) / n; math.Abs(sum/n) > 4*se {
			t.Errorf("%s: the estimate is off by %v, and its standard error is %v", name, sum/n, se)
		}
	}
}

// There is no gain once a fiftieth of the decisions left memory, or, over the caller's sets, of one side's. Neither the
// guard nor the gain over chance counts a sale of a time when others left.
func TestEvictedEarnings(t *testing.T) {
	for evicts, gains := range map[int]int{1: 0, 20: 0, 100: 1} {
		r := &randomized{rng: rand.New(rand.NewPCG(1, 9)), evicts: evicts}
		r.of.Watch(drawing, 1)
		for range 2000 {
			r.decide(0.3, 0.2)
		}
		c, guard := &r.of.Counts, &r.of.Guard
		if got := r.of.Series.Recent(r.now, 0, 0).Gains; len(got) != gains {
			t.Errorf("one of %d: %+v", evicts, got)
		}
		if n, rate := float64(guard.earned.N), guard.earned.Average()/3; n > 0 && math.Abs(rate-0.3) > 4*math.Sqrt(0.21/n) ||
			(n == 0) != (evicts == 1) {
			t.Errorf("one of %d: of %v decisions of the policy, %v sold", evicts, n, rate)
		}
		if share := 0.73 / float64(evicts) * (1 - math.Exp(-2000./evictedMemory)); math.Abs(c.EvictedShare-share) > 0.03+share/4 {
			t.Errorf("one of %d: a share of %v left memory", evicts, c.EvictedShare)
		}
	}
	r := &randomized{rng: rand.New(rand.NewPCG(1, 9))}
	r.of.Watch(drawing, 1)
	for range 10_000 {
		r.decide(0.3, 0.2)
	}
	before := r.of.Series.Recent(r.now, 0, 0).Gains
	r.evicts = 1
	for range 30 {
		r.decide(0.3, 0.2)
	}
	r.now += int64(time.Hour)
	r.expire()
	r.of.Advance(r.now, r.n)
	if g := r.of.Series.Recent(r.now, 0, 0).Gains; len(g) != 1 || g[0].Decisions > before[0].Decisions+10 {
		t.Errorf("the last decisions are evicted: %+v, want %+v", g, before)
	}
	s := &Series{buckets: []bucket{ // all of the first second are evicted, so the sums begin with the next one
		{start: 0, offered: 9, abandoned: 9, evicted: [3]uint64{9}},
		{start: 1, offered: 2000, arms: [3]offer.Totals{{Rounds: 1000}, {}, {Rounds: 1000}}, bound: 1}}}
	if g := s.Report("", 0, int64(time.Second), 0, 100).OverBaseline; g == nil || g.Low[0] != nil || g.Estimate[0] != nil || g.Low[1] == nil {
		t.Errorf("the first of its points is not null: %+v", g)
	}
	for evicted, gains := range map[[3]uint64]int{{2, 90, 100}: 1, {3}: 0, {0, 0, 101}: 0} { // by arm
		b := &bucket{evicted: evicted, arms: [3]offer.Totals{{Rounds: 100}, {}, {Rounds: 5000}}}
		if g := new(Series).gains(b); len(g) != gains {
			t.Errorf("%d evicted: %+v", evicted, g)
		}
	}
}

// A correction of a decision that counts around a centre that is no longer known does not reduce the sum of squares.
func TestLateCorrectionsKeepTheSquares(t *testing.T) {
	var e Earnings
	e.Watch(drawing, 1)
	lead := func() confseq.Mean {
		all := new(bucket)
		for i := range e.Series.buckets {
			all.add(&e.Series.buckets[i])
		}
		return all.lead
	}
	for entry := uint64(2); entry < 10; entry++ { // two sales of 4, then no more: the centre falls to 1
		o := sale(entry, offer.ByPolicy, 0, "c")
		if entry < 4 {
			o.Choice = 1
		}
		at := second(float64(8 + entry))
		e.Offered(entry, at, o.Offer, true)
		e.Closed(atEnd(o, at), o, 16)
		e.Advance(at, entry)
	}
	e.Advance(second(20), 10)
	before := lead()
	e.Corrected(&eventlog.Corrected{Correction: "r", Entry: 3, Made: second(11), Mode: offer.ByPolicy,
		Shown: []string{"c"}, Choice: 1, Before: 4, Value: -3}, 16)
	after := lead()
	expect.Equal(t, after.Squares.Value(), before.Squares.Value(), "the sum of squares")
	if by := after.Sum.Value() - before.Sum.Value(); math.Abs(by+3/0.75) > 1e-12 {
		t.Errorf("the sum changes by %v", by)
	}
}

// A decision's lead is measured around the policy's earnings before its cohort, even after a return. Decisions from
// before a change in how the placement decides do not count, and neither do their returns.
func TestLeadsByHand(t *testing.T) {
	var e Earnings
	e.Watch(drawing, 1)
	sell := func(entry uint64, at float64, mode uint8) {
		o := sale(entry, mode, 1, "c") // 4
		e.Offered(entry, second(at), o.Offer, true)
		e.Closed(atEnd(o, second(at)), o, 16)
	}
	returned := func(entry uint64, at float64) {
		e.Corrected(&eventlog.Corrected{Correction: "r", Entry: entry, Made: second(at), Mode: offer.ByPolicy,
			Shown: []string{"c"}, Choice: 1, Before: 4, Value: -3}, 16)
	}
	want := func(n uint64, sum, squares, bound float64) {
		t.Helper()
		all := new(bucket)
		for i := range e.Series.buckets {
			all.add(&e.Series.buckets[i])
		}
		if m := all.lead; m.N != n || math.Abs(m.Sum.Value()-sum) > 1e-12 || math.Abs(m.Squares.Value()-squares) > 1e-12 ||
			m.Bound != bound {
			t.Errorf("%+v, want %v, %v, %v and %v", m, n, sum, squares, bound)
		}
	}
	sell(2, 10, offer.ByPolicy)   // 4/P, around 0
	sell(3, 11, offer.ByPolicy)   // 0, around 4
	sell(4, 11.5, offer.ByChance) // the same
	returned(3, 11)               // (1 − 4)/P
	e.Advance(second(12), 4)
	want(3, 4/0.75-3/0.75, 16/0.75/0.75+9/0.75/0.75, 4/0.25)
	sell(5, 12, offer.ByPolicy) // around 5/2
	e.Watch(drawing, 5)
	sell(6, 12.5, offer.ByPolicy) // around 9/3
	returned(5, 12)
	e.Advance(second(13), 6)
	want(4, 1/0.75+1/0.75, 25/0.75/0.75+1/0.75/0.75, 4/0.25)

	var b confseq.Block
	if drawing.contrast().Add(&b, Second, 0, 5, 2); b.Sums.Sum != precise.Of(20) || b.Sums.Bound != 20 {
		t.Errorf("a lead around a centre above all revenues is %+v", b)
	}
}

// Gains over the baseline, and the largest possible gain, by hand.
func TestGainsByHand(t *testing.T) {
	b := &bucket{bound: 2, arms: [3]offer.Totals{group(api.Totals{Rounds: 400, Revenue: 400, Squares: 800}), {},
		group(api.Totals{Rounds: 100, Revenue: 20, Squares: 40})}}
	gains := new(Series).gains(b)
	if len(gains) != 1 || gains[0].Over != api.OverBaseline || gains[0].Randomized || gains[0].Decisions != 400 ||
		gains[0].PerDecision.Estimate != 1-0.2 {
		t.Fatalf("%+v", gains)
	}
	// Both sums of squares are around the mean: 800 − 400 and 40 − 4.
	mine, other := mean(400, 400, 400), mean(100, 20, 36)
	if i, low, high := gains[0].PerDecision, mine[0]-other[1], mine[1]-other[0]; math.Abs(i.Low-low) > 1e-12 ||
		math.Abs(i.High-min(high, 2)) > 1e-12 || low < 0 {
		t.Errorf("the interval is %+v, want %v to %v", i, low, high)
	}
}

// mean returns bounds for a mean of numbers up to 2, each wrong with probability at most 0.0125: package confseq's
// boundary by its formula, with v/c² at least 1.
func mean(n, sum, squares float64) [2]float64 {
	const c, eta, s = 2, 2, 1.4
	l := s*math.Log(math.Log(squares/(c*c))/math.Log(eta)+1) + math.Log(3.1055472779775810) + math.Log(2/0.0125)
	k1, k2 := (math.Pow(eta, 0.25)+math.Pow(eta, -0.25))/math.Sqrt2, (math.Sqrt(eta)+1)/2
	width := (math.Sqrt(k1*k1*squares*l+k2*k2*c*c*l*l) + k2*c*l) / n
	return [2]float64{sum/n - width, sum/n + width}
}

// Mistyped values leave no trace in the gain over chance, whenever they are corrected. A cohort that began before the
// correction may have another centre.
func TestMistypedGain(t *testing.T) {
	play := func(delay time.Duration, typed float64) api.Interval {
		r := randomized{rng: rand.New(rand.NewPCG(4, 4))}
		r.of.Watch(drawing, 1)
		mistakes := map[uint64]open{}
		for range 3000 {
			r.decide(0.5, 0.3)
			for _, o := range r.open {
				if o.c.Entry%200 == 0 && o.c.Choice > 0 && typed > 0 {
					o.c.Basket = eventlog.Basket{{Place: 1, Quantity: 1, Value: typed}}
					mistakes[o.c.Entry] = o
				}
			}
			for entry, o := range mistakes {
				if r.now > o.at+int64(delay) {
					r.of.Corrected(&eventlog.Corrected{Decision: "d", Correction: "t", Entry: entry, Made: o.c.Time,
						Mode: o.c.Mode, Shown: []string{"a"}, Choice: 1, Before: typed, Value: 3 - typed}, 16)
					delete(mistakes, entry)
				}
			}
		}
		if len(mistakes) > 0 {
			t.Fatal("a mistake was not corrected")
		}
		r.now += int64(time.Minute)
		r.expire()
		return r.of.Series.Recent(r.now, 0, drawing.Window).Gains[0].PerDecision
	}
	want := play(0, 0)
	for _, delay := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
		have := play(delay, 1e9)
		if tolerance := 0.25 * (want.High - want.Low); math.Abs(have.Low-want.Low) > tolerance ||
			math.Abs(have.Estimate-want.Estimate) > tolerance || math.Abs(have.High-want.High) > tolerance {
			t.Errorf("corrected after %v: %+v, want %+v", delay, have, want)
		}
	}
}

// The gain over chance is bounded by the earnings of a basket late in its cohort, in the bucket that counts its cohort's
// leads. Four baskets take corrections, also after buckets merge, and a fifth widens the bounds for good.
func TestPeaksOfSeries(t *testing.T) {
	watch := drawing
	watch.Window = 160 * time.Second // cohorts of 10 s
	const factor = 4                 // 1/min(P, Q)
	play := func(corrected ...float64) *Series {
		var e Earnings
		e.Watch(watch, 1)
		entry := uint64(1)
		sell := func(at, earned float64) (sold uint64) {
			entry++
			o := sale(entry, offer.ByPolicy, 1, "c") // 4
			o.Basket = eventlog.Basket{{Place: 1, Quantity: 1, Value: earned}}
			e.Offered(entry, second(at), o.Offer, true)
			e.Closed(atEnd(o, second(at)), o, 16)
			return entry
		}
		sell(95, 4)
		sell(100, 4)
		entries := map[float64]uint64{}
		for _, x := range []float64{12, 14, 10, 13, 11} {
			entries[x] = sell(105, x)
		}
		for _, x := range corrected {
			e.Corrected(&eventlog.Corrected{Correction: "r", Entry: entries[x], Made: second(105), Mode: offer.ByPolicy,
				Shown: []string{"c"}, Choice: 1, Before: x, Value: 1 - x}, 16)
		}
		e.Advance(second(110), entry)
		return &e.Series
	}
	for _, c := range []struct {
		corrected []float64
		want      float64
	}{{nil, 14}, {[]float64{14}, 13}, {[]float64{14, 12, 13}, 11}, {[]float64{14, 10, 11, 12, 13}, 10}} {
		s := play(c.corrected...)
		if len(s.buckets) != 3 {
			t.Fatalf("%d buckets, want 3", len(s.buckets))
		}
		for _, n := range []uint64{6, 7} {
			first, last := s.at(second(100)), s.at(second(105))
			if m := first.leads(); m.N != n || m.Bound != factor*c.want || last.most() != c.want {
				t.Errorf("without %v, in %d buckets: %d leads of at most %v, and revenues of at most %v, want %d of %v, and %v",
					c.corrected, len(s.buckets), m.N, m.Bound, last.most(), n, factor*c.want, c.want)
			}
			if m := last.leads(); n == 6 && m.Bound != 0 {
				t.Errorf("a bucket without leads bounds them by %v", m.Bound)
			}
			s.age(1e6)
		}
		if len(s.buckets) != 1 {
			t.Errorf("%d buckets after merging, want 1", len(s.buckets))
		}
	}
}

// Peaks hold the largest values, and a copy keeps its own.
func TestPeaksByHand(t *testing.T) {
	var l, before Peaks[int]
	for k, value := range []float64{3, 1, 4, 2} {
		if _, isFull := l.Add(Peak[int]{Entry: uint64(k), Value: value, Of: k}); isFull {
			t.Errorf("full with %d peaks", k)
		}
	}
	before = l
	values := func(l Peaks[int]) (list []float64) {
		for _, p := range l {
			list = append(list, p.Value)
		}
		slices.Sort(list)
		return list
	}
	if out, isFull := l.Add(Peak[int]{Entry: 9, Value: 2.5}); !isFull || out != (Peak[int]{Entry: 1, Value: 1, Of: 1}) {
		t.Errorf("%+v went out, want the value 1", out)
	}
	small := Peak[int]{Entry: 10, Value: 2}
	if out, isFull := l.Add(small); !isFull || out != small {
		t.Errorf("%+v went out, want the new one", out)
	}
	expect.Equal(t, values(l), []float64{2, 2.5, 3, 4})
	if !l.Correct(9, 1) || l.Correct(1, 7) {
		t.Error("entry 9 is a peak, and entry 1 is none")
	}
	expect.Equal(t, values(l), []float64{1, 2, 3, 4})
	expect.Equal(t, values(before), []float64{1, 2, 3, 4})
	if before.find(9) >= 0 {
		t.Error("a copy changed")
	}
	if n := testing.AllocsPerRun(10, func() { l.Add(Peak[int]{Entry: 11}) }); n > 0 {
		t.Errorf("%v allocations for a small value", n)
	}
	if n := testing.AllocsPerRun(10, func() { c := l; c.Add(Peak[int]{Entry: 11, Value: 9}) }); n > 1 {
		t.Errorf("%v allocations for a peak", n)
	}
}
