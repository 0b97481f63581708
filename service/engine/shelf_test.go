package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// A shelf finds the items of a query, with their sales and the reasons why they are not shown.
func TestShelf(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}],"include":["sku3"],"exclude":["sku4","never"]}`)
	items := []api.CatalogueItem{}
	for i := range 3000 {
		items = append(items, api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", 0)}})
	}
	at := func(seconds int64) *time.Time { return new(time.Unix(seconds, 0).UTC()) }
	items[5].Available, items[6].ValidFrom, items[7].ValidUntil = new(false), at(200), at(50)
	items[8].Payload, items[9].Attributes, items[2999].Groups = jsontext.Value(`{"title":"Blue Vase"}`),
		map[string]any{"brand": "Vasello"}, []string{"VASES"}
	items[10].Payload = jsontext.Value(`{"title":"\u00dcberraschungsei","tags":[{"name":"s\u00fc\u00df"}],"ean":4006381}`)
	putItems(t, e, "home", items)
	now := int64(100 * second)
	for k, ids := range [][]string{{"sku3", "sku1"}, {"sku3", "sku1"}, {"sku3", "sku2"}} {
		r := &api.Request{Decision: fmt.Sprint("d", k), Candidates: ids, Include: ids}
		fatal.If(t, e.Outcome(t.Context(), "home", decide(t, e, "home", r, now).Decision, ids[k%2], now))
	}
	inline := stock("inline", 1)
	inline.Items[0].ID = "other"
	decide(t, e, "home", inline, now)
	fatal.If(t, e.Outcome(t.Context(), "home", "inline", "", now))
	ask := func(q engine.ShelfQuery) *api.Shelf { return fatal.Or(e.Shelf(t.Context(), "home", q, now))(t) }
	ids := func(s *api.Shelf) (list []string) {
		for _, i := range s.Items {
			list = append(list, i.Item.ID)
		}
		return list
	}
	for _, c := range []struct {
		what  string
		query engine.ShelfQuery
		count int
		want  []string
	}{
		{"all", engine.ShelfQuery{Limit: 3}, 3002, []string{"sku0", "sku1", "sku2"}},
		{"a later page", engine.ShelfQuery{From: 2047, Limit: 2}, 3002, []string{"sku2047", "sku2048"}},
		{"the end", engine.ShelfQuery{From: 2999, Limit: 9}, 3002, []string{"sku2999", "other", "never"}},
		{"after the end", engine.ShelfQuery{From: 4000, Limit: 9}, 3002, nil},
		{"by earnings", engine.ShelfQuery{Sort: "earned", Limit: 5}, 3002,
			[]string{"sku3", "sku1", "other", "sku2", "sku0"}},
		{"by how often they were shown", engine.ShelfQuery{Sort: "shown", Limit: 2, From: 1}, 3002,
			[]string{"sku1", "other"}},
		{"a title, a brand and a group", engine.ShelfQuery{Contains: "vase", Limit: 9}, 3,
			[]string{"sku8", "sku9", "sku2999"}},
		{"a title with escapes", engine.ShelfQuery{Contains: "überr", Limit: 9}, 1, []string{"sku10"}},
		{"an inner text", engine.ShelfQuery{Contains: "süß", Limit: 9}, 1, []string{"sku10"}},
		{"a number of a payload", engine.ShelfQuery{Contains: "00638", Limit: 9}, 1, []string{"sku10"}},
		{"the name of a payload's member", engine.ShelfQuery{Contains: "name", Limit: 9}, 0, nil},
		{"an id", engine.ShelfQuery{Contains: "sku299", Limit: 2}, 11, []string{"sku299", "sku2990"}},
		{"shown", engine.ShelfQuery{Only: "shown", Limit: 9}, 4, []string{"sku1", "sku2", "sku3", "other"}},
		{"never shown", engine.ShelfQuery{Only: "unseen", Limit: 2}, 2998, []string{"sku0", "sku4"}},
		{"pinned", engine.ShelfQuery{Only: "pinned", Limit: 9}, 1, []string{"sku3"}},
		{"excluded", engine.ShelfQuery{Only: "excluded", Limit: 9}, 2, []string{"sku4", "never"}},
		{"unavailable", engine.ShelfQuery{Only: "unavailable", Limit: 9}, 3, []string{"sku5", "sku6", "sku7"}},
		{"by ids", engine.ShelfQuery{IDs: []string{"sku9", "nobody"}}, 2, []string{"sku9", "nobody"}},
	} {
		if s := ask(c.query); s.Count != c.count || !slices.Equal(ids(s), c.want) || !s.Complete {
			t.Errorf("%s: %d items, %v, want %d, %v", c.what, s.Count, ids(s), c.count, c.want)
		}
	}
	looks := &paused{Context: t.Context()} // counts down, and never pauses
	fatal.Or(e.Shelf(looks, "home", engine.ShelfQuery{Contains: "vase", Limit: 9}, now))(t)
	if -looks.n < 3000/64 {
		t.Errorf("a search of 3,000 items lets others in only %d times", -looks.n)
	}
	states := map[string]string{"sku0": "available", "sku3": "available", "sku4": "excluded", "sku5": "unavailable",
		"sku6": "not-yet", "sku7": "over", "other": "gone", "never": "excluded"}
	for id, want := range states {
		if i := ask(engine.ShelfQuery{IDs: []string{id}}).Items[0]; i.State != want || i.Pinned != (id == "sku3") {
			t.Errorf("%s is %+v, want %s", id, i, want)
		}
	}
	if i := ask(engine.ShelfQuery{IDs: []string{"sku3"}}).Items[0]; i.Shown != 3 || i.Taken != 2 || i.Revenue != 2 ||
		*i.Selling != 2./3 || *i.PerShown != 2./3 {
		t.Errorf("%+v", i)
	}
	if i := ask(engine.ShelfQuery{IDs: []string{"sku8"}}).Items[0]; i.Selling != nil ||
		string(i.Item.Payload) != `{"title":"Blue Vase"}` {
		t.Errorf("%+v", i)
	}
}

// Items that sold a few times by luck come after items that have sold for long.
func TestShelfOfLuckyItems(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":1,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}]}`)
	var items []api.CatalogueItem
	for _, id := range []string{"lucky", "steady"} {
		items = append(items, api.CatalogueItem{ID: id, Features: api.Values{api.Number("x", 0)}})
	}
	putItems(t, e, "home", items)
	for id, n := range map[string]int{"lucky": 40, "steady": 400} { // sold 8 and 40 times
		for k := range n {
			r := &api.Request{Decision: fmt.Sprint(id, k), Candidates: []string{id}, Include: []string{id}}
			taken := ""
			if id == "lucky" && k%5 == 0 || id == "steady" && k%10 == 0 {
				taken = id
			}
			fatal.If(t, e.Outcome(t.Context(), "home", decide(t, e, "home", r, second).Decision, taken, second))
		}
	}
	s := fatal.Or(e.Shelf(t.Context(), "home", engine.ShelfQuery{Sort: "earned", Limit: 2}, second))(t)
	if s.Items[0].Item.ID != "steady" || *s.Items[0].PerShown >= *s.Items[1].PerShown {
		t.Errorf("the first item is %+v, and the second %+v", s.Items[0], s.Items[1])
	}
}
