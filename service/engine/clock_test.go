package engine_test

import (
	"fmt"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// When the clock moves, far ahead or back, the windows of open decisions move with it: all of them can still get their
// outcomes for the rest of their windows, and expire after that. A second move adds to the first. Later decisions get
// their usual window. A snapshot and a replay know all of it.
func TestWindowsMoveWithTheClock(t *testing.T) {
	const year = int64(365 * 24 * time.Hour)
	for _, by := range [][]int64{{year}, {-year}, {year, -year}, {90 * minute, 2 * year}} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: buildToy})
			put(t, e, "home", toys) // a window of 30 minutes
			var last *offer.Offer
			decide := func(id string, now int64) {
				t.Helper()
				var err error
				if last, err = e.Decide(t.Context(), "home", stock(id, 3), now); err != nil {
					t.Fatal(err)
				}
			}
			now := 10 * year
			for i := range int64(20) {
				decide(fmt.Sprint("a", i), now+i*minute)
			}
			now += 20 * minute
			for _, by := range by {
				open, late, err := e.MoveClock(t.Context(), now, now+by)
				if want := 20; err != nil || open != want || by > 0 && late != want || by < 0 && late != 0 {
					t.Fatalf("moved by %v: %d open, %d late, %v", time.Duration(by), open, late, err)
				}
				now += by
			}
			e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t, e)})
			if n, err := e.Expire(t.Context(), now); n != 0 || err != nil {
				t.Fatalf("%d have expired at once, %v", n, err)
			}
			if held := mustStats(t, e).Held; held == nil || held.Decisions != 20 ||
				held.Seconds != time.Duration(by[len(by)-1]).Seconds() {
				t.Errorf("held: %+v", held)
			}
			expect.Error(t, e.Outcome(t.Context(), "home", "a19", last.IDs()[0], now+29*minute), nil)
			decide("b", now)
			for _, left := range []int64{10, 11} { // minutes, of the two oldest
				for after, want := range []int{0, 1} {
					if n, err := e.Expire(t.Context(), now+left*minute+int64(after)); n != want || err != nil {
						t.Errorf("%d ns after %d minutes %d have expired, %v", after, left, n, err)
					}
				}
			}
			if n, err := e.Expire(t.Context(), now+30*minute); n != 17 || err != nil {
				t.Errorf("at the end %d have expired, %v", n, err)
			}
			if s := mustStats(t, e); s.Held != nil || s.Pending != 1 || s.Expired != 19 || s.Outcomes != 1 {
				t.Errorf("%+v", s)
			}
			if n, err := e.Expire(t.Context(), now+30*minute+1); n != 1 || err != nil {
				t.Errorf("of the later decision %d have expired, %v", n, err)
			}
			replays(t, e, engine.Options{Store: store, Build: buildToy})
		})
	}
}

// A caller may read the clock before it moves ahead, and decide afterwards: its decision has its whole window all the
// same.
func TestWindowOfALateCaller(t *testing.T) {
	const year = int64(365 * 24 * time.Hour)
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys) // a window of 30 minutes
	now := 10 * year
	if _, _, err := e.MoveClock(t.Context(), now, now+year); err != nil {
		t.Fatal(err)
	}
	decide(t, e, "home", stock("a", 3), now)
	now += year
	for after, want := range []int{0, 1} {
		if n, err := e.Expire(t.Context(), now+30*minute+int64(after)); n != want || err != nil {
			t.Errorf("%d ns after its window %d have expired, %v", after, n, err)
		}
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// All placements move together, also those without open decisions, and the log says later by how much: a start after
// the clock was wrong must not take the wrong time for sure.
func TestAllPlacementsMove(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	put(t, e, "away", toys)
	const day = int64(24 * time.Hour)
	now := 5000 * day
	decide(t, e, "home", stock("a", 3), now)
	before := e.Sequence()
	if open, late, err := e.MoveClock(t.Context(), now, now+365*day); open != 1 || late != 1 || err != nil ||
		e.Sequence() != before+2 {
		t.Errorf("%d open, %d late, %v, entry %d after %d", open, late, err, e.Sequence(), before)
	}
	now += 365 * day
	if _, _, err := e.MoveClock(t.Context(), now+minute, now+3*minute); err != nil { // a short outage
		t.Fatal(err)
	}
	e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t, e)})
	for _, c := range []struct{ now, by, at int64 }{
		{now + 4*minute, 365*day + 2*minute, now + 3*minute},
		{now + day, 2 * minute, now + 3*minute},
		{now + 2*day, 0, 0},
	} {
		if by, at := e.Jumped(c.now, 24*time.Hour); by != c.by || at != c.at {
			t.Errorf("at %v the clock has jumped by %v at %v", time.Duration(c.now-now), time.Duration(by),
				time.Duration(at-now))
		}
	}
	if _, _, err := e.MoveClock(t.Context(), now+4*minute,
		now+4*minute-365*day); err != nil { // the clock is right again
		t.Fatal(err)
	}
	if by, _ := e.Jumped(now+5*minute-365*day, 24*time.Hour); by > 2*minute {
		t.Errorf("a clock that was put right has jumped by %v", time.Duration(by))
	}
}

// A shop that reports its sales once an hour raises no alarm after an outage: the sales of the last hour can still be
// reported, and the outage does not count as their delay.
func TestOutageOfTheServiceIsNoLackOfSales(t *testing.T) {
	const hour = 60 * minute
	store := new(memlog.Store)
	e := guarded(t, store, showing{})
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"attribution_window":"8h"`))
	now := int64(1e18)
	var sold []*offer.Offer
	report := func() {
		t.Helper()
		for _, a := range sold {
			fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], now))
		}
		sold = nil
		fatal.Or(e.Expire(t.Context(), now))(t)
	}
	trade := func(from, decisions int) {
		t.Helper()
		for n := from; n < from+decisions; n++ {
			now += minute
			a := decide(t, e, "home", stock(fmt.Sprint("d", n), 1), now)
			if alarm := fatal.Or(e.Stats("home"))(t).Guard.Alarm; alarm != nil {
				t.Fatalf("an alarm: %+v", alarm)
			}
			if n%2 == 0 {
				sold = append(sold, a)
			}
			if n%60 == 59 && n < from+decisions-1 {
				report()
			}
		}
	}
	trade(0, 3000)
	before := mustStats(t, e).Guard
	if before.Overdue < 3600 {
		t.Fatalf("before the outage: %+v", before)
	}
	middle := snapshot(t, e)
	for range 2 {
		if _, _, err := e.MoveClock(t.Context(), now, now+3*hour); err != nil {
			t.Fatal(err)
		}
		now += 3 * hour
	}
	report()
	trade(3000, 600)
	report()
	if after := mustStats(t, e).Guard; after.Overdue != before.Overdue {
		t.Errorf("decisions are overdue after %v s, and %v s before the outage", after.Overdue, before.Overdue)
	}
	same(t, e, store, middle)
}
