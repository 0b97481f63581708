package budget_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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

// A key computes one long answer at a time, and all keys compute two, or three if one of them is calm. Others wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns budget.Turns
		take := func(key string) func() { return fatal.Or(turns.Take(t.Context(), key))(t) }
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 { // in turn two without a pause
			a := take("a")
			expect.Fails(turns.Take(impatient, "a"))(t, context.Canceled)
			b := take("b")
			a()
			b()
		}
		a, b := take("a"), take("b")
		c := take("c")
		expect.Fails(turns.Take(impatient, "d"))(t, context.Canceled)
		c()
		took := map[string]bool{}
		for _, key := range []string{"a", "c"} {
			go func() {
				defer take(key)()
				took[key] = true
			}()
			synctest.Wait()
		}
		expect.Equal(t, len(took), 0, "turns while two compute that are not calm")
		b()
		synctest.Wait()
		if !took["c"] || took["a"] {
			t.Errorf("after b's turn %v, want only c's", took)
		}
		time.Sleep(time.Second)
		b, c = take("b"), take("c")
		a()
		synctest.Wait()
		expect.Equal(t, took["a"], true, "a's second turn after its first")
		b()
		c()
		take("d")()
	})
}
