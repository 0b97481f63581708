package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A preview predicts the change's effects, without an entry of the log or a byte of the budget.
func TestPreview(t *testing.T) {
	b := budget.New(1 << 40)
	size := func(setup.Spec) (setup.Size, error) { return setup.Size{Learner: 1000, State: 10}, nil }
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildShowing(showing{utility: -800}), Size: size,
		Budget: b})
	const shop = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`
	changes := func(config string, want api.Preview, fields string) {
		t.Helper()
		before, used := e.Sequence(), b.Usage()
		v, err := e.Preview(t.Context(), "home", []byte(config), engine.Change{}, 1e18)
		fatal.If(t, err)
		if e.Sequence() != before || b.Usage() != used {
			t.Errorf("after the preview the log has %d entries, and had %d; the budget is %+v, and was %+v",
				e.Sequence(), before, b.Usage(), used)
		}
		lost := v.Lost != nil && v.Lost.Rounds > 0
		if v.Change != want.Change || v.CanRelearn != want.CanRelearn || v.MaxSize != want.MaxSize ||
			lost != (want.Lost != nil) || len(v.Fields) > 0 != (fields != "") ||
			len(v.Fields) == 1 && v.Fields[0] != fields {
			t.Errorf("%s: %+v of %q, want %+v of %q", config, v, v.Fields, want, fields)
		}
		_, err = e.Change(t.Context(), "home", []byte(config),
			engine.Change{Match: func(uint64) error { return errNot }}, 1e18)
		if refused := errors.Is(err, errNot); refused == (want.Change == api.PreviewNone) {
			t.Errorf("%s: the change is %v", config, err)
		}
		_, err = e.Change(t.Context(), "home", []byte(config), engine.Change{Match: func(uint64) error { return nil }},
			1e18)
		if loss := errors.Is(err, engine.ErrLoss); loss != (want.Lost != nil) {
			t.Errorf("%s: the change is %v", config, err)
		}
	}
	lost := new(api.Loss)
	changes(shop, api.Preview{Change: api.PreviewCreate}, "")
	changes(shop, api.Preview{Change: api.PreviewNone}, "")
	changes(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart}, "max_size")
	newTrade(t, e, 0.5, 0.5).goOn(5, 1)
	wait(t, e)
	changes(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"max_versions":3}`,
		api.Preview{Change: api.PreviewKeep}, "")
	changes(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart, Lost: lost, CanRelearn: true, MaxSize: 1}, "max_size")
	changes(`{"max_size":2,"features":[{"name":"y","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart, Lost: lost}, "features")
	if _, err := e.Preview(t.Context(), "..", []byte(shop), engine.Change{}, 1e18); !isAt(err, "/name") {
		t.Errorf("a name that is none: %v", err)
	}
	if _, err := e.Preview(t.Context(), "home", []byte(`{}`), engine.Change{}, 1e18); !isAt(err, "/features") &&
		!isAt(err, "/max_size") {
		t.Errorf("a configuration that is none: %v", err)
	}
	expect.Fails(e.Preview(t.Context(), "home", []byte(shop),
		engine.Change{Match: func(uint64) error { return errNot }}, 1e18))(t, errNot, "a placement that has changed")
}

var errNot = errors.New("not now")

func isAt(err error, field string) bool {
	var at *api.FieldError
	return errors.As(err, &at) && at.Field == field
}

// A preview warns of fields that requests do not need yet, once, and of none if nothing changes.
func TestPreviewOfDuties(t *testing.T) {
	const shop = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}%s}`
	trial := func(show, more string) string {
		return fmt.Sprintf(`,"mode":"experiment","experiment":{"name":"x",%s"variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":%q,"share":0.5}]}`, more, show)
	}
	const past, later = `"ends":"2001-01-01T00:00:00Z",`, `"starts":"2030-01-01T02:30:00+02:30",`
	const until, outside = later + `"ends":"2031-01-01T00:00:00Z",`, `"outside":"baseline",`
	const both, from = "each request to /decisions must contain baseline and shopper_id, or", "from 2030-01-01 00:00 UTC "
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"", `,"mode":"shadow"`, "change: each request to /decisions must contain baseline, or"},
		{"", `,"fallback":"baseline"`, "contain baseline, or"},
		{"", `,"holdout_share":0.1`, both},
		{"", trial("policy", ""), "contain shopper_id, or"},
		{`,"mode":"shadow"`, trial("baseline", ""), "contain shopper_id, or"},
		{`,"mode":"shadow"`, `,"fallback":"baseline"`, ""},
		{`,"mode":"shadow"`, `,"mode":"shadow"`, ""},
		{`,"holdout_share":0.1`, trial("baseline", ""), ""},
		{"", trial("baseline", past), ""},
		{"", trial("policy", past+outside), "contain baseline, or"},
		{"", trial("baseline", later), from + "on, " + both},
		{"", trial("baseline", until), from + "until 2031-01-01 00:00 UTC, " + both},
		{"", trial("baseline", until+outside), "change: each request to /decisions must contain baseline, or the service refuses it; " +
			"check your callers before you make this change: " + from + "until 2031-01-01 00:00 UTC, each request to /decisions must contain shopper_id"},
		{"", trial("baseline", `"ends":"2031-01-01T00:00:00Z",`+outside), "change: each request to /decisions must contain baseline, or the service refuses it; " +
			"check your callers before you make this change: until 2031-01-01 00:00 UTC, each request to /decisions must contain shopper_id"},
		{trial("baseline", past), `,"mode":"shadow"`, "contain baseline, or"},
		{trial("baseline", later), trial("baseline", later) + `,"holdout_share":0.1`, "change: " + both},
		{trial("baseline", later), trial("baseline", ""), "change: " + both},
		{trial("baseline", ""), trial("baseline", later), ""},
		{trial("policy", until), trial("policy", later), "from 2031-01-01 00:00 UTC on, each request to /decisions must contain shopper_id"},
	} {
		e := opened(t, engine.Options{Store: new(memlog.Store)})
		after := fmt.Appendf(nil, shop, c.after)
		created := fatal.Or(e.Preview(t.Context(), "home", after, engine.Change{}, 1e18))(t)
		put(t, e, "home", fmt.Sprintf(shop, c.before))
		v := fatal.Or(e.Preview(t.Context(), "home", after, engine.Change{}, 1e18))(t)
		got := strings.Join(v.Placement.Warnings, "; ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || len(created.Placement.Warnings) > 0 {
			t.Errorf("from %s to %s: %q and of a new placement %q, want %q", c.before, c.after, got,
				created.Placement.Warnings, c.want)
		}
		for _, note := range v.Placement.Notes {
			if strings.Contains(got, note) {
				t.Errorf("from %s to %s: a note repeats the warning: %q", c.before, c.after, note)
			}
		}
	}
}

// A preview names limits that no item is in, and limits that leave pages empty or shorter.
func TestPreviewOfLimits(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	const config = `{"max_size":3,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}],"limits":[%s]}`
	put(t, e, "home", fmt.Sprintf(config, ""))
	warns := func(limit, want string) {
		t.Helper()
		v := fatal.Or(e.Preview(t.Context(), "home", fmt.Appendf(nil, config, limit), engine.Change{}, 1e18))(t)
		if got := strings.Join(v.Placement.Warnings, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", limit, got, want)
		}
	}
	warns(`{"attribute":"brnad","max":1}`, "") // there are no items yet
	var items []api.CatalogueItem
	for i := range 6 {
		items = append(items, api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", 0)},
			Attributes: map[string]any{"brand": fmt.Sprint(i % 2)}})
	}
	items[0].Groups = []string{"new"}
	putItems(t, e, "home", items)
	warns(`{"attribute":"brnad","max":1}`, `no item of the catalogue has the attribute or feature "brnad"`)
	warns(`{"group":"newarrivals","min":2}`, `no item of the catalogue is in the group "newarrivals"`)
	warns(`{"group":"new","min":2}`, `pages cannot show 2 items of "new": the catalogue contains only 1`)
	warns(`{"attribute":"brand","max":0}`, "leave every page empty")
	warns(`{"attribute":"brand","max":1}`, "pages can show only 2 items")
	warns(`{"attribute":"brand","max":2}`, "")
	warns(`{"group":"new","max":0}`, "")
}
