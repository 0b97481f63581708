package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/state"
)

// unreadable is a log with entries that cannot be read one by one while away is set.
type unreadable struct {
	memlog.Store
	away  atomic.Bool
	reads atomic.Int64
}

var errAway = errors.New("the log is away")

func (s *unreadable) Entry(ctx context.Context, n uint64) ([]byte, error) {
	s.reads.Add(1)
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Entry(ctx, n)
}

// An unreadable log causes no loss: calls that need an offer are refused, decisions go on, and the same call succeeds
// when the log is back. A start from a snapshot knows the open decisions, and answers them alike.
func TestOffersAreReadBack(t *testing.T) {
	store := new(unreadable)
	o := engine.Options{Store: store, Build: buildToy}
	e := opened(t, o)
	ctx := t.Context()
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	first := fatal.Or(e.Decide(ctx, "home", stock("old", 3), 0))(t)
	expect.Equal(t, store.reads.Load(), 0, "a decision has read n entries")
	from := snapshot(t, e)
	store.away.Store(true)
	before := e.Sequence()
	_, repeated := e.Decide(ctx, "home", stock("old", 3), 1)
	_, known := e.Decision(ctx, "home", "old")
	_, expired := e.Expire(ctx, 31*minute)
	for what, err := range map[string]error{
		"outcome": e.Outcome(ctx, "home", "old", first.IDs()[0], 1), "reward": e.Reward(ctx, "home", "old",
			[]api.Reward{{Item: first.IDs()[0], Value: 1}}, 1),
		"decide again": repeated, "decision": known, "expire": expired,
	} {
		is(t, what, err, engine.ErrUnread)
		is(t, what, err, errAway)
	}
	expect.Equal(t, e.Sequence(), before, "something was written")
	if _, err := e.Decide(ctx, "home", stock("new", 3), 1); err != nil {
		t.Errorf("a decision while the log cannot be read: %v", err)
	}
	store.away.Store(false)

	e.Close()
	o.Snapshot = from
	e = opened(t, o)
	again, err := e.Decide(ctx, "home", stock("old", 3), 2)
	if err != nil || !again.Decoded {
		t.Fatalf("%+v, %v", again, err)
	}
	expect.Equal(t, asSeen(again), asSeen(first), "after a start")
	is(t, "an outcome after a start", e.Outcome(ctx, "home", "old", first.IDs()[0], 2), nil)
	wait(t, e)
	if s, err := e.Stats("home"); err != nil || s.Learned != 1 || s.Outcomes != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// Before the log is cut, open decisions with offers in the cut part are evicted. A closed one is forgotten with its
// entry, and its id is free.
func TestEvictBefore(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	ctx := t.Context()
	put(t, e, "home", toys)
	var at []uint64 // the entries of the offers
	for i := range 5 {
		fatal.Or(e.Decide(ctx, "home", stock(fmt.Sprint("d", i), 2), int64(i)))(t)
		at = append(at, e.Sequence())
	}
	is(t, "outcome", e.Outcome(ctx, "home", "d1", "", 5), nil)
	oldest := func(want uint64) {
		t.Helper()
		if have, err := state.SnapshotOldest(snapshot(t, e)); err != nil || have != want {
			t.Errorf("the snapshot needs entries from %d on, %v, want %d", have, err, want)
		}
	}
	oldest(at[0])
	for since, want := range []int{0, 1, 0, 1} { // d0, d2 by their times
		if n, err := e.EvictBefore(ctx, at[3], int64(since), 6); n != want || err != nil {
			t.Errorf("of before %d %d are evicted, %v, want %d", since, n, err, want)
		}
	}
	oldest(at[3])
	is(t, "evicted", e.Outcome(ctx, "home", "d2", "", 7), engine.ErrLate)
	from := snapshot(t, e)
	fatal.If(t, store.TruncateBefore(ctx, at[3]))
	is(t, "the forgotten one", e.Outcome(ctx, "home", "d1", "", 8), engine.ErrNotFound)
	if a, err := e.Decide(ctx, "home", stock("d1", 2), 8); err != nil || a.Decoded {
		t.Errorf("its id: %+v, %v", a, err)
	}
	is(t, "one that stays", e.Outcome(ctx, "home", "d3", "", 8), nil)
	live := snapshot(t, e)
	if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(live) {
		t.Error("the snapshot and the rest of the log give another state")
	}
	e.Close()
	e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: live})
	if n, err := e.EvictBefore(ctx, e.Sequence()+1, 9, 9); n != 2 || err != nil {
		t.Errorf("%d evicted, %v", n, err)
	}
	oldest(e.Sequence() + 1)
}

// Decisions leave in the order in which their windows end, whatever their order of arrival.
func TestOrderOfEvictions(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", small)
	for i := range 100 {
		decide(t, e, "home", stock(fmt.Sprintf("d%03d", i), 1), int64((i*37)%60))
	}
	open, times := map[string]int64{}, []int64(nil)
	for event := range events(t, store) {
		switch b := event.Body.(type) {
		case *eventlog.Offered:
			open[b.Decision] = event.Time
		case *eventlog.Evicted:
			for id, at := range open {
				if at < open[b.Decision] || at == open[b.Decision] && id < b.Decision {
					t.Fatalf("%s of %d is evicted before %s of %d", b.Decision, open[b.Decision], id, at)
				}
			}
			times = append(times, open[b.Decision])
			delete(open, b.Decision)
		}
	}
	if len(times) < 20 || slices.Max(times) == 0 {
		t.Errorf("%d evictions prove nothing", len(times))
	}
}
