package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// After a change of features, decisions with the old features may stay open until an alarm about sales. When the
// alarm ends, the new learner does not learn them, just as it would not without an alarm.
func TestOutageAfterOtherFeatures(t *testing.T) {
	store := new(memlog.Store)
	var foreign atomic.Int64
	build := func(s setup.Spec) (vitrine.Learner, error) {
		return &measured{new(showing), s.Features, &foreign}, nil
	}
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"attribution_window":"24h"`))
	w := newTrade(t, e, 0.5)
	w.goOn(300, 2) // half of them stay open for a day
	put(t, e, "home", strings.Replace(fmt.Sprintf(guardedShop, `,"attribution_window":"24h"`), `"number"}`,
		`"number"},{"name":"y","kind":"number","default":0}`, 1))
	w.goOn(700, 2)
	w.sells[0] = 0
	w.goOn(400, 2)
	if a := w.alarm(); a == nil || a.Check != "no-sale" {
		t.Fatalf("after %d decisions the alarm is %+v", w.n, a)
	}
	learned := w.learned()
	w.goOn2(2100 - w.n) // the first 300 expire
	middle := snapshot(t, e)
	held := mustStats(t, e).Guard.Held
	if stale := mustStats(t, e).Stale; stale < 100 {
		t.Fatalf("%d decisions with the old features have expired", stale)
	}
	fatal.If(t, e.ClearAlarm(t.Context(), "home", true, w.now))
	if now := w.learned() - learned; now != held || held < 100 || foreign.Load() > 0 {
		t.Errorf("%d of %d rounds that were held are learned, %d of them with other features", now, held,
			foreign.Load())
	}
	now := snapshot(t, e)
	for what, from := range map[string][]byte{"the log": nil, "a snapshot": middle, "the end": now} {
		if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: from, Build: build})) {
			t.Errorf("%s gives another state", what)
		}
	}
}

// measured counts rounds with rows of another width than its own.
type measured struct {
	*showing
	width   int
	foreign *atomic.Int64
}

func (m *measured) Observe(r vitrine.Round) error {
	if _, n := r.Context.Features.Dims(); n != m.width {
		m.foreign.Add(1)
	}
	return m.showing.Observe(r)
}

// catchingUp is a shop with a cleared alarm, a learner that is still catching up, and a snapshot of it.
func catchingUp(t *testing.T) (w *trade, store *memlog.Store, from []byte, held uint64) {
	t.Helper()
	store = new(memlog.Store)
	var catches atomic.Bool
	gate, waits := make(chan struct{}), make(chan struct{}, 1000)
	build := func(setup.Spec) (vitrine.Learner, error) {
		own := &showing{}
		return &gatedShowing{own, func() {
			if catches.Load() {
				waits <- struct{}{}
				<-gate
			}
		}}, nil
	}
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", fmt.Sprintf(guardedShop, ""))
	put(t, e, "other", fmt.Sprintf(guardedShop, ""))
	w = newTrade(t, e, 0.5)
	w.goOn(3000, 2)
	w.sells[0] = 0
	w.goOn(200, 2)
	w.goOn2(300)
	wait(t, e)
	held = mustStats(t, e).Guard.Held
	catches.Store(true)
	fatal.If(t, e.ClearAlarm(t.Context(), "home", true, w.now))
	<-waits
	var b bytes.Buffer
	if _, behind, err := e.WriteSnapshot(t.Context(), &b, time.Millisecond); err != nil || len(behind) != 1 {
		t.Fatal(behind, err)
	}
	catches.Store(false)
	close(gate)
	wait(t, e)
	return w, store, b.Bytes(), held
}

// gatedShowing waits before it observes.
type gatedShowing struct {
	*showing
	wait func()
}

func (g *gatedShowing) Observe(r vitrine.Round) error { g.wait(); return g.showing.Observe(r) }

// A snapshot of a learner that still has to catch up is readable no matter how quickly the learner finishes. Without a
// log it finishes immediately.
func TestSnapshotOfALearnerThatCatchesUp(t *testing.T) {
	w, store, from, _ := catchingUp(t)
	slow := func(setup.Spec) (vitrine.Learner, error) {
		time.Sleep(50 * time.Millisecond) // home's learner could finish before other's is built
		return &showing{}, nil
	}
	if _, err := engine.VerifySnapshot(slow, from); err != nil {
		t.Error(err)
	}
	if now := snapshot(t, w.e); !bytes.Equal(now,
		replayed(t, engine.Options{Store: store, Snapshot: from, Build: slow})) {
		t.Error("the snapshot gives another state")
	}
	same(t, w.e, store, from)
}

// Rounds held during an alarm count as skipped if their entries are removed before the learner reads them. A snapshot
// that still needs these entries is refused.
func TestOutageOfALogThatIsCut(t *testing.T) {
	_, store, from, _ := catchingUp(t)
	is(t, "removing", store.TruncateBefore(t.Context(), lastOf(t, store)), nil)
	expect.Fails(engine.Open(t.Context(), engine.Options{Store: store, Build: buildShowing(showing{}),
		Snapshot: from}))(t, eventlog.ErrRemoved, "a snapshot whose learner needs entries that were removed")

	w, store := outage(t, "")
	w.goOn2(300)
	before, held := w.learned(), mustStats(t, w.e).Guard.Held
	is(t, "removing", store.TruncateBefore(t.Context(), lastOf(t, store)), nil)
	fatal.If(t, w.e.ClearAlarm(t.Context(), "home", true, w.now))
	learned := w.learned()
	s := mustStats(t, w.e)
	if learned != before || held < 290 || s.Skipped != held || !strings.Contains(s.Problem, "sales alarm") {
		t.Errorf("of %d rounds that were held %d are learned and %d skipped, with the problem %q", held, learned-before,
			s.Skipped, s.Problem)
	}
	now := snapshot(t, w.e)
	if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: now, Build: buildShowing(showing{})})) {
		t.Error("the snapshot gives another state")
	}
}

func lastOf(t *testing.T, store *memlog.Store) uint64 {
	t.Helper()
	x := fatal.Or(store.Extent(t.Context()))(t)
	return x.Last
}
