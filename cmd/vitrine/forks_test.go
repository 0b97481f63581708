package main

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
	"vitrine/service/setup"
)

// tradeOn opens the log of a data directory, makes decisions with new ids, and writes a snapshot.
func tradeOn(t *testing.T, data, name string, decisions int) {
	t.Helper()
	err := withEngine(data, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		if err := e.Create(ctx, "home", []byte(
			`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`), now); err != nil {
			return err
		}
		for i := range decisions {
			r := &api.Request{Decision: fmt.Sprint(name, i)}
			for k := range 3 {
				r.Items = append(r.Items, api.Item{ID: fmt.Sprint("i", k),
					Features: api.Values{api.Number("x", float64((i*k)%5+len(name)))}})
			}
			a, err := e.Decide(ctx, "home", r, now)
			if err == nil {
				err = e.Outcome(ctx, "home", a.Decision, a.IDs()[i%2], now)
			}
			if err != nil {
				return err
			}
		}
		snapshot, _, err := e.Snapshot(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(data, host.SnapshotFile), snapshot, 0o600)
	})
	fatal.If(t, err)
}

// A snapshot of another log, or of a copy that grew separately, is never used: the service warns, learns from
// its own log again, and knows every acknowledged decision.
func TestForeignSnapshots(t *testing.T) {
	ours := filepath.Join(t.TempDir(), "ours")
	tradeOn(t, ours, "ours", 20)
	fork := copyOf(t, ours)
	tradeOn(t, fork, "fork", 3)
	tradeOn(t, ours, "later", 9)
	other := filepath.Join(t.TempDir(), "other")
	tradeOn(t, other, "other", 15)
	long := filepath.Join(t.TempDir(), "long")
	tradeOn(t, long, "long", 60)

	for _, c := range []struct{ name, data, want string }{
		{"another log", other, "belongs to another log"},
		{"another log that is longer", long, "belongs to another log"},
		{"a fork", fork, "of a copy of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := copyOf(t, ours)
			foreign := fatal.Or(os.ReadFile(filepath.Join(c.data, host.SnapshotFile)))(t)
			fatal.If(t, os.WriteFile(filepath.Join(data, host.SnapshotFile), foreign, 0o600))
			if output, code := command(t, "check", data); code != 1 ||
				!strings.Contains(output, host.SnapshotFile+": ") {
				t.Errorf("check: exit status %d: %s", code, output)
			}
			s := newService(t)
			s.Data = data
			url, log, stop := serving(t, s)
			for id, n := range map[string]int{"ours": 20, "later": 9} {
				for i := range n {
					ask(t, 200, "GET", fmt.Sprintf("%s/v1/placements/home/decisions/%s%d", url, id, i), "")
				}
			}
			ask(t, 404, "GET", url+"/v1/placements/home/decisions/fork1", "")
			if line, ok := log.line("a snapshot is unusable: more of the log is replayed"); !ok ||
				line["level"] != "WARN" || !strings.Contains(fmt.Sprint(line["cause"]), c.want) {
				t.Errorf("the service says %v, want a warning of %q", line, c.want)
			}
			expect.Error(t, stop(), nil)
			program.Sound(t, data) // its own snapshot is in the place of the foreign one
		})
	}
}

// Copies that both grew are found, with their last common entry.
func TestForksAreFound(t *testing.T) {
	ours := filepath.Join(t.TempDir(), "ours")
	tradeOn(t, ours, "ours", 20) // 41 entries
	backup, fork := copyOf(t, ours), copyOf(t, ours)
	tradeOn(t, ours, "later", 9)
	tradeOn(t, fork, "fork", 3)
	other := filepath.Join(t.TempDir(), "other")
	tradeOn(t, other, "other", 5)
	brief := copyOf(t, backup) // one entry after the backup, and another one than ours
	fatal.If(t, withEngine(brief, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		return e.Delete(ctx, "home", nil, 1)
	}))
	for _, c := range []struct {
		a, b string
		code int
		want string
	}{
		{ours, ours, 0, "are the same, up to entry 59"},
		{ours, backup, 0, backup + " is what " + ours + " was after entry 41"},
		{backup, fork, 0, backup + " is what " + fork + " was after entry 41"},
		{ours, fork, 1, "have forked: they are the same up to entry 41 and differ after it; their last entries " +
			"are 59 and 47"},
		{fork, ours, 1, "have forked: they are the same up to entry 41 and differ after it; their last entries " +
			"are 47 and 59"},
		{ours, brief, 1, "have forked: they are the same up to entry 41 and differ after it; their last entries " +
			"are 59 and 42"},
		{ours, other, 1, "they are not copies of one log"},
	} {
		if output, code := command(t, "check", c.a, "--against", c.b); code != c.code ||
			!strings.Contains(output, c.want) {
			t.Errorf("exit status %d: %s\nwant %d with %q", code, output, c.code, c.want)
		}
	}
}

// The data directory is moved from under a service, and another begins in its place: the first one writes nothing
// there.
func TestMovedDirectory(t *testing.T) {
	root := t.TempDir()
	s := newService(t)
	s.Data = filepath.Join(root, "data")
	s.Snapshots.Every.Duration = 5 * time.Millisecond
	url, _, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for i := range 40 {
		ask(t, 201, "POST", url+"/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"a%d","items":[{"id":"a","features":{"x":1}}]}`, i))
	}
	fatal.If(t, os.Rename(s.Data, filepath.Join(root, "moved")))
	tradeOn(t, s.Data, "new", 35)
	want := fatal.Or(os.ReadFile(filepath.Join(s.Data, host.SnapshotFile)))(t)
	_ = stop() // it ends by itself when it sees that
	if have, err := os.ReadFile(filepath.Join(s.Data, host.SnapshotFile)); err != nil || string(have) != string(want) {
		t.Errorf("the service whose directory was moved wrote into another one, %v", err)
	}
	program.Sound(t, s.Data)
	if output, code := command(t, "check", filepath.Join(root, "moved")); code != 0 {
		t.Errorf("check: %s", output)
	}
}

// altered is a learner with saved states that this program cannot read.
type altered struct {
	vitrine.Learner
}

func (l altered) MarshalBinary() ([]byte, error) {
	data, err := l.Learner.(encoding.BinaryMarshaler).MarshalBinary()
	return append(data, 1), err
}

func (l altered) UnmarshalBinary(data []byte) error {
	return l.Learner.(encoding.BinaryUnmarshaler).UnmarshalBinary(data[:len(data)-1])
}

// The learners of a snapshot cannot be read. A service with a complete log learns from it; if the log lost its
// beginning these learners begin again, and the service says so, now and in the statistics.
func TestServeBeginsAgain(t *testing.T) {
	for _, cut := range []bool{false, true} {
		data := filepath.Join(t.TempDir(), "data")
		tradeOn(t, data, "known", 20)
		err := withLog(data, func(ctx context.Context, store *filelog.Store) error {
			e, err := engine.Open(ctx, engine.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
				l, err := setup.NewLearner(s)
				return altered{l}, err
			}})
			if err != nil {
				return err
			}
			defer e.Close()
			snapshot, _, err := e.Snapshot(ctx)
			if err != nil {
				return err
			}
			if cut {
				err = store.TruncateBefore(ctx, 30)
			}
			return errors.Join(err, os.WriteFile(filepath.Join(data, host.SnapshotFile), snapshot, 0o600))
		})
		fatal.If(t, err)
		if output, code := command(t, "check", data); code != 1 || !strings.Contains(output, "placement \"home\": ") {
			t.Errorf("cut %v: check: exit status %d: %s", cut, code, output)
		}
		s := newService(t)
		s.Data = data
		url, log, stop := serving(t, s)
		forgotten := 0.0
		if cut {
			forgotten = 20
		}
		stats := map[string]any{"lag_rounds": 1.0}
		for stats["lag_rounds"] != 0.0 { // the learner goes on beside the answers
			fatal.If(t, json.Unmarshal([]byte(ask(t, 200, "GET", url+"/v1/placements/home/stats", "")), &stats))
		}
		if stats["forgotten"] != forgotten || stats["learned"] != 20-forgotten {
			t.Errorf("cut %v: statistics %v", cut, stats)
		}
		if line, ok := log.line("a learner starts from nothing: its saved state cannot be read, and the log no " +
			"longer has its rounds"); ok != cut || ok && line["level"] != "WARN" {
			t.Errorf("cut %v: the service says %v", cut, line)
		}
		known := 200
		if cut { // the log lost it
			known = 404
		}
		ask(t, known, "GET", url+"/v1/placements/home/decisions/known7", "")
		expect.Error(t, stop(), nil)
		sound := "equal, at entry 42" // the clock moved since the trade
		if cut {
			sound = "the replay begins with it"
		}
		if output, code := command(t, "replay", data); code != 0 || !strings.Contains(output, sound) {
			t.Errorf("cut %v: replay: exit status %d: %s", cut, code, output)
		}
	}
}
