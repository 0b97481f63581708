package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/replace"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// shrinking is an engine with a log that is kept within limits.
type shrinking struct {
	*testing.T
	engine *engine.Engine
	Retention
	decisions int
	now       time.Time
}

func newShrinking(t *testing.T, log eventlog.Log) *shrinking {
	t.Helper()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: log, Build: setup.NewLearner}))(t)
	t.Cleanup(e.Close)
	var s *shrinking
	evict := func(ctx context.Context, before uint64, since int64) (int, error) {
		return e.EvictBefore(ctx, before, since, s.now.UnixNano())
	}
	s = &shrinking{T: t, engine: e, Retention: Retention{Log: log, Data: t.TempDir(), Evict: evict},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	fatal.Or(e.Put(t.Context(), "home", []byte(
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl","warmup":2},"memory_bytes":100000}`), s.now.UnixNano()))(t)
	return s
}

// trade makes decisions, one a minute. One in four never gets an outcome.
func (s *shrinking) trade(decisions int) {
	s.Helper()
	for range decisions {
		s.decisions++
		s.now = s.now.Add(time.Minute)
		r := &api.Request{Decision: fmt.Sprint("d", s.decisions)}
		for k := range 3 {
			r.Items = append(r.Items, api.Item{ID: fmt.Sprint("sku", k),
				Features: api.Values{api.Number("x", float64((k*s.decisions)%7)/7)}})
		}
		a := fatal.Or(s.engine.Decide(s.Context(), "home", r, s.now.UnixNano()))(s)
		if s.decisions%4 > 0 {
			fatal.If(s, s.engine.Outcome(s.Context(), "home", a.Decision, a.IDs()[0], s.now.UnixNano()))
		}
		fatal.Or(s.engine.Expire(s.Context(), s.now.UnixNano()))(s)
	}
}

// snapshot writes what the service does.
func (s *shrinking) snapshot() (data []byte, upTo uint64) {
	s.Helper()
	data, upTo, err := s.engine.Snapshot(s.Context())
	if err == nil {
		err = replace.File(filepath.Join(s.Data, SnapshotFile), data)
	}
	if err != nil {
		s.Fatal(err)
	}
	return data, upTo
}

func (s *shrinking) extent() eventlog.Extent {
	s.Helper()
	x := fatal.Or(s.Log.Extent(context.Background()))(s)
	return x
}

// sound checks that every snapshot leads to the present state, and that the log still holds the entries after each.
func (s *shrinking) sound(want []byte) {
	s.Helper()
	paths, err := Snapshots(s.Data)
	if err != nil || len(paths) > maxBases+1 {
		s.Fatalf("%d snapshots, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		e, err := engine.Open(s.Context(), engine.Options{Store: s.Log, Build: setup.NewLearner, Snapshot: data})
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

// However much is written between two snapshots, the log stays within the size after each, begins where a base covers
// the missing part, and every snapshot leads to the state; much of it comes after the first base.
func TestRetentionBySize(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.Size = 20_000
	total := uint64(0)
	for round := range 40 {
		s.trade(10)
		before, upTo := s.snapshot()
		length := s.extent()
		removed := fatal.Or(s.Apply(t.Context(), upTo, s.now))(t)
		x := s.extent()
		if removed.From != length.First || removed.To+1 != x.First || removed.Bytes != length.Bytes-x.Bytes {
			t.Errorf("round %d: removed %+v of %+v, and %+v is left", round, removed, length, x)
		}
		if x.Bytes > s.Size || x.First > 1 && x.Bytes+1000 < s.Size/10*sizeShare {
			t.Errorf("round %d: %d bytes of %d are left", round, x.Bytes, s.Size)
		}
		if total += removed.Bytes; x.First > 1 {
			bases, err := basesIn(s.Data)
			if err != nil || len(bases) == 0 || bases[0]+1 < x.First || bases[0] > x.First+(x.Last-x.First)*9/10 {
				t.Errorf("round %d: bases %v of a log [%d, %d], %v", round, bases, x.First, x.Last, err)
			}
		}
		s.sound(before)
	}
	if total < s.Size {
		t.Errorf("%d bytes removed", total)
	}
}

// Entries of the age and younger stay, older ones go.
func TestRetentionByAge(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.Age = time.Hour
	for round := range 30 {
		s.trade(10)
		_, upTo := s.snapshot()
		fatal.Or(s.Apply(t.Context(), upTo, s.now))(t)
		for entry, err := range s.Log.Entries(t.Context(), s.extent().First) {
			fatal.If(t, err)
			e := fatal.Or(eventlog.Decode(entry))(t)
			if age := s.now.Sub(time.Unix(0, e.Time)); round > 6 && age != time.Hour || age > time.Hour {
				t.Errorf("round %d: the first entry has the age %v", round, age)
			}
			break
		}
	}
	// Without traffic too, up to the last snapshot.
	s.emptied(s.now.Add(48 * time.Hour))
}

// emptied checks that all entries up to a snapshot are removed, including open decisions, which were given up
// before.
func (s *shrinking) emptied(now time.Time) {
	s.Helper()
	_, upTo := s.snapshot()
	open, err := s.engine.Stats("home")
	if err != nil || open.Pending == 0 {
		s.Errorf("%d decisions are open, %v", open.Pending, err)
	}
	if removed, err := s.Apply(s.Context(), upTo, now); err != nil || removed.To >= upTo {
		s.Errorf("removed %+v under open decisions, %v", removed, err)
	}
	given, err := s.engine.Stats("home")
	if err != nil || given.Pending != 0 || given.ExpiredEarly-open.ExpiredEarly != uint64(open.Pending) {
		s.Errorf("%d decisions are open and %d given up of %d, %v", given.Pending, given.ExpiredEarly-open.ExpiredEarly,
			open.Pending, err)
	}
	_, upTo = s.snapshot()
	s.trade(1)
	fatal.Or(s.Apply(s.Context(), upTo, now))(s)
	if first := s.extent().First; first != upTo+1 {
		s.Errorf("the first entry is %d, the snapshot has entries up to %d", first, upTo)
	}
}

// failing refuses to remove.
type failing struct {
	eventlog.Log
	err error
}

func (f *failing) TruncateBefore(ctx context.Context, sequence uint64) error {
	if f.err != nil {
		return f.err
	}
	return f.Log.TruncateBefore(ctx, sequence)
}

// After any failure, only entries covered by a base are gone, and the next attempt succeeds.
func TestRetentionFails(t *testing.T) {
	log := &failing{Log: new(memlog.Store)}
	s := newShrinking(t, log)
	evict := s.Evict
	s.Evict = nil
	s.Size = 1000
	s.trade(40)
	untouched := func(what string) {
		t.Helper()
		expect.Equal(t, s.extent().First, 1, what, "the log begins with entry")
	}
	refused := func(what string, upTo uint64) {
		t.Helper()
		expect.Refused(s.Apply(t.Context(), upTo, s.now))(t, what, "is no error")
		untouched(what)
	}
	refused("no snapshot", 10)
	data, upTo := s.snapshot()
	path := filepath.Join(s.Data, SnapshotFile)
	for what, content := range map[string][]byte{"a damaged snapshot": data[:len(data)-1], "an empty snapshot": nil} {
		fatal.If(t, os.WriteFile(path, content, 0o600))
		refused(what, upTo)
	}
	s.snapshot()
	refused("a snapshot of another entry", upTo-1)
	if bases, err := basesIn(s.Data); err != nil || len(bases) > 0 {
		t.Errorf("bases %v, %v", bases, err)
	}
	bases := filepath.Join(s.Data, BasesDir)
	fatal.If(t, os.WriteFile(bases, nil, 0o600))
	refused("no room for a base", upTo)
	fatal.If(t, os.Remove(bases))
	log.err = errors.New("killed") // after the base
	refused("a removal that fails", upTo)
	s.sound(data)
	log.err = nil
	if removed, err := s.Apply(t.Context(), upTo, s.now); err != nil || removed.To == 0 || removed.Base != upTo {
		t.Errorf("removed %+v, %v", removed, err)
	}
	s.sound(data)
	// Entries after the snapshot stay, whatever the limits are, and whatever other files lie there.
	s.trade(40)
	s.Size = 1
	fatal.If(t, os.WriteFile(basePath(s.Data, upTo+20), nil, 0o600))
	s.Evict = evict
	s.emptied(s.now)
}

// A log that continues without lost entries drops the bases that cover them. Bases that are unreadable, or of another
// entry, are put aside with a warning.
func TestBasesOfNoUse(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.Data = filepath.Join(s.Data, "shop[1") // which is no pattern
	fatal.If(t, os.Mkdir(s.Data, 0o700))
	s.trade(3)
	sound, upTo := s.snapshot()
	s.trade(3)
	for upTo, data := range map[uint64][]byte{upTo: sound, upTo + 1: sound, 2: []byte("damaged")} {
		path := basePath(s.Data, upTo)
		fatal.If(t, os.MkdirAll(filepath.Dir(path), 0o700))
		fatal.If(t, os.WriteFile(path, data, 0o600))
	}
	fatal.If(t, os.WriteFile(filepath.Join(s.Data, BasesDir, ".5.snapshot.123"), nil, 0o600))
	var log bytes.Buffer
	fatal.If(t, s.Begin(t.Context(), slog.New(slog.NewTextHandler(&log, nil))))
	if bases, err := basesIn(s.Data); err != nil || !slices.Equal(bases, []uint64{upTo}) {
		t.Errorf("bases %v, %v", bases, err)
	}
	for _, aside := range []uint64{2, upTo + 1} {
		if path := basePath(s.Data, aside) + asideSuffix; !isFile(path) || !strings.Contains(log.String(), path) {
			t.Errorf("%s is not put aside with a warning: %s", path, &log)
		}
	}
	if files, err := os.ReadDir(filepath.Join(s.Data, BasesDir)); err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A log is not cut while a learner still reads it, and every remaining snapshot leads to the state afterwards, too.
func TestRetentionWhileLearningAgain(t *testing.T) {
	s := newShrinking(t, new(memlog.Store))
	s.Size, s.Needs = 20_000, s.engine.Needs
	apply := func() (data []byte, first uint64) {
		t.Helper()
		data, upTo := s.snapshot()
		fatal.Or(s.Apply(t.Context(), upTo, s.now))(t)
		return data, s.extent().First
	}
	_, upTo := s.snapshot()
	var first uint64
	for range 5 {
		s.trade(10)
		_, first = apply()
	}
	config := func(lambda int) []byte {
		return fmt.Appendf(nil, `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl","warmup":2,"lambda":%d},"memory_bytes":100000}`, lambda)
	}
	for i := range 2 {
		fatal.Or(s.engine.Change(t.Context(), "home", config(20+i), engine.Change{Relearn: true}, s.now.UnixNano()))(t)
		from := s.extent().First
		if n := s.engine.Needs(upTo); n > from {
			t.Fatalf("entry %d is needed of a log from %d on", n, from)
		}
		if _, upTo, err := s.engine.Snapshot(t.Context()); err != nil || s.engine.Needs(upTo) != from {
			t.Errorf("entry %d is needed, want %d, %v", s.engine.Needs(upTo), from, err)
		}
		for range 3 {
			s.trade(10)
			data, x := apply()
			if x != from {
				t.Errorf("entries before %d are removed, while they are read from %d on", x, from)
			}
			s.sound(data)
		}
		if done, ended, err := s.engine.Exchange(t.Context(), s.now.UnixNano()); len(done) != 1 || ended != nil ||
			err != nil {
			t.Fatalf("exchanged %q, ended %q, %v", done, ended, err)
		}
		fatal.If(t, s.engine.Wait(t.Context()))
		for first <= from { // until it needs a base from after the exchange
			if x := s.extent(); x.Bytes > 3*s.Size {
				t.Fatalf("the log begins with entry %d, and has %d bytes", first, x.Bytes)
			}
			s.trade(10)
			var data []byte
			data, first = apply()
			s.sound(data)
		}
		if x := s.extent(); x.Bytes > s.Size {
			t.Errorf("the log has %d bytes", x.Bytes)
		}
	}
}

// A log of only open decisions keeps to its size long before the next snapshot is due: the oldest decisions are given
// up, and their entries go at once. A restart finds the rest.
func TestSizeWithOpenDecisions(t *testing.T) {
	t.Parallel()
	const size = 200_000
	data := t.TempDir()
	small := func(c *Config) {
		c.Snapshots.Every.Duration = time.Hour
		c.Retention.Size.Bytes = size
	}
	r := runs(t, "", data, small)
	r.ask(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"attribution_window":"8h"}`)
	decisions := 0
	trade := func() {
		t.Helper()
		for range 500 {
			r.ask(201, "POST", "/v1/placements/home/decisions",
				fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1}}]}`, decisions))
			decisions++
		}
	}
	bytes := func() (n float64) {
		_, text, _ := strings.Cut(r.ask(200, "GET", "/metrics", ""), "\nvitrine_log_bytes ")
		fatal.Or(fmt.Sscan(text, &n))(t)
		return n
	}
	stats := func() *api.Stats {
		s := new(api.Stats)
		fatal.If(t, json.Unmarshal([]byte(r.ask(200, "GET", "/v1/placements/home/stats", "")), s))
		return s
	}
	for range 3 {
		trade()
		before := bytes()
		r.until("the log keeps to its size", func() bool { return bytes() <= size })
		t.Logf("%v bytes after 500 decisions, then %v of %d, with %d of %d decisions open", before, bytes(), size,
			stats().Pending, decisions)
	}
	if s := stats(); s.ExpiredEarly == 0 || s.Pending == 0 || bytes() < size/2 {
		t.Errorf("%d given up, %d open, %v bytes", s.ExpiredEarly, s.Pending, bytes())
	}
	open := stats().Pending
	r.stop()
	r = runs(t, "", data, small)
	if s := stats(); s.Pending == 0 || s.Pending > open ||
		s.Pending+int(s.ExpiredEarly) != decisions { // more may be given up meanwhile
		t.Errorf("%d of %d are open, and after a restart %d, and %d were given up", open, decisions, s.Pending,
			s.ExpiredEarly)
	}
	r.ask(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/d%d/outcome", decisions-1), `{"choice":"a"}`)
}
