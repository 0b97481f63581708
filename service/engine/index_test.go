package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Placements may share an id: neither decision affects the other.
func TestIDsBelongToPlacements(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	ctx := t.Context()
	names := []string{"a", "b", "c"}
	shown := map[string]string{}
	for i, name := range names {
		put(t, e, name, toys)
		a, err := e.Decide(ctx, name, stock("one", 2+i), 0) // another request in each
		if err != nil || a.Decoded {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
		shown[name] = a.IDs()[0]
		if again, err := e.Decide(ctx, name, stock("one", 2+i), 0); err != nil || !again.Decoded ||
			!slices.Equal(again.IDs(), a.IDs()) {
			t.Errorf("%s again: %+v, %v", name, again, err)
		}
		_, err = e.Decide(ctx, name, stock("one", 5), 0)
		is(t, "another request", err, engine.ErrConflict)
	}
	_, err := e.Decision(ctx, "d", "one")
	is(t, "of no placement", err, engine.ErrNotFound)
	is(t, "an outcome of no placement", e.Outcome(ctx, "d", "one", "", 1), engine.ErrNotFound)
	is(t, "b's outcome", e.Outcome(ctx, "b", "one", shown["b"], 1), nil)
	is(t, "a's outcome", e.Outcome(ctx, "a", "one", "", 1), nil)
	status := func(name, want, choice string) {
		t.Helper()
		if d, err := e.Decision(ctx, name, "one"); err != nil || d.Status != want || d.Choice != choice ||
			d.Placement != name {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	status("a", "chosen", "")
	status("b", "chosen", shown["b"])
	status("c", "open", "")
	live := snapshot(t, e)
	for what, from := range map[string][]byte{"a replay": nil, "the snapshot": live} {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(live) {
			t.Errorf("%s has another state", what)
		}
	}
	// Each is forgotten by itself, whatever their order.
	for _, name := range []string{"b", "c", "a"} {
		is(t, "delete", e.Delete(ctx, name, nil, 2), nil)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		for _, n := range names {
			_, err := e.Decision(ctx, n, "one")
			is(t, fmt.Sprintf("%s after %s", n, name), err, nil)
		}
	}
}
