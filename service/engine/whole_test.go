package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// A decision among 300 items with 52 columns each, no two numbers alike, takes at most 2 KiB of the log, with all
// candidates, some of them, and others that a filter leaves; its explanation knows the next-best page.
func TestSizeOfDecisions(t *testing.T) {
	features := []string{}
	for i := range 52 {
		features = append(features, fmt.Sprintf(`{"name":"f%d","kind":"number"}`, i))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	items := make([]api.CatalogueItem, 300)
	var some []string
	for i := range items {
		items[i].ID = fmt.Sprint("item-", i)
		for k := range features {
			items[i].Features = append(items[i].Features, api.Number(fmt.Sprint("f", k), rng.NormFloat64()))
		}
		if rng.IntN(2) == 0 {
			some = append(some, items[i].ID)
		}
	}
	for _, mode := range []string{`"mode":"explore","explore":"swaps"`, `"mode":"learn"`, `"mode":"learn","log_items":"all"`} {
		store := new(memlog.Store)
		e := opened(t, engine.Options{Store: store})
		put(t, e, "home", `{"max_size":4,"max_request_items":300,"policy":{"name":"ucb-mnl"},`+mode+`,"features":[`+strings.Join(features, ",")+`]}`)
		putItems(t, e, "home", items)
		for name, r := range map[string]*api.Request{"all": {}, "some": {Candidates: some},
			"filter": {Filter: "f1 > 0.5", Exclude: some[:5]}} {
			r.Decision = name
			decide(t, e, "home", r, 0)
			entry, err := store.Entry(t.Context(), e.Sequence())
			fatal.If(t, err)
			if t.Logf("%s, %s: %d bytes", mode, name, len(entry)); len(entry) > 2<<10 {
				t.Errorf("%s: a decision among %s takes %d bytes", mode, name, len(entry))
			}
			c, err := e.Config("home")
			fatal.If(t, err)
			bound, item, bits := c.LogBytes()
			if bound += bits * len(items) / 8; len(entry) > bound || bound > len(entry)*3/2 || item < 52*8 ||
				item > 52*9 || !strings.Contains(strings.Join(c.Answer().Notes, "\n"), "takes up to about 2.") {
				t.Errorf("%s: a decision among %s takes %d bytes, and the placement says at most %d, and %d an item: %q", mode, name, len(entry), bound, item, c.Answer().Notes)
			}
			x, err := e.Explain(t.Context(), "home", name, 0, nil)
			if err != nil || x.Next == nil || x.Known != x.Candidates {
				t.Errorf("%s: a decision among %s is explained by %+v, %v", mode, name, x, err)
			}
		}
	}
}

// Rules that are too long for the log are kept in memory. An explanation undoes few changes of the catalogue, so its
// cost is bounded.
func TestExplainWithACatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	items := goods(1, 200)
	putItems(t, e, "home", items)
	r := &api.Request{Decision: "d", User: aged(1)}
	for i := range 150 {
		r.Exclude = append(r.Exclude, items[i].ID+strings.Repeat("x", 20))
	}
	r.Exclude = append(r.Exclude, items[0].ID)
	decide(t, e, "home", r, 0)
	why := func() *api.Explanation { return fatal.Or(e.Explain(t.Context(), "home", "d", 0, nil))(t) }
	if x := why(); x.Next == nil || len(x.Unknown) > 0 {
		t.Errorf("%+v", x)
	}
	putItems(t, e, "home", goods(2, 200))
	if x := why(); x.Known != 200 {
		t.Errorf("after a change of the catalogue %+v", x)
	}
	defer engine.SetMaxUndone(engine.SetMaxUndone(100))
	if x := why(); x.Known == 200 || len(x.Unknown) == 0 || !strings.Contains(x.Unknown[0], "more than 100 items "+
		"of the catalogue have changed since") {
		t.Errorf("after a larger change of the catalogue %+v", x)
	} else if strings.Contains(strings.Join(x.Unknown, " "), "log_items") {
		t.Errorf("the log has the candidates, but the catalogue does not: %q", x.Unknown)
	}
}

// The offers in an engine's memory hold no long lists of candidates.
func TestKeptOffersAreSmall(t *testing.T) {
	for n, keeps := range map[int]bool{60: true, 90: false} {
		store := new(memlog.Store)
		e := opened(t, engine.Options{Store: store})
		put(t, e, "home", window+"}")
		putItems(t, e, "home", goods(1, 100))
		r := &api.Request{Decision: "d", User: aged(1)}
		for i := range n {
			r.Candidates = append(r.Candidates, itemID(i))
		}
		decide(t, e, "home", r, 0)
		if again := opened(t, engine.Options{Store: store}); again.OfferBytes() > 0 != keeps {
			t.Errorf("of a decision among %d of 100 items %d bytes are kept", n, again.OfferBytes())
		}
	}
}

// A log with a change of items that does not say how to undo it is not a service's.
func TestChangesSayWhatWasThere(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", goods(1, 5))
	putItems(t, e, "home", goods(2, 5))
	for name, change := range map[string]func(*eventlog.ItemsChanged){
		"another version": func(c *eventlog.ItemsChanged) { c.Before-- },
		"a new item":      func(c *eventlog.ItemsChanged) { c.Undo[2] = "" },
		"another record":  func(c *eventlog.ItemsChanged) { c.Undo[2] += "x" },
	} {
		other := upTo(t, store, e.Sequence()-1)
		entry, err := store.Entry(t.Context(), e.Sequence())
		fatal.If(t, err)
		event := fatal.Or(eventlog.Decode(entry))(t)
		change(event.Body.(*eventlog.ItemsChanged))
		if entry, err = event.Encode(nil); err != nil {
			t.Fatal(err)
		}
		if _, err = other.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
		expect.Refused(engine.Open(t.Context(), engine.Options{Store: other}))(t, name)
	}
}
