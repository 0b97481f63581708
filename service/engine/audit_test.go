package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/state"
)

// audited takes the entries of a log from one on, and returns what is unlawful.
func audited(t *testing.T, a *engine.Audit, store eventlog.Log) (faults []string) {
	t.Helper()
	for entry, err := range store.Entries(t.Context(), a.Sequence()+1) {
		fatal.If(t, err)
		if _, err := a.Entry(entry); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

func newAudit(t *testing.T, snapshot []byte) *engine.Audit {
	t.Helper()
	a := fatal.Or(engine.NewAudit(buildToy, snapshot))(t)
	t.Cleanup(a.Close)
	return a
}

// An engine's log is valid, with poisoned learners, rollbacks and all, and the tallies equal the engine's, also from a
// snapshot on.
func TestAuditOfAnEngine(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	put(t, e, "cart", toys)
	var middle []byte
	for i := range 40 {
		id := fmt.Sprint("d", i)
		decide(t, e, "home", stock(id, 3), int64(i)*minute)
		if i%2 == 0 {
			fatal.If(t, e.Outcome(t.Context(), "home", id, "", int64(i)*minute+1))
		}
		if i == 20 {
			version, err := e.Keep(t.Context(), "home", "", 0)
			if err == nil {
				err = e.RollBack(t.Context(), "home", version, nil, 0)
			}
			fatal.If(t, err)
			middle = snapshot(t, e)
		}
	}
	fatal.Or(e.Expire(t.Context(), 60*minute))(t)
	fatal.If(t, e.Delete(t.Context(), "cart", nil, 0))
	s := fatal.Or(e.Stats("home"))(t)
	want := []engine.Tally{{Placement: "home", Decisions: s.Decisions, Chosen: s.Outcomes, Expired: s.Expired,
		Open: s.Pending}}
	for _, from := range [][]byte{nil, middle} {
		a := newAudit(t, from)
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("faults %q", faults)
		}
		expect.Equal(t, a.Tallies(), want, "tallies")
		if a.Sequence() != e.Sequence() {
			t.Errorf("it ends at entry %d of %d", a.Sequence(), e.Sequence())
		}
	}
	at, err := state.SnapshotPosition(middle)
	if err != nil || at.Sequence == 0 || at.Sequence >= e.Sequence() {
		t.Errorf("the snapshot of the middle is of entry %d, %v", at.Sequence, err)
	}
}

// An audit names every unlawful entry and goes on; an engine would stop at the first.
func TestAuditOfUnlawfulEntries(t *testing.T) {
	offer := func(id string) *eventlog.Offered {
		return &eventlog.Offered{
			Decision: id, Candidates: 1, ItemIDs: []string{"i"}, Width: 1, Features: []float64{1}, Shown: []int32{0},
			Mode: offer.ByPolicy, Answer: []byte{1, 0, 1},
		}
	}
	store := new(memlog.Store)
	for _, body := range []eventlog.Body{
		offer("early"), // 1, before its placement
		&eventlog.PlacementPut{Config: []byte(toys)},
		offer("a"),
		&eventlog.Chosen{Decision: "a", Choice: 2}, // 4
		&eventlog.Chosen{Decision: "a", Choice: 1},
		&eventlog.Chosen{Decision: "a"},  // 6
		&eventlog.Expired{Decision: "b"}, // 7
		nil,                              // 8, no event
		offer("b"),
		&eventlog.Expired{Decision: "b"},
		&eventlog.PlacementPut{Config: []byte(strings.Replace(toys, `"policy":{}`, `"policy":{"name":"none"}`, 1))},
		// 11
		offer("c"),
		&eventlog.Corrected{Decision: "b", Entry: 9, Mode: 1, Shown: []string{"i"}, Choice: 1, Value: 1},
		&eventlog.Corrected{Decision: "b", Correction: "r", Entry: 9, Mode: 1, Shown: []string{"i"}, Choice: 1,
			Before: 1,
			Value:  -1, InTime: true, Bound: 1}, // 14, of an outcome that was late
	} {
		entry := []byte{1, 99}
		if body != nil {
			var err error
			if entry, err = (&eventlog.Event{Placement: "home", Body: body}).Encode(nil); err != nil {
				t.Fatal(err)
			}
		}
		fatal.Or(store.Append(t.Context(), entry))(t)
	}
	a := newAudit(t, nil)
	_, unknown := eventlog.Decode([]byte{1, 99})
	want := []string{
		`entry 1, placement "home": the placement: not found`,
		`entry 4, placement "home": decision "a" showed 1 items, and item 2 was chosen`,
		`entry 6, placement "home": decision "a" has its outcome already`,
		`entry 7, placement "home": decision "b": not found`,
		"entry 8: " + unknown.Error(),
		`entry 11, placement "home": a put of a placement changes what its learner sees`,
		`entry 14, placement "home": decision "b" is late with item 1, and item 1 is corrected`,
	}
	expect.Equal(t, audited(t, a, store), want, "faults")
	expect.Equal(t, a.Tallies(), []engine.Tally{{Placement: "home", Decisions: 3, Chosen: 1, Expired: 1, Open: 1}},
		"tallies")
}

// lawful audits a log from its first entry on.
func lawful(t *testing.T, store *memlog.Store) {
	t.Helper()
	a := newAudit(t, nil)
	for entry, err := range store.Entries(t.Context(), 1) {
		if err == nil {
			_, err = a.Entry(entry)
		}
		fatal.If(t, err)
	}
}

func TestAuditOfNoSnapshot(t *testing.T) {
	expect.Refused(engine.NewAudit(buildToy, []byte("what")))(t)
	expect.Refused(state.SnapshotPosition([]byte("what")))(t)
}
