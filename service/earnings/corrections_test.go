package earnings

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vitrine/internal/precise"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// The sums by hand after a late sale, a return, a withdrawn sale and a decision that counts only because of its
// outcome. The policy is drawn with probability 3/4: its decisions lead by (x − m)·4/3, random ones by −(x − m)·4.
func TestCorrected(t *testing.T) {
	const second = int64(time.Second)
	var s Earnings
	s.Watch(drawing, 1)
	// Three decisions expired without an outcome: two by the policy and one at random. A fourth was withdrawn.
	for k, mode := range []uint8{offer.ByPolicy, offer.ByPolicy, offer.ByChance, offer.ByPolicy} {
		o := &offer.Offer{Offered: &eventlog.Offered{Decision: "d", ItemIDs: []string{"a", "b"}, Shown: []int32{1, 0},
			Candidates: 2, Revenue: []float64{6, 9}, Mode: mode}}
		entry, made := uint64(k+2), int64(k+1)*second
		s.Offered(entry, made, o, true)
		if k == 3 {
			s.Abandoned(entry, made, o.Mode, false, false)
			continue
		}
		s.Closed(Ended{Entry: entry, Time: made}, &offer.Closed{Offer: o, Entry: entry, Time: made}, 16)
	}
	corrected := func(entry uint64, mode uint8, choice int32, c eventlog.Corrected) {
		c.Decision, c.Entry, c.Made, c.Mode, c.Shown, c.Choice = "d", entry, int64(entry-1)*second, mode, []string{"b",
			"a"}, choice
		s.Corrected(&c, 16)
	}
	check := func(what string, policy, chance api.Totals, b Sold, place Sold, sum float64) {
		t.Helper()
		if s.Counts.Arms != [3]offer.Totals{group(policy), group(chance)} {
			t.Errorf("%s: %+v, want %+v and %+v", what, s.Counts.Arms, policy, chance)
		}
		if have := *s.Items.sold["b"]; have != b || s.Items.Places[0] != place {
			t.Errorf("%s: item b %+v, the first place %+v, want %+v and %+v", what, have, s.Items.Places[0], b, place)
		}
		all, total := [3]offer.Totals{}, 0.0
		for i := range s.Series.buckets {
			for k := range all {
				all[k].Add(&s.Series.buckets[i].arms[k])
			}
			total += s.Series.buckets[i].lead.Sum.Value()
		}
		for _, c := range s.Series.leads {
			total += c.Sums.block.Sums.Sum.Value()
		}
		if all != s.Counts.Arms || total != sum {
			t.Errorf("%s: %+v with the lead %v over time, want %v", what, all, total, sum)
		}
	}
	check("no sale", api.Totals{Rounds: 2}, api.Totals{Rounds: 1}, Sold{Shown: 3, Last: 4}, Sold{Shown: 3, Last: 4}, 0)
	corrected(2, offer.ByPolicy, 1, eventlog.Corrected{Value: 9}) // b, late
	check("a late sale", api.Totals{Rounds: 2, Purchases: 1, Revenue: 9, Squares: 81}, api.Totals{Rounds: 1},
		Sold{3, 1, precise.Of(9), 4}, Sold{3, 1, precise.Of(9), 4}, 12)
	s.Advance(9*second, 5) // until here the decisions are in cohorts
	// the policy's mean is 4.5, which enters both leads: 12 − 36
	corrected(4, offer.ByChance, 1, eventlog.Corrected{Value: 9})
	check("one of chance", api.Totals{Rounds: 2, Purchases: 1, Revenue: 9, Squares: 81},
		api.Totals{Rounds: 1, Purchases: 1, Revenue: 9, Squares: 81}, Sold{3, 2, precise.Of(18), 4}, Sold{3, 2,
			precise.Of(18), 4}, -24)
	corrected(2, offer.ByPolicy, 1, eventlog.Corrected{Correction: "return", Before: 9, Value: -3})
	check("a return", api.Totals{Rounds: 2, Purchases: 1, Revenue: 6, Squares: 36},
		api.Totals{Rounds: 1, Purchases: 1, Revenue: 9, Squares: 81}, Sold{3, 2, precise.Of(15), 4}, Sold{3, 2,
			precise.Of(15), 4}, -28)
	corrected(4, offer.ByChance, 1, eventlog.Corrected{Correction: "mistake", Before: 9, Value: -9, Withdraws: true})
	check("a mistake", api.Totals{Rounds: 2, Purchases: 1, Revenue: 6, Squares: 36}, api.Totals{Rounds: 1},
		Sold{3, 1, precise.Of(6), 4}, Sold{3, 1, precise.Of(6), 4}, 8)
	// the mean before is 3, and the lead (9 − 3)·4/3
	corrected(5, offer.ByPolicy, 1, eventlog.Corrected{Value: 9, Counts: true})
	check("a withdrawn one", api.Totals{Rounds: 3, Purchases: 2, Revenue: 15, Squares: 117}, api.Totals{Rounds: 1},
		Sold{4, 2, precise.Of(15), 5}, Sold{4, 2, precise.Of(15), 5}, 16)
	if last := s.Series.buckets[3]; last.abandoned != 0 || last.lead.N != 1 || s.Counts.Late != 3 ||
		s.Counts.Corrected != 2 {
		t.Errorf("%+v, %+v", last, s.Counts)
	}
	corrected(9, offer.ByImport, 1, eventlog.Corrected{Value: 9}) // imports belong to no comparison
	if s.Counts.Arms[0].Rounds != 3 || s.Counts.Arms[0].Revenue != precise.Of(15) || s.Items.sold["b"].Revenue != precise.Of(24) {
		t.Errorf("after an import: %+v, %+v", s.Counts.Arms, s.Items.sold["b"])
	}
}

// group returns totals as the sums hold them.
func group(t api.Totals) offer.Totals {
	return offer.Totals{Rounds: t.Rounds, Purchases: t.Purchases, Revenue: precise.Of(t.Revenue),
		Squares: precise.Of(t.Squares)}
}

// Whatever is sold, mistyped, corrected and returned, in any order, the sums agree with exact ones: in total, over
// time and by item.
func TestSumsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const second = int64(time.Second)
		var s Earnings
		s.Watch(Watch{Mode: api.Learn, Window: time.Hour}, 0)
		amount := rapid.OneOf(rapid.Float64Range(1, 100), rapid.Float64Range(1e6, 1e12), rapid.Just(1e12))
		var earned []float64
		revenue, largest := new(big.Rat), 1.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := amount.Draw(t, "amount")
			largest = max(largest, x)
			if n := len(earned); n == 0 || rapid.Bool().Draw(t, "sale") {
				entry, made := uint64(n+2), int64(n)*second
				o := &offer.Offer{Offered: &eventlog.Offered{ItemIDs: []string{"a"}, Shown: []int32{0}, Candidates: 1,
					Revenue: []float64{1}, Mode: offer.ByPolicy}}
				s.Offered(entry, made, o, true)
				s.Closed(Ended{Entry: entry, Time: made, Chosen: true}, &offer.Closed{Offer: o, Entry: entry,
					Time:   made,
					Choice: 1, Basket: eventlog.Basket{{Place: 1, Quantity: 1, Value: x}}}, 16)
				earned = append(earned, x)
				revenue.Add(revenue, new(big.Rat).SetFloat64(x))
				continue
			}
			k := rapid.IntRange(0, len(earned)-1).Draw(t, "decision")
			by := x - earned[k] // now it has earned x
			s.Corrected(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: uint64(k + 2),
				Made: int64(k) * second,
				Mode: offer.ByPolicy, Shown: []string{"a"}, Choice: 1, Before: earned[k], Value: by}, 16)
			earned[k] += by
			revenue.Add(revenue, new(big.Rat).SetFloat64(by))
		}
		squares, most := new(big.Rat), 0.0
		for _, x := range earned {
			one := new(big.Rat).SetFloat64(x)
			squares.Add(squares, one.Mul(one, one))
			most = max(most, x)
		}
		near := func(what string, have float64, exact *big.Rat, largest float64) {
			if want, _ := exact.Float64(); math.Abs(have-want) > 1e-15*math.Abs(want)+1e-28*largest {
				t.Fatalf("%s: %v, want %v", what, have, want)
			}
		}
		var all offer.Totals
		bound := 0.0
		for i := range s.Series.buckets {
			all.Add(&s.Series.buckets[i].arms[0])
			bound = max(bound, s.Series.buckets[i].most())
		}
		for what, g := range map[string]*offer.Totals{"in total": &s.Counts.Arms[0], "over time": &all} {
			near("revenue "+what, g.Report().Revenue, revenue, largest)
			near("squares "+what, g.Report().Squares, squares, largest*largest)
		}
		near("revenue of the item", s.Items.sold["a"].Revenue.Value(), revenue, largest)
		near("revenue of the place", s.Items.Places[0].Revenue.Value(), revenue, largest)
		if len(earned) <= maxPeaks && bound != max(most, 1) {
			t.Fatalf("decisions earned at most %v, and their bound is %v", most, bound)
		}
	})
}
