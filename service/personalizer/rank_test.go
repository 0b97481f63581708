package personalizer

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// asked is a Rank of actions.
func asked(excluded []string, actions ...string) *rankQuery {
	q := &rankQuery{ExcludedActions: excluded}
	for _, id := range actions {
		q.Actions = append(q.Actions, rankAction{ID: id})
	}
	return q
}

// shown is an offer of one item.
func shown(item string, own []string, propensity float64, by uint8) *offer.Offer {
	return &offer.Offer{
		Offered:   &eventlog.Offered{ItemIDs: []string{item}, Shown: []int32{0}, Propensity: propensity, Mode: by},
		Estimates: offer.Estimates{Own: own, Certain: by == offer.ByPolicy && propensity > 0},
	}
}

// The probabilities of actions, by hand, wherever the policy's own action stands. With a share of 0.3 drawn from three
// actions, the policy's own action gets 0.8, and each other one 0.1.
func TestProbabilitiesByHand(t *testing.T) {
	for name, c := range map[string]struct {
		q    *rankQuery
		a    *offer.Offer
		want []float64
	}{
		"its own, the first": {
			asked(nil, "a", "b", "c"), shown("a", nil, 0.8, offer.ByPolicy), []float64{0.8, 0.1, 0.1}},
		"its own, the last": {
			asked(nil, "a", "b", "c"), shown("c", nil, 0.8, offer.ByPolicy), []float64{0.1, 0.1, 0.8}},
		"by chance, its own the first": {
			asked(nil, "a", "b", "c"), shown("b", []string{"a"}, 0.1, offer.ByPolicy), []float64{0.8, 0.1, 0.1}},
		"by chance, its own the second": {
			asked(nil, "a", "b", "c"), shown("a", []string{"b"}, 0.1, offer.ByPolicy), []float64{0.1, 0.8, 0.1}},
		"by chance, its own the last": {
			asked(nil, "a", "b", "c"), shown("a", []string{"c"}, 0.1, offer.ByPolicy), []float64{0.1, 0.1, 0.8}},
		"one is excluded": {
			asked([]string{"b"}, "a", "b", "c"), shown("c", []string{"a"}, 0.15, offer.ByPolicy),
			[]float64{0.85, 0, 0.15}},
		"its own, and one is excluded": {
			asked([]string{"a"}, "a", "b", "c"), shown("b", nil, 0.85, offer.ByPolicy), []float64{0, 0.85, 0.15}},
		"only one is left": {
			asked([]string{"b"}, "a", "b"), shown("a", nil, 1, offer.ByPolicy), []float64{1, 0}},
		"the baseline":  {asked(nil, "a", "b"), shown("b", nil, 0, offer.ByBaseline), []float64{0, 1}},
		"no propensity": {asked(nil, "a", "b"), shown("b", nil, 0, offer.ByPolicy), nil},
	} {
		c.a.Certain = c.a.Mode != offer.ByBaseline
		expect.Equal(t, c.q.probabilities(c.a), c.want, name, cmpopts.EquateApprox(0, 1e-12))
	}
	random := shown("a", nil, 0.8, offer.ByPolicy) // the others are unknown
	random.Certain = false
	if p := asked(nil, "a", "b").probabilities(random); p != nil {
		t.Errorf("of a random policy: %v", p)
	}
}

// First comes the action to show, then the others by probability, and in the order of the request where it is equal.
func TestRanking(t *testing.T) {
	for _, c := range []struct {
		a    *offer.Offer
		want string
	}{
		{shown("c", []string{"b"}, 0.1, offer.ByPolicy), "c b a d"},
		{shown("b", nil, 0.7, offer.ByPolicy), "b a c d"},
		{shown("d", nil, 0, offer.ByPolicy), "d a b c"}, // without probabilities
	} {
		q := asked(nil, "a", "b", "c", "d")
		q.EventID = "e"
		r := q.ranked(c.a)
		var ids []string
		for _, x := range r.Ranking {
			if ids = append(ids, x.ID); (x.Probability == nil) != (c.a.Propensity == 0) {
				t.Errorf("%s: action %s has the probability %v", c.want, x.ID, x.Probability)
			}
		}
		if got := strings.Join(ids, " "); got != c.want || r.RewardActionID != c.a.IDs()[0] || r.EventID != "e" {
			t.Errorf("%s, reward %s, want %s", got, r.RewardActionID, c.want)
		}
	}
	q := &rankQuery{EventID: "e", Slots: []rankSlot{{ID: "hero"}, {ID: "footer"}}}
	want := &slotsRankedDocument{Slots: []filledSlot{{"hero", "b"}, {"footer", "a"}}, EventID: "e"}
	expect.Equal(t, q.filled(&offer.Offer{Offered: &eventlog.Offered{ItemIDs: []string{"a", "b"},
		Shown: []int32{1, 0}}}), want)
}

// The baseline of a Rank without slots is its first action that is not excluded.
func TestSingle(t *testing.T) {
	for want, q := range map[string]*rankQuery{"a": asked(nil, "a", "b"), "b": asked([]string{"a"}, "a", "b"),
		"": asked(nil)} {
		if err := q.single(); err != nil || len(q.Slots) != 1 || q.Slots[0].BaselineAction != want {
			t.Errorf("%+v, %v, want %s", q.Slots, err, want)
		}
	}
	expect.Prefix(asked([]string{"b", "a"}, "a", "b").single())(t, "/excludedActions")
}

func TestCheckSlots(t *testing.T) {
	long := strings.Repeat("é", maxEvent) // characters, not bytes
	for want, change := range map[string]func(q *rankQuery){
		"":                                  func(q *rankQuery) { q.EventID, q.Slots[0].ID = long, long },
		"/eventId: must have at most 256":   func(q *rankQuery) { q.EventID = long + "e" },
		"/slots: must have at least one":    func(q *rankQuery) { q.Slots = nil },
		"/slots/0/id: must have from 1":     func(q *rankQuery) { q.Slots[0].ID = "" },
		"/slots/1/id: must have from 1":     func(q *rankQuery) { q.Slots[1].ID = long + "e" },
		"/slots/1/id: is that of":           func(q *rankQuery) { q.Slots[1].ID = "hero" },
		"/slots/1/baselineAction: is miss":  func(q *rankQuery) { q.Slots[1].BaselineAction = "" },
		"/slots/1/baselineAction: is not":   func(q *rankQuery) { q.Slots[1].BaselineAction = "c" },
		"/slots/1/baselineAction: is that":  func(q *rankQuery) { q.Slots[1].BaselineAction = "a" },
		"/slots/0/baselineAction: is exclu": func(q *rankQuery) { q.Slots[0].ExcludedActions = []string{"a"} },
	} {
		q := asked(nil, "a", "b")
		q.Slots = []rankSlot{{ID: "hero", BaselineAction: "a"}, {ID: "footer", BaselineAction: "b",
			ExcludedActions: []string{"a"}}}
		change(q)
		switch err := q.checkSlots(); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A request contains the actions' features by name, their other members as an object, and those excluded actions that
// it offers.
func TestRequest(t *testing.T) {
	config := func(mode string) *setup.Config {
		c := fatal.Or(setup.Parse([]byte(
			`{"max_size":2,"features":[{"name":"price","kind":"number"},{"name":"id","kind":"category"},{"name":"action","kind":"object","columns":4},{"name":"age","kind":"number","from":"shopper"}],"policy":{"name":"ucb-mnl"},"mode":"` + mode + `"}`)))(t)
		return c
	}
	q := &rankQuery{
		ContextFeatures: jsontext.Value(`[{"age":3}]`),
		Actions: []rankAction{
			{ID: "a", Features: jsontext.Value(`[{"price":2,"taste":"sweet"},{"size":{"cm":4}}]`)},
			{ID: "b"},
		},
		Slots:           []rankSlot{{ID: "s", ExcludedActions: []string{"gone", "b"}, BaselineAction: "a"}},
		DeferActivation: true,
	}
	want := &api.Request{
		User: api.Values{api.Number("age", 3)},
		Items: []api.Item{
			{ID: "a", Features: api.Values{api.Number("price", 2), api.Object("action",
				`[{"taste":"sweet"},{"size":{"cm":4}}]`), api.Text("id", "a")}},
			{ID: "b", Features: api.Values{api.Object("action", `[]`), api.Text("id", "b")}},
		},
		Slots: []api.Slot{{ID: "s", Exclude: []string{"b"}}},
		Defer: true,
	}
	got, err := q.request(config("learn"))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	want.Baseline = []string{"a"}
	for _, shown := range []string{`shadow`, `learn","fallback":"baseline`} {
		got, err = q.request(config(shown))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", shown, err, diff)
		}
	}
	for want, features := range map[string]string{
		"/actions/0/features: must be a list":                               `{"price":2}`,
		"/actions/0/features/1: must be an object":                          `[{},2]`,
		"/actions/0/features/0/price: is of another type":                   `[{"price":"2"}]`,
		"/actions/0/features/1/price: is in an earlier object too":          `[{"price":2},{"price":3}]`,
		"/contextFeatures/0/max_size: the placement has no such feature, a": "",
	} {
		if q.Actions[0].Features = jsontext.Value(features); features == "" {
			q.Actions[0].Features, q.ContextFeatures = nil, jsontext.Value(`[{"max_size":1}]`)
		}
		expect.Prefix(q.request(config("learn")))(t, want)
		q.ContextFeatures = nil
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "P1D": 24 * time.Hour, "P1W": 7 * 24 * time.Hour, "PT1.5S": 1500 * time.Millisecond,
		"P1DT2H3M4S": 26*time.Hour + 3*time.Minute + 4*time.Second, "P366D": 366 * 24 * time.Hour,
	} {
		d, err := parseISO(text)
		if err != nil || d != want {
			t.Errorf("%s: %v, %v, want %v", text, d, err, want)
		}
		if again, err := parseISO(isoDuration(want)); err != nil || again != want {
			t.Errorf("%v: %s is %v, %v", want, isoDuration(want), again, err)
		}
	}
	expect.Equal(t, isoDuration(7*24*time.Hour+90*time.Second), "P7DT1M30S")
	for _, text := range []string{"", "P", "PT", "PT0S", "P1DT", "P1Y", "10", "-PT1S", "P366DT1S",
		"P" + strings.Repeat("9", 400) + "D"} {
		if d, err := parseISO(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

// A reward is a share of a choice, and a negative one counts 0.
func TestRewardOf(t *testing.T) {
	for v, want := range map[float64]float64{1: 1, 0.25: 0.25, 0: 0, -1: 0, -0.5: 0} {
		if got, err := rewardOf("/value", &v); err != nil || got != want {
			t.Errorf("%v is %v, %v, want %v", v, got, err, want)
		}
	}
	for _, v := range []float64{1.01, -1.01, math.NaN(), math.Inf(1)} {
		if got, err := rewardOf("/value", &v); err == nil {
			t.Errorf("%v is %v", v, got)
		}
	}
	expect.Refused(rewardOf("/value", nil))(t, "a missing reward is taken")
}

// Events of two placements never share a decision, and all their ids are valid decision ids.
func TestDecisionOf(t *testing.T) {
	for _, c := range [][3]string{
		{"home", "e1", "home:e1"},
		{"home", strings.Repeat("e", 123), "home:" + strings.Repeat("e", 123)},
		{"a:b", "c", "a:b:c"},
		// "" is a hash of 32 bytes, in 43 characters.
		{"home", strings.Repeat("e", 124), ""}, {"a", "b:c", ""}, {"a", "é", ""}, {"a", "", "a:"},
	} {
		got := DecisionOf(c[0], c[1])
		hash, ok := strings.CutPrefix(got, c[0]+":")
		if c[2] != "" && got != c[2] || c[2] == "" && !(ok && len(hash) == 43 && !strings.Contains(hash, ":")) {
			t.Errorf("%s, %s: %s", c[0], c[1], got)
		}
	}
}
