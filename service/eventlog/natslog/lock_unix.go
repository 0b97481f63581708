//go:build unix

package natslog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vitrine/internal/flock"
	"vitrine/service/eventlog"
)

// fileLock is a lock on a file, nil on none.
type fileLock struct{ *flock.Lock }

// lockDir keeps a directory for one store at a time.
func lockDir(dir string) (*fileLock, error) {
	l, err := lock(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, flock.TryExclusive)
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("natslog: %s is open in another process", dir)
	}
	return l, err
}

// keepHolds creates the file that Hold locks.
func keepHolds(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, "hold"), os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// hold locks out removals of entries, after waiting for a running one.
func hold(dir string) (*fileLock, error) {
	return lock(filepath.Join(dir, "hold"), os.O_RDONLY, flock.Shared)
}

// noHolds locks out holds.
func noHolds(dir string) (*fileLock, error) {
	l, err := lock(filepath.Join(dir, "hold"), os.O_RDWR, flock.TryExclusive)
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("%w: of %s", eventlog.ErrHeld, dir)
	}
	return l, err
}

func lock(path string, flag, how int) (*fileLock, error) {
	l, err := flock.Take(path, flag, how)
	if err != nil {
		return nil, err
	}
	return &fileLock{l}, nil
}

// held reports whether the locked file is still at its path.
func (l *fileLock) held() bool { return l.Held() }

func (l *fileLock) release() error {
	if l == nil {
		return nil
	}
	return l.Release()
}
