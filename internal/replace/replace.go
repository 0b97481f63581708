// Package replace replaces files atomically: after a crash, and for any reader, a file holds the old content or the
// new, never a part.
package replace

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// File replaces the content of path in one step: it writes and syncs a temporary file in the same directory, then
// renames it. If this fails, path is unchanged, and the error names the file. A pipe, a device or an open
// file such as /dev/stdout is written in place.
func File(path string, content []byte) error { return named(path, whole(content), 0o644) }

// Stream is File for content produced piece by piece. If write fails, path is unchanged.
func Stream(path string, write func(w io.Writer) error) error {
	return named(path, func(f *os.File) error {
		w := bufio.NewWriter(f)
		return cmp.Or(write(w), w.Flush())
	}, 0o644)
}

// PrivateStream is Private for content produced piece by piece. It syncs along the way, so that it never blocks the
// disk for long. If write fails, path is unchanged.
func PrivateStream(path string, write func(w io.Writer) error) error {
	return named(path, func(f *os.File) error { return write(&syncing{file: f}) }, 0o600)
}

// syncing syncs a file after every so many bytes.
type syncing struct {
	file    *os.File
	written int
}

const syncBytes = 1 << 20

func (s *syncing) Write(b []byte) (int, error) {
	n, err := s.file.Write(b)
	if s.written += n; err == nil && s.written >= syncBytes {
		s.written, err = 0, s.file.Sync()
	}
	return n, err
}

// Private is File for callers' data: only the owner may read the file.
func Private(path string, content []byte) error { return named(path, whole(content), 0o600) }

// Shared is File for a file that another user may read or own: its owner, group and mode stay. A new file is as in
// Private.
func Shared(path string, content []byte) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Private(path, content)
	} else if err != nil {
		return err
	}
	return named(path, func(f *os.File) error {
		if err := own(f, path, info); err != nil {
			return fmt.Errorf("cannot keep its readers: %w", err)
		}
		return whole(content)(f)
	}, info.Mode().Perm())
}

func whole(content []byte) func(*os.File) error {
	return func(f *os.File) error { _, err := f.Write(content); return err }
}

func named(path string, write func(*os.File) error, mode os.FileMode) error {
	if err := file(path, write, mode); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Sync makes the names of new and replaced files in a directory survive a power failure. On Windows this is neither
// possible nor needed.
func Sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func file(path string, write func(*os.File) error, mode os.FileMode) error {
	opened := slices.Contains([]string{"/dev", "/dev/fd", "/proc/self/fd"}, filepath.Dir(path)) // as /dev/stdout is
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || opened) && !info.IsDir() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), unfinished(path))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// unfinished matches the names of temporary files for path.
func unfinished(path string) string { return "." + filepath.Base(path) + ".*" }

// Clean removes temporary files left behind by processes that were killed in File. Call it only while no process is in
// File.
func Clean(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if left, _ := filepath.Match(unfinished(path), e.Name()); left {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return err
}
