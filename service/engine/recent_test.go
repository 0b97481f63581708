package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Memory holds the candidates and rules of the last decisions, up to a number and a size. A repeated request leaves
// them alone, and another placement of the same name does not share them.
func TestRecent(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	const shop = `{"max_size":1,"max_request_items":9000,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`
	put(t, e, "home", shop)
	ask := func(id string, items int, exclude ...string) {
		t.Helper()
		r := &api.Request{Decision: id, Exclude: exclude}
		for i := range items {
			r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", float64(i%7))},
				Revenue: new(1 + float64(i%3))})
		}
		decide(t, e, "home", r, 0)
	}
	why := func(id string) *api.Explanation {
		t.Helper()
		x := fatal.Or(e.Explain(t.Context(), "home", id, 0, nil))(t)
		return x
	}
	ask("ruled", 5, itemID(0))
	ask("ruled", 5, itemID(0))
	if x := why("ruled"); x.Known != 5 || x.Next == nil || len(x.Rules) == 0 && x.Items[0].ID == itemID(0) ||
		len(x.Unknown) > 0 {
		t.Errorf("a decision of a moment ago: %+v", x)
	}
	ask("large", 5000)
	if x := why("large"); x.Known != 1 || x.Candidates != 5000 || x.Next != nil ||
		!strings.Contains(strings.Join(x.Unknown, " "), "no longer in memory") {
		t.Errorf("a large decision: %+v", x)
	}
	ask("all", 1)
	for i := range 256 {
		ask(fmt.Sprint(i), 2)
	}
	if x := why("ruled"); x.Known != 1 || x.Next != nil {
		t.Errorf("a decision of some time ago: %+v", x)
	}
	if x := why("all"); x.Known != 1 || !strings.Contains(strings.Join(x.Unknown, " "), "the rules of the request") {
		t.Errorf("a decision that showed all its items, whose rules nobody knows: %+v", x)
	}
	if x := why("255"); x.Known != 2 || x.Next == nil {
		t.Errorf("the last decision: %+v", x)
	}
	for i := range 100 {
		ask(fmt.Sprint("wide-", i), 4000)
	}
	if first, last := why("wide-0"), why("wide-99"); first.Known != 1 || last.Known != 4000 {
		t.Errorf("of %d and %d candidates: the bytes are not bounded", first.Known, last.Known)
	}
	fatal.If(t, e.Delete(t.Context(), "home", nil, 0))
	put(t, e, "home", shop)
	ask("wide-99", 3)
	if x := why("wide-99"); x.Candidates != 3 || x.Known != 3 {
		t.Errorf("a decision of another placement: %+v", x)
	}
}

// The rows of a deleted placement's decision do not serve its twin: a decision with the same id, number and page in a
// placement put again under the name, or in another placement.
func TestRowsOfADeletedTwin(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	ask := func(name string, n int, x float64) {
		t.Helper()
		put(t, e, name, shop)
		r := stock("one", n)
		r.MaxSize, r.Include = 1, []string{itemID(0)}
		for i := range r.Items {
			r.Items[i].Features[0].Number = x
		}
		decide(t, e, name, r, 0)
	}
	check := func(name string, n int) {
		t.Helper()
		why := fatal.Or(e.Explain(t.Context(), name, "one", 0, nil))(t)
		item := why.Items[0]
		if why.Candidates != n || why.Known != n || item.ID != itemID(0) || len(why.Unknown) > 0 {
			t.Errorf("%s: %d candidates, %d known, the first %q, unknown %q, want %d", name, why.Candidates, why.Known,
				item.ID, why.Unknown, n)
		}
	}
	var others []string
	for i := range 20 { // some of them share what "home" is kept in
		others = append(others, fmt.Sprint("other-", i))
		ask(others[i], 2+i%3, float64(i))
	}
	ask("home", 5, 0.1)
	check("home", 5)
	is(t, "delete", e.Delete(t.Context(), "home", nil, 0), nil)
	for i, name := range others {
		check(name, 2+i%3)
	}
	ask("home", 3, 0.2)
	check("home", 3)
	for i, name := range others {
		check(name, 2+i%3)
	}
}
