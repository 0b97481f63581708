package filelog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"vitrine/internal/flock"
	"vitrine/service/eventlog"
)

// ErrInUse is returned for a log that is being written.
var ErrInUse = errors.New("is in use, such as by a service: stop it first")

// lockDir reserves a directory for one writer.
func lockDir(dir string) (*flock.Lock, error) {
	l, err := flock.Take(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, flock.TryExclusive)
	switch {
	case errors.Is(err, flock.ErrTaken):
		return nil, fmt.Errorf("filelog: %s %w", dir, ErrInUse)
	case err == nil && l == nil:
		return nil, fmt.Errorf("filelog: a log in a directory needs a file lock, which %s lacks: give the URL of a server",
			runtime.GOOS)
	}
	return l, err
}

// Hold keeps the entries of a directory's log, which may be in use, until release: TruncateBefore returns
// eventlog.ErrHeld. A snapshot read before the log then contains every entry that the log lacks.
func Hold(dir string) (release func() error, err error) {
	l, err := hold(dir)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// hold locks out the removal of entries, after waiting for a running one.
func hold(dir string) (*flock.Lock, error) { return flock.Take(dir, os.O_RDONLY, flock.Shared) }

// noHolds locks out calls to hold.
func noHolds(dir string) (*flock.Lock, error) {
	l, err := flock.Take(dir, os.O_RDONLY, flock.TryExclusive)
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("%w: of %s", eventlog.ErrHeld, dir)
	}
	return l, err
}
