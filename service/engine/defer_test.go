package engine_test

import (
	"strings"
	"testing"

	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// A deferred decision teaches once it is activated, or has an outcome.
func TestDefer(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", three)
	ctx := t.Context()
	var shown string
	for _, id := range []string{"never", "activated", "activated late", "taken", "rewarded", "passed", "left"} {
		r := stock(strings.ReplaceAll(id, " ", "-"), 4)
		r.Defer = true
		a, err := e.Decide(ctx, "home", r, 0)
		if err != nil || !a.Deferred {
			t.Fatalf("%+v, %v", a, err)
		}
		shown = a.IDs()[0]
	}
	status := func(id, want string) {
		t.Helper()
		if d, err := e.Decision(t.Context(), "home", id); err != nil || d.Status != want {
			t.Errorf("%s is %q, %v, want %q", id, d.Status, err, want)
		}
	}
	is(t, "unknown", e.Activate(ctx, "home", "x", 1), engine.ErrNotFound)
	status("activated", "deferred")
	for range 2 {
		is(t, "in time", e.Activate(ctx, "home", "activated", 1), nil)
		status("activated", "open")
	}
	is(t, "an outcome", e.Outcome(ctx, "home", "taken", shown, 1), nil)
	status("taken", "chosen")
	is(t, "a reward", e.Reward(ctx, "home", "rewarded", []api.Reward{{Item: shown, Value: 1}}, 1), nil)
	status("rewarded", "chosen")
	is(t, "a part", e.Reward(ctx, "home", "passed", []api.Reward{{Item: shown}}, 1), nil)
	status("passed", "open")

	const late = 31 * minute
	is(t, "too late", e.Activate(ctx, "home", "activated-late", late), engine.ErrWithdrawn)
	is(t, "too late again", e.Activate(ctx, "home", "activated-late", late), engine.ErrWithdrawn)
	is(t, "an outcome too late", e.Outcome(ctx, "home", "never", shown, late), engine.ErrLate)
	is(t, "none too late", e.Outcome(ctx, "home", "never", "", late), engine.ErrConflict)
	is(t, "none of another, too late", e.Outcome(ctx, "home", "left", "", late), engine.ErrLate)
	if n, err := e.Expire(ctx, late); n != 2 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	for id, want := range map[string]string{"never": "late", "activated-late": "withdrawn", "left": "late",
		"activated": "expired", "passed": "expired"} {
		status(id, want)
	}
	is(t, "a reward too late", e.Reward(ctx, "home", "left", []api.Reward{{Item: shown, Value: 1}}, late), nil)
	wait(t, e)
	s, err := e.Stats("home")
	if err != nil || s.Decisions != 7 || s.Withdrawn != 3 || s.Expired != 2 || s.Outcomes != 2 || s.Learned != 4 ||
		s.Pending != 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}
