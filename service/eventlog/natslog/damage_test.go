package natslog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

const entries = 60

func entry(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte{byte(i)}, 10*i), "entry %d", i) }

func numbered(first, last int) (all [][]byte) {
	for i := first; i <= last; i++ {
		all = append(all, entry(i))
	}
	return all
}

func fill(t testing.TB, s eventlog.Store, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		if have, err := s.Append(t.Context(), entry(i)); err != nil || have != uint64(i) {
			t.Fatalf("entry %d has the sequence %d, %v", i, have, err)
		}
	}
}

// filled makes a directory with a log of entries and returns the file that has
// them. A server that was killed leaves no index.
func filled(t *testing.T, killed bool) (dir, block string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	fill(t, s, 1, entries)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if killed {
		if err := os.Remove(inMsgs(dir, "index.db")); err != nil {
			t.Fatal(err)
		}
	}
	return dir, inMsgs(dir, "1.blk")
}

func inMsgs(dir, name string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", "vitrine", "msgs", name)
}

// readDamaged opens a log and reads it all. What it yields must be a prefix of what
// was written; the error says where it ends.
func readDamaged(t *testing.T, dir string) error {
	t.Helper()
	s, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	have, err := logtest.Read(s, 1)
	for i := range have {
		if !bytes.Equal(have[i], entry(i+1)) {
			t.Fatalf("entry %d is %.40q", i+1, have[i])
		}
	}
	var damage *eventlog.DamageError
	if errors.As(err, &damage) && damage.Sequence != uint64(len(have)+1) {
		t.Errorf("after %d entries: %v", len(have), err)
	}
	if err == nil && len(have) != entries {
		t.Errorf("%d entries are read of %d, and no error", len(have), entries)
	}
	return err
}

// Wherever a bit flips or the file ends, the log says from which entry on it
// cannot be read, or has all of them: where the damage is in what no entry needs.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 2))
	for _, killed := range []bool{false, true} {
		for _, damage := range []string{"flip", "cut", "zeros"} {
			t.Run(fmt.Sprintf("%s, killed %v", damage, killed), func(t *testing.T) {
				reported := 0
				for range damages / 6 {
					dir, block := filled(t, killed)
					data, err := os.ReadFile(block)
					if err != nil {
						t.Fatal(err)
					}
					at := rng.IntN(len(data))
					switch damage {
					case "flip":
						data[at] ^= 1 << rng.IntN(8)
					case "cut":
						data = data[:at]
					case "zeros":
						clear(data[at:])
					}
					if err := os.WriteFile(block, data, 0o644); err != nil {
						t.Fatal(err)
					}
					var damage *eventlog.DamageError
					err = readDamaged(t, dir)
					if err != nil && !errors.As(err, &damage) {
						t.Errorf("byte %d: %v, want a DamageError", at, err)
					}
					if err != nil {
						reported++
					}
				}
				if reported == 0 {
					t.Error("no damage is reported")
				}
			})
		}
	}
}

// What a killed process leaves half written was not acknowledged, and is dropped.
func TestTornTail(t *testing.T) {
	dir, block := filled(t, true)
	data, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(block, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(data[len(data)/2:][:101]); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	logtest.Want(t, s, 1, numbered(1, entries)...)
	fill(t, s, entries+1, entries+5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	logtest.Want(t, s, 1, numbered(1, entries+5)...)
}

// The last acknowledged entries are missing: opening is refused, with the
// sequence, until the loss is accepted by removing the mark.
func TestLostTail(t *testing.T) {
	dir, block := filled(t, true)
	info, err := os.Stat(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(block, info.Size()-1500); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
		var damage *eventlog.DamageError
		if !errors.As(err, &damage) || damage.Sequence != 59 || !strings.Contains(err.Error(), "entries up to 60 were acknowledged") {
			t.Fatalf("%v, want a DamageError from entry 59 on", err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	defer s.Close()
	logtest.Want(t, s, 1, numbered(1, 58)...)
	fill(t, s, 59, 60)
}

// The first file is missing: that looks like a log whose oldest entries were removed, and was not.
func TestLostHead(t *testing.T) {
	dir := t.TempDir()
	s := connect(t, natslog.Options{Dir: dir})
	for range 40 {
		if _, err := s.Append(t.Context(), make([]byte, 500_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.TruncateBefore(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	connect(t, natslog.Options{Dir: dir}).Close()
	if err := os.Remove(inMsgs(dir, "1.blk")); err != nil {
		t.Fatal(err)
	}
	_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
	var damage *eventlog.DamageError
	if !errors.As(err, &damage) || damage.Sequence != 5 || !strings.Contains(err.Error(), "begin with entry 17") {
		t.Fatalf("%v, want a DamageError of entry 5", err)
	}
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
	s = connect(t, natslog.Options{Dir: dir})
	if x, err := s.Extent(t.Context()); err != nil || x.First != 17 || x.Last != 40 {
		t.Errorf("[%d, %d], %v", x.First, x.Last, err)
	}
}

// Marks of before had no beginning.
func TestEarlierMark(t *testing.T) {
	dir, _ := filled(t, false)
	path := filepath.Join(dir, "mark")
	mark := func(next uint64) []byte {
		data := binary.LittleEndian.AppendUint64([]byte("VLOGMARK"), next)
		return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	}
	if err := os.WriteFile(path, mark(entries+2), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := natslog.Open(t.Context(), natslog.Options{Dir: dir}); !errors.As(err, new(*eventlog.DamageError)) {
		t.Errorf("%v, want a DamageError", err)
	}
	if err := os.WriteFile(path, mark(entries+1), 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, dir).Close()
	if data, err := os.ReadFile(path); err != nil || len(data) != 28 || data[16] != 1 {
		t.Errorf("the mark is %x, %v, want one of 28 bytes that begins with entry 1", data, err)
	}
}

func TestDamagedMark(t *testing.T) {
	dir, _ := filled(t, false)
	path := filepath.Join(dir, "mark")
	for _, data := range []string{"x", "VLOGMARK", strings.Repeat("\x00", 20), strings.Repeat("\x00", 21)} {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := natslog.Open(t.Context(), natslog.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a mark of %q: %v", data, err)
		}
	}
}
