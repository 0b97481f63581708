package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/config"
	"vitrine/internal/replace"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/feature"
)

// shrinking is an engine whose log is kept within limits.
type shrinking struct {
	*testing.T
	engine *decision.Engine
	retention
	decisions int
	now       time.Time
}

func newShrinking(t *testing.T, log shrinkable) *shrinking {
	t.Helper()
	e, err := decision.Open(t.Context(), decision.Options{Store: log, Build: config.NewLearner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s := &shrinking{T: t, engine: e, retention: retention{log: log, data: t.TempDir()}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if _, err := e.Put(t.Context(), "home", []byte(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl","warmup":2},"memory":100000}`), s.now.UnixNano()); err != nil {
		t.Fatal(err)
	}
	return s
}

// trade makes decisions, one a minute. One in four has no outcome.
func (s *shrinking) trade(decisions int) {
	s.Helper()
	for range decisions {
		s.decisions++
		s.now = s.now.Add(time.Minute)
		r := &decision.Request{Decision: fmt.Sprint("d", s.decisions)}
		for k := range 3 {
			r.Items = append(r.Items, feature.Item{ID: fmt.Sprint("sku", k), Features: []feature.Value{feature.Number(float64((k*s.decisions)%7) / 7)}})
		}
		a, err := s.engine.Decide(s.Context(), "home", r, s.now.UnixNano())
		if err != nil {
			s.Fatal(err)
		}
		if s.decisions%4 > 0 {
			if err := s.engine.Outcome(s.Context(), "", a.Decision, a.Shown[0], s.now.UnixNano()); err != nil {
				s.Fatal(err)
			}
		}
		if _, err := s.engine.Expire(s.Context(), s.now.UnixNano()); err != nil {
			s.Fatal(err)
		}
	}
}

// snapshot writes what the service does.
func (s *shrinking) snapshot() (data []byte, upTo uint64) {
	s.Helper()
	data, upTo, err := s.engine.Snapshot(s.Context())
	if err == nil {
		err = replace.File(filepath.Join(s.data, snapshotName), data)
	}
	if err != nil {
		s.Fatal(err)
	}
	return data, upTo
}

func (s *shrinking) extent() eventlog.Extent {
	s.Helper()
	x, err := s.log.Extent(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	return x
}

// sound checks that the state is found again from every snapshot that is there, and that the
// log has what comes after each.
func (s *shrinking) sound(want []byte) {
	s.Helper()
	paths, err := snapshotsIn(s.data)
	if err != nil || len(paths) > mostBases+1 {
		s.Fatalf("%d snapshots, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		e, err := decision.Open(s.Context(), decision.Options{Store: s.log, Build: config.NewLearner, Snapshot: data})
		if err != nil {
			s.Fatalf("from %s: %v", path, err)
		}
		have, _, err := e.Snapshot(s.Context())
		e.Close()
		if err != nil || !bytes.Equal(have, want) {
			s.Errorf("from %s the state is another one, %v", path, err)
		}
	}
}

// However much is written between two snapshots, the log stays within the size after each, begins
// where a base has what is missing, and gives the state from every snapshot; about half of it or more comes after the first base.
func TestRetentionBySize(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.size = 20_000
	total := uint64(0)
	for round := range 40 {
		s.trade(10)
		before, upTo := s.snapshot()
		length := s.extent()
		removed, err := s.apply(t.Context(), upTo, s.now)
		if err != nil {
			t.Fatal(err)
		}
		x := s.extent()
		if removed.from != length.First || removed.to+1 != x.First || removed.bytes != length.Bytes-x.Bytes {
			t.Errorf("round %d: removed %+v of %+v, and %+v is left", round, removed, length, x)
		}
		if x.Bytes > s.size || x.First > 1 && x.Bytes+1000 < s.size {
			t.Errorf("round %d: %d bytes of %d are left", round, x.Bytes, s.size)
		}
		if total += removed.bytes; x.First > 1 {
			bases, err := basesIn(s.data)
			if err != nil || len(bases) == 0 || bases[0]+1 < x.First || bases[0] > x.First+(x.Last-x.First)*6/10 {
				t.Errorf("round %d: bases %v of a log [%d, %d], %v", round, bases, x.First, x.Last, err)
			}
		}
		s.sound(before)
	}
	if total < s.size {
		t.Errorf("%d bytes removed", total)
	}
}

// Entries of the age and younger stay, older ones go.
func TestRetentionByAge(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.age = time.Hour
	for round := range 30 {
		s.trade(10)
		_, upTo := s.snapshot()
		if _, err := s.apply(t.Context(), upTo, s.now); err != nil {
			t.Fatal(err)
		}
		for entry, err := range s.log.Entries(t.Context(), s.extent().First) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := eventlog.Decode(entry)
			if err != nil {
				t.Fatal(err)
			}
			if age := s.now.Sub(time.Unix(0, e.Time)); round > 6 && age != time.Hour || age > time.Hour {
				t.Errorf("round %d: the first entry has the age %v", round, age)
			}
			break
		}
	}
	// Without traffic too, up to the last snapshot.
	upTo := s.engine.Sequence()
	s.trade(1)
	if _, err := s.apply(t.Context(), upTo, s.now.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if first := s.extent().First; first != upTo+1 {
		t.Errorf("the first entry is %d, the snapshot has entries up to %d", first, upTo)
	}
}

// failing refuses to remove.
type failing struct {
	shrinkable
	err error
}

func (f *failing) TruncateBefore(ctx context.Context, sequence uint64) error {
	if f.err != nil {
		return f.err
	}
	return f.shrinkable.TruncateBefore(ctx, sequence)
}

// Whatever fails, nothing is removed that no base has, and the next time all is well.
func TestRetentionFails(t *testing.T) {
	log := &failing{shrinkable: new(memlog.Store)}
	s := newShrinking(t, log)
	s.size = 1000
	s.trade(40)
	untouched := func(what string) {
		t.Helper()
		if x := s.extent(); x.First != 1 {
			t.Errorf("%s: the log begins with entry %d", what, x.First)
		}
	}
	refused := func(what string, upTo uint64) {
		t.Helper()
		if _, err := s.apply(t.Context(), upTo, s.now); err == nil {
			t.Errorf("%s is no error", what)
		}
		untouched(what)
	}
	refused("no snapshot", 10)
	data, upTo := s.snapshot()
	path := filepath.Join(s.data, snapshotName)
	for what, content := range map[string][]byte{"a damaged snapshot": data[:len(data)-1], "an empty snapshot": nil} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(what, upTo)
	}
	s.snapshot()
	refused("a snapshot of another entry", upTo-1)
	if bases, err := basesIn(s.data); err != nil || len(bases) > 0 {
		t.Errorf("bases %v, %v", bases, err)
	}
	bases := filepath.Join(s.data, basesName)
	if err := os.WriteFile(bases, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("no room for a base", upTo)
	if err := os.Remove(bases); err != nil {
		t.Fatal(err)
	}
	log.err = errors.New("killed") // after the base
	refused("a removal that fails", upTo)
	s.sound(data)
	log.err = nil
	if removed, err := s.apply(t.Context(), upTo, s.now); err != nil || removed.to == 0 || removed.base != upTo {
		t.Errorf("removed %+v, %v", removed, err)
	}
	s.sound(data)
	// What is after the snapshot stays, whatever the limits are, and whatever else lies there.
	s.trade(40)
	s.size = 1
	if err := os.WriteFile(basePath(s.data, upTo+20), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.apply(t.Context(), upTo, s.now); err != nil {
		t.Fatal(err)
	}
	if first := s.extent().First; first != upTo+1 {
		t.Errorf("the first entry is %d, the snapshot has entries up to %d", first, upTo)
	}
}

// A base of entries that are lost is none of the log that goes on without them, and one that cannot be
// read, or is of another entry, is put aside with a warning.
func TestBasesOfNoUse(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.trade(3)
	sound, upTo := s.snapshot()
	s.trade(3)
	for upTo, data := range map[uint64][]byte{upTo: sound, upTo + 1: sound, 2: []byte("damaged")} {
		path := basePath(s.data, upTo)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.data, basesName, ".5.snapshot.123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := s.begin(t.Context(), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if bases, err := basesIn(s.data); err != nil || !slices.Equal(bases, []uint64{upTo}) {
		t.Errorf("bases %v, %v", bases, err)
	}
	for _, aside := range []uint64{2, upTo + 1} {
		if path := basePath(s.data, aside) + asideSuffix; !isFile(path) || !strings.Contains(log.String(), path) {
			t.Errorf("%s is not put aside with a warning: %s", path, &log)
		}
	}
	if files, err := os.ReadDir(filepath.Join(s.data, basesName)); err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A service keeps its log small while it serves. Meanwhile and afterwards it is checked, replayed and
// backed up, and it starts again, from a base too.
func TestServeKeepsItsLogSmall(t *testing.T) {
	s, err := readService("")
	if err != nil {
		t.Fatal(err)
	}
	s.Listen, s.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	s.Snapshots.Every.Duration = 5 * time.Millisecond
	s.Retention.Size = 20_000
	url, log, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl","warmup":5}}`)
	serve := func(url string, first, last int) {
		t.Helper()
		for i := first; i <= last; i++ {
			ask(t, 201, "POST", url+"/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`, i, i))
			ask(t, 204, "POST", fmt.Sprintf("%s/v1/decisions/d%d/outcome", url, i), `{"choice":null}`)
		}
	}
	command := func(args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Errorf("%s: exit status %d: %s%s", args, code, &stdout, &stderr)
		}
	}
	decision := func(url string) string { return ask(t, 200, "GET", url+"/v1/decisions/d1", "") }
	backup := filepath.Join(t.TempDir(), "backup")
	serve(url, 1, 100)
	for i := range 3 {
		serve(url, 101+20*i, 120+20*i)
		command("check", s.Data)
		command("replay", s.Data)
	}
	command("backup", s.Data, backup)
	want := decision(url)
	for _, ok := log.line("removed"); !ok; _, ok = log.line("removed") {
		<-log.more
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	err = withLog(s.Data, func(ctx context.Context, store *natslog.Store) error {
		x, err := store.Extent(ctx)
		if x.First == 1 || x.Bytes > 40_000 {
			t.Errorf("the log is %+v", x)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{s.Data, backup} {
		command("check", data)
		command("replay", data)
		command("export", data)
		s.Data = data
		for i, snapshot := range []bool{true, false} {
			if !snapshot {
				if err := os.Remove(filepath.Join(data, snapshotName)); err != nil {
					t.Fatal(err)
				}
			}
			url, _, stop := serving(t, s)
			if have := decision(url); have != want {
				t.Errorf("%s, with a snapshot %v: %s, was %s", data, snapshot, have, want)
			}
			serve(url, 1000*(i+1), 1000*(i+1)+20)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			command("check", data)
			command("replay", data)
		}
	}
}

func TestRetentionLimits(t *testing.T) {
	for text, want := range map[string]byteCount{"1B": 1, "30kB": 30_000, "30KB": 30_000, "10GB": 1e10, "2TB": 2e12, "1KiB": 1024, "3MiB": 3 << 20, "1GiB": 1 << 30} {
		var have byteCount
		if err := have.UnmarshalText([]byte(text)); err != nil || have != want {
			t.Errorf("%q is %d, %v, want %d", text, have, err, want)
		}
	}
	for _, text := range []string{"", "10", "GB", "0GB", "-1GB", "1.5GB", "1G", "1 GB", "9999999999GB", "18446744073709551616B", "1BB"} {
		if have := new(byteCount); have.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %d bytes", text, *have)
		}
	}
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "2160h": 90 * 24 * time.Hour, "1h30m": 90 * time.Minute} {
		var have span
		if err := have.UnmarshalText([]byte(text)); err != nil || have.Duration != want {
			t.Errorf("%q is %v, %v, want %v", text, have, err, want)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1.5d", "1d12h", "99999999999d", "90"} {
		if have := new(span); have.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %v", text, have.Duration)
		}
	}
}
