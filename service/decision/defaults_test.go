package decision_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/policy"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

const plainShop = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":POLICY}`

func shopWith(policy string) string { return strings.Replace(plainShop, "POLICY", policy, 1) }

// A placement has all settings of its policy, and its log does too.
func TestPolicyIsComplete(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store})
	put(t, e, "home", shopWith(`{"name":"ucb-mnl"}`))
	put(t, e, "any", `{"max_size":2,"features":[{"name":"x","kind":"number"}]}`)
	put(t, e, "old", shopWith(`{"name":"ucb-mnl","constants":"theory"}`))
	want := map[string]any{"name": "ucb-mnl", "constants": "tuned", "intercept": true, "lambda": 1.0, "radius": 1.0}
	c, err := e.Config("home")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Policy); diff != "" {
		t.Errorf("the policy (-want +have):\n%s", diff)
	}
	want["position_effects"] = false // which the log leaves out
	if diff := cmp.Diff(want, c.Answer().Policy); diff != "" {
		t.Errorf("the policy of the answer (-want +have):\n%s", diff)
	}
	if w := c.Answer().Warnings; w != nil {
		t.Errorf("warnings %q", w)
	}
	if c, err = e.Config("any"); err != nil || c.Policy["name"] != policy.Default {
		t.Errorf("the default policy is %v, %v", c.Policy, err)
	}
	if c, err = e.Config("old"); err != nil || len(c.Answer().Warnings) != 1 || !strings.Contains(c.Answer().Warnings[0], `constants = "theory"`) {
		t.Errorf("warnings of the theory: %q, %v", c.Answer().Warnings, err)
	}
	for event := range events(t, store) {
		if text := string(event.Body.(*eventlog.PlacementPut).Config); event.Placement == "home" && !strings.Contains(text, `"radius":1`) || strings.Contains(text, "warnings") {
			t.Errorf("the log has %s", text)
		}
	}
	// What a caller was answered, it can send again.
	answer := c.Answer()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	before := e.Sequence()
	if put(t, e, "old", string(text)); e.Sequence() != before {
		t.Error("the answer, sent again, changes the placement")
	}
}

// A log of an earlier program has no defaults. Its learners go on with those of that program, and a placement
// that is put again with the new ones begins again only if they differ.
func TestLogWithoutDefaults(t *testing.T) {
	store := new(memlog.Store)
	for name, policy := range map[string]string{"ucb": `{"name":"ucb-mnl"}`, "onl": `{"name":"onl-mnl"}`} {
		c, err := setup.Parse([]byte(shopWith(policy)))
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = map[string]any{"name": c.Policy["name"]}
		event := eventlog.Event{Time: 1, Placement: name, Body: &eventlog.PlacementPut{Config: c.Canonical()}}
		entry, err := event.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	e := opened(t, decision.Options{Store: store})
	c, err := e.Config("ucb")
	if err != nil || c.Policy["constants"] != "theory" || c.Policy["radius"] != 0.0 {
		t.Fatalf("ucb-mnl of the log has %v, %v", c.Policy, err)
	}
	for _, name := range []string{"ucb", "onl"} {
		one(t, e, name, name, 0.5)
	}
	wait(t, e)
	put(t, e, "onl", shopWith(`{"name":"onl-mnl"}`))
	put(t, e, "ucb", shopWith(`{"name":"ucb-mnl","constants":"theory","radius":0}`))
	for _, name := range []string{"ucb", "onl"} {
		if s, err := e.Stats(name); err != nil || s.Learned != 1 {
			t.Errorf("%s has learned %d rounds, %v, want 1: the settings are the same", name, s.Learned, err)
		}
	}
	put(t, e, "ucb", shopWith(`{"name":"ucb-mnl"}`))
	if s, err := e.Stats("ucb"); err != nil || s.Learned != 0 {
		t.Errorf("with the new defaults ucb-mnl has learned %d rounds, %v, want 0", s.Learned, err)
	}
	if diff := cmp.Diff(snapshot(t, e), replayed(t, decision.Options{Store: store})); diff != "" {
		t.Error("a replay gives another state")
	}
}
