package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
)

var clockSteps = flag.Int("clock-steps", 2, "how often TestClockStepsUnderLoad steps the time of day of a service")

// steppedClock is a time of day with an offset.
type steppedClock struct{ off atomic.Int64 }

func (c *steppedClock) now() time.Time           { return time.Now().Round(0).Add(time.Duration(c.off.Load())) }
func (c *steppedClock) stepTo(off time.Duration) { c.off.Store(int64(off)) }

// The time of day is stepped under a service that works: decisions and outcomes go on, decisions whose window is long
// stay open, the others expire as before, no entry is removed for its age, and the entries' times go on without a
// step. Then it is started while the time of day is an hour behind, and again when it is right.
func TestClockStepsUnderLoad(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newService()
	clock := new(steppedClock)
	s.options.Wall, s.Data = clock.now, filepath.Join(t.TempDir(), "data")
	log := filepath.Join(s.Data, host.LogDir)
	s.Snapshots.Every.Duration, s.Retention.Age.Duration = 100*time.Millisecond, 30*time.Minute
	v := served(t, s)
	const year = 365 * 24 * time.Hour
	offs := []time.Duration{year, 0, time.Hour, 0, -time.Hour, 0}
	for n := range *clockSteps {
		to := offs[n%len(offs)]
		clock.stepTo(to)
		v.awaits(warnsOfStep, n+1)
		v.works()
		if t.Failed() {
			t.Fatalf("at step %d, to %v:\n%s", n+1, to, &v.log.text)
		}
	}
	v.Report(t.Context())
	v.end(log)
	times := timesOf(t, s.Data)
	for i := 1; i < len(times); i++ {
		if apart := times[i].Sub(times[i-1]); apart.Abs() > time.Minute {
			t.Errorf("entry %d is %v after the one before", i+1, apart)
		}
	}

	s.Retention.Age.Duration = 2 * time.Hour // now entries an hour apart are meant to be there
	for _, to := range []time.Duration{-time.Hour, 0} {
		clock.stepTo(to)
		v.begin(s)
		if _, warned := v.log.line(warnsOfFuture); warned != (to < 0) {
			t.Errorf("started with the clock at %v: warned %v", to, warned)
		}
		v.works()
		v.Report(t.Context())
		v.end(log)
	}
	for _, c := range []string{"check", "replay"} { // of all its bases, too
		if said, code := command(t, c, s.Data); code != 0 {
			t.Errorf("%s: %s", c, said)
		}
	}
	timesOf(t, s.Data)
	held(t, fmt.Sprintf("%d steps of the time of day under load, in turn to 1 year ahead, 1 hour ahead and 1 hour behind and back, and a start while it was an hour behind: %v, none lost or changed; no decision expired before its window was over, no entry was removed, the entries are in the order of their times",
		*clockSteps, v.Ledger))
}

const (
	warnsOfStep   = "the time of day was stepped: the service keeps its own time until it is started again"
	warnsOfFuture = "the log's last event is in the future: the clock was ahead then or is behind now"
)

// works waits until decisions were made, some have expired, and a snapshot and its removals are done, and
// checks that no decision with a long window has ended.
func (v *busy) works() {
	v.Helper()
	ctx := v.Context()
	expired, snapshots := v.Stats(ctx, "brief").Expired, v.log.count("snapshot")
	v.Flows(ctx)
	v.awaits("snapshot", snapshots+2) // entries are removed after each
	for v.Stats(ctx, "brief").Expired <= expired {
		time.Sleep(20 * time.Millisecond)
	}
	if s := v.Stats(ctx, "home"); s.Expired+s.ExpiredEarly > 0 {
		v.Errorf("%d decisions with a window of 8 hours have expired", s.Expired+s.ExpiredEarly)
	}
	if v.log.count("removed") > 0 {
		v.Error("entries were removed for their age")
	}
}

// timesOf returns the times of a log's entries, of which none is missing at the beginning.
func timesOf(t *testing.T, data string) (times []time.Time) {
	t.Helper()
	store := fatal.Or(filelog.Open(t.Context(), filelog.Options{Dir: filepath.Join(data, host.LogDir), ReadOnly: true}))(t)
	defer store.Close()
	for entry, err := range store.Entries(t.Context(), 1) { // an error if it has been removed
		fatal.If(t, err)
		e := fatal.Or(eventlog.Decode(entry))(t)
		times = append(times, time.Unix(0, e.Time))
	}
	return times
}
