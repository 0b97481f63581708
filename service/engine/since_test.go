package engine_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A snapshot does not wait for a lagging learner: it holds the learner's tasks, including versions to keep and to roll
// back to. With the entries after it it gives the same state as all entries, and closing does not wait either.
func TestSnapshotOfALearnerThatIsBehind(t *testing.T) {
	store, gate := new(memlog.Store), make(chan struct{})
	defer close(gate)
	var waiting atomic.Int64
	rounds := 0
	build := func(s setup.Spec) (vitrine.Learner, error) {
		return &toy{size: s.Size, before: func(*vitrine.Context) {
			if rounds++; rounds > 300 { // after the first checkpoint
				waiting.Add(1)
				<-gate
			}
		}}, nil
	}
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", toys)
	for i := range 299 {
		one(t, e, "home", fmt.Sprint("d", i), float64(i%7))
	}
	wait(t, e)
	version := fatal.Or(e.Keep(t.Context(), "home", "", 1))(t)
	one(t, e, "home", "sour", sour)
	wait(t, e)
	if _, behind, err := e.WriteSnapshot(t.Context(), new(bytes.Buffer), time.Minute); err != nil || behind != nil {
		t.Fatalf("a learner that keeps up is behind: %v, %v", behind, err)
	}
	for i := range 10 {
		one(t, e, "home", fmt.Sprint("e", i), []float64{1, poison, sour}[i%3])
	}
	for waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	fatal.Or(e.Keep(t.Context(), "home", "", 2))(t)
	fatal.If(t, e.RollBack(t.Context(), "home", version, nil, 3))
	one(t, e, "home", "f", 2)
	var snapshots [][]byte
	for range 2 {
		var w bytes.Buffer
		upTo, behind, err := e.WriteSnapshot(t.Context(), &w, time.Millisecond)
		if err != nil || upTo != e.Sequence() || len(behind) != 1 || behind[0] != "home" {
			t.Fatalf("a snapshot up to %d, at %d, behind is %q, %v", upTo, e.Sequence(), behind, err)
		}
		snapshots = append(snapshots, w.Bytes())
	}
	one(t, e, "home", "g", 3)
	e.Close() // with the learner at its round

	want := replayed(t, engine.Options{Store: store, Build: buildToy})
	for i, from := range snapshots {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(want) {
			t.Errorf("snapshot %d gives another state", i)
		}
	}
	again := opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshots[0]})
	wait(t, again)
	if s, err := again.Stats("home"); err != nil || s.Lag != 0 || len(s.Versions) != 2 || s.Learned != 301 {
		t.Errorf("%+v, %v", s, err)
	}
	is(t, "rolling back", again.RollBack(t.Context(), "home", version, nil, 4), nil)
	if n, err := engine.VerifySnapshot(buildToy, snapshots[0]); err != nil || n == 0 {
		t.Errorf("verified up to %d, %v", n, err)
	}
	expect.Part(again.WriteSnapshot(t.Context(), broken{}, 0))(t, "full", "a snapshot on a full disk")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("full") }
