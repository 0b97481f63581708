package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/host"
)

// A log without its first entries moves from a directory to a server and back with the same identity, numbers, entries
// and running hash, and a snapshot for the removed part. An interrupted copy continues, and a copy of another log is
// refused.
func TestLogCopy(t *testing.T) {
	root, url := t.TempDir(), natstest.URL(t)
	data, back := filepath.Join(root, "data"), filepath.Join(root, "back")
	fatal.If(t, withEngine(data, func(ctx context.Context, e *engine.Engine, store *filelog.Store) error {
		if err := trade(ctx, e, filepath.Join(data, host.SnapshotFile), 12); err != nil {
			return err
		}
		return store.TruncateBefore(ctx, 5)
	}))
	position := func(data string) (p eventlog.Position) {
		fatal.If(t, withLog(data, func(ctx context.Context, s *filelog.Store) (err error) {
			x, err := s.Extent(ctx)
			if err == nil && x.First != 5 {
				t.Errorf("%s begins with entry %d", data, x.First)
			}
			if err == nil {
				p, err = s.Position(ctx, x.Last)
			}
			return err
		}))
		return p
	}
	copies := func(code int, want string, from, to string) {
		t.Helper()
		if output, have := command(t, "log", "copy", from, to); have != code || !strings.Contains(output, want) {
			t.Errorf("%s to %s: exit status %d, %s; want %d with %q", from, to, have, output, code, want)
		}
	}
	// Half of it is there already.
	fatal.If(t, withLog(data, func(ctx context.Context, from *filelog.Store) error {
		start, err := from.Position(ctx, 4)
		if err != nil {
			return err
		}
		to, err := filelog.Open(ctx, filelog.Options{Dir: filepath.Join(back, host.LogDir), Start: start})
		if err != nil {
			return err
		}
		for e, err := range from.Entries(ctx, 5) {
			if err == nil {
				_, err = to.Append(ctx, e)
			}
			if err != nil {
				return err
			}
			if x, _ := to.Extent(ctx); x.Last == 9 {
				break
			}
		}
		return errors.Join(to.MarkCopy(ctx, true), to.Close())
	}))
	half, err := natslog.Open(t.Context(), natslog.Options{URL: url, Stream: "half"})
	fatal.If(t, err)
	fatal.If(t, errors.Join(half.MarkCopy(t.Context(), true), half.Close()))
	onServers := filepath.Join(root, "half.toml")
	fatal.If(t, os.WriteFile(onServers, fmt.Appendf(nil, "data = %q\n[log]\nurl = %q\nstream = \"half\"\n",
		filepath.Join(root, "of-half"), url), 0o600))
	const unfinished = "an unfinished copy: finish it with vitrine log copy FROM TO"
	for _, args := range [][]string{{"serve", "--data", back}, {"serve", "--config", onServers}} {
		if output, code := command(t, args...); code != 1 || !strings.Contains(output, unfinished) {
			t.Errorf("%s: exit status %d\n%s", args, code, output)
		}
	}
	// If the source is lost, the entries are still there.
	restored := filepath.Join(root, "restored")
	copies(0, "both logs end at entry 9", back, restored)
	if output, _ := command(t, "check", back); !strings.Contains(output, "5 entries, 5 to 9") {
		t.Error(output)
	}
	if output, code := command(t, "replay", onServers); code != 0 {
		t.Errorf("exit status %d\n%s", code, output)
	}
	copies(0, "both logs end at entry 25", data, onServers)
	if output, code := command(t, "check", onServers); code != 0 {
		t.Errorf("exit status %d\n%s", code, output)
	}
	// Whoever forgets to copy the log starts a service on an empty one.
	forgotten, err := natslog.Open(t.Context(), natslog.Options{URL: url})
	fatal.If(t, err)
	copies(1, "stop the services that write the log there", data, url)
	fatal.If(t, forgotten.Close())
	if output, _ := command(t, "log", "copy", data, "nats://127.0.0.1:1"); strings.Contains(output, "stop the services") {
		t.Error(output)
	}
	copies(0, "both logs end at entry 25, with the same running hash", data, url)
	copies(0, "both logs end at entry 25, with the same running hash", data, url) // already complete
	_, err = natstest.JetStream(t, url).StreamInfo("vitrine-shoppers")
	fatal.If(t, err) // or a service would ring because the keys are gone
	copies(0, "both logs end at entry 25, with the same running hash", url, back)
	if have, want := position(back), position(data); have != want {
		t.Errorf("%+v, want %+v", have, want)
	}
	for _, args := range [][]string{{"check", back}, {"replay", back}} {
		if output, code := command(t, args...); code != 0 {
			t.Errorf("%s: exit status %d\n%s", args, code, output)
		}
	}
	other := filepath.Join(root, "other")
	fatal.If(t, withEngine(other, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		return trade(ctx, e, filepath.Join(root, "snapshot"), 3)
	}))
	copies(1, "another log", other, url)
	copies(1, "another log", other, back)
	if output, code := command(t, "check", back); code != 0 {
		t.Errorf("a refused copy leaves it unfinished: exit status %d\n%s", code, output)
	}
	// A new service's log is copied, too, but not onto another one.
	empty, begun, later := filepath.Join(root, "empty"), filepath.Join(root, "begun"), filepath.Join(root, "later")
	fatal.If(t, withLog(empty, func(context.Context, *filelog.Store) error { return nil }))
	emptyOnServers := filepath.Join(root, "empty.toml")
	fatal.If(t, os.WriteFile(emptyOnServers, fmt.Appendf(nil, "data = %q\n[log]\nurl = %q\nstream = \"empty\"\n",
		filepath.Join(root, "of-empty"), url), 0o600))
	copies(0, "both logs end at entry 0", empty, begun)
	copies(0, "both logs end at entry 0", empty, emptyOnServers)
	copies(0, "both logs end at entry 0", emptyOnServers, later)
	if output, code := command(t, "backup", empty, filepath.Join(root, "backup")); code != 0 {
		t.Errorf("exit status %d\n%s", code, output)
	}
	for _, log := range []string{begun, emptyOnServers, later, filepath.Join(root, "backup")} {
		if output, code := command(t, "check", log); code != 0 || !strings.Contains(output, "has no entries") {
			t.Errorf("check %s: exit status %d\n%s", log, code, output)
		}
	}
	copies(0, "both logs end at entry", other, begun)
	copies(1, "another log", empty, begun)
	fatal.If(t, withEngine(begun, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		return e.Create(ctx, "later", []byte(shop), 0)
	}))
	copies(1, "the log ends before its copy: the log's last entry is", other, begun)
	copies(1, "a service may have written to the copy", other, begun)
	fatal.If(t, os.Truncate(filepath.Join(data, host.LogDir, "00000000000000000001-0000000000000001.wal"), 5000))
	copies(1, "cannot be read from entry", data, filepath.Join(root, "new"))
}
