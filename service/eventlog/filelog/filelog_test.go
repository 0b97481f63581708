package filelog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/logtest"
)

func open(t testing.TB, dir string) eventlog.Log {
	t.Helper()
	return openWith(t, filelog.Options{Dir: dir})
}

func openWith(t testing.TB, o filelog.Options) *filelog.Store {
	t.Helper()
	s := fatal.Or(filelog.Open(t.Context(), o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) {
	logtest.Run(t, open)
	logtest.RunDurable(t, open)
	t.Run("small segments", func(t *testing.T) {
		filelog.SetSegmentBytes(t, 2000)
		logtest.Run(t, open)
		logtest.RunDurable(t, open)
	})
}

// BenchmarkSync measures the smallest commit that a disk can do: a write of 1 KB at the end of a file, and fsync.
func BenchmarkSync(b *testing.B) {
	file := fatal.Or(os.Create(filepath.Join(b.TempDir(), "file")))(b)
	defer file.Close()
	block := make([]byte, 1024)
	for b.Loop() {
		fatal.Or(file.Write(block))(b)
		fatal.If(b, file.Sync())
	}
}

func BenchmarkAppend(b *testing.B)  { logtest.BenchmarkAppend(b, open) }
func BenchmarkEntries(b *testing.B) { logtest.BenchmarkEntries(b, open) }

// Opening a log verifies every byte: 100 MB in this benchmark.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	e := make([]byte, 2000)
	many := make([][]byte, 400)
	for i := range many {
		many[i] = e
	}
	for range 125 {
		fatal.Or(s.Append(b.Context(), many...))(b)
	}
	s.Close()
	b.SetBytes(100e6)
	for b.Loop() {
		open(b, dir).Close()
	}
}

func appendAll(t testing.TB, s eventlog.Log, entries ...[]byte) {
	t.Helper()
	fatal.Or(s.Append(t.Context(), entries...))(t)
}

func texts(entries ...string) (b [][]byte) {
	for _, e := range entries {
		b = append(b, []byte(e))
	}
	return b
}

// A process reads the log while another one writes it. The entries that it reads cannot be removed meanwhile.
func TestReaderBesideWriter(t *testing.T) {
	filelog.SetSegmentBytes(t, 500)
	dir := t.TempDir()
	w := openWith(t, filelog.Options{Dir: dir})
	expect.Part(filelog.Open(t.Context(), filelog.Options{Dir: dir}))(t,
		"is in use, such as by a service: stop it first", "two writers")
	want := [][]byte{}
	for i := range 40 {
		want = append(want, texts(strings.Repeat("x", i), "y")...)
		appendAll(t, w, want[len(want)-2:]...)
		r := openWith(t, filelog.Options{Dir: dir, ReadOnly: true})
		logtest.Want(t, r, 1, want...)
		have, err := r.Position(t.Context(), uint64(len(want)))
		if at, _ := w.Position(t.Context(), uint64(len(want))); err != nil || have != at || r.Damage() != nil {
			t.Errorf("%+v, %v, %v, want %+v", have, err, r.Damage(), at)
		}
		expect.Fails(r.Append(t.Context(), want[0]))(t, eventlog.ErrReadOnly)
		expect.Error(t, w.TruncateBefore(t.Context(), 2), eventlog.ErrHeld)
		r.Close()
	}
	fatal.If(t, w.TruncateBefore(t.Context(), 50))
	r := openWith(t, filelog.Options{Dir: dir, ReadOnly: true})
	logtest.Want(t, r, 50, want[49:]...)
	expect.Fails(filelog.Open(t.Context(), filelog.Options{Dir: filepath.Join(dir, "none"),
		ReadOnly: true}))(t, fs.ErrNotExist, "no log")
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := openWith(t, filelog.Options{Dir: t.TempDir()})
	appendAll(t, s, texts("a")...)
	for range s.Entries(t.Context(), 1) {
		break
	}
	s.Close()
	goleak.VerifyNone(t, before)
}

// Removal of old entries inspects segments that grow and end. The race detector checks that this is safe.
func TestRemovalBesideAppends(t *testing.T) {
	filelog.SetSegmentBytes(t, 2000)
	s := openWith(t, filelog.Options{Dir: t.TempDir()})
	appendAll(t, s, texts("first")...)
	done := make(chan error)
	go func() {
		for range 200 {
			if _, err := s.Append(t.Context(), make([]byte, 300)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			fatal.If(t, err)
			running = false
		default:
		}
		first := fatal.Or(s.FirstWithin(t.Context(), 100))(t)
		fatal.If(t, s.TruncateBefore(t.Context(), first))
	}
	if x, err := s.Extent(t.Context()); err != nil || x.Last != 201 || x.Bytes > 1000 {
		t.Errorf("extent %+v, %v", x, err)
	}
}

// A copy is unfinished from its first moment, until its maker says otherwise.
func TestCopyBegins(t *testing.T) {
	o := filelog.Options{Dir: t.TempDir(), Copies: true}
	for range 2 { // it may be interrupted at once, and repeated
		openWith(t, o).Close()
		expect.Fails(filelog.Open(t.Context(), filelog.Options{Dir: o.Dir}))(t, eventlog.ErrUnfinished)
	}
	c := openWith(t, o)
	fatal.If(t, errors.Join(c.MarkCopy(t.Context(), false), c.Close()))
	openWith(t, o).Close() // a later copy marks the log when it has entries to copy
	open(t, o.Dir)
}

// A log that continues another one keeps its identity, sequence and running hash.
func TestStart(t *testing.T) {
	start := eventlog.Position{Log: eventlog.NewIdentity(), Sequence: 41, Hash: [16]byte{7}}
	dir := t.TempDir()
	for range 2 { // even if the first run appended no entries
		s := openWith(t, filelog.Options{Dir: dir, Start: start})
		if p, err := s.Position(t.Context(), 41); err != nil || p != start {
			t.Errorf("%+v, %v", p, err)
		}
		s.Close()
	}
	s := openWith(t, filelog.Options{Dir: dir, Start: start})
	appendAll(t, s, texts("a", "b")...)
	s.Close()
	s = openWith(t, filelog.Options{Dir: dir})
	logtest.Want(t, s, 42, texts("a", "b")...)
	if p, err := s.Position(t.Context(), 43); err != nil || p != start.After(texts("a", "b")...) {
		t.Errorf("%+v, %v", p, err)
	}
}

// Removal returns space to the disk, except for a segment shared with the remaining entries.
func TestSpaceIsGivenBack(t *testing.T) {
	filelog.SetSegmentBytes(t, 1<<20)
	dir := t.TempDir()
	s := openWith(t, filelog.Options{Dir: dir})
	e := make([]byte, 100_000)
	for range 5 {
		for range 30 {
			appendAll(t, s, e)
		}
		const within = 1_500_000
		first := fatal.Or(s.FirstWithin(t.Context(), within))(t)
		fatal.If(t, s.TruncateBefore(t.Context(), first))
		x := fatal.Or(s.Extent(t.Context()))(t)
		onDisk := int64(0)
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			info := fatal.Or(os.Stat(f))(t)
			onDisk += info.Size()
		}
		if x.Bytes > within || onDisk > within+1_200_000 {
			t.Errorf("entries %d to %d: %d bytes, %d on disk, want %d", x.First, x.Last, x.Bytes, onDisk, within)
		}
		s.Close()
		s = openWith(t, filelog.Options{Dir: dir})
		if y, err := s.Extent(t.Context()); err != nil || y != x {
			t.Errorf("opened again it has %+v, was %+v, %v", y, x, err)
		}
	}
}

// A log whose mark is gone exists still, also in a directory that is no pattern.
func TestExistsWithoutMark(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop[1")
	if filelog.Exists(dir) {
		t.Error("a log in no directory")
	}
	s := openWith(t, filelog.Options{Dir: dir})
	appendAll(t, s, []byte("entry"))
	fatal.If(t, s.Close())
	fatal.If(t, os.Remove(filepath.Join(dir, "mark")))
	if !filelog.Exists(dir) {
		t.Error("the log is not found")
	}
}

// A store that follows another one of its process verifies only segments whose files may have changed since, and the
// last one. A byte that flips without a change of the file's time shows which were read.
func TestEarlier(t *testing.T) {
	const middle, grown = entries/2 + 1, 2*entries + 1 // in a segment, and the beginning of one
	dir := t.TempDir()
	filled(t, dir)
	s := openWith(t, filelog.Options{Dir: dir})
	for i := entries + 1; i <= grown; i++ {
		appendAll(t, s, entry(i))
	}
	segments := segmentsOf(t, dir)
	x := fatal.Or(s.Extent(t.Context()))(t)
	flipped := func(path string, silent bool, o filelog.Options) error {
		info := fatal.Or(os.Stat(path))(t)
		before := read(t, path)
		write(t, path, append(before[:100:100], append([]byte{before[100] ^ 1}, before[101:]...)...))
		if silent {
			fatal.If(t, os.Chtimes(path, time.Time{}, info.ModTime()))
		}
		s, err := filelog.Open(t.Context(), o)
		if err == nil {
			fatal.If(t, s.Close())
		}
		write(t, path, before)
		fatal.If(t, os.Chtimes(path, time.Time{}, info.ModTime()))
		return err
	}
	fatal.If(t, s.Close())
	again := filelog.Options{Dir: dir, Earlier: s}
	last := len(segments) - 1
	for i, path := range segments {
		if err := flipped(path, true, again); (err != nil) != (i == last) {
			t.Errorf("segment %d of %d flipped silently: %v", i, last, err)
		}
		var damage *eventlog.DamageError
		if err := flipped(path, false, again); !errors.As(err, &damage) {
			t.Errorf("segment %d flipped: %v", i, err)
		}
		if err := flipped(path, true, filelog.Options{Dir: dir}); !errors.As(err, &damage) {
			t.Errorf("segment %d flipped, with nothing known: %v", i, err)
		}
	}
	s = openWith(t, again)
	logtest.Want(t, s, 1, numbered(1, grown)...)
	if y := fatal.Or(s.Extent(t.Context()))(t); y != x {
		t.Errorf("%+v, want %+v", y, x)
	}
	fatal.If(t, s.TruncateBefore(t.Context(), middle))
	for i := grown + 1; i <= 3*entries; i++ {
		appendAll(t, s, entry(i))
	}
	x = fatal.Or(s.Extent(t.Context()))(t)
	fatal.If(t, s.Close())
	for _, o := range []filelog.Options{{Dir: dir, Earlier: s}, {Dir: dir}} { // the latter verifies all
		s := openWith(t, o)
		logtest.Want(t, s, middle, numbered(middle, 3*entries)...)
		if y := fatal.Or(s.Extent(t.Context()))(t); y != x {
			t.Errorf("%+v, want %+v", y, x)
		}
		fatal.If(t, s.Close())
	}
}
