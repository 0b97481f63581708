package filelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// files are the open files of a log. If a file is removed while the log is open, it can be restored completely.
type files struct {
	dir  string
	mu   sync.RWMutex
	held map[string]*held // by path
}

// held is a file as last seen.
type held struct {
	file *os.File // nil once too many files are open
	info os.FileInfo
}

// maxHeld bounds the number of open files, of 16 MB each. Removal of a file beyond that is noticed, but the file cannot
// be restored.
const maxHeld = 2048

func (f *files) add(file *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(file.Name(), file)
}

func (f *files) put(path string, file *os.File) {
	if f.held == nil {
		f.held = map[string]*held{}
	}
	h := f.held[path]
	if h == nil {
		h = &held{}
		f.held[path] = h
	}
	h.close()
	h.file = file
	if info, err := file.Stat(); err == nil {
		h.info = info
	}
	if paths := f.opened(); len(paths) > maxHeld {
		f.held[paths[0]].close() // the oldest segment
	}
}

// opened lists the open files, the oldest segment first.
func (f *files) opened() (paths []string) {
	if len(f.held) <= maxHeld {
		return nil
	}
	for path, h := range f.held {
		if h.file != nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func (h *held) close() {
	if h.file != nil {
		h.file.Close()
		h.file = nil
	}
}

// readAt reads a file, opening it if necessary.
func (f *files) readAt(path string, b []byte, at int64) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if h := f.held[path]; h != nil && h.file != nil {
		return h.file.ReadAt(b, at)
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return file.ReadAt(b, at)
}

func (f *files) remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.held[path]; h != nil {
		h.close()
		delete(f.held, path)
	}
	return os.Remove(path)
}

// look compares the files with their last known state, and their sizes with those expected of whole segments. The error
// names a file that was removed, cut or replaced.
func (f *files) look(sizes map[string]int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, h := range f.held {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was removed while the log was open", eventlog.ErrReopen, path)
		case err != nil:
			return fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
		case !os.SameFile(info, h.info):
			return fmt.Errorf("%w: another file is in the place of %s", eventlog.ErrReopen, path)
		}
		if lost := max(h.info.Size(), sizes[path]) - info.Size(); lost > 0 {
			return fmt.Errorf("%w: %s has lost its last %d bytes while the log was open",
				eventlog.ErrReopen, path, lost)
		}
		h.info = info
	}
	return nil
}

// hold opens files for reading, the last ones first.
func (f *files) hold(paths []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range slices.Backward(paths) {
		if f.held[path] != nil {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		f.put(path, file)
	}
	return nil
}

// restore puts back removed files, provided that the store still owns the directory.
func (f *files) restore(isMine bool, logger *slog.Logger) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, h := range f.held {
		if _, missing := os.Stat(path); !isMine || h.file == nil || !errors.Is(missing, fs.ErrNotExist) {
			continue
		}
		failed := replace.PrivateStream(path, func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(h.file, 0, 1<<62))
			return err
		})
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("filelog: a removed file is lost: %w", failed))
			continue
		}
		logger.Warn("a file of the log was removed while the service ran, and is put back", "file", path)
	}
	return err
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.held {
		h.close()
	}
	clear(f.held)
	return nil
}

// Lost returns a channel that is closed when the store loses its log, because its directory or one of its files was
// moved or removed. Closing the store restores the files. Appends fail with [Store.Loss].
func (s *Store) Lost() <-chan struct{} { return s.life.Lost() }

// Loss returns why the store lost its log, or nil.
func (s *Store) Loss() error { return cmp.Or(s.life.Loss(), s.checkDir()) }

// Confirm returns an error if this store may no longer be the log's writer. As long as this process holds the lock on
// the directory, it is the only writer.
func (s *Store) Confirm(context.Context) error { return s.life.Loss() }

func (s *Store) checkDir() error {
	if s.options.ReadOnly || s.lock == nil || s.lock.Held() {
		return nil
	}
	return fmt.Errorf("%w: %s was moved or removed, or another directory is in its place",
		eventlog.ErrLost, s.options.Dir)
}

// watchEvery is the interval between checks of the files.
var watchEvery = time.Second

// sizes returns the size of each segment's file in bytes.
func (s *Store) sizes() map[string]int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sizes := make(map[string]int64, len(s.segments))
	for _, p := range s.segments {
		sizes[p.path] = p.size
	}
	return sizes
}

// holdFiles keeps the log's files open.
func (s *Store) holdFiles() error {
	paths := []string{filepath.Join(s.options.Dir, markName)}
	for _, p := range s.segments {
		paths = append(paths, p.path)
	}
	return s.files.hold(paths)
}
