package filelog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/logtest"
)

const entries = 40

func entry(i int) []byte { return []byte(fmt.Sprintf("entry %d %s", i, strings.Repeat("x", i))) }

func numbered(first, last int) (all [][]byte) {
	for i := first; i <= last; i++ {
		all = append(all, entry(i))
	}
	return all
}

// filled creates a log that spans several segments, with some entries appended together, and returns its segments.
func filled(t testing.TB, dir string) (segments []string) {
	t.Helper()
	return filledWith(t, dir, entries, 700)
}

func filledWith(t testing.TB, dir string, entries int, segmentBytes uint32) (segments []string) {
	t.Helper()
	filelog.SetSegmentBytes(t, segmentBytes)
	s := openWith(t, filelog.Options{Dir: dir})
	for i := 1; i <= entries; i += 2 {
		if i%4 == 1 {
			appendAll(t, s, entry(i), entry(i+1))
			continue
		}
		appendAll(t, s, entry(i))
		appendAll(t, s, entry(i+1))
	}
	s.Close()
	return segmentsOf(t, dir)
}

func segmentsOf(t testing.TB, dir string) []string {
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	return segments
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	fatal.If(t, os.WriteFile(path, data, 0o600))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data := fatal.Or(os.ReadFile(path))(t)
	return data
}

// wantDamage checks that a writer rejects the log without changing it, and that a reader gets the entries before the
// damage.
func wantDamage(t testing.TB, dir, what string) {
	t.Helper()
	before := contents(t, dir)
	if s, err := filelog.Open(t.Context(), filelog.Options{Dir: dir}); err == nil {
		s.Close()
		t.Errorf("%s is not found", what)
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("%s: %v, which names no file", what, err)
	}
	for name, data := range contents(t, dir) {
		if !bytes.Equal(data, before[name]) {
			t.Errorf("%s: the writer has changed %s", what, name)
		}
	}
	r, err := filelog.Open(t.Context(), filelog.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Errorf("%s: a reader: %v", what, err)
		return
	}
	defer r.Close()
	if r.Damage() == nil {
		t.Errorf("%s is not found by a reader", what)
	}
	have, err := logtest.Read(r, 1)
	if errors.Is(err, eventlog.ErrRemoved) {
		return
	}
	for i := range have {
		if !bytes.Equal(have[i], entry(i+1)) {
			t.Fatalf("%s: entry %d is %.40q", what, i+1, have[i])
		}
	}
	var damage *eventlog.DamageError
	if errors.As(r.Damage(), &damage) && damage.Sequence != uint64(len(have)+1) || err != nil {
		t.Errorf("%s: %d entries, %v, %v", what, len(have), r.Damage(), err)
	}
}

func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	paths := fatal.Or(filepath.Glob(filepath.Join(dir, "*")))(t)
	for _, path := range paths {
		all[path] = read(t, path)
	}
	return all
}

// A flipped bit is found before the log is used, in any file and place: in an entry, in the library's framing, in bytes
// that are never read, in the mark. A short run flips one bit of each byte. The log is small, because each flip reads
// all of it, and its entries use every length of padding.
func TestFlips(t *testing.T) {
	const entries = 12
	step := 9
	if long.Wanted() {
		step = 1
	}
	dir := t.TempDir()
	filledWith(t, dir, entries, 250)
	for path, data := range contents(t, dir) {
		f := fatal.Or(os.OpenFile(path, os.O_WRONLY, 0))(t)
		for bit := 0; bit < 8*len(data) && !t.Failed(); bit += step {
			at := bit / 8
			fatal.Or(f.WriteAt([]byte{data[at] ^ 1<<(bit%8)}, int64(at)))(t)
			wantDamage(t, dir, fmt.Sprintf("bit %d of %s", bit, filepath.Base(path)))
			fatal.Or(f.WriteAt(data[at:at+1], int64(at)))(t)
		}
		fatal.If(t, f.Close())
	}
	s := open(t, dir)
	logtest.Want(t, s, 1, numbered(1, entries)...)
}

// Files that are truncated, zeroed from some place on, or that contain a missing or foreign part are all detected.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	segments := filled(t, dir)
	rng := rand.New(rand.NewPCG(40, 2))
	for range 20 * damages {
		path := segments[rng.IntN(len(segments))]
		data := read(t, path)
		at := rng.IntN(len(data))
		bad, what := bytes.Clone(data), ""
		switch rng.IntN(4) {
		case 0:
			bad, what = bad[:at], "cut"
		case 1:
			clear(bad[at:])
			what = "zero"
		case 2:
			bad, what = append(bad[:at], data[at+rng.IntN(len(data)-at):]...), "a gap"
		case 3:
			other := read(t, segments[rng.IntN(len(segments))])
			bad, what = append(bad[:at], other[min(at, len(other)):]...), "of another segment"
		}
		if bytes.Equal(bad, data) {
			continue
		}
		write(t, path, bad)
		wantDamage(t, dir, fmt.Sprintf("%s from byte %d of %d of %s on: %s",
			filepath.Base(path), at, len(data), path, what))
		write(t, path, data)
	}
}

// Missing segments at the beginning, in the middle and at the end are detected.
func TestLostSegments(t *testing.T) {
	dir := t.TempDir()
	segments := filled(t, dir)
	for i, path := range segments {
		data := read(t, path)
		fatal.If(t, os.Remove(path))
		wantDamage(t, dir, fmt.Sprint("the loss of segment ", i))
		write(t, path, data)
	}
}

// Damage among removed entries is detected too if their segment remains.
func TestDamageBeforeTheFirst(t *testing.T) {
	dir := t.TempDir()
	segments := filled(t, dir)
	s := openWith(t, filelog.Options{Dir: dir})
	fatal.If(t, s.TruncateBefore(t.Context(), 4))
	s.Close()
	data := read(t, segments[0])
	data[60] ^= 1
	write(t, segments[0], data)
	if _, err := filelog.Open(t.Context(), filelog.Options{Dir: dir}); !errors.As(err, new(*eventlog.DamageError)) {
		t.Errorf("%v, want a DamageError", err)
	}
	r := openWith(t, filelog.Options{Dir: dir, ReadOnly: true})
	x, err := r.Extent(t.Context())
	if err != nil || x.First != x.Last+1 || r.Damage() == nil {
		t.Errorf("%+v, %v, %v", x, err, r.Damage())
	}
	logtest.Want(t, r, x.First)
}

// If a killed process leaves a half-written append, the append was not acknowledged. It is dropped with a warning,
// whatever its bytes.
func TestTornTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 3))
	for i := range 4 * damages {
		dir := t.TempDir()
		segments := filled(t, dir)
		last := segments[len(segments)-1]
		data := read(t, last)
		junk := bytes.Clone(data[32+8*rng.IntN(len(data)/8-4):])
		if i%3 == 0 {
			clear(junk)
		}
		write(t, last, append(data, junk[:rng.IntN(len(junk)+1)]...))
		var log bytes.Buffer
		r := openWith(t, filelog.Options{Dir: dir, ReadOnly: true})
		logtest.Want(t, r, 1, numbered(1, entries)...)
		if r.Damage() != nil {
			t.Error(r.Damage())
		}
		r.Close()
		s := openWith(t, filelog.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if torn := len(read(t, last)) != len(data); torn {
			t.Error("the torn end is left")
		}
		logtest.Want(t, s, 1, numbered(1, entries)...)
		appendAll(t, s, numbered(entries+1, entries+5)...)
		s.Close()
		logtest.Want(t, open(t, dir), 1, numbered(1, entries+5)...)
	}
	// The first append to a segment, and to a log.
	for _, first := range []uint64{1, entries + 1} {
		dir := t.TempDir()
		want := 0
		if first > 1 {
			filled(t, dir)
			want = entries
		}
		write(t, filepath.Join(dir, fmt.Sprintf("%020d-%016x.wal", first, first)), []byte("half a header"))
		if first > 1 { // the previous append must be complete
			wantDamage(t, dir, "a segment after an open one")
			continue
		}
		s := open(t, dir)
		logtest.Want(t, s, 1, numbered(1, want)...)
		appendAll(t, s, entry(1))
		logtest.Want(t, s, 1, entry(1))
	}
}

// By deleting the mark, the operator accepts the loss: the log ends before the damage, and the damaged files are kept.
func TestAcceptedLoss(t *testing.T) {
	dir := t.TempDir()
	segments := filled(t, dir)
	data := read(t, segments[1])
	data[len(data)/2] ^= 4
	write(t, segments[1], data)
	wantDamage(t, dir, "a flip")
	fatal.If(t, os.Remove(filepath.Join(dir, "mark")))
	r := openWith(t, filelog.Options{Dir: dir, ReadOnly: true})
	if r.Damage() == nil {
		t.Error("a reader finds no damage")
	}
	have := fatal.Or(logtest.Read(r, 1))(t)
	r.Close()
	s := openWith(t, filelog.Options{Dir: dir})
	logtest.Want(t, s, 1, numbered(1, len(have))...)
	appendAll(t, s, numbered(len(have)+1, entries)...)
	s.Close()
	logtest.Want(t, open(t, dir), 1, numbered(1, entries)...)
	if kept := read(t, filepath.Join(dir, "damaged", filepath.Base(segments[1]))); !bytes.Equal(kept, data) {
		t.Error("the damaged segment is not kept")
	}
	for _, path := range segments[2:] {
		if _, err := os.Stat(filepath.Join(dir, "damaged", filepath.Base(path))); err != nil {
			t.Error(err)
		}
	}
}

// A segment from a diverged copy of the log: every record is intact and in place, and only the running hash reveals the
// swap.
func TestMixedCopies(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	segments := filled(t, dir)
	for path, data := range contents(t, dir) {
		if path < segments[2] || filepath.Ext(path) == "" {
			write(t, filepath.Join(other, filepath.Base(path)), data)
		}
	}
	fatal.If(t, os.Remove(filepath.Join(other, "mark")))
	s := openWith(t, filelog.Options{Dir: other})
	x := fatal.Or(s.Extent(t.Context()))(t)
	for i := x.Last + 1; i <= entries; i++ {
		appendAll(t, s, append(entry(int(i)), '!'))
	}
	s.Close()
	mixed := false
	for _, path := range segmentsOf(t, other)[3:] {
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(path))); err != nil {
			continue
		}
		mixed = true
		mine := read(t, filepath.Join(dir, filepath.Base(path)))
		write(t, filepath.Join(dir, filepath.Base(path)), read(t, path))
		wantDamage(t, dir, "a segment of another copy")
		write(t, filepath.Join(dir, filepath.Base(path)), mine)
	}
	if !mixed {
		t.Skip("no segments have the same beginning")
	}
	earlier := openWith(t, filelog.Options{Dir: dir})
	fatal.If(t, earlier.Close())
	write(t, segments[2], read(t, filepath.Join(other, filepath.Base(segments[2])))) // the first that differs
	var damage *eventlog.DamageError
	if _, err := filelog.Open(t.Context(), filelog.Options{Dir: dir, Earlier: earlier}); !errors.As(err, &damage) {
		t.Errorf("verified segments after another copy's: %v", err)
	}
}

// An error about a segment in another format names the segment and its format.
func TestOtherFormat(t *testing.T) {
	for format, says := range map[uint64]string{2: "in format 2, and this program reads format 1",
		0: "its header is damaged: there is no format 0", 1 << 40: "its header is damaged"} {
		dir := t.TempDir()
		filelog.SetFormat(t, format)
		s := open(t, dir)
		appendAll(t, s, entry(1))
		s.Close()
		filelog.SetFormat(t, 1)
		expect.Part(filelog.Open(t.Context(), filelog.Options{Dir: dir}))(t, says)
	}
}

// Files that are removed, truncated or replaced while the log is open are noticed, and removed ones are restored.
func TestFilesAreWatched(t *testing.T) {
	for _, what := range []string{"removed", "mark", "cut", "cut at once", "replaced", "directory moved",
		"directory removed", "directory replaced"} {
		dir := filepath.Join(t.TempDir(), "log")
		segments := filled(t, dir)
		s := openWith(t, filelog.Options{Dir: dir})
		data := read(t, segments[1])
		var err error
		switch what {
		case "removed":
			err = os.Remove(segments[1])
		case "mark":
			err = os.Remove(filepath.Join(dir, "mark"))
		case "cut":
			err = os.Truncate(segments[1], 100)
		case "cut at once": // before the store saw the new size
			appendAll(t, s, entry(entries+1), entry(entries+2))
			all := segmentsOf(t, dir)
			err = os.Truncate(all[len(all)-1], int64(len(read(t, all[len(all)-1]))-20))
		case "replaced":
			write(t, segments[1]+"x", data)
			err = os.Rename(segments[1]+"x", segments[1])
		case "directory moved":
			err = os.Rename(dir, dir+"x")
		case "directory removed":
			err = os.RemoveAll(dir)
		case "directory replaced":
			err = errors.Join(os.Rename(dir, dir+"-old"), os.CopyFS(dir, os.DirFS(dir+"-old")))
		}
		fatal.If(t, err)
		<-s.Lost()
		want := eventlog.ErrReopen
		if strings.HasPrefix(what, "directory") {
			want = eventlog.ErrLost
		}
		if _, err := s.Append(t.Context(), entry(1)); !errors.Is(err, want) || !errors.Is(s.Loss(), want) ||
			!errors.Is(s.Confirm(t.Context()), want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		s.Close()
		switch what {
		case "removed", "mark", "replaced":
			logtest.Want(t, open(t, dir), 1, numbered(1, entries)...)
		case "cut", "cut at once":
			wantDamage(t, dir, what)
		case "directory moved", "directory removed":
			expect.Fails(os.Stat(dir))(t, fs.ErrNotExist, "the directory is there again")
		}
	}
}

// Marks are read back as written, and other bytes are rejected.
func FuzzMark(f *testing.F) {
	f.Add(filelog.EncodeMark(7, 3))
	f.Add([]byte("VLOGMARK"))
	f.Fuzz(func(t *testing.T, data []byte) {
		next, first, err := filelog.DecodeMark(data)
		if err == nil && !bytes.Equal(filelog.EncodeMark(next, first), data) {
			t.Errorf("%x is read as %d, %d", data, next, first)
		}
	})
}

// FuzzSegment opens a log after replacing a segment's bytes: the log is rejected, or its bytes stay the same.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	filelog.SetSegmentBytes(f, 1500)
	s := openWith(f, filelog.Options{Dir: dir, Start: eventlog.Position{Log: eventlog.Identity{1}}})
	appendAll(f, s, texts("a", "bc")...)
	appendAll(f, s, texts(strings.Repeat("d", 1500))...)
	s.Close()
	name := fmt.Sprintf("%020d-%016x.wal", 1, 1)
	f.Add(read(f, filepath.Join(dir, name)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		write(t, path, data)
		r, err := filelog.Open(t.Context(), filelog.Options{Dir: dir, ReadOnly: true})
		fatal.If(t, err)
		sound := r.Damage() == nil
		have, err := logtest.Read(r, 1)
		r.Close()
		fatal.If(t, err)
		s := openWith(t, filelog.Options{Dir: dir}) // without a mark, the damaged end is cut off
		logtest.Want(t, s, 1, have...)
		s.Close()
		if sound && len(data) > 0 && !bytes.Equal(read(t, path), data) {
			t.Error("a sound log is changed")
		}
	})
}

// Decoding a record inverts encoding it.
func FuzzRecord(f *testing.F) {
	f.Add(uint64(1), []byte("x"), false)
	f.Fuzz(func(t *testing.T, sequence uint64, data []byte, isEncoded bool) {
		if isEncoded {
			data = filelog.EncodeRecord(eventlog.Position{Log: eventlog.Identity{1}, Sequence: sequence - 1}, data,
				true)
		}
		start, entry, ends, err := filelog.DecodeRecord(sequence, data)
		if err != nil && isEncoded {
			t.Fatal(err)
		}
		if err == nil && !bytes.Equal(filelog.EncodeRecord(start, entry, ends), data) {
			t.Errorf("%x is read as %q", data, entry)
		}
	})
}

// A file that only looks like a segment is named.
func TestMisnamedSegment(t *testing.T) {
	dir := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(dir, "old.wal"), nil, 0o600))
	_, err := filelog.Open(t.Context(), filelog.Options{Dir: dir})
	expect.Part(err)(t, filepath.Join(dir, "old.wal")+" has a name that no segment has", "the error")
}
