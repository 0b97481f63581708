package host

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/setup"
)

// stuck is a learner that learns nothing before the gate is open.
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
	store, err := natslog.Open(ctx, natslog.Options{Dir: filepath.Join(data, LogDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := decision.Open(ctx, decision.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
		l, err := setup.NewLearner(s)
		return stuck{l, gate}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Put(ctx, "home", []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1); err != nil {
		t.Fatal(err)
	}
	decide := func(id string) {
		t.Helper()
		r := &api.Request{Decision: id, Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}}}}
		if _, err := e.Decide(ctx, "home", r, 1); err != nil {
			t.Fatal(err)
		}
		if err := e.Outcome(ctx, "", id, "a", 2); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	k := keeper{engine: e, log: store, now: func() time.Time { return now }, path: filepath.Join(data, SnapshotFile), logger: slog.New(slog.NewJSONHandler(&log, nil)), outliers: map[string]uint64{}}
	for i := range 2 {
		decide(string(rune('a' + i)))
		now = now.Add(time.Hour)
		k.write(ctx)
		snapshot, err := os.ReadFile(k.path)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := decision.SnapshotPosition(snapshot); err != nil || p.Sequence != e.Sequence() || k.age() != 0 {
			t.Errorf("the snapshot ends with entry %d, the engine with %d, %v old, %v", p.Sequence, e.Sequence(), k.age(), err)
		}
	}
	if text := log.String(); strings.Count(text, "learners lag") != 1 || !strings.Contains(text, `"placements":["home"]`) {
		t.Errorf("the log has %s", text)
	}
}
