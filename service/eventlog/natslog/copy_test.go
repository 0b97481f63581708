package natslog_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

// contents returns the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A copy has the entries, and making and opening it leaves the log as it was.
func TestCopy(t *testing.T) {
	dir, _ := filled(t, false)
	before := contents(t, dir)
	to := filepath.Join(t.TempDir(), "a", "b")
	last, of := int64(0), int64(0)
	if err := natslog.Copy(t.Context(), to, dir, func(done, total int64) { last, of = done, total }); err != nil {
		t.Fatal(err)
	}
	if last != of || of == 0 {
		t.Errorf("%d bytes copied of %d", last, of)
	}
	s, err := natslog.Open(t.Context(), natslog.Options{Dir: to, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	logtest.Want(t, s, 1, numbered(1, entries)...)
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("the log has changed:\n%s", diff)
	}
}

// A copy of a log in use has what was acknowledged before.
func TestCopyInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	fill(t, s, 1, 20)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() {
		for i := 21; ctx.Err() == nil; i++ {
			if _, err := s.Append(context.Background(), entry(i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 5 {
		acknowledged, err := s.Append(t.Context()) // nothing, which tells the last
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if err := natslog.Copy(t.Context(), to, dir, nil); err != nil {
			t.Fatal(err)
		}
		c, err := natslog.Open(t.Context(), natslog.Options{Dir: to, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		have, err := logtest.Read(c, 1)
		if err != nil || uint64(len(have)) < acknowledged {
			t.Errorf("%d entries of at least %d, %v", len(have), acknowledged, err)
		}
		for i := range have {
			if string(have[i]) != string(entry(i+1)) {
				t.Fatalf("entry %d is %.40q", i+1, have[i])
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// While a log is held nothing of it is removed.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	if release, err := natslog.Hold(dir); err != nil || release() != nil {
		t.Errorf("a directory without a log: %v", err)
	}
	s := connect(t, natslog.Options{Dir: dir})
	fill(t, s, 1, 5)
	var releases []func() error
	for range 2 {
		release, err := natslog.Hold(dir)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	for _, release := range releases {
		if err := s.TruncateBefore(t.Context(), 4); !errors.Is(err, eventlog.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	logtest.Want(t, s, 1, numbered(1, 5)...)
	if err := s.TruncateBefore(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	logtest.Want(t, s, 4, numbered(4, 5)...)
}

func TestCopyRefuses(t *testing.T) {
	empty := t.TempDir()
	to := filepath.Join(t.TempDir(), "copy")
	for _, from := range []string{empty, filepath.Join(empty, "missing")} {
		if err := natslog.Copy(t.Context(), to, from, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", from, err)
		}
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("something was made of nothing")
	}
	dir, _ := filled(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := natslog.Copy(ctx, to, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	to = filepath.Join(t.TempDir(), "copy")
	for _, want := range []error{nil, fs.ErrExist} { // never over another log
		if err := natslog.Copy(t.Context(), to, dir, nil); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	mark := filepath.Join(to, "mark")
	if err := os.WriteFile(mark, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := natslog.Copy(t.Context(), to, dir, nil); !errors.Is(err, fs.ErrExist) || contents(t, to)["mark"] != "another" {
		t.Errorf("%v: the mark of another log is overwritten", err)
	}
	if files := slices.Collect(maps.Keys(contents(t, to))); slices.Contains(files, "lock") {
		t.Errorf("the lock is copied: %v", files)
	}
}
