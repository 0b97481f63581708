package engine_test

import (
	"slices"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Rules about items to hide also hold on a day without the items and categories that they name.
func TestStandingRules(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":3,"features":[{"name":"kind","kind":"category"}],"limits":[{"feature":"kind","max":2}],"policy":{"name":"ucb-mnl"}}`)
	for name, rules := range map[string]string{
		"no rule":            `{`,
		"exclude":            `{"exclude":["gone","b"],`,
		"at most of items":   `{"limits":[{"items":["gone","b"],"max":0}],`,
		"at most of nothing": `{"exclude":["b"],"limits":[{"items":["gone"],"max":0}],`,
	} {
		text := rules + `"items":[{"id":"a","features":{"kind":"hat"}},{"id":"b","features":{"kind":"sock"}},{"id":"c","features":{"kind":"hat"}},{"id":"d","features":{"kind":"hat"}}]}`
		r := fatal.Or(new(api.RequestReader).Read([]byte(text), 10))(t)
		a, err := e.Decide(t.Context(), "home", r, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hats := len(slices.DeleteFunc(slices.Clone(a.IDs()), func(id string) bool { return id == "b" }))
		if hats > 2 || slices.Contains(a.IDs(), "b") != (name == "no rule") {
			t.Errorf("%s: shows %v", name, a.IDs())
		}
	}
	r := fatal.Or(new(api.RequestReader).Read(
		[]byte(`{"items":[{"id":"a","features":{"kind":"hat"}}],"include":["gone"]}`), 10))(t)
	expect.Part(e.Decide(t.Context(), "home", r, 0))(t, `/include/0: "gone" is not among the items`,
		"an item that cannot be shown is included")
}
