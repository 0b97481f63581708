package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

const second = minute / 60

// small is a placement with memory for a few dozen decisions.
const small = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"memory_bytes":12000}`

// A decision evicted for lack of memory is not learned from. An overdue one is, whoever ends it.
func TestMemoryEndsWhatTheWindowDidNot(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", small)
	n := 0
	fill := func(now int64, deferred bool) api.Stats {
		t.Helper()
		for before := uint64(n); ; n++ {
			s := fatal.Or(e.Stats("home"))(t)
			if s.ExpiredEarly+s.Expired+s.Withdrawn > 0 && s.Decisions > before+3 {
				return s
			}
			r := stock(fmt.Sprint("d", n), 1)
			r.Defer = deferred
			decide(t, e, "home", r, now)
			wait(t, e)
		}
	}
	if s := fill(0, false); s.Learned != 0 || s.Expired != 0 || s.ExpiredEarly == 0 || s.ByPolicy.Rounds != 0 {
		t.Errorf("after early ends: %+v", s)
	}
	if d, err := e.Decision(t.Context(), "home", "d0"); err == nil && d.Status != "evicted" {
		t.Errorf("the first decision is %+v", d)
	}
	for what, err := range map[string]error{
		"an item": e.Outcome(t.Context(), "home", "d0", "sku0", 1), "none": e.Outcome(t.Context(), "home", "d0", "", 1),
		"a reward":      e.Reward(t.Context(), "home", "d0", []api.Reward{{Item: "sku0", Value: 1}}, 1),
		"an activation": e.Activate(t.Context(), "home", "d0", 1),
	} {
		is(t, what, err, engine.ErrEvicted)
		if err != nil && !strings.Contains(err.Error(),
			`12000 bytes of "home" must hold the attribution window of 30m0s`) {
			t.Error(err)
		}
	}
	early, _ := e.Stats("home")
	if s := fill(31*minute, true); s.SinceExpiredEarly != s.Expired || s.ExpiredEarly != early.ExpiredEarly || s.Expired == 0 || s.Learned != s.Expired {
		t.Errorf("after windows that were over: %+v", s)
	}
	for range 60 {
		fill(32*minute, true) // and deferred ones
	}
	s, _ := e.Stats("home")
	if s.ExpiredEarly == early.ExpiredEarly || s.SinceExpiredEarly != 0 || s.Withdrawn != 0 ||
		s.Decisions != s.Expired+s.ExpiredEarly+uint64(s.Pending) {
		t.Errorf("at the end: %+v", s)
	}
	live := snapshot(t, e)
	for what, from := range map[string][]byte{"a replay": nil, "the snapshot": live} {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(live) {
			t.Errorf("%s has another state", what)
		}
	}
	e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: live})
	if again, err := e.Stats("home"); err != nil || again.ExpiredEarly != s.ExpiredEarly {
		t.Errorf("from the snapshot: %+v, %v", again, err)
	}
}

// The seconds that memory holds are those that decisions were there before they were evicted.
func TestMemorySeconds(t *testing.T) {
	for _, apart := range []int64{second / 10, second, 20 * second} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
		put(t, e, "home", strings.TrimSuffix(small, "}")+`,"attribution_window":"24h"}`)
		for i := range int64(2000) {
			before, _ := e.Stats("home")
			decide(t, e, "home", stock(fmt.Sprintf("d%04d", i), 1), i*apart)
			if i == 0 && before.MemorySeconds != 0 {
				t.Errorf("%v seconds of nothing", before.MemorySeconds)
			}
		}
		s, err := e.Stats("home")
		held := float64(int64(s.Pending)*apart) / float64(second)
		if err != nil || s.ExpiredEarly == 0 || s.MemorySeconds < 0.8*held || s.MemorySeconds > 1.25*held {
			t.Errorf("decisions %d ns apart: %v seconds, they were there for %v: %v", apart, s.MemorySeconds, held, err)
		}
		warns := func(want bool, settings string) {
			t.Helper()
			v := fatal.Or(e.Preview(t.Context(), "home", []byte(strings.TrimSuffix(small, "}")+settings), engine.Change{}, 0))(t)
			if got := strings.Contains(strings.Join(v.Placement.Warnings, "; "), "memory_bytes hold the decisions of "); got != want {
				t.Errorf("the settings %s: %q", settings, v.Placement.Warnings)
			}
		}
		const heldOut = `,"attribution_window":"24h","holdout_share":0.1`
		warns(true, heldOut+"}")
		warns(false, `,"attribution_window":"1s","holdout_share":0.1}`)
		put(t, e, "home", strings.TrimSuffix(small, "}")+heldOut+"}")
		warns(false, heldOut+`,"max_versions":3}`) // the change is not the reason
	}
}

// Decisions that find the memory full of overdue ones wait until a few have been read, for all of them.
func TestMemoryIsMadeOnce(t *testing.T) {
	store := &entryCounter{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", strings.Replace(small, "12000", "400000", 1))
	for n := 0; fatal.Or(e.Stats("home"))(t).ExpiredEarly == 0; n++ {
		decide(t, e, "home", stock(fmt.Sprint("d", n), 1), 0)
	}
	e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t, e)})
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() { decide(t, e, "home", stock(fmt.Sprint("late", n), 1), 31*minute) })
	}
	all.Wait()
	if read := store.read.Load(); read != 64 {
		t.Errorf("60 decisions waited until %d of %d overdue ones were read, want 64", read,
			fatal.Or(e.Stats("home"))(t).Pending)
	}
}
