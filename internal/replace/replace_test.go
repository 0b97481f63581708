package replace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/replace"
)

func TestFileReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	for _, content := range []string{"first, and longer", "second"} {
		fatal.If(t, replace.File(path, []byte(content)))
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want one", len(entries))
	}
}

// A device is written, not replaced: --out /dev/stdout prints, and /dev/null stays a device.
func TestFileWritesDevices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "null")
	if err := os.Symlink(os.DevNull, path); err != nil || runtime.GOOS == "windows" {
		t.Skip("no links to devices here")
	}
	fatal.If(t, replace.File(path, []byte("x")))
	if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
		t.Errorf("a file took the place of the device, %v", err)
	}
}

// /dev/stdout may be a regular file, which the shell has opened to append.
func TestFileWritesOpenFiles(t *testing.T) {
	f := fatal.Or(os.Create(filepath.Join(t.TempDir(), "a.csv")))(t)
	defer f.Close()
	fatal.Or(f.WriteString("first "))(t)
	path := fmt.Sprintf("/dev/fd/%d", f.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("open files have no path here")
	}
	fatal.If(t, replace.File(path, []byte("second")))
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != "first second" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFileLeavesNothingBehindWhereItFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	fatal.If(t, os.MkdirAll(filepath.Join(path, "by a directory"), 0o755))
	expect.Refused(replace.File(path, []byte("x")))(t, "a path that is a directory")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want only the directory", len(entries))
	}
	expect.Refused(replace.File(filepath.Join(dir, "missing", "a"), nil))(t, "a directory that is not there")
}

// Whoever could read a shared file can read the new one.
func TestSharedKeepsReaders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no owner")
	}
	path := filepath.Join(t.TempDir(), "keys.toml")
	fatal.If(t, replace.Shared(path, nil))
	expect.Equal(t, fatal.Or(os.Stat(path))(t).Mode(), 0o600, "a new file")
	fatal.If(t, os.Chmod(path, 0o640))
	if os.Geteuid() == 0 {
		fatal.If(t, os.Chown(path, 65532, 65533))
	}
	readers := func() string {
		info := fatal.Or(os.Stat(path))(t)
		owner := reflect.Indirect(reflect.ValueOf(info.Sys()))
		return fmt.Sprint(info.Mode(), owner.FieldByName("Uid"), owner.FieldByName("Gid"))
	}
	before := readers()
	fatal.If(t, replace.Shared(path, []byte("x")))
	expect.Equal(t, readers(), before)
}

func TestCleanRemovesWhatAKilledProcessLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", ".state.123", ".state.x", "other", ".other.1", ".state"} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	fatal.If(t, replace.Clean(filepath.Join(dir, "state")))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 4 {
		t.Errorf("%v are left, %v", left, err)
	}
	expect.Refused(replace.Clean(filepath.Join(dir, "missing", "state")))(t, "a directory that is not there")
}

func TestSync(t *testing.T) {
	dir := t.TempDir()
	expect.Error(t, replace.Sync(dir), nil)
	if err := replace.Sync(filepath.Join(dir, "missing")); err == nil && runtime.GOOS != "windows" {
		t.Error("no error for a directory that is not there")
	}
}
