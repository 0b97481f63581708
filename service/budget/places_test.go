package budget_test

import (
	"context"
	"testing"
	"testing/synctest"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/budget"
)

// A key never takes the places of the others.
func TestPlaces(t *testing.T) {
	p := budget.Places{What: "exports"}
	for i, c := range []struct {
		key  string
		free int // -1: refused
	}{{"a", 1}, {"a", 0}, {"a", -1}, {"b", 0}, {"b", -1}, {"c", -1}} {
		free, err := p.Take(c.key, 3, 2)
		if (err != nil) != (c.free < 0) || err == nil && free != c.free {
			t.Errorf("%d: key %s: %d places are free, %v; want %d", i, c.key, free, err, c.free)
		}
	}
	p.Leave("a")
	if _, err := p.Take("c", 3, 2); err != nil || p.Taken() != 3 {
		t.Errorf("a place that was left is not free: %v", err)
	}
}

// A key computes one long answer at a time, and all keys compute two. Others wait for their turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns budget.Turns
		a := fatal.Or(turns.Take(t.Context(), "a"))(t)
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		expect.Fails(turns.Take(impatient, "a"))(t, context.Canceled)
		b := fatal.Or(turns.Take(t.Context(), "b"))(t)
		expect.Fails(turns.Take(impatient, "c"))(t, context.Canceled)
		took := map[string]bool{}
		for _, key := range []string{"a", "c"} {
			go func() {
				defer fatal.Or(turns.Take(t.Context(), key))(t)()
				took[key] = true
			}()
			synctest.Wait()
		}
		expect.Equal(t, len(took), 0, "turns while two compute")
		b()
		synctest.Wait()
		if !took["c"] || took["a"] {
			t.Errorf("after b's turn %v, want only c's", took)
		}
		a()
		synctest.Wait()
		expect.Equal(t, took["a"], true, "a's second turn after its first")
	})
}
