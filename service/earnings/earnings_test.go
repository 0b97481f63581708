package earnings

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// sale returns a closed decision that shows items in order, with revenues from shelf. choice is the position of the
// sold item, from 1 on.
func sale(entry uint64, mode uint8, choice int, items ...string) *offer.Closed {
	shelf := map[string]float64{"a": 2, "b": 3, "c": 4}
	o := &eventlog.Offered{Mode: mode, ItemIDs: items}
	for i, id := range items {
		o.Shown, o.Revenue = append(o.Shown, int32(i)), append(o.Revenue, shelf[id])
	}
	return &offer.Closed{Offer: &offer.Offer{Offered: o}, Entry: entry, Choice: choice}
}

// expecting adds the policy's estimates p(0|S) and R(S) to a decision.
func expecting(c *offer.Closed, outside, revenue float64) *offer.Closed {
	c.Outside, c.Expected, c.Predicted = outside, revenue, true
	c.Probability = make([]float64, len(c.Shown))
	return c
}

// atEnd returns the end of a decision at a time.
func atEnd(o *offer.Closed, time int64) Ended {
	return Ended{Entry: o.Entry, Time: time, Chosen: o.Choice > 0, Own: true}
}

// drawing draws one set in four at random, and uses cohorts of a second.
var drawing = Watch{Mode: api.Explore, Share: 0.25, Window: 16 * time.Second}

func TestCountsByHand(t *testing.T) {
	var c Counts
	shadowed := expecting(sale(5, offer.ByBaseline, 0, "c"), 0.5, 1.25)
	shadowed.Shadowed, shadowed.Agrees, shadowed.Shadow = true, true, 2
	differs := sale(6, offer.ByBaseline, 0, "a")
	differs.Shadowed = true
	closed := []*offer.Closed{
		expecting(sale(2, offer.ByPolicy, 1, "a", "b"), 0.375, 1.5), // 2 for a
		expecting(sale(3, offer.ByPolicy, 0, "b"), 0, 1),
		sale(4, offer.ByChance, 2, "b", "a"), // 2 for a
		sale(5, offer.ByPolicy, 1, "b"),      // 3
		sale(7, offer.ByImport, 1, "c"),      // 4, in no group
	}
	for _, o := range append(closed, shadowed, differs) {
		c.offered(o.Offer)
	}
	for _, o := range closed {
		c.closed(o.Choice > 0, o)
	}
	c.closed(true, nil)
	c.closed(false, nil)
	want := Counts{
		Offered: 7, Chance: 1, Chosen: 5, Expired: 2, SinceEvicted: 7, SinceUnlearned: 7,
		Arms: [3]offer.Totals{group(api.Totals{Rounds: 3, Purchases: 2, Revenue: 2 + 3, Squares: 4 + 9}),
			group(api.Totals{Rounds: 1, Purchases: 1, Revenue: 2, Squares: 4}), {}},
		// Without estimates, a comparison counts the round but no revenue.
		Shadow:      api.Comparison{Rounds: 2, Agreements: 1, Estimated: 1, Policy: 2, Baseline: 1.25},
		Calibration: api.Calibration{Revenue: 2, Predicted: 2.5},
	}
	want.Calibration.Bins[6] = api.Bin{Rounds: 1, Purchases: 1, Predicted: 0.625}
	want.Calibration.Bins[9] = api.Bin{Rounds: 1, Predicted: 1} // a certain purchase belongs in the last bin
	expect.Equal(t, c, want, "the counts")
	if rounds, revenue := c.Earned(); rounds != 4 || revenue != 7 {
		t.Errorf("%d decisions earned %v, want 4 and 7", rounds, revenue)
	}
	calibrated := []api.Calibrated{
		{Low: 0.6, High: 0.7, Rounds: 1, Predicted: 0.625, Observed: 1, StandardError: math.Sqrt(0.625 * 0.375)},
		{Low: 0.9, High: 1, Rounds: 1, Predicted: 1, Observed: 0},
	}
	expect.Equal(t, c.Calibrated(), calibrated, "the calibration")
	if none := new(Counts).Calibrated(); none == nil || len(none) != 0 {
		t.Errorf("without predictions the calibration is %v", none)
	}
}

func TestItemsByHand(t *testing.T) {
	var items Items
	for _, o := range []*offer.Closed{
		sale(10, offer.ByPolicy, 2, "a", "b"),
		sale(11, offer.ByPolicy, 1, "b"),
		sale(9, offer.ByChance, 0, "a", "b"), // closed late
	} {
		items.closed(o, 10)
	}
	ids, sold := items.Top()
	expect.Equal(t, ids, []string{"b", "a"})
	expect.Equal(t, sold, []Sold{{Shown: 3, Taken: 2, Revenue: precise.Of(6), Last: 11}, {Shown: 2, Last: 10}}, "items")
	expect.Equal(t, items.Places,
		[]Sold{{Shown: 3, Taken: 1, Revenue: precise.Of(3), Last: 11}, {Shown: 2, Taken: 1, Revenue: precise.Of(3),
			Last: 10}}, "places")

	// Above twice the maximum number of items, the items shown most stay.
	items.closed(sale(12, offer.ByPolicy, 1, "c", "b", "a"), 1) // b 4, a 3, c 1
	if diff := cmp.Diff(Sold{Shown: 4, Taken: 1, Revenue: precise.Of(4), Last: 12}, items.Others); diff != "" ||
		items.Dropped != 2 {
		t.Errorf("%d items are dropped (-want +got):\n%s", items.Dropped, diff)
	}
	if ids, _ := items.Top(); len(ids) != 1 || ids[0] != "b" {
		t.Errorf("%v are left", ids)
	}
	items.closed(sale(13, offer.ByPolicy, 0, "a0"), 2)
	items.closed(sale(14, offer.ByPolicy, 0, "c", "a", "a2"), 2)
	if ids, _ := items.Top(); len(ids) != 2 || ids[0] != "b" || ids[1] != "a" { // ties go to the latest, then by id
		t.Errorf("%v are left", ids)
	}

	many := make([]string, maxPlaces+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if items.closed(sale(15, offer.ByPolicy, 0, many...), 100); len(items.Places) != maxPlaces {
		t.Errorf("%d places, want %d", len(items.Places), maxPlaces)
	}
	for memory, want := range map[int]int{0: 16, 64 << 20: 5991, 1 << 30: 10_000, 16 * 700 * 20: 20} {
		expect.Equal(t, MaxItems(memory), want, memory, "bytes have room for n items")
	}
}

// Pages that the policy leaves empty count, and their share follows the last decisions: 1 − (1 − 1/256)ⁿ after n.
func TestEmptyPages(t *testing.T) {
	var c Counts
	for range 100 {
		c.offered(sale(1, offer.ByPolicy, 0).Offer)
	}
	if want := 1 - math.Pow(255./256, 100); c.Empty != 100 || math.Abs(c.EmptyShare-want) > 1e-12 {
		t.Errorf("%d empty pages, a share of %v, want 100 and %v", c.Empty, c.EmptyShare, want)
	}
	for range 2000 {
		c.offered(sale(1, offer.ByPolicy, 0, "a").Offer)
		c.offered(sale(1, offer.ByBaseline, 0).Offer) // as the caller wants it
	}
	if c.Empty != 100 || c.EmptyShare > 1e-6 {
		t.Errorf("%d empty pages, a share of %v", c.Empty, c.EmptyShare)
	}
}

// The share that left memory does not flap around a fiftieth while it is 1.5%, and follows a lasting 5%.
func TestEvictedShare(t *testing.T) {
	var c Counts
	rng, changes, isBad := rand.New(rand.NewPCG(1, 5)), 0, false
	play := func(decisions int, rate float64) {
		for range decisions {
			if rng.Float64() < rate {
				c.abandoned(true)
			} else {
				c.closed(false, nil)
			}
			if bad := c.EvictedShare >= 1./api.FewLost; bad != isBad {
				isBad, changes = bad, changes+1
			}
		}
	}
	if play(100_000, 0.015); changes > 50 {
		t.Errorf("a share of 1.5%% crosses a fiftieth %d times", changes)
	}
	if play(3000, 0.05); !isBad {
		t.Errorf("after 3,000 decisions with 5%% the share is %v", c.EvictedShare)
	}
	if play(6000, 0); isBad {
		t.Errorf("after 6,000 decisions without one the share is %v", c.EvictedShare)
	}
}

// second converts seconds to a decision's time.
func second(s float64) int64 { return int64(s * 1e9) }

func TestSeriesByHand(t *testing.T) {
	s := Series{since: 1}
	for k, at := range []float64{100.2, 100.9, 100.95, 103, 103.5, 103.6, 103.7} {
		s.offered(uint64(k+2), second(at), &drawing)
	}
	for _, c := range []struct {
		at float64
		o  *offer.Closed
	}{
		{100.2, sale(2, offer.ByPolicy, 1, "a")},   // 2
		{103, sale(5, offer.ByPolicy, 1, "c")},     // 4
		{103.5, sale(6, offer.ByChance, 1, "b")},   // 3
		{103.6, sale(7, offer.ByBaseline, 0, "b")}, // 0
		{103.7, sale(8, offer.ByBaseline, 1, "a")}, // 2
		{100.9, sale(3, offer.ByImport, 1, "c")},   // counts nowhere
		{100.95, nil},                              // withdrawn
		{102, sale(9, offer.ByPolicy, 1, "c")},     // in a second without decisions
		{50, sale(9, offer.ByPolicy, 1, "c")},      // before the first decision
		{104, sale(9, offer.ByPolicy, 1, "c")},     // after the last decision
	} {
		entry := uint64(4)
		if c.o != nil {
			entry = c.o.Entry
		}
		s.closed(entry, second(c.at), c.o, &drawing)
	}
	if s.advance(second(105), 1e9); len(s.leads) != 2 { // a decision in the first second is still open
		t.Errorf("%d cohorts wait", len(s.leads))
	}
	s.closed(3, second(100.9), nil, &drawing)
	s.buckets[0].abandoned--
	s.advance(second(105), 1e9)
	now := second(105.5)
	r := s.Report("home", time.Minute, now, 0, 100)
	pointer := func(v float64) *float64 { return &v }
	mean := &confseq.Mean{N: 2, Sum: precise.Of(2), Squares: precise.Of(2), First: 4, Bound: 4}
	over := 1 - mean.Low(0.05/4)
	want := api.Series{
		Placement: "home", Now: time.Unix(105, 5e8).UTC(), Window: 60,
		Times: []int64{100, 103}, Seconds: []int64{1, 1}, Decisions: []uint64{3, 4}, Open: []uint64{1, 0},
		Policy: &api.SeriesMeans{Rounds: []uint64{1, 1}, Mean: []*float64{pointer(2), pointer(4)},
			StandardError: []*float64{nil, nil}},
		Chance: &api.SeriesMeans{Rounds: []uint64{0, 1}, Mean: []*float64{nil, pointer(3)},
			StandardError: []*float64{nil, nil}},
		Baseline: &api.SeriesMeans{Rounds: []uint64{0, 2}, Mean: []*float64{nil, pointer(1)},
			StandardError: []*float64{nil, pointer(1)}},
		// The leads are 2·4/3, then 4·4/3 and −3·4, because no sale was known when their cohorts began. A value among
		// 2, 4 and 4 is at most 4 times as large.
		OverChance: totals(&confseq.Mean{N: 1, Sum: precise.Of(8. / 3), Squares: precise.Of(64. / 9), First: 8,
			Bound: 8}, 2,
			&confseq.Mean{N: 3, Sum: precise.Of(-4), Squares: precise.Of(64./9 + 256./9 + 144), First: 8,
				Bound: 16}, 4),
		// Two decisions that earn 2 and 4 against two that earn 0 and 2: 2 (3 − 1). Both have the sum of squares 2
		// around their mean.
		OverBaseline: &api.SeriesSums{Low: []*float64{pointer(0), pointer(2 * max(2-2*over, -4))},
			Estimate: []*float64{pointer(0), pointer(4)},
			High:     []*float64{pointer(0), pointer(2 * min(2+2*over, 4))}},
	}
	expect.Equal(t, r, want, "the report", cmpopts.EquateApprox(0, 1e-12))
	if r := s.Report("home", time.Minute, now, 3*time.Second, 100); len(r.Times) != 1 || r.Times[0] != 103 ||
		math.Abs(*r.OverChance.Estimate[0]+4) > 1e-12 {
		t.Errorf("the last three seconds begin at %v, and the sums at %v", r.Times, r.OverChance)
	}
	// the first second ended just as these begin
	if r := s.Report("home", time.Minute, now, 5*time.Second, 100); len(r.Times) != 1 {
		t.Errorf("the last five seconds have points at %v", r.Times)
	}
	// One point covers six seconds, and there is one more because points begin at multiples of their width.
	if r := s.Report("home", time.Minute, now, 0, 1); !cmp.Equal(r.Times, []int64{100, 102}) ||
		!cmp.Equal(r.Seconds, []int64{2, 6}) || !cmp.Equal(r.Decisions, []uint64{3, 4}) {
		t.Errorf("in steps of six seconds: %+v", r)
	}
	if r := new(Series).Report("home", time.Minute, now, 0, 10); r.Policy != nil || r.OverChance != nil ||
		len(r.Times) != 0 {
		t.Errorf("without decisions: %+v", r)
	}
	for span, want := range map[time.Duration][2]float64{0: {6, -4}, 3 * time.Second: {4, -20. / 3}, time.Second: {}} {
		recent, total := s.Recent(now, span, 0), 0.0
		if len(recent.Gains) > 0 {
			total = recent.Gains[0].Total.Estimate
		}
		// 7 decisions in the last ten complete seconds
		if recent.Rate != 0.7 || recent.Policy.Revenue != want[0] || math.Abs(total-want[1]) > 1e-12 {
			t.Errorf("in %v: %+v, want %v", span, recent, want)
		}
	}
	if recent := s.Recent(second(103.9), 0, 0); recent.Rate != 0.3 { // the present second is incomplete
		t.Errorf("%v decisions a second in the middle of one", recent.Rate)
	}
}

// totals returns two points for differences of at most a bound.
func totals(first *confseq.Mean, bound float64, last *confseq.Mean, next float64) *api.SeriesSums {
	s := new(api.SeriesSums)
	for k, m := range []*confseq.Mean{first, last} {
		low, high := m.Interval(0.05)
		n, most := float64(m.N), []float64{bound, next}[k]
		s.Low, s.Estimate, s.High = append(s.Low, new(n*max(low, -max(most, -m.Average())))), append(s.Estimate,
			new(m.Sum.Value())), append(s.High, new(n*min(high, max(most, m.Average()))))
	}
	return s
}

// A time before 1970 belongs to the second that begins before it.
func TestSecondsBefore1970(t *testing.T) {
	for at, want := range map[int64]int64{0: 0, 1: 0, -1: -1, -1e9: -1, -1e9 - 1: -2, 1e9 - 1: 0} {
		expect.Equal(t, secondOf(at), want, at, "ns are in second")
	}
}

func full() *Earnings {
	t := new(Earnings)
	t.Watch(drawing, 1)
	for k := range 1300 {
		o := sale(uint64(k+2), uint8(1+k%4), k%3, "a", "b", "c")
		if k%2 == 0 {
			expecting(o, float64(k%7)/7, 1.5)
		}
		o.Shadowed, o.Agrees, o.Shadow = k%4 == 2, k%8 == 2, 0.5
		t.Offered(o.Entry, int64(k)*7e9, o.Offer, true)
		t.Advance(int64(k)*7e9, o.Entry)
		if k%5 == 4 {
			t.Abandoned(o.Entry, int64(k)*7e9, o.Mode, k%2 == 0, k%2 == 0)
			continue
		}
		t.Closed(atEnd(o, int64(k)*7e9), o, 1)
	}
	t.Counts.Stale, t.Counts.Unlearned = 3, 4
	t.Guard.keeps, t.Guard.isOver, t.Guard.began, t.Guard.first = true, true, 1, t.Guard.earned
	return t
}

func (t *Earnings) encoded(tb testing.TB) []byte {
	f := fields.Writer(nil)
	t.Fields(&f)
	fatal.If(tb, f.Err())
	return f.Rest()
}

// Restoring a snapshot reproduces the tally bit for bit, and it continues identically.
func TestSnapshot(t *testing.T) {
	was := full()
	data := was.encoded(t)
	f, is := fields.Reader(data), &Earnings{Guard: Guard{Watch: drawing}}
	is.Fields(&f)
	fatal.If(t, f.Close())
	expect.Equal(t, is, was, "it differs", cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty())
	copied := is.Copy()
	for _, tally := range []*Earnings{was, is} {
		o := sale(5000, offer.ByPolicy, 1, "a", "d")
		tally.Offered(5000, 1e13, o.Offer, true)
		tally.Closed(atEnd(o, 1e13), o, 1)
	}
	if !bytes.Equal(was.encoded(t), is.encoded(t)) {
		t.Error("it goes on differently")
	}
	if !bytes.Equal(copied.encoded(t), data) {
		t.Error("a copy changes with the original")
	}
	if was.Counts.Evicted != 130 || was.Counts.Withdrawn != 130 {
		t.Errorf("%d evicted and %d withdrawn decisions", was.Counts.Evicted, was.Counts.Withdrawn)
	}
}

// Snapshots that no tally could have written are rejected.
func TestRefusedSnapshots(t *testing.T) {
	for name, change := range map[string]func(*Earnings){
		"buckets out of order": func(t *Earnings) { t.Series.buckets[1].start = t.Series.buckets[0].start },
		"a bucket between the multiples of its width": func(t *Earnings) {
			t.Series.buckets[0].level, t.Series.buckets[0].start = 3, t.Series.buckets[0].start-4
		},
		"too wide a bucket": func(t *Earnings) { t.Series.buckets[0].level, t.Series.buckets[0].start = 41, -1<<41 },
		"too many places":   func(t *Earnings) { t.Items.Places = make([]Sold, maxPlaces+1) },
		"too many spans":    func(t *Earnings) { t.Drift.recent = make([]span, recentTotal/recentLength+2) },
	} {
		tally := full()
		change(tally)
		f := fields.Reader(tally.encoded(t))
		new(Earnings).Fields(&f)
		if f.Close() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
