package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Placements may share an id: neither decision affects the other. Without the placement's name a shared id is
// ambiguous.
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
	ambiguous := func(what string, err error) {
		t.Helper()
		is(t, what, err, engine.ErrAmbiguous)
		if err != nil && !strings.Contains(err.Error(),
			`decision "one": several placements have a decision of this id: name one of a, b, c`) {
			t.Error(err)
		}
	}
	_, err := e.Decision(ctx, "", "one")
	ambiguous("the decision", err)
	ambiguous("an outcome", e.Outcome(ctx, "", "one", "", 1))
	ambiguous("a reward", e.Reward(ctx, "", "one", nil, 1))
	ambiguous("an activation", e.Activate(ctx, "", "one", 1))
	_, err = e.Decision(ctx, "d", "one")
	is(t, "of no placement", err, engine.ErrNotFound)
	is(t, "an outcome of no placement", e.Outcome(ctx, "d", "one", "", 1), engine.ErrNotFound)

	for name, want := range map[string]error{"b": nil, "d": engine.ErrNotFound} {
		found, err := e.Find(t.Context(), "one", func(p string) bool { return p == name })
		is(t, "find "+name, err, want)
		if err == nil && found != name {
			t.Errorf("found %q", found)
		}
	}
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
	for i, name := range []string{"b", "c", "a"} {
		is(t, "delete", e.Delete(ctx, name, nil, 2), nil)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		for _, n := range names {
			_, err := e.Decision(ctx, n, "one")
			is(t, fmt.Sprintf("%s after %s", n, name), err, nil)
		}
		found, err := e.Find(t.Context(), "one", nil)
		is(t, "find", err, []error{engine.ErrAmbiguous, nil, engine.ErrNotFound}[i])
		if err == nil && found != names[0] {
			t.Errorf("found %q", found)
		}
	}
}

// The error for an evicted decision's outcome gives the reason also without the placement, unless two placements
// evicted the id.
func TestFindEvicted(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	ctx := t.Context()
	fill := func(name string) {
		t.Helper()
		put(t, e, name, small)
		for i := range 80 {
			fatal.Or(e.Decide(ctx, name, stock(fmt.Sprint("d", i), 1), 0))(t)
		}
	}
	fill("a")
	if name, err := e.Find(t.Context(), "d0", nil); name != "a" || err != nil {
		t.Errorf("found %q, %v", name, err)
	}
	is(t, "an outcome", e.Outcome(ctx, "", "d0", "", 1), engine.ErrEvicted)
	fill("b")
	is(t, "of two", e.Outcome(ctx, "", "d0", "", 1), engine.ErrAmbiguous)
	is(t, "b's", e.Outcome(ctx, "b", "d0", "", 1), engine.ErrEvicted)
	is(t, "delete", e.Delete(ctx, "b", nil, 2), nil)
	is(t, "a's", e.Outcome(ctx, "", "d0", "", 1), engine.ErrEvicted)
}
