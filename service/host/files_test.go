package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/hint"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/setup"
)

// If a file of the log is removed under a service, the service notices within seconds, reports it, restores the file
// and goes on with every decision that it answered, including those after the removal.
func TestLogFileIsRemoved(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*.wal", "mark"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			r := runs(t, "", data, nil)
			r.ask(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
			var acknowledged []string
			decide := func() {
				id := fmt.Sprint("d", len(acknowledged))
				q, _ := http.NewRequest("POST", r.url+"/v1/placements/home/decisions",
					strings.NewReader(fmt.Sprintf(`{"decision_id":"%s","items":[{"id":"a","features":{"x":1}}]}`, id)))
				if a, err := http.DefaultClient.Do(q); err == nil {
					if a.Body.Close(); a.StatusCode == 201 {
						acknowledged = append(acknowledged, id)
					}
				}
			}
			for range 20 {
				decide()
			}
			paths, err := filepath.Glob(filepath.Join(data, LogDir, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%q, %v", paths, err)
			}
			for _, path := range paths {
				fatal.If(t, os.RemoveAll(path))
			}
			r.until("it notices", func() bool {
				decide()
				return r.said("was removed while the log was open") && r.said("is put back")
			})
			have := len(acknowledged)
			r.until("it answers again", func() bool { decide(); return len(acknowledged) > have })
			find := func() {
				t.Helper()
				for _, id := range acknowledged {
					r.ask(200, "GET", "/v1/placements/home/decisions/"+id, "")
				}
			}
			find()
			expect.Contains(t, r.ask(200, "GET", "/metrics", ""), "\nvitrine_log_reopened_total 1\n",
				"/metrics does not say that the log was opened again")
			r.stop()
			r = runs(t, "", data, nil)
			find()
		})
	}
}

// A snapshot that is removed under a service is written again, even if the service is idle.
func TestSnapshotIsRemoved(t *testing.T) {
	t.Parallel()
	r := runs(t, "", t.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	path := filepath.Join(r.data, SnapshotFile)
	r.until("there is a snapshot", func() bool { return isFile(path) })
	fatal.If(t, os.Remove(path))
	r.until("there is one again", func() bool {
		return isFile(path) && r.said("the snapshot was removed while the "+
			"service ran")
	})
}

// A service says that it begins a new log: its data directory may not be mounted.
func TestNewLog(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	const says = "the service begins a new log"
	r := runs(t, "", data, nil)
	expect.Equal(t, r.said(says), true, "it says so")
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.stop()
	expect.Equal(t, runs(t, "", data, nil).said(says), false, "it says so again")

	shared := runs(t, strings.Replace(natstest.URL(t), "nats://", "nats://shop:hunter2@", 1), t.TempDir(), nil)
	expect.Equal(t, shared.said(says), true, "it says so of servers")
	expect.Equal(t, shared.said("hunter2"), false, "it says the password of the servers")
}

// A service does not begin an empty log in the place of its log: the state would be overwritten.
func TestLogIsRemoved(t *testing.T) {
	t.Parallel()
	r := runs(t, "", t.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	r.stop()
	fatal.If(t, os.RemoveAll(filepath.Join(r.data, LogDir)))
	snapshot, base := filepath.Join(r.data, SnapshotFile), basePath(r.data, 1)
	fatal.If(t, os.Mkdir(filepath.Dir(base), 0o700))
	fatal.If(t, os.WriteFile(base, fatal.Or(os.ReadFile(snapshot))(t), 0o600))
	c := Default()
	c.Data, c.Listen = r.data, "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	err := Run(ctx, c, Options{Logger: slog.New(slog.DiscardHandler), Serving: func(context.Context,
		string) {
		stop()
	}})
	expect.Part(err)(t, "this log is empty, but another log wrote "+snapshot+" and "+base, "it ends with")
	fatal.If(t, os.Remove(base))
	fatal.If(t, os.WriteFile(snapshot, []byte("damaged"), 0o600))
	runs(t, "", r.data, nil).stop()
}

// An age that gives decisions up before their attribution windows end is said at the start.
func TestRetentionIsShort(t *testing.T) {
	t.Parallel()
	r := runs(t, "", t.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.stop()
	for age, want := range map[time.Duration]bool{time.Minute: true, 24 * time.Hour: false} {
		r := runsWith(t, "", r.data, Options{}, func(c *Config) { c.Retention.Age.Duration = age })
		expect.Equal(t, r.said("age is shorter than the placement's attribution window"), want, "with an age of",
			age, "it says so")
		r.stop()
	}
}

// A log that ends before snapshots, as after damage or if only the log is restored, is refused. The error names every such
// file, and the service starts without them.
func TestLogEndsBeforeSnapshots(t *testing.T) {
	t.Parallel()
	r := runs(t, "", t.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.stop()
	log, aside := filepath.Join(r.data, LogDir), t.TempDir()
	fatal.If(t, os.CopyFS(aside, os.DirFS(log)))
	snapshot, base := filepath.Join(r.data, SnapshotFile), basePath(r.data, 2)
	fatal.If(t, os.Remove(snapshot))
	r = runs(t, "", r.data, nil)
	r.ask(201, "PUT", "/v1/placements/other", personal)
	r.stop()
	fatal.If(t, os.RemoveAll(log))
	fatal.If(t, os.CopyFS(log, os.DirFS(aside)))
	fatal.If(t, os.Mkdir(filepath.Dir(base), 0o700))
	fatal.If(t, os.WriteFile(base, fatal.Or(os.ReadFile(snapshot))(t), 0o600))
	c := Default()
	c.Data, c.Listen = r.data, "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	err := Run(ctx, c, Options{Logger: slog.New(slog.DiscardHandler), Serving: func(context.Context,
		string) {
		stop()
	}})
	expect.Part(err)(t, "the log ends before "+snapshot+" and "+base+": eventlog: the log ends before", "it ends with")
	expect.Contains(t, hint.Of(err), "move these files away", "the hint")
	fatal.If(t, os.Remove(base))
	fatal.If(t, os.Remove(snapshot))
	runs(t, "", r.data, nil).stop()
}

// If the log lost its beginning, too, moving the newer files away would not help.
func TestOnlyABackupHelps(t *testing.T) {
	store, path := new(memlog.Store), filepath.Join(t.TempDir(), SnapshotFile)
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: store, Build: setup.NewLearner}))(t)
	for i, name := range []string{"a", "b", "c"} {
		fatal.Or(e.Put(t.Context(), name, []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`), int64(i)))(t)
	}
	snapshot, _, err := e.Snapshot(t.Context())
	fatal.If(t, errors.Join(err, os.WriteFile(path, snapshot, 0o600)))
	e.Close()
	short := new(memlog.Store)
	fatal.Or(short.Append(t.Context(), []byte("1"), []byte("2")))(t)
	for i, want := range []string{"move these files away", "from one backup"} {
		first := uint64(i + 1)
		fatal.If(t, short.TruncateBefore(t.Context(), first))
		err := newerThanLog(t.Context(), short, []string{path}, eventlog.ErrBeyond)
		expect.Contains(t, hint.Of(err), want, "the hint for a log from entry", first)
		expect.Error(t, err, eventlog.ErrBeyond)
	}
	err = newerThanLog(t.Context(), short, []string{path, "an earlier snapshot"}, eventlog.ErrBeyond)
	expect.Contains(t, hint.Of(err), "move these files away", "the hint with an earlier snapshot")
	if err := newerThanLog(t.Context(), short, nil, eventlog.ErrBeyond); err != eventlog.ErrBeyond {
		t.Errorf("no newer snapshot: %v", err)
	}
}

// If a file of the log is cut under a service, the service notices within seconds. The bytes are lost, so the service
// ends and says how to repair the log.
func TestLogFileIsCut(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	c := Default()
	c.Data, c.Listen = data, "127.0.0.1:0"
	err := Run(t.Context(), c, Options{Logger: slog.New(slog.DiscardHandler),
		Serving: func(ctx context.Context, address string) {
			put, _ := http.NewRequest("PUT", "http://"+address+"/v1/placements/home",
				strings.NewReader(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`))
			roundTrip(t, put)
			paths, _ := filepath.Glob(filepath.Join(data, LogDir, "*.wal"))
			for _, path := range paths {
				expect.Error(t, os.Truncate(path, 10), nil)
			}
		}})
	expect.Part(err)(t, "were acknowledged: restore a backup", "it ends with")
	expect.Refused(filelog.Open(t.Context(), filelog.Options{Dir: filepath.Join(data, LogDir)}))(t, "the log opens")
}
