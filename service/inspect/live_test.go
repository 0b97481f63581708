package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/host"
	"vitrine/service/inspect"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// A running service's log and a copy of it export the same bytes, from a placement's creation on. Policies are judged by
// its own decisions. A deleted placement of the same name does not count.
func TestExportPlacement(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	defer e.Close()
	for _, name := range []string{"home", "other", "home"} {
		if _, err := e.Config(name); err == nil {
			fatal.If(t, e.Delete(ctx, name, nil, 1))
		}
		fatal.Or(e.Put(ctx, name, []byte(
			`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1))(t)
		for _, id := range []string{"a", "b", "c"} {
			fatal.Or(e.Decide(ctx, name,
				&api.Request{Decision: id, Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number("x", 1)}}}},
				1))(t)
			if id != "c" {
				fatal.If(t, e.Outcome(ctx, name, id, "sku1", 2))
			}
		}
	}
	var live, copied bytes.Buffer
	born := fatal.Or(e.View("home"))(t).Page.Born
	fatal.If(t, inspect.ExportPlacement(ctx, store, data, "home", born, &live))
	log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
	defer log.Close()
	fatal.If(t, log.Export(ctx, &copied, inspect.Decisions{Placement: "home", From: &born}))
	if live.String() != copied.String() || strings.Count(live.String(), "\n") != 3 ||
		strings.Contains(live.String(), "other") {
		t.Errorf("%s\nand from a copy\n%s", &live, &copied)
	}
	rounds := fatal.Or(log.Rounds(ctx, inspect.Decisions{Placement: "home"}))(t)
	expect.Equal(t, len(rounds.Rounds), 2, "rounds")
	expect.Equal(t, rounds.Left, []inspect.Left{{Reason: "have no outcome", Decisions: 1}})
}

// Decisions with rows of other features judge no policy, although the rows may be as wide. Those of the same features do,
// whatever else of the configuration changed. A table leaves out decisions whose features lack columns in it.
func TestRoundsOfOtherFeatures(t *testing.T) {
	for more, left := range map[string][]inspect.Left{
		`"name":"x"`: nil, `"name":"x","max":9`: nil,
		`"name":"x","scale":5`: {{Reason: "have the features of an earlier configuration", Decisions: 1}},
		`"name":"y"`:           {{Reason: "have the features of an earlier configuration", Decisions: 1}},
	} {
		ctx, data := t.Context(), t.TempDir()
		store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
		e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
		for k, feature := range []string{`"name":"x"`, more} {
			fatal.Or(e.Change(ctx, "home", fmt.Appendf(nil, `{"max_size":1,"attribution_window":"%dm","features":[{%s,
				"kind":"number"}],"policy":{"name":"uniform"}}`, k+1, feature), engine.Change{Reset: true}, 1))(t)
			id, name := fmt.Sprint("d", k), feature[8:9]
			fatal.Or(e.Decide(ctx, "home",
				&api.Request{Decision: id, Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number(name, 1)}}}}, 1))(t)
			fatal.If(t, e.Outcome(ctx, "home", id, "sku1", 2))
		}
		e.Close()
		fatal.If(t, store.Close())
		var warnings []string
		log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data,
			Warn: func(w string) { warnings = append(warnings, w) }}))(t)
		defer log.Close()
		rounds := fatal.Or(log.Rounds(ctx, inspect.Decisions{}))(t)
		expect.Equal(t, rounds.Left, left, more)
		expect.Equal(t, len(rounds.Rounds), 2-len(left), more)
		var table bytes.Buffer
		warnings = nil
		fatal.If(t, log.ExportOBP(ctx, &table, io.Discard, inspect.Decisions{}))
		rows, said := 2, []string(nil)
		if more == `"name":"y"` {
			rows, said = 1, []string{"1 of 2 decisions (50%) are left out: they have the features of another configuration"}
		}
		expect.Equal(t, warnings, said, more)
		expect.Equal(t, strings.Count(table.String(), "\n"), 1+rows, more)
		table.Reset()
		fatal.If(t, log.ExportParquet(ctx, &table, inspect.Decisions{}))
		f := fatal.Or(parquet.OpenFile(bytes.NewReader(table.Bytes()), int64(table.Len())))(t)
		expect.Equal(t, int(f.NumRows()), rows, more)
	}
}

// A table contains the decisions made before the features were reordered, each value in its feature's column.
func TestTablesOfReorderedFeatures(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	x, y := `{"name":"x","kind":"number"}`, `{"name":"y","kind":"number","from":"shopper"}`
	z := `{"name":"z","kind":"number"}`
	for k, features := range []string{x + "," + y + "," + z, z + "," + y + "," + x} {
		fatal.Or(e.Change(ctx, "home", []byte(`{"max_size":1,"features":[`+features+`],"policy":{"name":"uniform"}}`),
			engine.Change{Reset: true}, 1))(t)
		id := fmt.Sprint("d", k)
		fatal.Or(e.Decide(ctx, "home", &api.Request{Decision: id, User: api.Values{api.Number("y", 2)}, Items: []api.Item{
			{ID: "of " + id, Features: api.Values{api.Number("x", 1), api.Number("z", 3)}}}}, 1))(t)
		fatal.If(t, e.Outcome(ctx, "home", id, "of "+id, 2))
	}
	e.Close()
	fatal.If(t, store.Close())
	log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
	defer log.Close()
	var table, items bytes.Buffer
	fatal.If(t, log.ExportOBP(ctx, &table, &items, inspect.Decisions{}))
	expect.Equal(t, items.String(), "item_id,revenue,z,x\nof d0,1,3,1\nof d1,1,3,1\n")
	expect.Equal(t, strings.Count(table.String(), ",2\n"), 2, table.String())
	table.Reset()
	fatal.If(t, log.ExportParquet(ctx, &table, inspect.Decisions{}))
	type row struct {
		X float64 `parquet:"x,optional"`
		Y float64 `parquet:"y,optional"`
		Z float64 `parquet:"z,optional"`
	}
	rows := fatal.Or(parquet.Read[row](bytes.NewReader(table.Bytes()), int64(table.Len())))(t)
	expect.Equal(t, rows, []row{{1, 2, 3}, {1, 2, 3}})
}

// Rounds say whether requests came with rules, which judged pages ignore.
func TestRoundsSayWhetherRequestsHadRules(t *testing.T) {
	for _, ruled := range []bool{false, true} {
		ctx, data := t.Context(), t.TempDir()
		store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
		e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
		fatal.Or(e.Put(ctx, "home", []byte(`{"max_size":1,"log_items":"all","features":[{"name":"x","kind":"number"}],
			"policy":{"name":"uniform"}}`), 1))(t)
		request := &api.Request{Decision: "d", Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}},
			{ID: "b", Features: api.Values{api.Number("x", 2)}}}}
		if ruled {
			request.Exclude = []string{"b"}
		}
		fatal.Or(e.Decide(ctx, "home", request, 1))(t)
		fatal.If(t, e.Outcome(ctx, "home", "d", "", 2))
		e.Close()
		fatal.If(t, store.Close())
		log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
		defer log.Close()
		expect.Equal(t, fatal.Or(log.Rounds(ctx, inspect.Decisions{}))(t).Ruled, ruled, "whether requests had rules")
	}
}

// Rounds name the shoppers of placements that remember them, or that hold some out.
func TestRoundsNameShoppers(t *testing.T) {
	for with, known := range map[string]bool{
		``: false, `,"shopper_history":{"keep":"24h"}`: true, `,"holdout_share":0.1`: true,
	} {
		ctx, data := t.Context(), t.TempDir()
		store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
		keys := fatal.Or(shoppers.Open(filepath.Join(data, "shoppers")))(t)
		e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner, Shoppers: keys}))(t)
		fatal.Or(e.Put(ctx, "home", []byte(`{"max_size":1,"log_items":"all","features":[{"name":"x","kind":"number"}],
			"policy":{"name":"uniform"}`+with+`}`), 1))(t)
		for k, shopper := range []string{"ann", "bob", "ann"} {
			id := fmt.Sprint("d", k)
			fatal.Or(e.Decide(ctx, "home", &api.Request{Decision: id, ShopperID: shopper, Baseline: []string{"sku1"},
				Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number("x", 1)}}}}, 1))(t)
			fatal.If(t, e.Outcome(ctx, "home", id, "sku1", 2))
		}
		e.Close()
		fatal.If(t, store.Close())
		log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
		defer log.Close()
		rounds := fatal.Or(log.Rounds(ctx, inspect.Decisions{}))(t).Rounds
		a, b, c := rounds[0].Shopper, rounds[1].Shopper, rounds[2].Shopper
		if rounds[1].Decision != "d1" || a != c || known != (a != "") || known && a == b {
			t.Errorf("with %s the shoppers are %q, %q and %q", with, a, b, c)
		}
		fatal.If(t, keys.Close())
		faults := func(data string) (list []string) {
			log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
			defer log.Close()
			fatal.Or(log.Check(ctx, func(err error) { list = append(list, err.Error()) }))(t)
			return list
		}
		expect.Equal(t, len(faults(data)), 0, "the number of faults")
		if err := os.Remove(filepath.Join(data, "shoppers")); err != nil && with == `,"shopper_history":{"keep":"24h"}` {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "backup")
		fatal.If(t, inspect.Backup(ctx, data, copied, nil))
		expect.Equal(t, len(faults(copied)), 0, "the number of faults of a backup, which has no keys")
		expect.Equal(t, strings.Contains(fmt.Sprint(faults(data)), "shoppers is missing"), with == `,"shopper_history":{"keep":"24h"}`, with)
	}
}

// cutLog removes its entries before a sequence once they were read.
type cutLog struct {
	*memlog.Store
	before uint64
}

func (l *cutLog) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l.Store.Entries(ctx, from)(yield)
		if err := l.TruncateBefore(ctx, l.before); err != nil {
			yield(nil, err)
		}
	}
}

// An export begins again if the entries that it would read next are removed.
func TestExportDuringRemoval(t *testing.T) {
	ctx, data, store := t.Context(), t.TempDir(), new(memlog.Store)
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(ctx, "home", []byte(
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1))(t)
	for _, id := range []string{"a", "b", "c"} {
		if id == "c" {
			snapshot, _, err := e.Snapshot(ctx)
			fatal.If(t, err)
			fatal.If(t, os.WriteFile(filepath.Join(data, host.SnapshotFile), snapshot, 0o600))
		}
		fatal.Or(e.Decide(ctx, "home",
			&api.Request{Decision: id, Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number("x", 1)}}}}, 1))(t)
		fatal.If(t, e.Outcome(ctx, "home", id, "sku1", 2))
	}
	var text bytes.Buffer
	fatal.If(t, inspect.ExportPlacement(ctx, &cutLog{store, 6}, data, "home", 1, &text))
	if n := strings.Count(text.String(), "\n"); n != 1 || !strings.Contains(text.String(), `"decision_id":"c"`) {
		t.Errorf("%d decisions: %s", n, &text)
	}
}

// A copy of a log that a service goes on writing reaches the service's last snapshot.
func TestCopyOfAGrowingLog(t *testing.T) {
	ctx, url, data := t.Context(), natstest.URL(t), t.TempDir()
	log := fatal.Or(natslog.Open(ctx, natslog.Options{URL: url}))(t)
	defer log.Close()
	fatal.Or(log.Append(ctx, []byte("one")))(t)
	grow := sync.OnceFunc(func() {
		last := fatal.Or(log.Append(ctx, []byte("two")))(t)
		fatal.If(t, log.PutSnapshot(ctx, fatal.Or(log.Position(ctx, last))(t), strings.NewReader("of two")))
	})
	at := fatal.Or(inspect.Copy(ctx, inspect.Options{Log: url, Progress: func(string, int, int) { grow() }}, data))(t)
	expect.Equal(t, at.Sequence, 2, "the copy ends at entry n")
	expect.Equal(t, string(fatal.Or(os.ReadFile(filepath.Join(data, host.SnapshotFile)))(t)), "of two", "the snapshot")
}

// A copy leaves out a snapshot of another log, whether or not the log reaches the snapshot's last entry.
func TestCopyLeavesOutTheSnapshotOfAnotherLog(t *testing.T) {
	for _, last := range []uint64{1, 5} {
		ctx, cancel := context.WithCancel(t.Context())
		url, data, reports := natstest.URL(t), t.TempDir(), 0
		log := fatal.Or(natslog.Open(ctx, natslog.Options{URL: url}))(t)
		fatal.Or(log.Append(ctx, []byte("one")))(t)
		fatal.If(t, log.PutSnapshot(ctx, eventlog.Position{Log: eventlog.Identity{1}, Sequence: last},
			strings.NewReader("of another")))
		fatal.If(t, log.Close())
		var warnings []string
		at := fatal.Or(inspect.Copy(ctx, inspect.Options{Log: url,
			Warn: func(w string) { warnings = append(warnings, w) },
			Progress: func(string, int, int) {
				if reports++; reports > 10 {
					cancel()
				}
			}}, data))(t)
		expect.Equal(t, at.Sequence, 1, "the copy ends at entry n")
		if len(warnings) != 1 || !strings.Contains(warnings[0], "belongs to another log") {
			t.Errorf("a snapshot of entry %d: %q", last, warnings)
		}
		if _, err := os.Stat(filepath.Join(data, host.SnapshotFile)); !os.IsNotExist(err) {
			t.Errorf("the snapshot of entry %d was copied: %v", last, err)
		}
		cancel()
	}
}

// A copy counts as unfinished until its snapshot is there, too.
func TestCopyIsUnfinishedWithoutItsSnapshot(t *testing.T) {
	ctx, url, data := t.Context(), natstest.URL(t), t.TempDir()
	log := fatal.Or(natslog.Open(ctx, natslog.Options{URL: url}))(t)
	fatal.Or(log.Append(ctx, []byte("one")))(t)
	fatal.If(t, log.PutSnapshot(ctx, fatal.Or(log.Position(ctx, 1))(t), strings.NewReader("a state")))
	fatal.If(t, log.Close())
	inTheWay := filepath.Join(data, host.SnapshotFile)
	fatal.If(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	for _, unfinished := range []bool{true, false} {
		_, err := inspect.Copy(ctx, inspect.Options{Log: url}, data)
		expect.Equal(t, err != nil, unfinished, "the copy fails")
		to, err := filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)})
		expect.Equal(t, errors.Is(err, eventlog.ErrUnfinished), unfinished, "the copy is unfinished")
		if err == nil {
			fatal.If(t, to.Close())
		}
		fatal.If(t, os.RemoveAll(inTheWay))
	}
}

// The progress of a replay, which reads the log in parts between snapshots, never goes back.
func TestReplayProgress(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	for _, name := range []string{"a", "b"} {
		fatal.Or(e.Put(ctx, name, []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`), 1))(t)
		state, _, err := e.Snapshot(ctx)
		fatal.If(t, errors.Join(err, os.WriteFile(filepath.Join(data, host.SnapshotFile), state, 0o600)))
		fatal.If(t, e.Delete(ctx, name, nil, 1))
	}
	e.Close()
	fatal.If(t, store.Close())
	last := 0
	log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data, Progress: func(stage string, done, total int) {
		if stage != "replaying" {
			return
		}
		if done < last || total != 4 {
			t.Errorf("entry %d of %d after %d", done, total, last)
		}
		last = done
	}}))(t)
	defer log.Close()
	e = fatal.Or(log.Replay(ctx, nil, func(inspect.Comparison) {}))(t)
	e.Close()
	expect.Equal(t, last, 4, "the last entry")
}
