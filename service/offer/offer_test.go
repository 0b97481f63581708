package offer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/precise"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// shown is an offer of four items with two features, which shows the fourth, the first and the third one.
func shown() *offer.Offer {
	return &offer.Offer{Offered: &eventlog.Offered{
		Mode: offer.ByPolicy, ItemIDs: []string{"a", "b", "c", "d"}, Width: 2,
		Features: []float64{1, 2, 3, 4, 5, 6, 7, 8},
		Revenue:  []float64{10, 50, 30, 40}, Shown: []int32{3, 0, 2}, Propensity: 0.25,
	}}
}

// A learner observes the items in the order of the request, with their display order and the place of the choice among
// them.
func TestRoundByHand(t *testing.T) {
	for choice, want := range []vitrine.Choice{vitrine.Outside, 3, 1,
		2} { // d is the third one shown in the order of the request
		r := shown().Round(choice, nil)
		expect.Equal(t, r.Choice, want, "the item at place", choice, "is the choice")
		if !slices.Equal(r.Offer.Assortment, vitrine.Assortment{0, 2, 3}) ||
			!slices.Equal(r.Offer.Order, []int{3, 0, 2}) || r.Offer.Propensity != 0.25 {
			t.Errorf("the offer is %+v", r.Offer)
		}
		if n, d := r.Context.Features.Dims(); n != 4 || d != 2 || r.Context.Features.At(3, 1) != 8 ||
			r.Context.Revenue[3] != 40 {
			t.Errorf("the context is %+v", r.Context)
		}
	}
	empty := (&offer.Offer{Offered: &eventlog.Offered{Width: 2}}).Round(0, nil)
	if empty.Context.Features != nil || len(empty.Offer.Assortment) != 0 {
		t.Errorf("an offer without items is %+v", empty)
	}
}

func TestClosedByHand(t *testing.T) {
	o := shown()
	for k, id := range []string{"d", "a", "c"} {
		expect.Equal(t, o.Place(id), k+1, id, "is shown at place")
	}
	if o.Place("b") != 0 || o.Place("e") != 0 {
		t.Error("an item that is not shown has a place")
	}
	expect.Equal(t, o.IDs(), []string{"d", "a", "c"})
	for choice, want := range []float64{0, 40, 10, 30} {
		c := &offer.Closed{Offer: o, Choice: choice}
		g := offer.Totals{Rounds: 1, Revenue: precise.Of(want), Squares: precise.Of(want * want)}
		if choice > 0 {
			g.Purchases = 1
		}
		var have offer.Totals
		have.Count(c)
		if diff := cmp.Diff(g, have); diff != "" || c.Earned() != want {
			t.Errorf("place %d earns %v, want %v; %s", choice, c.Earned(), want, diff)
		}
		if c.Bound() != 40 { // b's 50 is not shown
			t.Errorf("the offer can earn %v, want 40", c.Bound())
		}
	}
	o.Revenue = nil // 1 each
	if c := (&offer.Closed{Offer: o, Choice: 2}); c.Earned() != 1 || c.Bound() != 1 {
		t.Errorf("without revenues a sale earns %v of %v", c.Earned(), c.Bound())
	}
	o.Shown = nil
	if c := (&offer.Closed{Offer: o}); c.Bound() != 0 {
		t.Errorf("an empty page can earn %v", c.Bound())
	}
}

// Impossible offers are refused.
func TestCheck(t *testing.T) {
	expect.Error(t, shown().Check(2, 3), nil)
	for name, change := range map[string]func(*offer.Offer){
		"more items than may be shown": func(o *offer.Offer) { o.Shown = []int32{0, 1, 2, 3} },
		"another width":                func(o *offer.Offer) { o.Width = 3 },
		"no way":                       func(o *offer.Offer) { o.Mode = 0 },
		"an unknown way":               func(o *offer.Offer) { o.Mode = offer.ByImport + 1 },
		"too much revenue":             func(o *offer.Offer) { o.Revenue[1] = 2 * vitrine.MaxRevenue },
	} {
		o := shown()
		if change(o); o.Check(2, 3) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Estimates are read as they were written, with any of their fields.
func TestEstimatesRoundTrip(t *testing.T) {
	probability := rapid.Float64Range(0, 1)
	texts := rapid.SliceOfN(rapid.String(), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "shown")
		has := func(name string) bool { return rapid.Bool().Draw(t, name) }
		e := offer.Estimates{Number: rapid.Uint64().Draw(t, "number"), Deferred: has("deferred"),
			Certain: has("certain")}
		if e.Shadowed = has("shadowed"); e.Shadowed {
			e.Agrees = has("agrees")
		}
		if has("estimated") {
			e.Probability = rapid.SliceOfN(probability, n, n).Draw(t, "p")
			e.Outside, e.Expected = probability.Draw(t, "p0"), rapid.Float64Range(0, vitrine.MaxRevenue).Draw(t, "R")
			if e.Shadowed {
				e.Shadow = rapid.Float64Range(0, vitrine.MaxRevenue).Draw(t, "R'")
			}
		}
		if has("own") {
			e.Own = texts.Draw(t, "own")
		}
		if has("note") {
			e.Note = "n" + rapid.String().Draw(t, "note")
		}
		if has("rules") {
			e.Rules = "r" + rapid.String().Draw(t, "rules")
		}
		if has("law") {
			e.Law = &offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: probability.Draw(t, "ε"), Size: n}
			for i := range uint32(n) {
				e.Law.Page = append(e.Law.Page, 3*i+1)
			}
			e.Law.Swaps = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "swaps")
			if has("items") {
				p := probability.Draw(t, "p of the first")
				e.Law = &offer.SamplingLaw{Kind: offer.DrawItems, Epsilon: 1, Size: 2,
					Probability: []float64{p, 1, 1 - p}, Slot: []uint32{0, 1, 0}}
			}
		}
		if has("catalogue") {
			e.Catalogue = &offer.FromCatalogue{Version: rapid.Uint64().Draw(t, "version"),
				Missing: rapid.IntRange(0, 1000).Draw(t, "missing"), Unknown: texts.Draw(t, "unknown")}
			if c := e.Catalogue; has("candidates") {
				c.NumItems, c.All = rapid.IntRange(1, 300).Draw(t, "items"), rapid.Bool().Draw(t, "all")
				if few := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(c.NumItems-1)), 0, c.NumItems-1,
					rapid.ID).Draw(t, "slots"); rapid.Bool().Draw(t, "some") {
					slices.Sort(few)
					c.Slots = append([]int32{}, few...)
				}
				if most := (c.NumItems + 7) / 8; c.Size() > max(most, 1) {
					t.Fatalf("%d of %d items take %d bytes", c.Candidates(), c.NumItems, c.Size())
				}
			}
		}
		if has("variant") {
			e.Variant, e.Unit = rapid.String().Draw(t, "variant"), rapid.Uint64Min(1).Draw(t, "unit")
		}
		data := e.Append([]byte("before"))
		again, err := offer.Decode(data[len("before"):], n)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v is read as %+v: %v", e, again, err)
		}
		expect.Refused(offer.Decode(data[len("before"):len(data)-1], n))(fatal.T(t), e, "is read without its last byte")
	})
}

// Probabilities and revenues outside their ranges are refused.
func TestImpossibleEstimates(t *testing.T) {
	for name, change := range map[string]func(*offer.Estimates){
		"a probability above 1":    func(e *offer.Estimates) { e.Probability[1] = 1.01 },
		"a negative probability":   func(e *offer.Estimates) { e.Probability[0] = -0.01 },
		"no number":                func(e *offer.Estimates) { e.Probability[0] = math.NaN() },
		"an outside of 2":          func(e *offer.Estimates) { e.Outside = 2 },
		"a negative revenue":       func(e *offer.Estimates) { e.Expected = -1 },
		"an infinite revenue":      func(e *offer.Estimates) { e.Expected = math.Inf(1) },
		"a negative other revenue": func(e *offer.Estimates) { e.Shadow = -1 },
		"a large other revenue":    func(e *offer.Estimates) { e.Shadow = 3 * vitrine.MaxRevenue },
	} {
		e := offer.Estimates{Probability: []float64{0.25, 0.5}, Outside: 0.25, Expected: 2, Shadowed: true, Shadow: 3}
		fatal.Or(offer.Decode(e.Append(nil), 2))(t)
		change(&e)
		expect.Refused(offer.Decode(e.Append(nil), 2))(t, name)
	}
}

// Of five items and a page of two, the bit 5k + j says whether item j may take the k-th place.
func TestAllowsByHand(t *testing.T) {
	l := &offer.SamplingLaw{Kind: offer.DrawSwaps, Page: []uint32{1, 4}, Swaps: []byte{0b1000_0101, 0b10}}
	want := map[[2]int]bool{{0, 0}: true, {0, 2}: true, {1, 2}: true, {1, 4}: true}
	for k := range 2 {
		for j := range 5 {
			expect.Equal(t, l.Allows(k, j, 5), want[[2]int{k, j}], "item", j, "in place", k)
		}
	}
	if l.Allows(3, 4, 5) {
		t.Error("a swap beyond the last byte")
	}
	if l.Swaps = nil; !l.Allows(1, 3, 5) {
		t.Error("without a list all swaps are allowed")
	}
}

func TestDrawCheck(t *testing.T) {
	for name, c := range map[string]struct {
		law offer.SamplingLaw
		ok  bool
	}{
		"sets": {offer.SamplingLaw{Kind: offer.DrawSets, Size: 5, Page: []uint32{0, 4}}, true},
		"slots": {
			offer.SamplingLaw{Kind: offer.DrawSwaps, Page: []uint32{0, 4}, Swaps: []byte{1, 2}}, true},
		"sets larger than the items": {offer.SamplingLaw{Kind: offer.DrawSets, Size: 6}, false},
		"sets of no items":           {offer.SamplingLaw{Kind: offer.DrawPages}, false},
		"an item that is not there":  {offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Page: []uint32{5}}, false},
		"an item twice":              {offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Page: []uint32{1, 1}}, false},
		"an unknown kind":            {offer.SamplingLaw{Kind: 4, Size: 2}, false},
		"a share above 1":            {offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Epsilon: 1.5}, false},
		"no share":                   {offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Epsilon: math.NaN()}, false},
		"too few swaps": {
			offer.SamplingLaw{Kind: offer.DrawSwaps, Page: []uint32{0, 4}, Swaps: []byte{1}}, false},
		"swaps of something else": {
			offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Page: []uint32{0, 4}, Swaps: []byte{1, 2}}, false},
		"a page that does not ascend": {offer.SamplingLaw{Kind: offer.DrawSwaps, Page: []uint32{4, 0}}, false},
	} {
		if err := c.law.Check(5); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The probabilities of a law, by hand: of four items, with the page {0, 2} and ε = 0.3.
func TestLawByHand(t *testing.T) {
	page := []uint32{0, 2}
	for name, c := range map[string]struct {
		law  offer.SamplingLaw
		want map[string]float64
	}{
		// Ten sets of one or two items.
		"sets": {offer.SamplingLaw{Kind: offer.DrawSets, Epsilon: 0.3, Size: 2, Page: page}, map[string]float64{
			"[0 2]": 0.7 + 0.03, "[0]": 0.03, "[1 3]": 0.03, "[0 1 2]": 0}},
		// Six pairs.
		"pages": {offer.SamplingLaw{Kind: offer.DrawPages, Epsilon: 0.3, Size: 2, Page: page}, map[string]float64{
			"[0 2]": 0.7 + 0.05, "[0]": 0, "[1 3]": 0.05}},
		// Four swaps: 1 or 3 in the place of 0 or 2.
		"slots": {offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 0.3, Page: page}, map[string]float64{
			"[0 2]": 0.7, "[1 2]": 0.075, "[0 3]": 0.075, "[1 3]": 0}},
		// Two of them: 1 in the place of 0, which is bit 1, and 3 in the place of 2, which is bit 7.
		"some slots": {offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 0.3, Page: page, Swaps: []byte{
			0b1000_0010}}, map[string]float64{"[0 2]": 0.7, "[1 2]": 0.15, "[0 3]": 0.15, "[2 3]": 0}},
	} {
		law, total := c.law.Law(4), 0.0
		for size := 1; size <= 3; size++ {
			for _, s := range setsOf(4, size) {
				p := law.Propensity(s)
				total += p
				if want, ok := c.want[fmt.Sprint([]int(s))]; ok && math.Abs(p-want) > 1e-12 {
					t.Errorf("%s: %v has the probability %v, want %v", name, s, p, want)
				}
			}
		}
		if math.Abs(total-1) > 1e-12 {
			t.Errorf("%s: the probabilities sum to %v", name, total)
		}
	}
}

// setsOf returns the sets of a size of n items.
func setsOf(n, size int) (list []vitrine.Assortment) {
	for bits := range 1 << n {
		s := vitrine.Assortment{}
		for i := range n {
			if bits>>i&1 == 1 {
				s = append(s, i)
			}
		}
		if len(s) == size {
			list = append(list, s)
		}
	}
	return list
}

// If the log holds all candidates it says how a set was drawn; for a policy that was certain it does so without a law.
func TestLawOf(t *testing.T) {
	law := &offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 0.5, Size: 2, Page: []uint32{0, 2}}
	logged := func(law *offer.SamplingLaw, change func(*eventlog.Offered)) *eventlog.Offered {
		o := &eventlog.Offered{Mode: offer.ByPolicy, Candidates: 4, ItemIDs: []string{"a", "b", "c", "d"},
			Shown: []int32{2, 0}, Propensity: 0.5}
		e := offer.Estimates{Number: 1, Law: law}
		o.Answer = e.Append(nil)
		change(o)
		return o
	}
	if l := offer.LawOf(logged(law, func(*eventlog.Offered) {})); l == nil ||
		math.Abs(l.Propensity(vitrine.Assortment{0, 1})-0.125) > 1e-12 {
		t.Errorf("the law of a swap is %v", l)
	}
	if l := offer.LawOf(logged(nil, func(o *eventlog.Offered) { o.Propensity = 1 })); l == nil ||
		l.Propensity(vitrine.Assortment{0, 2}) != 1 {
		t.Errorf("the law of a certain policy is %v", l)
	}
	for name, o := range map[string]*eventlog.Offered{
		"candidates are missing": logged(law, func(o *eventlog.Offered) { o.Candidates = 5 }),
		"no candidates":          logged(law, func(o *eventlog.Offered) { o.Candidates, o.ItemIDs = 0, nil }),
		"a random policy":        logged(nil, func(*eventlog.Offered) {}),
		"a certain baseline":     logged(nil, func(o *eventlog.Offered) { o.Propensity, o.Mode = 1, offer.ByBaseline }),
		"an empty page":          logged(nil, func(o *eventlog.Offered) { o.Propensity, o.Shown = 1, nil }),
		"a law of other items": logged(&offer.SamplingLaw{Kind: offer.DrawSets, Size: 2, Page: []uint32{9}},
			func(*eventlog.Offered) {}),
		"bytes that are no law": logged(law, func(o *eventlog.Offered) { o.Answer = o.Answer[1:] }),
	} {
		if l := offer.LawOf(o); l != nil {
			t.Errorf("%s: there is a law", name)
		}
	}
}

// constant offers one set.
type constant struct{ own vitrine.Offer }

func (c constant) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer { return c.own }

// Explored sets and swaps are drawn as often as their law and their propensity say, within three and a half standard
// errors.
func TestExploreByTheLaw(t *testing.T) {
	const share, draws = 0.4, 20_000
	x := func(family vitrine.Constraint) *vitrine.Context {
		return &vitrine.Context{Features: mat.NewDense(4, 1, nil), Feasible: family}
	}
	rules := fatal.Or(assortment.NewQuota(assortment.Rules{Items: 4, Max: 2,
		Groups: []assortment.Group{{Name: "pair", Items: []int{2, 3}, Max: 1}}}))(t)
	filled := func(slots ...assortment.Slot) vitrine.Constraint {
		return fatal.Or(assortment.NewSlots(4, slots, len(slots)))(t)
	}
	for name, c := range map[string]struct {
		family vitrine.Constraint
		slots  bool
		want   map[string]float64
	}{
		"one slot": {filled(assortment.Slot{}), false, map[string]float64{"[0]": 0.6 + 0.4/4, "[1]": 0.1}},
		"one slot without an item": {filled(assortment.Slot{Exclude: []int{1}}), false, map[string]float64{
			"[0]": 0.6 + 0.4/3, "[1]": 0, "[2]": 0.4 / 3}},
		"one slot for an item": {filled(assortment.Slot{Exclude: []int{1, 2, 3}}), false, map[string]float64{"[0]": 1}},
		"both slots":           {filled(assortment.Slot{}, assortment.Slot{}), false, map[string]float64{"[0 2]": 0.6 + 0.4/6, "[1 2]": 0.4 / 6}},
		"two slots under rules": {filled(assortment.Slot{Exclude: []int{1}}, assortment.Slot{Exclude: []int{1}}), false,
			map[string]float64{"[0 2]": 0.6 + 0.4/3, "[1 2]": 0, "[0 3]": 0.4 / 3}},
		"sets": {assortment.AtMost(2), false, map[string]float64{
			"[0 2]": 0.6 + 0.04, "[1]": 0.04, "[2 3]": 0.04}}, // of ten
		"sets under rules": {rules, false, map[string]float64{"[0 2]": 0.6 + 0.4/9, "[1]": 0.4 / 9, "[2 3]": 0}},
		// of nine
		"slots": {assortment.AtMost(2), true, map[string]float64{
			"[0 2]": 0.6, "[1 2]": 0.1, "[2 3]": 0.1, "[0 3]": 0.1}}, // of four swaps
		"slots under rules": {rules, true, map[string]float64{
			"[0 2]": 0.6, "[1 2]": 0.4 / 3, "[2 3]": 0, "[0 1]": 0.4 / 3}}, // of three
	} {
		own := vitrine.Offer{Assortment: vitrine.Assortment{0, 2}, Propensity: 1}
		if strings.HasPrefix(name, "one slot") {
			own.Assortment = own.Assortment[:1]
		}
		rng := rand.New(rand.NewPCG(1, 2))
		count := map[string]float64{}
		for range draws {
			var e offer.Explored
			if c.slots {
				e = offer.ExploreSlots(own, x(c.family), share, rng)
			} else {
				e = offer.ExploreSets(constant{own}, own, x(c.family), share, rng)
			}
			set := fmt.Sprint([]int(e.Shown))
			count[set]++
			if want, ok := c.want[set]; ok && math.Abs(e.Propensity-want) > 1e-12 {
				t.Fatalf("%s: %s has the propensity %v, want %v", name, set, e.Propensity, want)
			}
			if !e.ByChance && !slices.Equal(e.Shown, own.Assortment) {
				t.Fatalf("%s: %s is the policy's own", name, set)
			}
			if e.Law != nil {
				fatal.If(t, e.Law.Check(4), name)
				if p := e.Law.Law(4).Propensity(e.Shown); math.Abs(p-e.Propensity) > 1e-12 {
					t.Fatalf("%s: the law gives %s %v, and the propensity is %v", name, set, p, e.Propensity)
				}
			} else {
				expect.Contains(fatal.T(t), "sets under rules, two slots under rules", name, "there is no law")
			}
		}
		for set, p := range c.want {
			if sd := math.Sqrt(p * (1 - p) / draws); math.Abs(count[set]/draws-p) > 3.5*sd {
				t.Errorf("%s: %s is shown with the frequency %v, want %v", name, set, count[set]/draws, p)
			}
		}
	}
}

// A set of a family that cannot be sampled uniformly is drawn without the policy: every set that holds as much as fits
// appears.
func TestDrawSetWithoutASampler(t *testing.T) {
	own := vitrine.Offer{Assortment: vitrine.Assortment{0, 1}, Propensity: 1}
	x := &vitrine.Context{Features: mat.NewDense(6, 1, nil), Feasible: hidden{assortment.AtMost(2)}}
	rng := rand.New(rand.NewPCG(5, 6))
	count := map[string]int{}
	const draws = 3000
	for range draws {
		e := offer.DrawSet(constant{own}, own, x, rng)
		if !e.ByChance || e.Propensity != 0 || e.Law != nil {
			t.Fatalf("%+v", e)
		}
		count[fmt.Sprint([]int(e.Shown))]++
	}
	for set, n := range count { // each of 15 pairs
		if math.Abs(float64(n)-draws/15) > 4*math.Sqrt(draws/15) {
			t.Errorf("%s is shown %d times", set, n)
		}
	}
	expect.Equal(t, len(count), 15, count)
}

// hidden is a family with an unknown sampler.
type hidden struct{ vitrine.Constraint }

// For a random policy with an unknown law all propensities are unknown; the law given its own page is known.
func TestExploreARandomPolicy(t *testing.T) {
	own := vitrine.Offer{Assortment: vitrine.Assortment{0, 2}, Propensity: 0.5}
	x := &vitrine.Context{Features: mat.NewDense(4, 1, nil), Feasible: assortment.AtMost(2)}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		sets, slots := offer.ExploreSets(constant{own}, own, x, 0.5, rng), offer.ExploreSlots(own, x, 0.5, rng)
		if sets.Propensity != 0 || slots.Propensity != 0 || sets.Law == nil || slots.Law == nil {
			t.Fatalf("%+v and %+v", sets, slots)
		}
		if all := offer.ExploreSets(constant{own}, own, x, 1, rng); math.Abs(all.Propensity-0.1) > 1e-12 ||
			!all.ByChance {
			t.Fatalf("the policy has no part in it: %+v", all)
		}
	}
	full := &vitrine.Context{Features: mat.NewDense(2, 1, nil), Feasible: assortment.AtMost(2)}
	every := vitrine.Offer{Assortment: vitrine.Assortment{0, 1}, Propensity: 1}
	if e := offer.ExploreSlots(every, full, 0.5, rng); e.ByChance || e.Propensity != 1 ||
		!slices.Equal(e.Shown, every.Assortment) {
		t.Errorf("without another item the page is %+v", e)
	}
}

// tested counts the sets that a family was asked about. It allows those without an odd item beyond the first two.
type tested struct {
	vitrine.Constraint
	n *int
}

func (f tested) Contains(s vitrine.Assortment) bool {
	*f.n++
	return !slices.ContainsFunc(s, func(i int) bool { return i > 1 && i%2 == 1 })
}

// Among a million items with rules a swap is drawn without testing all of them: its propensity is unknown.
func TestExploreManySwaps(t *testing.T) {
	n := 0
	x := &vitrine.Context{Features: mat.NewDense(1e6, 1, nil), Feasible: tested{assortment.AtMost(2), &n}}
	own := vitrine.Offer{Assortment: vitrine.Assortment{0, 1}, Propensity: 1}
	rng := rand.New(rand.NewPCG(3, 4))
	chance, first := 0, 0
	const draws = 400
	for range draws {
		e := offer.ExploreSlots(own, x, 0.5, rng)
		if e.Propensity != 0 || e.Law != nil || e.ByChance == slices.Equal(e.Shown, own.Assortment) ||
			!x.Feasible.Contains(e.Shown) {
			t.Fatalf("%+v", e)
		}
		if e.ByChance {
			chance++
			if e.Shown[0] == 1 {
				first++
			}
		}
	}
	if n > 8*draws || math.Abs(float64(chance)-draws/2) > 50 || math.Abs(float64(first)-float64(chance)/2) > 40 {
		t.Errorf("%d sets are tested, %d pages drawn, %d with another first item", n, chance, first)
	}
}
