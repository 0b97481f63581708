package inspect

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Two placements may use one id: each outcome goes to the decision of its own placement.
func TestExportOfOneIDInTwoPlacements(t *testing.T) {
	var out bytes.Buffer
	encoder := jsontext.NewEncoder(&out)
	x := newDecisions(nil, 1, "", func(o *offered, end outcome) error { return writeLine(encoder, o, end) })
	offer := func(item string) *eventlog.Offered {
		return &eventlog.Offered{Decision: "d", ItemIDs: []string{item}, Shown: []int32{0}, Candidates: 1, Width: 1,
			Features: []float64{1}, Propensity: 1}
	}
	for i, e := range []*eventlog.Event{
		{Placement: "a", Body: offer("sku a")},
		{Placement: "b", Body: offer("sku b")},
		{Placement: "a", Body: &eventlog.Chosen{Decision: "d", Choice: 1}},
		{Placement: "b", Body: &eventlog.Expired{Decision: "d"}},
	} {
		fatal.If(t, x.event(t.Context(), uint64(i+1), e))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"choice":"sku a"`) ||
		!strings.Contains(lines[1], `"status":"expired"`) || !strings.Contains(lines[1], "sku b") {
		t.Errorf("%s", &out)
	}
}

// An export names the values that a category had learned by then, even after its placement changed and its learner came
// back.
func TestExportNamesLearnedValues(t *testing.T) {
	const brands = `{"max_size":1,"features":[{"name":"brand","kind":"category","columns":4}],"policy":{"name":"POLICY"}}`
	config := func(policy string) []byte {
		c := fatal.Or(setup.Parse([]byte(strings.Replace(brands, "POLICY", policy, 1))))(t)
		return c.Canonical()
	}
	other := fatal.Or(setup.Parse([]byte(
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`)))(t)
	var out bytes.Buffer
	encoder := jsontext.NewEncoder(&out)
	x := newDecisions(nil, 1, "", func(o *offered, end outcome) error { return writeLine(encoder, o, end) })
	offer := func(id string, column int) *eventlog.Offered {
		row := make([]float64, 4)
		row[column] = 1
		return &eventlog.Offered{Decision: id, ItemIDs: []string{"i"}, Shown: []int32{0}, Candidates: 1, Width: 4,
			Features: row, Propensity: 1}
	}
	for i, body := range []eventlog.Body{
		&eventlog.PlacementPut{Config: config("ucb-mnl")},
		&eventlog.CategoryValuesAdded{Feature: "brand", Values: []string{"acme", "zen"}},
		offer("0", 1), &eventlog.Expired{Decision: "0"},
		offer("1", 3), &eventlog.Expired{Decision: "1"}, // hashed
		&eventlog.LearnerReset{Config: config("ts-mnl"), Note: "a change"},
		&eventlog.CategoryValuesAdded{Feature: "brand", Values: []string{"late"}},
		offer("2", 0), &eventlog.Expired{Decision: "2"},
		offer("3", 2), &eventlog.Expired{Decision: "3"},
		&eventlog.LearnerReset{Config: other.Canonical(), Note: "a change"},
		&eventlog.LearnerRolledBack{Version: 1, Config: config("ucb-mnl")},
		offer("4", 1), &eventlog.Expired{Decision: "4"},
	} {
		fatal.If(t, x.event(t.Context(), uint64(i+1), &eventlog.Event{Placement: "home", Body: body}))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`"brand":"zen"`, `"brand":[0,0,0,1]`, `"brand":"acme"`, `"brand":"late"`,
		`"brand":"zen"`} {
		expect.Contains(t, lines[i], want, "line", i, "is")
	}
}

// A line names the variant that the shopper was shown.
func TestExportNamesVariant(t *testing.T) {
	for _, variant := range []string{"", "rival", api.Holdout} {
		var out bytes.Buffer
		e := offer.Estimates{Variant: variant, Unit: 7}
		o := new(decisions).offered(t.Context(), 0, &eventlog.Event{Placement: "home"}, &eventlog.Offered{Decision: "d",
			ItemIDs: []string{"a"}, Shown: []int32{0}, Candidates: 1, Width: 1, Features: []float64{1},
			Revenue: []float64{1}, Mode: 1, Answer: e.Append(nil)})
		fatal.If(t, writeLine(jsontext.NewEncoder(&out), o, outcome{}))
		o.config = fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)))(t)
		row := tableRows(o, outcome{})[0]
		if column, ok := row["variant"]; ok != (variant != "") || ok && column != variant {
			t.Errorf("%q: a table says %v", variant, row)
		}
		var l struct {
			Variant *string `json:"variant"`
		}
		fatal.If(t, json.Unmarshal(out.Bytes(), &l))
		if variant == "" && l.Variant != nil || variant != "" && (l.Variant == nil || *l.Variant != variant) {
			t.Errorf("%q: %s", variant, out.Bytes())
		}
	}
}

// The money of late outcomes and of corrections is in the line of their decision, which comes before them in the log.
func TestExportOfCorrections(t *testing.T) {
	offer := func(id string) *eventlog.Offered {
		return &eventlog.Offered{Decision: id, ItemIDs: []string{"a", "b"}, Shown: []int32{1, 0}, Candidates: 2,
			Width: 1, Features: []float64{1, 2}, Revenue: []float64{3, 5}, Propensity: 1, Mode: 1}
	}
	of := func(id string, entry uint64, choice int32) eventlog.Corrected {
		return eventlog.Corrected{Decision: id, Entry: entry, Mode: 1, Shown: []string{"b", "a"}, Choice: choice}
	}
	late, returned, withdrawn := of("late", 2, 1), of("late", 2, 1), of("mistake", 3, 2)
	late.Value = 5
	returned.Correction, returned.Before, returned.Value = "return", 5, -1.5
	withdrawn.Correction, withdrawn.Before, withdrawn.Value, withdrawn.Withdraws = "mistake", 3, -3, true
	c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`)))(t)
	var out bytes.Buffer
	encoder := jsontext.NewEncoder(&out)
	var earned []float64
	x := newDecisions(nil, 1, "", nil)
	x.each = func(o *offered, end outcome) error {
		r := roundOf(o, end)
		for place, want := range map[string][]float64{"late": {3.5, 0}, "sold": {3, 0}, "basket": {3.5, 3},
			"later": {0, 3}, "more": {4.5, 3}, "first": {-1, 0}}[o.Decision] {
			if taken := end.at(int32(place + 1)); taken == nil && want != 0 || taken != nil && taken.earned != want {
				t.Errorf("%s: item %d has earned %+v, want %v", o.Decision, place+1, taken, want)
			}
		}
		if want := map[string][]vitrine.Choice{"basket": {2, 1, 2}, "later": {1},
			"more": {2, 1}}[o.Decision]; want != nil && !slices.Equal(append([]vitrine.Choice{r.Choice}, r.More...),
			want) {
			t.Errorf("%s: the round has the takes %d, %d", o.Decision, r.Choice, r.More)
		}
		if want := map[string][]float64{"basket": {3, 3.5}, "more": {3.5, 5}}[o.Decision]; want != nil {
			expect.Equal(t, r.Earned, want, o.Decision)
		}
		earned = append(earned, r.Revenue())
		expect.Equal(t, end.isBelowZero(), o.Decision == "first", o.Decision)
		return writeLine(encoder, o, end)
	}
	// Two units of b and one of a are taken for 7 and 3; one of b comes back. Then both late, of which b was no sale. And b is
	// bought after a, and after nothing.
	basket := eventlog.Basket{{Place: 1, Quantity: 2, Value: 7}, {Place: 2, Quantity: 1, Value: 3}}
	back, lateBasket, mistaken := of("basket", 5, 1), of("later", 6, 1), of("later", 6, 1)
	back.Correction, back.Others, back.Before, back.Value = "back", 1, 10, -3.5
	lateBasket.Basket, lateBasket.Value = basket, 10
	mistaken.Correction, mistaken.Others, mistaken.Before, mistaken.Value, mistaken.Withdraws = "mistake", 1, 10, -7,
		true
	second := of("sold", 4, 1) // after one that retention has removed
	second.Correction, second.Before, second.Value = "second", 4, -1
	more, first := of("more", 7, 1), of("first", 8, 1)
	more.Correction, more.Others, more.Before, more.Value, more.Adds = "more", 1, 4, 4.5, true // retention has removed 1
	first.Correction, first.Value, first.Adds = "first", 5, true
	refund := of("first", 8, 1) // of more than the sale: a log holds no negative value
	refund.Correction, refund.Before, refund.Value = "refund", 5, -6
	for _, c := range []*eventlog.Corrected{&late, &returned, &withdrawn, &second, &back, &lateBasket, &mistaken, &more,
		&first, &refund} {
		x.note(c)
	}
	for i, body := range []eventlog.Body{
		&eventlog.PlacementPut{Config: c.Canonical()}, offer("late"), offer("mistake"), offer("sold"), offer("basket"),
		offer("later"), offer("more"), offer("first"),
		&eventlog.Expired{Decision: "late"}, &eventlog.Chosen{Decision: "mistake", Choice: 2},
		&eventlog.Chosen{Decision: "sold", Choice: 1},
		&eventlog.Chosen{Decision: "basket", Choice: 1, Basket: basket}, &eventlog.Expired{Decision: "later"},
		&eventlog.Chosen{Decision: "more", Choice: 2}, &eventlog.Chosen{Decision: "first"},
		&late, &returned, &withdrawn, &second, &back, &lateBasket, &mistaken, &more, &first, &refund,
	} {
		fatal.If(t, x.event(t.Context(), uint64(i+1), &eventlog.Event{Placement: "home", Body: body}))
	}
	for i, want := range []string{`"status":"late","choice":"b","choices":\[{"item":"b","quantity":1,"value":3.5}\],.*"earned":3.5}`,
		`"status":"chosen","choice":null,.*"earned":0}`, `"status":"chosen","choice":"b",.*"earned":3}`,
		`"status":"chosen","choice":"b","choices":\[{"item":"b","quantity":2,"value":3.5},{"item":"a","quantity":1,"value":3}\],.*"earned":6.5}`,
		`"status":"late","choice":"a","outcome_entry".*"earned":3}`,
		`"status":"chosen","choice":"b","choices":\[{"item":"b","quantity":1,"value":4.5},{"item":"a","quantity":1,"value":3}\],.*"earned":8.5}`,
		`"status":"chosen","choice":"b","choices":\[{"item":"b","quantity":1,"value":0}\],.*"earned":-1}`} {
		if line := strings.Split(out.String(), "\n")[i]; !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("line %d is %s, want %s", i, line, want)
		}
	}
	expect.List(t, earned, []float64{3.5, 0, 3, 6.5, 3, 8.5, -1}, "the rounds have earned")
}
