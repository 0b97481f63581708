// Package watch holds values read from files, and rereads them when the files change.
package watch

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Value is a value read from files. It is reread when one of them changes.
type Value[T any] struct {
	paths  []string
	load   func() (T, error)
	clock  func() time.Time
	logger *slog.Logger

	mu        sync.Mutex
	looked    time.Time
	stamps    []stamp // of the files, at the time value was read
	value     T
	complaint string // last error of reading the files, or ""
}

// stamp changes when a file changes.
type stamp struct {
	modified int64 // Unix nanoseconds
	size     int64
}

// every is the interval between checks of the files.
const every = time.Second

// Files reads a value from files.
func Files[T any](
	load func() (T, error), clock func() time.Time, logger *slog.Logger, paths ...string,
) (*Value[T], error) {
	w := &Value[T]{paths: paths, load: load, clock: clock, logger: logger, looked: clock()}
	w.stamps = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// Get returns the value. If changed files cannot be read, Get returns the last value and tries again at the next check.
func (w *Value[T]) Get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	if now.Sub(w.looked) < every {
		return w.value
	}
	w.looked = now
	stamps := w.look()
	if slices.Equal(stamps, w.stamps) {
		w.complaint = ""
		return w.value
	}
	v, err := w.load()
	if err != nil {
		if why := err.Error(); why != w.complaint {
			w.complaint = why
			w.logger.Error("a changed file cannot be read: its former content remains in force", "cause", why)
		}
		return w.value
	}
	w.logger.Info("a changed file was read", "files", w.paths)
	w.value, w.stamps, w.complaint = v, stamps, ""
	return v
}

// Problem says why the changed files cannot be read, or "".
func (w *Value[T]) Problem() string {
	w.Get()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.complaint
}

func (w *Value[T]) look() []stamp {
	stamps := make([]stamp, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return stamps
}
