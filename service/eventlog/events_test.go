package eventlog_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/eventlog"
)

// examples returns events of each kind.
func examples() []eventlog.Event {
	at := func(body eventlog.Body) eventlog.Event {
		return eventlog.Event{Time: 1_700_000_000_123_456_789, Placement: "home", Body: body}
	}
	return []eventlog.Event{
		{Time: 1_700_000_000_123_456_789, Placement: "home", By: "ops",
			Body: &eventlog.PlacementPut{Config: []byte(`{"policy":"onl-mnl"}`)}},
		at(&eventlog.PlacementDeleted{}),
		at(&eventlog.Offered{
			Decision: "d1", Request: sha256.Sum256([]byte("request")), Candidates: 300,
			ItemIDs: []string{"tea", "", "Kaffee ☕"}, Width: 2,
			Features: []float64{1, -0.5, 0, 1e-300, math.Copysign(0, -1), 3}, Revenue: []float64{1, 0, 2.5},
			Shown: []int32{2, 0}, Propensity: 0.25, PolicyEntry: 1 << 40, Mode: 3, Answer: []byte{1, 2, 3},
		}),
		at(&eventlog.Chosen{Decision: "d1", Choice: 2}),
		at(&eventlog.Expired{Decision: "d1"}),
		at(&eventlog.Activated{Decision: "d1"}),
		at(&eventlog.ItemsDeclined{Decision: "d1", Items: []int32{1, 300}, Reward: 0.25}),
		at(&eventlog.Measured{Decision: "d1", List: []eventlog.Measurement{{Name: "items", Value: 2},
			{Name: "margin", Value: -0.25}}}),
		at(&eventlog.Evicted{Decision: "d1"}),
		at(&eventlog.Chosen{Decision: "d1", Choice: 2, Unlearned: true}),
		at(&eventlog.Expired{Decision: "d1", Unlearned: true}),
		at(&eventlog.VersionSaved{Version: 300, Note: "before the sale ☕"}),
		at(&eventlog.LearnerReset{Config: []byte(`{"policy":"bma-mnl"}`), Note: "another policy"}),
		at(&eventlog.LearnerRolledBack{Version: 300, Config: []byte(`{"policy":"onl-mnl"}`), Note: "a roll back"}),
		at(&eventlog.RelearningBegun{Config: []byte(`{"policy":"bma-mnl"}`), From: 128, Note: "another policy"}),
		at(&eventlog.LearnerSwapped{Config: []byte(`{"policy":"bma-mnl"}`)}),
		at(&eventlog.RelearningEnded{Reason: "given up"}),
		at(&eventlog.ItemsChanged{Put: []string{"a record", "\x01\x00"}, Deleted: []string{"Kaffee ☕"}, Before: 300,
			Undo: []string{"", "\x00", "\x01old"}}),
		at(&eventlog.CategoryValuesAdded{Feature: "brand", Values: []string{"acme", "", "Zé"}}),
		at(&eventlog.AlarmCleared{}),
		at(&eventlog.LearnerAdopted{Config: []byte(`{"policy":"ts-mnl"}`), Variant: "rival", Note: "an experiment ☕"}),
		at(&eventlog.ClockMoved{By: -3_600_000_000_000}),
		at(&eventlog.Corrected{Decision: "d", Entry: 3, Made: -2, Mode: 1, Variant: "rival",
			Shopper: "sixteen bytes :-)",
			Shown:   []string{"sku0", "ß"}, Choice: 2, Value: 4.5, Counts: true}),
		at(&eventlog.Chosen{Decision: "d1", Choice: 2, Basket: eventlog.Basket{{2, 1, 0}, {3, 300, 4.5}}}),
		at(&eventlog.Chosen{Decision: "d1", Choice: 1, Basket: eventlog.Basket{{1, 2, 1e103}}, Unlearned: true}),
		at(&eventlog.Corrected{Decision: "d", Entry: 3, Made: -2, Mode: 1, Shown: []string{"sku0", "ß"}, Choice: 1,
			Basket: eventlog.Basket{{1, 1, 4}, {2, 1000, 0.5}}, Value: 4.5, Counts: true, Viewed: true}),
		at(&eventlog.Corrected{Decision: "d", Correction: "r", Entry: 3, Made: -2, Mode: 1, Shown: []string{"sku0", "ß"},
			Choice: 1, Others: 1, Before: 4.5, Value: -4, Withdraws: true, InTime: true, Bound: 4.5, Unit: 1 << 63, Segment: "phone"}),
	}
}

func encode(t rapid.TB, e eventlog.Event) []byte {
	t.Helper()
	b := fatal.Or(e.Encode(nil))(t)
	return b
}

// The bytes of version 1 never change, because existing logs contain them. A golden file holds the examples of a kind,
// one a line, and is written only once, when the kind is added.
func TestGoldenBytes(t *testing.T) {
	page := string(fatal.Or(os.ReadFile("../../docs/eventlog-format.md"))(t))
	golden, shown := map[string]string{}, map[string]bool{}
	for _, e := range examples() {
		entry, name := encode(t, e), eventlog.Name(e.Body)
		shown[name] = true
		if kind := entry[1]; !strings.Contains(page, fmt.Sprintf("\n    %-3d %s ", kind, name)) {
			t.Errorf("docs/eventlog-format.md lacks kind %d, %s: add a row with its fields", kind, name)
		}
		golden[filepath.Join("testdata", fmt.Sprintf("%d.hex", entry[1]))] += fmt.Sprintf("%x\n", entry)
		expect.Equal(t, fatal.Or(eventlog.Decode(entry))(t), e, name)
	}
	for path, have := range golden {
		if want, err := os.ReadFile(path); err != nil {
			t.Errorf("there are no golden bytes: check these, and write them to %s:\n%s", path, have)
		} else {
			expect.Equal(t, have, string(want), path)
		}
	}
	for _, body := range eventlog.Bodies() {
		if !shown[eventlog.Name(body)] {
			t.Errorf("nothing tests the bytes of %s: add one to examples", eventlog.Name(body))
		}
	}
}

// Encode does not write to the event, so others may read it at the same time. The race detector checks that.
func TestEncodingAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for _, e := range examples() {
		for range 2 {
			group.Go(func() { _, _ = e.Encode(nil) })
		}
	}
	group.Wait()
}

func TestEventsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		entry := encode(t, e)
		have := fatal.Or(eventlog.Decode(entry))(t)
		expect.Equal(fatal.T(t), have, e)
		prefix := []byte("prefix")
		if again, err := have.Encode(prefix); err != nil || !bytes.Equal(again, append(prefix, entry...)) {
			t.Fatalf("encoded again after a prefix: %x, %v", again, err)
		}
		// A truncated or extended entry is rejected.
		expect.Refused(eventlog.Decode(entry[:rapid.IntRange(0, len(entry)-1).Draw(t, "cut")]))(fatal.T(t),
			"a truncated entry is accepted")
		expect.Refused(eventlog.Decode(append(entry, 0)))(fatal.T(t), "an entry with a byte too many is accepted")
	})
}

func drawEvent(t *rapid.T) eventlog.Event {
	name := rapid.StringN(1, 20, -1)
	bytesOrNil := func(label string) []byte {
		if b := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, label); len(b) > 0 {
			return b
		}
		return nil
	}
	sum := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sum"))
	e := eventlog.Event{Time: rapid.Int64().Draw(t, "time"), Placement: name.Draw(t, "placement")}
	switch rapid.IntRange(1, 20).Draw(t, "kind") {
	case 1:
		e.Body = &eventlog.PlacementPut{Config: append([]byte("{"), bytesOrNil("config")...)}
	case 2:
		e.Body = &eventlog.PlacementDeleted{}
	case 3:
		o := &eventlog.Offered{
			Decision: name.Draw(t, "decision"), Request: sum, Width: rapid.IntRange(0, 4).Draw(t, "width"),
			Propensity:  rapid.Float64Range(0, 1).Draw(t, "propensity"),
			PolicyEntry: rapid.Uint64().Draw(t, "version"), Mode: rapid.Uint8().Draw(t, "mode"),
			Answer: bytesOrNil("answer"),
		}
		n := rapid.IntRange(0, 5).Draw(t, "items")
		o.Candidates = n + rapid.IntRange(0, 1000).Draw(t, "more")
		for range n {
			o.ItemIDs = append(o.ItemIDs, rapid.String().Draw(t, "item"))
		}
		finite := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
		for range n * o.Width {
			o.Features = append(o.Features, finite.Draw(t, "feature"))
		}
		if rapid.Bool().Draw(t, "revenues") {
			for range n {
				o.Revenue = append(o.Revenue, rapid.Float64Range(0, math.MaxFloat64).Draw(t, "revenue"))
			}
		}
		if n > 0 {
			o.Shown = rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 1, n, rapid.ID[int32]).Draw(t, "shown")
		}
		e.Body = o
	case 4:
		c := &eventlog.Chosen{Decision: name.Draw(t, "decision"), Choice: rapid.Int32Min(0).Draw(t, "choice"),
			Unlearned: rapid.Bool().Draw(t, "unlearned")}
		if rapid.Bool().Draw(t, "several") {
			c.Choice, c.Basket = 1, drawBasket(t)
		}
		e.Body = c
	case 5:
		e.Body = &eventlog.Expired{Decision: name.Draw(t, "decision"), Unlearned: rapid.Bool().Draw(t, "unlearned")}
	case 6:
		e.Body = &eventlog.Evicted{Decision: name.Draw(t, "decision")}
	case 7:
		e.Body = &eventlog.Activated{Decision: name.Draw(t, "decision")}
	case 8:
		items := rapid.SliceOfNDistinct(rapid.Int32Range(1, math.MaxInt32), 1, 5, rapid.ID[int32]).Draw(t, "passed")
		slices.Sort(items)
		e.Body = &eventlog.ItemsDeclined{Decision: name.Draw(t, "decision"), Items: items,
			Reward: rapid.Float64Range(0, 1).Draw(t, "reward")}
	case 12:
		e.Body = &eventlog.VersionSaved{Version: rapid.Uint64().Draw(t, "version"),
			Note: rapid.String().Draw(t, "note")}
	case 13:
		e.Body = &eventlog.LearnerReset{Config: append([]byte("{"), bytesOrNil("config")...),
			Note: rapid.String().Draw(t, "note")}
	case 14:
		e.Body = &eventlog.LearnerRolledBack{Version: rapid.Uint64().Draw(t, "version"), Config: bytesOrNil("config"),
			Note: rapid.String().Draw(t, "note")}
	case 15:
		e.Body = &eventlog.RelearningBegun{Config: append([]byte("{"), bytesOrNil("config")...),
			From: rapid.Uint64Min(1).Draw(t, "from"), Note: rapid.String().Draw(t, "note")}
	case 16:
		e.Body = &eventlog.LearnerSwapped{Config: append([]byte("{"), bytesOrNil("config")...)}
	case 9:
		e.Body = &eventlog.CategoryValuesAdded{Feature: name.Draw(t, "feature"),
			Values: rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "values")}
	case 10:
		e.Body = &eventlog.AlarmCleared{All: rapid.Bool().Draw(t, "all")}
	case 11:
		e.Body = &eventlog.LearnerAdopted{Config: append([]byte("{"), bytesOrNil("config")...),
			Variant: name.Draw(t, "variant"), Note: rapid.String().Draw(t, "note")}
	case 17:
		e.Body = &eventlog.RelearningEnded{Reason: rapid.String().Draw(t, "reason")}
	case 18:
		e.Body = &eventlog.ClockMoved{By: rapid.Int64().Draw(t, "by") | 1}
	case 19:
		c := &eventlog.Corrected{
			Decision: name.Draw(t, "decision"), Entry: rapid.Uint64Min(1).Draw(t, "entry"),
			Made: rapid.Int64().Draw(t, "made"), Mode: rapid.Byte().Draw(t, "mode"),
			Variant: rapid.String().Draw(t, "variant"), Shopper: rapid.String().Draw(t, "shopper"),
			Shown: rapid.SliceOfNDistinct(name, 1, 5, rapid.ID[string]).Draw(t, "shown"), Choice: 1,
			Value: rapid.Float64Range(-1e9, 1e9).Draw(t, "value"),
		}
		if rapid.Bool().Draw(t, "late") {
			c.Counts = rapid.Bool().Draw(t, "counts")
			c.Viewed = c.Counts && rapid.Bool().Draw(t, "viewed")
		} else {
			c.Correction, c.Before = name.Draw(t, "correction"), rapid.Float64Range(-1e9, 1e9).Draw(t, "before")
			if rapid.Bool().Draw(t, "withdraws") {
				c.Withdraws, c.Value = true, -c.Before
			}
			drawInTime(t, c)
		}
		e.Body = c
	case 20:
		c := &eventlog.Corrected{Decision: name.Draw(t, "decision"), Entry: 1, Shown: []string{"a", "b", "c"},
			Choice: 1}
		if rapid.Bool().Draw(t, "late") {
			c.Basket = drawBasket(t)
			c.Value = c.Basket.Earned()
		} else {
			c.Correction, c.Others = name.Draw(t, "correction"), rapid.IntRange(1, 2).Draw(t, "others")
			c.Before, c.Value = 7, rapid.Float64Range(-1e9, 1e9).Draw(t, "value")
			if c.Withdraws = rapid.Bool().Draw(t, "withdraws"); !c.Withdraws && c.Value >= 0 {
				c.Adds = rapid.Bool().Draw(t, "adds")
			}
			drawInTime(t, c)
		}
		e.Body = c
	}
	if eventlog.IsCommand(e.Body) {
		e.By = rapid.StringN(0, 20, -1).Draw(t, "by")
	}
	return e
}

// drawInTime makes a correction one of an outcome that came in time, or not.
func drawInTime(t *rapid.T, c *eventlog.Corrected) {
	if c.InTime = rapid.Bool().Draw(t, "in time"); c.InTime {
		c.Bound = rapid.Float64Range(0, 1e9).Draw(t, "bound")
		c.Unit, c.Segment = rapid.Uint64().Draw(t, "unit"), rapid.String().Draw(t, "segment")
	}
}

// drawBasket returns a basket of a page of three items, which begins with the first.
func drawBasket(t *rapid.T) (b eventlog.Basket) {
	for place := range int32(3) {
		if place == 0 || rapid.Bool().Draw(t, "taken") {
			b = append(b, eventlog.Take{Place: place + 1, Quantity: rapid.Int32Range(1, eventlog.MaxQuantity).Draw(t,
				"quantity"),
				Value: rapid.Float64Range(0, 1e100).Draw(t, "value")})
		}
	}
	return b
}

// offer returns the example offer with a change.
func offer(change func(*eventlog.Offered)) eventlog.Event {
	e := examples()[2]
	change(e.Body.(*eventlog.Offered))
	return e
}

func TestUnlawfulEvents(t *testing.T) {
	at := func(body eventlog.Body) eventlog.Event { return eventlog.Event{Placement: "home", Body: body} }
	for _, c := range []struct {
		event eventlog.Event
		want  string
	}{
		{eventlog.Event{Body: &eventlog.PlacementDeleted{}}, "without a placement"},
		{eventlog.Event{Placement: "home"}, "without a body"},
		{at(&eventlog.PlacementPut{}), "without its configuration"},
		{at(&eventlog.Chosen{}), "without a decision"},
		{at(&eventlog.Chosen{Decision: "d", Choice: -1}), "is -1, want 0 for the outside option"},
		{at(&eventlog.Expired{}), "without a decision"},
		{at(&eventlog.Evicted{}), "without a decision"},
		{at(&eventlog.ItemsChanged{}), "a change of no items"},
		{at(&eventlog.ItemsChanged{Put: []string{"a", ""}}), "an empty record or id"},
		{at(&eventlog.ItemsChanged{Deleted: []string{""}}), "an empty record or id"},
		{at(&eventlog.ItemsChanged{Deleted: []string{"a"}}), "a change of 1 items carries undo data for 0"},
		{at(&eventlog.CategoryValuesAdded{Values: []string{"a"}}), `feature "" has 1 new values`},
		{at(&eventlog.CategoryValuesAdded{Feature: "brand"}), `feature "brand" has 0 new values`},
		{at(&eventlog.LearnerReset{Note: "x"}), "without its configuration"},
		{at(&eventlog.RelearningBegun{From: 1}), "without its configuration"},
		{at(&eventlog.RelearningBegun{Config: []byte("{}")}), "from no entry on"},
		{at(&eventlog.LearnerSwapped{}), "without its configuration"},
		{at(&eventlog.LearnerAdopted{Variant: "rival"}), "without its configuration"},
		{at(&eventlog.LearnerAdopted{Config: []byte("{}")}), "of no variant"},
		{at(&eventlog.Activated{}), "without a decision"},
		{at(&eventlog.Corrected{Entry: 1}), "without a decision"},
		{at(&eventlog.Corrected{Decision: "d"}), "without the entry of its offer"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 2}), "item 2 of the 1"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i", "i"}}), `shows item "i" twice`},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: math.NaN()}),
			"by NaN"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Value: 1}), "a late outcome of decision"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, InTime: true}), "a late outcome of decision"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, Unit: 7}),
			"unit 7"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, Bound: 7}),
			"bounded by 7"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, InTime: true,
			Bound: -1}), "at most -1"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 1, Before: 1, Value: 1}),
			"a late outcome of decision"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Value: 1}),
			"is of item 0"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, Before: 2,
			Value: -1, Withdraws: true}), "by -1"},
		{at(&eventlog.Chosen{Decision: "d", Basket: eventlog.Basket{}}), "does not begin with the choice"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 2, Basket: eventlog.Basket{{1, 1, 1}}}), "does not begin with " +
			"the choice"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 1, Basket: eventlog.Basket{{1, 1, 1}, {1, 1, 1}}}), "after item 1"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 1, Basket: eventlog.Basket{{1, 0, 1}}}), "has 0 units"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 1, Basket: eventlog.Basket{{1, 1001, 1}}}), "has 1001 units"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 1, Basket: eventlog.Basket{{1, 1, -1}}}), "for -1"},
		{at(&eventlog.Chosen{Decision: "d", Choice: 1, Basket: eventlog.Basket{{1, 1, math.Inf(1)}}}), "for +Inf"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: 2,
			Basket: eventlog.Basket{{1, 1, 1}, {2, 1, 1}}}), "item 2 of 1"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: 2,
			Basket: eventlog.Basket{{1, 1, 1}}}), "earns 2 with the basket"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i", "j"}, Choice: 1, Others: 1}),
			"1 other items"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i", "j"}, Choice: 1,
			Others: 2}),
			"leaves 2 others"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: 1,
			Basket: eventlog.Basket{{1, 1, 1}}}), "has the basket"},
		{at(&eventlog.Corrected{Decision: "d", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: 1, Adds: true}),
			"0 other items"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i"}, Choice: 1, Value: -1,
			Adds: true}), "is of item 1, by -1"},
		{at(&eventlog.Corrected{Decision: "d", Correction: "c", Entry: 1, Shown: []string{"i", "j"}, Choice: 1,
			Others: 1, Adds: true, Withdraws: true}), "is of item 1, by 0"},
		{at(&eventlog.ItemsDeclined{Items: []int32{1}}), "without a decision"},
		{at(&eventlog.Measured{Decision: "d"}), "0 measurements"},
		{at(&eventlog.Measured{Decision: "d", List: []eventlog.Measurement{{Name: "a", Value: math.Inf(1)}}}),
			"want finite ones"},
		{at(&eventlog.Measured{Decision: "d", List: []eventlog.Measurement{{Name: "b"}, {Name: "a"}}}),
			"names that increase"},
		{at(&eventlog.ItemsDeclined{Decision: "d"}), "no items"},
		{at(&eventlog.ItemsDeclined{Decision: "d", Items: []int32{0}}), "places from 1 on"},
		{at(&eventlog.ItemsDeclined{Decision: "d", Items: []int32{2, 2}}), "that increase"},
		{at(&eventlog.ItemsDeclined{Decision: "d", Items: []int32{1}, Reward: math.NaN()}), "the reward NaN"},
		{at(&eventlog.ItemsDeclined{Decision: "d", Items: []int32{1}, Reward: 1.5}), "the reward 1.5"},
		{offer(func(o *eventlog.Offered) { o.Decision = "" }), "without a decision"},
		{offer(func(o *eventlog.Offered) { o.Candidates = 2 }), "3 rows of 2 candidates"},
		{offer(func(o *eventlog.Offered) { o.Candidates = math.MinInt }), "candidates"},
		{offer(func(o *eventlog.Offered) { o.Width = 3 }), "6 features, want 3 rows of 3"},
		{offer(func(o *eventlog.Offered) { o.Width = -2 }), "6 features, want 3 rows of -2"},
		{offer(func(o *eventlog.Offered) { o.Features[3] = math.NaN() }), "item 1: feature 1 is NaN"},
		{offer(func(o *eventlog.Offered) { o.Features[0] = math.Inf(-1) }), "item 0: feature 0 is -Inf"},
		{offer(func(o *eventlog.Offered) { o.Revenue = o.Revenue[:2] }), "2 revenues of 3 items"},
		{offer(func(o *eventlog.Offered) { o.Revenue = []float64{} }), "0 revenues of 3 items"},
		{offer(func(o *eventlog.Offered) { o.Revenue[1] = -1 }), "item 1: revenue is -1"},
		{offer(func(o *eventlog.Offered) { o.Revenue[2] = math.Inf(1) }), "item 2: revenue is +Inf"},
		{offer(func(o *eventlog.Offered) { o.Shown[0] = 3 }), "shows item 3 of 3"},
		{offer(func(o *eventlog.Offered) { o.Shown[0] = -1 }), "shows item -1 of 3"},
		{offer(func(o *eventlog.Offered) { o.Shown = []int32{1, 0, 1} }), "shows item 1 twice"},
		{offer(func(o *eventlog.Offered) { o.Propensity = math.NaN() }), "propensity NaN"},
		{offer(func(o *eventlog.Offered) { o.Propensity = 1.5 }), "propensity 1.5"},
	} {
		if b, err := c.event.Encode(nil); err == nil || !strings.Contains(err.Error(), c.want) || b != nil {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}

func TestUnreadableEntries(t *testing.T) {
	chosen := encode(t, examples()[3])
	change := func(i int, b byte) []byte {
		c := slices.Clone(chosen)
		c[i] = b
		return c
	}
	for _, c := range []struct {
		entry []byte
		want  string
	}{
		{nil, "truncated"},
		{change(0, 2), "format 2, and this program reads format 1"},
		{change(1, 0), "kind 0"},
		{change(1, 200), "kind 200"},
		{change(10, 0x7f), "a count of 127"},
		{slices.Concat(chosen[:10], []byte{0x84, 0x00}, chosen[11:]), "shortest form (perhaps from a build before 0.1.0"},
		{append(slices.Clone(chosen[:len(chosen)-3]), 0x80, 0x80, 0x80, 0x80, 0x10), "a count of 4294967296"},
	} {
		expect.Part(eventlog.Decode(c.entry))(t, c.want, c.entry)
	}
}

// For any bytes the decoder terminates, and each accepted entry is in its only valid encoding.
func FuzzDecode(f *testing.F) {
	for _, e := range examples() {
		f.Add(encode(f, e))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		e, err := eventlog.Decode(entry)
		if err != nil {
			return
		}
		if have := encode(t, e); !bytes.Equal(have, entry) {
			t.Errorf("%x is encoded as %x", entry, have)
		}
	})
}

// largeOffer is an offer of 100 items with 10 features, 10 of them shown.
func largeOffer() eventlog.Event {
	o := &eventlog.Offered{
		Decision: "0123456789abcdef", Candidates: 100, Width: 10, Features: make([]float64, 1000),
		Shown: []int32{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, Propensity: 1, Answer: make([]byte, 100),
	}
	for i := range 100 {
		o.ItemIDs = append(o.ItemIDs, fmt.Sprintf("item-%d", i))
	}
	return eventlog.Event{Placement: "home", Body: o}
}

func BenchmarkEncode(b *testing.B) {
	e := largeOffer()
	var buf []byte
	for b.Loop() {
		buf, _ = e.Encode(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecode(b *testing.B) {
	entry := encode(b, largeOffer())
	b.SetBytes(int64(len(entry)))
	for b.Loop() {
		fatal.Or(eventlog.Decode(entry))(b)
	}
}

// Lengths that add up to more than 32 bits.
func TestLongIdentities(t *testing.T) {
	const n = 1 << 16
	entry := append([]byte{1, 3}, make([]byte, 8)...) // version, kind, time
	entry = append(entry, 1, 'p', 0, 1, 'd')          // placement, nobody, decision
	entry = append(entry, make([]byte, 32)...)        // request
	entry = binary.AppendUvarint(entry, n)            // candidates
	entry = append(entry, 0)                          // width
	entry = binary.AppendUvarint(entry, n)            // rows
	for range n {
		entry = binary.AppendUvarint(entry, 1<<15+1) // 2³¹ + 2¹⁶ of them
	}
	entry = append(entry, make([]byte, 1<<16)...)
	expect.Part(eventlog.Decode(entry))(t, "end early")
}
