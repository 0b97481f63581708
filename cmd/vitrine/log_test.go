package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/host"
	"vitrine/service/setup"
)

// shop is the placement of the logs of the tests.
const shop = `{"max_size":2,"log_items":"all","policy":{"name":"onl-mnl","warmup":2},"features":[
	{"name":"price","kind":"number","center":2,"scale":4},
	{"name":"brand","kind":"category","values":["acme","zeta"],"allow_other":true},
	{"name":"title","kind":"text","columns":3},
	{"name":"age","kind":"number","from":"shopper","default":30,"scale":10},
	{"name":"price by age","kind":"cross","of":["price","age"]}]}`

// serviceLog DIR ROUNDS makes the data directory of a service after the given number of decisions: a log, and a
// snapshot of the middle. One in three decisions gets no outcome in time, the last one none yet.
func serviceLog(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	rounds, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(withEngine(dir, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		return trade(ctx, e, filepath.Join(dir, "state.snapshot"), rounds)
	}))
}

// withLog opens the log of a data directory for writing.
func withLog(dir string, f func(context.Context, *filelog.Store) error) error {
	ctx := context.Background()
	store, err := filelog.Open(ctx, filelog.Options{Dir: filepath.Join(dir, "log")})
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, store), store.Close())
}

// withEngine opens the log of a data directory for writing, with an engine that read all of it.
func withEngine(dir string, f func(context.Context, *engine.Engine, *filelog.Store) error) error {
	return withLog(dir, func(ctx context.Context, store *filelog.Store) error {
		e, err := engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner})
		if err != nil {
			return err
		}
		defer e.Close()
		return f(ctx, e, store)
	})
}

// trade is one decision a minute from noon of 2026-01-01 on.
func trade(ctx context.Context, e *engine.Engine, snapshot string, rounds int) error {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	if rounds == 0 {
		return nil
	}
	if _, err := e.Put(ctx, "home", []byte(shop), now); err != nil {
		return err
	}
	if _, err := e.Put(ctx, "cart", []byte(
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), now); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, uint64(rounds)))
	for i := 1; i <= rounds; i++ {
		now += int64(time.Minute)
		r := &api.Request{Decision: fmt.Sprint("d", i), User: api.Values{api.Number("age", float64(20+i))}}
		for k, brand := range []string{"acme", "zeta", "none"} {
			r.Items = append(r.Items, api.Item{ID: fmt.Sprint("sku", k), Features: api.Values{
				api.Number("price", float64(k)+0.5), api.Text("brand", brand), api.Text("title", "blue coat"),
			}, Revenue: new(float64(k + 1))})
		}
		a, err := e.Decide(ctx, "home", r, now)
		if err != nil {
			return err
		}
		if i%3 > 0 && i < rounds {
			item := append(a.IDs(), "")[rng.IntN(len(a.IDs())+1)]
			if err := e.Outcome(ctx, "home", a.Decision, item, now+int64(time.Second)); err != nil {
				return err
			}
		}
		if err := e.Wait(ctx); err != nil { // so that all runs make the same log
			return err
		}
		if i != rounds/2 {
			continue
		}
		data, _, err := e.Snapshot(ctx)
		if err != nil {
			return err
		}
		if err := os.WriteFile(snapshot, data, 0o644); err != nil {
			return err
		}
	}
	_, err := e.Expire(ctx, now+int64(28*time.Minute)) // of the window of 30
	return err
}

// deferred DIR makes a log of deferred decisions of two items: an expired one, one with a reward of an item, one with a
// chosen item, one that was not activated in time, and one that still can be.
func deferred(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(withEngine(ts.MkAbs(args[0]), func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		_, err := e.Put(ctx, "home", []byte(
			`{"max_size":2,"features":[{"name":"o","kind":"object","columns":2}],"policy":{"name":"ucb-mnl"}}`), 0)
		decide := func(id string, now time.Duration) {
			r := &api.Request{Decision: id, Defer: true, Slots: []api.Slot{{ID: "left", Exclude: []string{"b"}},
				{ID: "right"}}}
			for _, item := range []string{"a", "b"} {
				r.Items = append(r.Items, api.Item{ID: item, Features: api.Values{api.Object("o", `{"x":1}`)}})
			}
			if err == nil {
				_, err = e.Decide(ctx, "home", r, int64(now))
			}
		}
		for _, id := range []string{"activated", "in-parts", "taken", "late"} {
			decide(id, 0)
		}
		err = errors.Join(err, e.Activate(ctx, "home", "activated", 1), e.Reward(ctx, "home", "in-parts",
			[]api.Reward{{Item: "a"}}, 1), e.Outcome(ctx, "home", "taken", "b", 1))
		decide("left", time.Hour)
		_, expired := e.Expire(ctx, int64(time.Hour))
		return errors.Join(err, expired)
	}))
}

// unlawful DIR appends entries to a log that no service writes: a repeated outcome, an outcome of an unknown
// decision, and bytes that are no event.
func unlawful(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(withLog(ts.MkAbs(args[0]), func(ctx context.Context, store *filelog.Store) error {
		var entries [][]byte
		for _, body := range []eventlog.Body{
			&eventlog.Chosen{Decision: "d1"},
			&eventlog.Chosen{Decision: "nobody"},
			&eventlog.LearnerRolledBack{Version: 12345},
		} {
			entry, err := (&eventlog.Event{Placement: "home", Body: body}).Encode(nil)
			if err != nil {
				return err
			}
			entries = append(entries, entry)
		}
		_, err := store.Append(ctx, append(entries, []byte("no event"))...)
		return err
	}))
}

// removed DIR ENTRY removes the entries before one.
func removed(ts *testscript.TestScript, _ bool, args []string) {
	entry, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	ts.Check(withLog(ts.MkAbs(args[0]), func(ctx context.Context, store *filelog.Store) error {
		return store.TruncateBefore(ctx, entry)
	}))
}

// damage DIR cut|flip BYTES cuts bytes off a log, or flips a bit so far from its end.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.MkAbs(args[0]), "log", fmt.Sprintf("%020d-%016x.wal", 1, 1))
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	data, err := os.ReadFile(path)
	ts.Check(err)
	if args[1] == "cut" {
		data = data[:len(data)-n]
	} else {
		data[len(data)-n] ^= 16
	}
	ts.Check(os.WriteFile(path, data, 0o644))
}

// servingLog DIR TO backs DIR up while its log is open for writing.
func servingLog(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(withLog(ts.MkAbs(args[0]), func(ctx context.Context, _ *filelog.Store) error {
		return backupCmd{ts.MkAbs(args[0]), ts.MkAbs(args[1])}.Run(ctx, terminal{io.Discard, io.Discard})
	}))
}

// The log on a server is read in its place.
func TestLogOnServer(t *testing.T) {
	url := natstest.URL(t)
	store := fatal.Or(natslog.Open(t.Context(), natslog.Options{URL: url}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: store, Build: setup.NewLearner}))(t)
	defer e.Close()
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	fatal.If(t, trade(t.Context(), e, snapshot, 12))
	for _, c := range []struct{ args, want string }{
		{"check", "has 25 entries, 1 to 25"},
		{"replay", "snapshot: equal, at entry 12"},
		{"export", `"decision_id":"d12"`},
	} {
		args := []string{c.args, url}
		if c.args == "replay" {
			args = append(args, snapshot)
		}
		mentions(t, run1(t, args...), c.want)
	}
	// Without its first entries it is compared with the snapshots in the data directory.
	data := t.TempDir()
	fatal.If(t, os.Rename(snapshot, filepath.Join(data, host.SnapshotFile)))
	config := filepath.Join(t.TempDir(), "service.toml")
	fatal.If(t, os.WriteFile(config, fmt.Appendf(nil, "data = %q\n[log]\nurl = %q\n", data, url), 0o600))
	limits := host.Retention{Size: 1, Log: store, Data: data}
	if removed, err := limits.Apply(t.Context(), 12, time.Now()); err != nil ||
		removed.To != 6 { // entry 7 is an open decision's
		t.Errorf("removed %+v, %v", removed, err)
	}
	for _, c := range []struct{ args, want string }{
		{"check", "those after 12 are compared with " + data},
		{"replay", "equal, at entry 12"},
		{"export", `"decision_id":"d12"`},
	} {
		for _, log := range [][]string{{url, "--data", data}, {config}} {
			mentions(t, run1(t, append([]string{c.args}, log...)...), c.want)
		}
	}
	// The snapshot on the server serves, too.
	data = filepath.Join(data, host.SnapshotFile)
	file := fatal.Or(os.Open(data))(t)
	defer file.Close()
	fatal.If(t, store.PutSnapshot(t.Context(), fatal.Or(store.Position(t.Context(), 12))(t), file))
	for _, c := range []struct{ args, want string }{
		{"check", "those after 12 are compared with the snapshot of entry 12 on the servers"},
		{"replay", "the replay begins with it, after entry 12"},
		{"export", `"features":{`},
	} {
		mentions(t, run1(t, c.args, url), c.want)
	}
	// The writer is still the writer.
	if _, err := e.Keep(t.Context(), "home", "", 0); err != nil {
		t.Error(err)
	}
}

// An unreadable file is not reported as missing, and hints name only flags of the command.
func TestLogOfSomebodyElse(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	data := t.TempDir()
	fatal.If(t, withLog(data, func(context.Context, *filelog.Store) error { return nil }))
	for _, closed := range []string{data, filepath.Join(data, "log")} {
		fatal.If(t, os.Chmod(closed, 0))
		for _, args := range [][]string{{"check", data}, {"replay", data}, {"export", data},
			{"backup", data, filepath.Join(t.TempDir(), "to")}} {
			_, errs, code := vitrineRun(t, args...)
			if code != 1 || !strings.Contains(errs, "permission denied") || strings.Contains(errs, "--out") {
				t.Errorf("%s without permission for %s: exit status %d, %s", args, closed, code, errs)
			}
		}
		fatal.If(t, os.Chmod(closed, 0o700))
	}
}

// A service is backed up, checked and replayed while it runs, and another goes on from
// the backup.
func TestBackupOfService(t *testing.T) {
	s := newService(t)
	s.Snapshots.Every.Duration = 10 * time.Millisecond
	url, _, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for i := range 10 {
		ask(t, 201, "POST", url+"/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`,
				i, i))
		ask(t, 204, "POST", fmt.Sprintf("%s/v1/placements/home/decisions/d%d/outcome", url, i), `{"choice":"a"}`)
	}
	decision := ask(t, 200, "GET", url+"/v1/placements/home/decisions/d7", "")
	backup := filepath.Join(t.TempDir(), "backup")
	for _, args := range [][]string{{"backup", s.Data, backup}, {"check", s.Data}, {"check", backup},
		{"replay", s.Data}, {"replay", backup}} {
		run1(t, args...)
	}
	fatal.If(t, stop())
	s.Data = backup
	url, _, stop = serving(t, s)
	if got := ask(t, 200, "GET", url+"/v1/placements/home/decisions/d7", ""); got != decision {
		t.Errorf("restored: %s, was %s", got, decision)
	}
	fatal.If(t, stop())
}
