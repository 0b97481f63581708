// Package replace writes files whole: a reader, or a crash, sees the old
// content or the new, never a part.
package replace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// File puts content at path in one step: it is written and synced beside its
// place, and then renamed. Where that fails path is as it was, and the error
// names the file.
func File(path string, content []byte) error { return named(path, whole(content), 0o644) }

// PrivateStream is Private for content that write gives bit by bit. What was written is synced on the way, so
// that the disk is never kept from others for long. Where write fails path is as it was.
func PrivateStream(path string, write func(w io.Writer) error) error {
	return named(path, func(f *os.File) error { return write(&syncing{file: f}) }, 0o600)
}

// syncing syncs a file whenever a number of bytes has been written.
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

// Private is File for data of callers: only the owner may read it.
func Private(path string, content []byte) error { return named(path, whole(content), 0o600) }

func whole(content []byte) func(*os.File) error {
	return func(f *os.File) error { _, err := f.Write(content); return err }
}

func named(path string, write func(*os.File) error, mode os.FileMode) error {
	if err := file(path, write, mode); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Sync makes the names in a directory survive a loss of power, those of new files and of replaced
// ones. Windows cannot, and has no need to.
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

// unfinished matches the names beside path under which its content is written.
func unfinished(path string) string { return "." + filepath.Base(path) + ".*" }

// Clean removes what processes that were killed in File have left beside path. Nobody may be in File.
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
