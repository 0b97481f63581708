package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/bandit/policy"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

const plainShop = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":POLICY}`

func shopWith(policy string) string { return strings.Replace(plainShop, "POLICY", policy, 1) }

// A placement, and its log, holds all settings of its policy.
func TestPolicyIsComplete(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", shopWith(`{"name":"ucb-mnl"}`))
	put(t, e, "any", `{"max_size":2,"features":[{"name":"x","kind":"number"}]}`)
	put(t, e, "old", shopWith(`{"name":"ucb-mnl","constants":"theory"}`))
	want := map[string]any{"name": "ucb-mnl", "constants": "tuned", "intercept": true, "lambda": 1.0, "radius": 1.0,
		"update": "online"}
	c, err := e.Config("home")
	fatal.If(t, err)
	expect.Equal(t, c.Policy, want, "the policy")
	maps.Copy(want, map[string]any{"position_effects": false, "bound": 0.0, "delta": 0.0}) // which the log leaves out
	expect.Equal(t, c.Answer().Policy, want, "the policy of the answer")
	if w := c.Answer().Warnings; w != nil {
		t.Errorf("warnings %q", w)
	}
	if c, err = e.Config("any"); err != nil || c.Policy["name"] != policy.Default {
		t.Errorf("the default policy is %v, %v", c.Policy, err)
	}
	if c, err = e.Config("old"); err != nil || len(c.Answer().Warnings) != 1 ||
		!strings.Contains(c.Answer().Warnings[0], `constants = "theory"`) {
		t.Errorf("warnings of the theory: %q, %v", c.Answer().Warnings, err)
	}
	for event := range events(t, store) {
		if text := string(event.Body.(*eventlog.PlacementPut).Config); event.Placement == "home" &&
			!strings.Contains(text, `"radius":1`) || strings.Contains(text, "warnings") {
			t.Errorf("the log has %s", text)
		}
	}
	// A caller can send back the answer.
	answer := c.Answer()
	text := fatal.Or(json.Marshal(answer))(t)
	before := e.Sequence()
	if put(t, e, "old", string(text)); e.Sequence() != before {
		t.Error("the answer, sent again, changes the placement")
	}
}
