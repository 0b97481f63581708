package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"vitrine"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// States are compared placement by placement, and only at one entry of one log.
func TestCompare(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildToy}
	e := opened(t, o)
	put(t, e, "away", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	for i := range 4 {
		a := decide(t, e, "home", stock(fmt.Sprint("d", i), 3), int64(i))
		is(t, "outcome", e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], int64(i)), nil)
		wait(t, e)
	}
	if have, err := engine.Compare(t.Context(), e, opened(t, o)); err != nil || len(have) > 0 {
		t.Errorf("a replay: %q, %v", have, err)
	}

	level := o
	level.Build = func(s setup.Spec) (vitrine.Learner, error) { return &toy{size: s.Size, level: 7}, nil }
	if have, err := engine.Compare(t.Context(), e, opened(t, level)); err != nil ||
		!slices.Equal(have, []string{"away", "home"}) {
		t.Errorf("other learners: %q, %v", have, err)
	}
	before := opened(t, o)
	is(t, "delete", e.Delete(t.Context(), "away", nil, 99), nil)
	if have, err := engine.Compare(t.Context(), before, e); err == nil {
		t.Errorf("states of two entries: %q", have)
	}
}
