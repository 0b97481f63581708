package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// The history lists changes and their authors, and is the same after a replay.
func TestHistory(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	as := func(name string) context.Context { return engine.WithCaller(t.Context(), name) }
	config := func(more string) []byte {
		return []byte(`{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}]` + more +
			`}`)
	}
	fatal.Or(e.Put(as("ann"), "home", config(""), 1))(t)
	decide(t, e, "home", stock("d", 3), 2)
	fatal.Or(e.Put(as("bob"), "home", config(`,"include":["sku1"],"currency":"EUR"`), 3))(t)
	fatal.Or(e.Keep(t.Context(), "home", "before the sale", 4))(t)
	fatal.Or(e.Put(as("ann"), "home", config(`,"include":["sku1","sku2"]`), 5))(t)
	fatal.Or(e.Change(as("ann"), "home", config(`,"seed":4`), engine.Change{Reset: true}, 6))(t)
	middle := snapshot(t, e)
	want := []api.PastEvent{
		{Kind: "reset", By: "ann", Fields: []api.ChangedField{{Field: "include", Before: []byte(`["sku1","sku2"]`)},
			{Field: "seed", Before: []byte("0"), After: []byte("4")}}},
		{Kind: "changed", By: "ann", Fields: []api.ChangedField{{Field: "currency", Before: []byte(`"EUR"`)},
			{Field: "include", Before: []byte(`["sku1"]`), After: []byte(`["sku1","sku2"]`)}}},
		{Kind: "version-saved", Note: "before the sale"},
		{Kind: "changed", By: "bob", Fields: []api.ChangedField{{Field: "currency", After: []byte(`"EUR"`)},
			{Field: "include", After: []byte(`["sku1"]`)}}},
		{Kind: "created", By: "ann"},
	}
	again := opened(t, engine.Options{Store: store, Snapshot: middle})
	for _, e := range []*engine.Engine{e, again} {
		h := fatal.Or(e.History(t.Context(), "home"))(t)
		expect.Equal(t, h.Changes, want, cmpopts.IgnoreFields(api.PastEvent{}, "Entry", "Time",
			"Version"))
		if !slices.IsSortedFunc(h.Changes, func(a, b api.PastEvent) int { return int(b.Entry) - int(a.Entry) }) ||
			len(h.Alarms) > 0 {
			t.Errorf("%+v", h)
		}
	}
	for k := range 120 {
		fatal.Or(e.Put(t.Context(), "home", config(fmt.Sprintf(`,"seed":4,"exclude":["sku%d"]`, k)), 7))(t)
	}
	h := fatal.Or(e.History(t.Context(), "home"))(t)
	if n := len(h.Changes); n != 100 || len(h.Changes[98].Fields) != 1 || h.Changes[99].Fields != nil ||
		h.Changes[99].Kind != "changed" {
		t.Errorf("%d changes, the first ones are %+v", n, h.Changes[98:])
	}
	_, err := e.History(t.Context(), "nowhere")
	is(t, "of no placement", err, engine.ErrNotFound)
}

// Every command has a word in the history, which the API and the desk know.
func TestHistoryKnowsEveryCommand(t *testing.T) {
	kind, _ := reflect.TypeFor[api.PastEvent]().FieldByName("Kind")
	desk := string(fatal.Or(os.ReadFile("../desk/web/src/views/history.tsx"))(t))
	for _, body := range eventlog.Bodies() {
		word := engine.PastKind(body)
		if !eventlog.IsCommand(body) || word == "items-changed" || word == "placement-deleted" { // of no history
			continue
		}
		if !slices.Contains(strings.Split(kind.Tag.Get("enum"), ","), word) {
			t.Errorf("add %q to the values of api.PastEvent.Kind", word)
		}
		if !regexp.MustCompile(`\n  "?` + word + `"?: "`).MatchString(desk) {
			t.Errorf("add %q to kinds in service/desk/web/src/views/history.tsx", word)
		}
	}
}

// cached is a store that still reads entries after they were removed, as one on NATS may in another process.
type cached struct{ *memlog.Store }

func (cached) Extent(context.Context) (eventlog.Extent, error) {
	return eventlog.Extent{First: 2, Last: 2}, nil
}

func TestHistoryWithoutWhatWasRemoved(t *testing.T) {
	e := opened(t, engine.Options{Store: cached{new(memlog.Store)}})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}]}`)
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	h := fatal.Or(e.History(t.Context(), "home"))(t)
	if len(h.Changes) != 1 || h.Changes[0].Entry != 2 || h.Changes[0].Fields != nil {
		t.Errorf("%+v", h.Changes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.History(ctx, "home"); err != context.Canceled {
		t.Errorf("after its context ended: %v", err)
	}
}

// The history has the alarms that were, and how unlikely they were.
func TestPastAlarms(t *testing.T) {
	store := new(memlog.Store)
	e := guarded(t, store, showing{utility: -800})
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"explore","explore_share":0.5`))
	w := newTrade(t, e, 0.1, 0.6, 0.6)
	w.goOn(1800, 1)
	raised := w.alarm()
	h := fatal.Or(e.History(t.Context(), "home"))(t)
	if raised == nil || len(h.Alarms) != 1 || h.Alarms[0].Check != "chance" || h.Alarms[0].Ended != nil ||
		h.Alarms[0].Chance != raised.Chance || !(raised.Chance > 0 && raised.Chance <= 0.002) {
		t.Fatalf("the alarm %+v, the history %+v", raised, h.Alarms)
	}
	middle := snapshot(t, e)
	w.goOn2(5)
	fatal.If(t, e.ClearAlarm(engine.WithCaller(t.Context(), "ann"), "home", false, w.now))
	h = fatal.Or(e.History(t.Context(), "home"))(t)
	if len(h.Alarms) != 1 || h.Alarms[0].Ended == nil || h.Alarms[0].Ended.UnixNano() != w.now ||
		h.Changes[0].Kind != "alarm-cleared" || h.Changes[0].By != "ann" {
		t.Errorf("cleared: %+v", h)
	}
	wait(t, e)
	if !bytes.Equal(snapshot(t, e), replayed(t, engine.Options{Store: store, Snapshot: middle,
		Build: buildShowing(showing{utility: -800})})) {
		t.Error("a snapshot with an alarm gives another state")
	}
}
