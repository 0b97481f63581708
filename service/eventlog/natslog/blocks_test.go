package natslog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

// manyBlocks makes a log of 40 entries of half a megabyte each, in three files.
func manyBlocks(t *testing.T) (dir string) {
	t.Helper()
	t.Cleanup(natslog.SetPatientAttempts()) // a busy machine's messages are not sent again, so the files are always the same
	dir = t.TempDir()
	s := connect(t, natslog.Options{Dir: dir})
	for i := range 40 {
		if _, err := s.Append(t.Context(), bytes.Repeat([]byte{byte(i)}, 500_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func flip(t *testing.T, path string, at int) (spoilt []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// A bit in the middle of a log whose end is sound: the server would cut the rest of the file off, 7 MB here, and
// nothing would say so. The log is refused, with the file and the entry, as often as it is opened, and
// the file stays as it is.
func TestDamageInTheMiddle(t *testing.T) {
	dir := manyBlocks(t)
	path := inMsgs(dir, "2.blk")
	spoilt := flip(t, path, 1_200_000)
	for _, readOnly := range []bool{false, true, false} {
		_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir, ReadOnly: readOnly})
		var damage *eventlog.DamageError
		if !errors.As(err, &damage) || damage.Sequence != 19 || !strings.Contains(err.Error(), "2.blk is damaged at byte 1000") {
			t.Fatalf("%v, want a DamageError of entry 19 that names 2.blk", err)
		}
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, spoilt) {
			t.Fatalf("the file was changed, %v", err)
		}
	}

	// The operator accepts the loss: the log ends before the damage, and what came after it is kept.
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := connect(t, natslog.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if x, err := s.Extent(t.Context()); err != nil || x.First != 1 || x.Last != 18 {
		t.Errorf("entries %d to %d, %v", x.First, x.Last, err)
	}
	if have, err := logtest.Read(s, 1); err != nil || len(have) != 18 {
		t.Errorf("%d entries, %v", len(have), err)
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("nothing is warned of: %s", &log)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "damaged", "2.blk")); err != nil || !bytes.Equal(data, spoilt) {
		t.Errorf("the damaged file was not kept, %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged", "3.blk")); err != nil {
		t.Error(err)
	}
}

// A file in the middle is missing.
func TestLostBlock(t *testing.T) {
	dir := manyBlocks(t)
	if err := os.Remove(inMsgs(dir, "2.blk")); err != nil {
		t.Fatal(err)
	}
	_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
	var damage *eventlog.DamageError
	if !errors.As(err, &damage) || damage.Sequence != 17 || !strings.Contains(err.Error(), "3.blk is damaged at byte 0") || !strings.Contains(err.Error(), "comes after message 17") {
		t.Fatalf("%v, want a DamageError of entry 17", err)
	}
}

// The lengths in a record are in no hash of the server: flipped they make it read other bytes as the message.
func TestDamagedLengths(t *testing.T) {
	for at := range 30 {
		dir, block := filled(t, true)
		flip(t, block, at)
		_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir})
		if !errors.As(err, new(*eventlog.DamageError)) || !strings.Contains(err.Error(), "1.blk is damaged at byte 0 of") {
			t.Errorf("byte %d: %v, want a DamageError", at, err)
		}
	}
	for _, size := range []int64{1, 21, 22, 30} { // bytes of the first record
		dir, block := filled(t, true)
		if err := os.Truncate(block, size); err != nil {
			t.Fatal(err)
		}
		if _, err := natslog.Open(t.Context(), natslog.Options{Dir: dir}); !errors.As(err, new(*eventlog.DamageError)) {
			t.Errorf("cut after %d bytes: %v, want a DamageError", size, err)
		}
	}
}

// Where the server's description of the log is damaged, a reader of a copy finds what a writer does.
func TestDamagedDescription(t *testing.T) {
	for _, name := range []string{"meta.inf", "meta.sum"} {
		for _, readOnly := range []bool{true, false} {
			dir, _ := filled(t, false)
			flip(t, filepath.Join(dir, "jetstream", "$G", "streams", "vitrine", name), 9)
			var log bytes.Buffer
			s := connect(t, natslog.Options{Dir: dir, ReadOnly: readOnly, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			logtest.Want(t, s, 1, numbered(1, entries)...)
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "meta.inf") {
				t.Errorf("%s: nothing is warned of: %s", name, &log)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A copy of a log went on by itself, and a file of it comes into the log: every frame is sound and in its place, and the
// running hash tells.
func TestMixedCopies(t *testing.T) {
	t.Cleanup(natslog.SetPatientAttempts()) // as above
	dir := t.TempDir()
	s := connect(t, natslog.Options{Dir: dir})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fork := filepath.Join(t.TempDir(), "fork")
	if err := os.CopyFS(fork, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for i, dir := range []string{dir, fork} {
		s := connect(t, natslog.Options{Dir: dir})
		for range 40 {
			if _, err := s.Append(t.Context(), bytes.Repeat([]byte{byte(i)}, 500_000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(inMsgs(fork, "2.blk"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inMsgs(dir, "2.blk"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *eventlog.DamageError
	s, err = natslog.Open(t.Context(), natslog.Options{Dir: dir})
	if errors.As(err, &damage) && strings.Contains(err.Error(), "comes after message") {
		t.Skip("the server began the second file of one copy later than that of the other")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	have, err := logtest.Read(s, 1)
	if !errors.As(err, &damage) || damage.Sequence != uint64(len(have)+1) || len(have) == 0 || len(have) > 20 || !strings.Contains(err.Error(), "running hash") {
		t.Errorf("%d entries are read, %v; want a DamageError where the file of the fork begins", len(have), err)
	}
}
