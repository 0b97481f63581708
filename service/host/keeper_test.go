package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/alert"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// stuck is a learner that learns only after the gate opens.
type stuck struct {
	vitrine.Learner
	gate chan struct{}
}

func (s stuck) Observe(r vitrine.Round) error {
	<-s.gate
	return s.Learner.Observe(r)
}

func (s stuck) MarshalBinary() ([]byte, error) { return nil, nil }
func (s stuck) UnmarshalBinary([]byte) error   { return nil }

// A learner that is stuck keeps no snapshot from being written, and is reported once.
func TestSnapshotOfAStuckLearner(t *testing.T) {
	data := t.TempDir()
	gate := make(chan struct{})
	defer close(gate)
	ctx := t.Context()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, LogDir)}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
		l, err := setup.NewLearner(s)
		return stuck{l, gate}, err
	}}))(t)
	defer e.Close()
	fatal.Or(e.Put(ctx, "home", []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1))(t)
	decide := func(id string) {
		t.Helper()
		r := &api.Request{Decision: id, Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}}}}
		fatal.Or(e.Decide(ctx, "home", r, 1))(t)
		fatal.If(t, e.Outcome(ctx, "home", id, "a", 2))
	}
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	k := keeper{engine: e, log: store, now: func() time.Time { return now }, path: filepath.Join(data, SnapshotFile),
		logger: slog.New(slog.NewJSONHandler(&log, nil))}
	begin, stepped := now, time.Duration(0)
	process := &session{service: &service{Config: Config{Data: data}}, keeper: &k,
		clock: newClock(func() time.Time { return now.Add(stepped) }, func() time.Duration { return now.Sub(begin) })}
	process.Snapshots.Every.Duration = time.Minute
	for i := range 2 {
		decide(string(rune('a' + i)))
		now = now.Add(time.Hour)
		k.write(ctx)
		snapshot := fatal.Or(os.ReadFile(k.path))(t)
		if p, err := state.SnapshotPosition(snapshot); err != nil || p.Sequence != e.Sequence() || k.age() != 0 {
			t.Errorf("the snapshot ends with entry %d, the engine with %d, %v old, %v", p.Sequence, e.Sequence(),
				k.age(), err)
		}
	}
	warns := func(begin string) bool {
		return slices.ContainsFunc(process.problems(budget.Usage{}), func(p alert.Problem) bool {
			return p.Level == "warning" && strings.HasPrefix(p.Text, begin)
		})
	}
	if now = now.Add(3 * time.Minute); warns("The last snapshot") {
		t.Error("a snapshot three minutes old is a problem")
	}
	if now = now.Add(time.Minute); !warns("The last snapshot is 4m0s old") {
		t.Error("a snapshot four minutes old is no problem")
	}
	if stepped = -time.Minute; warns("The machine's clock") {
		t.Error("a clock a minute behind is a problem")
	}
	if stepped -= time.Second; !warns("The machine's clock differs from the service's by -1m1s") {
		t.Error("a clock 61 seconds behind is no problem")
	}
	isFull := func() bool {
		return slices.ContainsFunc(process.problems(budget.Usage{}), func(p alert.Problem) bool {
			return p.Level == "bad" && strings.HasPrefix(p.Text, "There are more shoppers than keys: 3 shoppers")
		})
	}
	lost := 0
	process.replaced = func() int { return lost }
	expect.Equal(t, isFull(), false, "there are too many shoppers")
	lost = 3
	expect.Equal(t, isFull(), true, "there are too many shoppers")
	// A snapshot that other machines lack is old, too: no entries are removed.
	broken := errors.New("no permission")
	k.share = func(context.Context, eventlog.Position, io.Reader) error { return broken }
	for _, age := range []time.Duration{time.Hour, 0, 0} {
		decide(strconv.FormatInt(now.Unix(), 10))
		k.written.Store(now.UnixNano())
		now = now.Add(time.Hour)
		k.write(ctx)
		k.spread(ctx, time.Minute)
		expect.Equal(t, k.age(), age, "a snapshot is too old or too young")
		broken = nil
	}
	now = now.Add(time.Hour)
	k.write(ctx)
	k.spread(ctx, time.Minute)
	expect.Equal(t, k.age(), 0, "the snapshot of an idle service is old")
	if text := log.String(); strings.Count(text, "learners lag") != 1 ||
		!strings.Contains(text, `"placements":["home"]`) {
		t.Errorf("the log has %s", text)
	}
}

// A log that exceeds its size while all its entries are needed is snapshotted as it grows, and not at every look. Once
// the entries are no longer needed, they are removed.
func TestLooksAtALogThatCannotBeCut(t *testing.T) {
	data := t.TempDir()
	ctx := t.Context()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, LogDir)}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(ctx, "home", []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1))(t)
	decisions := 0
	trade := func(n int) {
		t.Helper()
		for range n {
			decisions++
			id := fmt.Sprint("d", decisions)
			r := &api.Request{Decision: id, Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}}}}
			fatal.Or(e.Decide(ctx, "home", r, 1))(t)
			fatal.If(t, e.Outcome(ctx, "home", id, "a", 2))
		}
	}
	var log bytes.Buffer
	needed := uint64(1)
	k := keeper{
		engine: e, log: store, now: time.Now, sure: time.Now, path: filepath.Join(data, SnapshotFile),
		retention: &Retention{Size: 10_000, Log: store, Data: data, Needs: func(uint64) uint64 { return needed }},
		logger:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	snapshots := func() int { return strings.Count(log.String(), "msg=snapshot") }
	trade(500)
	for range 5 {
		k.look(ctx)
		trade(1)
	}
	if n := snapshots(); n != 1 {
		t.Errorf("%d snapshots of a log that has not grown: %s", n, &log)
	}
	trade(100)
	if k.look(ctx); snapshots() != 2 {
		t.Errorf("%d snapshots after the log has grown", snapshots())
	}
	needed = 1 << 60
	trade(100)
	k.look(ctx)
	if bytes, err := k.retention.excess(ctx); bytes != 0 || err != nil {
		t.Errorf("%d bytes are left, %v: %s", bytes, err, &log)
	}
}
