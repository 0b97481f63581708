package abtest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// counter is an experiment with two variants of equal shares, in which each page shows one item, of price 1 unless
// price is set. All visits are from shoppers of one segment.
type counter struct {
	*Experiment
	t     *testing.T
	entry uint64
	now   int64
	price float64
	value string                   // of the segment
	shown map[uint64]*offer.Closed // by entry
}

const cohortLength = int64(time.Second)

func newCounter(t *testing.T) *counter {
	e := New(1, 0, &api.Experiment{Name: "x", Control: "a", Segments: "device", Variants: []api.Variant{
		{Name: "a", Show: api.ShowUniform, Share: 0.5}, {Name: "b", Show: api.ShowUniform, Share: 0.5}}}, 1)
	return &counter{Experiment: e, t: t, entry: 1, value: "phone", shown: map[uint64]*offer.Closed{}}
}

// sell serves a unit that buys for the given amount; 0 means no sale.
func (c *counter) sell(unit uint64, earned float64) (entry uint64) {
	c.entry++
	o := &offer.Closed{Entry: c.entry, Time: c.now, Offer: &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}},
		Estimates: offer.Estimates{Variant: c.Name(c.Class(unit)), Unit: unit}}}
	if c.price > 0 {
		o.Revenue = []float64{c.price}
	}
	if earned > 0 {
		o.Choice, o.Basket = 1, eventlog.Basket{{Place: 1, Quantity: 1, Value: earned}}
	}
	c.Enter(c.entry, c.now, cohortLength, o.Offer)
	c.Leave(c.entry, c.now, cohortLength, o, c.value)
	c.shown[c.entry] = o
	return c.entry
}

// Shoppers are counted rightly although some have the same hash, also if the shares change, and their sum is the
// variants'.
func TestDistinctUnits(t *testing.T) {
	for n, off := range map[uint64]float64{900: 0, 300_000: 0.01, 2_000_000: 0.01} {
		c, rng, real := newCounter(t), rand.New(rand.NewPCG(1, 1)), [2]float64{}
		for k := range n {
			if n > 1e6 && (k == 0 || k == n/2) {
				c.entry++
				first := 0.9 - 0.8*float64(2*k/n)
				c.Divide(&api.Experiment{Name: "x", Control: "a", Variants: []api.Variant{
					{Name: "a", Show: api.ShowUniform, Share: first}, {Name: "b", Show: api.ShowUniform,
						Share: 1 - first}}}, c.entry, 0)
			}
			unit := rng.Uint64()
			class := c.Class(unit)
			c.entry++
			c.Enter(c.entry, 0, cohortLength, &offer.Offer{Offered: new(eventlog.Offered),
				Estimates: offer.Estimates{Variant: c.Name(class), Unit: unit}})
			real[class]++
		}
		r, sum := c.Report("", time.Minute, cohortLength), uint64(0)
		for v := range r.Variants {
			got := r.Variants[v].Units
			if sum += got; math.Abs(float64(got)-real[v]) > off*real[v] {
				t.Errorf("%q: %d shoppers, want %v", r.Variants[v].Name, got, real[v])
			}
		}
		if sum != r.Ratio.Units {
			t.Errorf("%d shoppers of variants, and %d in all", sum, r.Ratio.Units)
		}
	}
}

// correct changes a decision's earnings.
func (c *counter) correct(entry uint64, before, after float64) {
	o := c.shown[entry]
	c.Correct(&eventlog.Corrected{Correction: "c", Entry: entry, Made: o.Time, Variant: o.Variant, Shown: []string{"i"},
		Choice: 1, Before: before, Value: after - before, InTime: true, Bound: o.Bound(), Unit: o.Unit,
		Segment: c.value},
		cohortLength)
}

// advance lets all cohorts count.
func (c *counter) advance() {
	c.now += cohortLength
	c.Advance(c.now, cohortLength)
}

// bounded checks the bound of all decisions, of the difference and of the difference in the segment.
func (c *counter) bounded(want float64) {
	c.t.Helper()
	all, pair, part := c.Results.Mean.Bound, c.Results.Pairs[0].Bound, c.parts[0].leads[1].Bound
	if all != want || pair != 2*want || part != 2*want {
		c.t.Errorf("the bounds are %v, %v and %v, want %v, %v and %v", all, pair, part, want, 2*want, 2*want)
	}
}

// A cohort takes corrections of the four decisions that earned most. The fifth widens the bounds for good.
func TestPeaksOfCohort(t *testing.T) {
	for name, c := range map[string]struct {
		corrected []int // of the baskets 12, 14, 10, 13 and 11
		want      float64
	}{
		"no correction":   {nil, 14},
		"the largest":     {[]int{1}, 13},
		"the largest two": {[]int{1, 3}, 12},
		"all":             {[]int{0, 1, 2, 3, 4}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			e := newCounter(t)
			baskets := []float64{12, 14, 10, 13, 11}
			var entries []uint64
			for k, x := range baskets {
				entries = append(entries, e.sell(uint64(k), x))
			}
			for _, k := range c.corrected {
				e.correct(entries[k], baskets[k], 1)
			}
			e.advance()
			e.bounded(c.want)
		})
	}
}

// A decision that is no peak any more, and is corrected up again, counts within its bound.
func TestCorrectedUpAgain(t *testing.T) {
	c := newCounter(t)
	first := c.sell(0, 1000)
	c.correct(first, 1000, 1)
	for unit := range uint64(4) {
		c.sell(unit+1, 2)
	}
	c.correct(first, 1, 1000)
	c.advance()
	c.bounded(1000)
}

// A mistyped value that is corrected in time, after its bucket moved, leaves the estimates as they would have been. V
// still allows for shoppers who come back, and the verdict names the decision.
func TestCorrectedAfterMove(t *testing.T) {
	play := func(typed float64) *counter {
		c := newCounter(t)
		visit := func(unit uint64) { c.sell(unit, float64(1+unit%7)) }
		for range 20 {
			for unit := range uint64(200) {
				visit(unit)
			}
			c.advance()
		}
		var moves uint64 // a unit in one of the last buckets of variant a
		for c.bucket(moves) < 4000 || c.Class(moves) != 0 {
			moves++
		}
		for range 5 {
			c.sell(moves, 0)
		}
		entry := c.sell(moves, typed)
		design := *c.Design
		design.Variants = []api.Variant{design.Variants[0], design.Variants[1]}
		design.Variants[0].Share, design.Variants[1].Share = 0.1, 0.9
		c.Divide(&design, c.entry+1, c.now)
		c.entry++
		if c.Class(moves) == 0 {
			t.Fatal("the bucket has not moved")
		}
		if typed != 5 {
			c.correct(entry, typed, 5)
		}
		c.advance()
		return c
	}
	want, have := play(5), play(1e9)
	m, _, _ := want.Results.lead(1, 0)
	n, _, _ := have.Results.lead(1, 0)
	alone := want.Results.Pairs[0].Squares.Value()
	if v := m.Squares.Value(); !(v > 2*alone) || !(n.Squares.Value() >= v) {
		t.Errorf("V is %v, want at least %v, and without buckets it is %v", n.Squares.Value(), v, alone)
	}
	if math.Abs(n.Average()-m.Average()) > 1e-9 || n.Bound != 2e9 {
		t.Errorf("the difference is %v and the bound %v, want %v and 2e9", n.Average(), n.Bound, m.Average())
	}
	v := have.Report("", time.Second, cohortLength).Verdict
	if v.Result != api.Continue || !strings.Contains(v.Reason,
		"; all intervals are wide because the decision of log entry 4007 "+
			"earned 1000000000: if that value is wrong, ") {
		t.Errorf("%+v", v)
	}
}

// The verdict names a decision that earned more than 100 times the average of the others.
func TestOutlier(t *testing.T) {
	for earned, want := range map[float64]bool{99: false, 101: true} {
		c := newCounter(t)
		for unit := range uint64(200) {
			c.sell(unit, 1)
		}
		c.sell(200, earned)
		c.advance()
		if reason := c.Report("", time.Second, cohortLength).Verdict.Reason; strings.Contains(reason,
			"log entry 202") != want {
			t.Errorf("%v earned: %s", earned, reason)
		}
	}
}

// The verdict names no decision that was corrected up to a revenue which another page of its cohort shows.
func TestNoOutlier(t *testing.T) {
	c := newCounter(t)
	c.price = 1000
	entry := c.sell(0, 5)
	for unit := range uint64(200) {
		c.sell(unit, 5)
	}
	c.correct(entry, 5, 1000)
	c.correct(entry, 1000, 5)
	c.advance()
	if reason := c.Report("", time.Second, cohortLength).Verdict.Reason; strings.Contains(reason, "log entry") {
		t.Error(reason)
	}
}

// A decision enters and leaves its cohort without allocations, even with a basket.
func TestCountingAllocatesNothing(t *testing.T) {
	c := newCounter(t)
	for unit := range uint64(5) {
		c.sell(unit, 9)
	}
	o := c.shown[c.sell(5, 8)]
	if n := testing.AllocsPerRun(100, func() {
		c.Enter(o.Entry, o.Time, cohortLength, o.Offer)
		c.Leave(o.Entry, o.Time, cohortLength, o, "phone")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
