//go:build unix

package natslog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"vitrine/eventlog"
)

// fileLock is a lock on a file. The system releases it when the process ends.
type fileLock struct{ file *os.File }

// lockDir keeps a directory for one store at a time.
func lockDir(dir string) (*fileLock, error) {
	l, err := lock(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("natslog: %s is open in another process", dir)
	}
	return l, err
}

// keepHolds makes the file that Hold locks.
func keepHolds(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, "hold"), os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// hold locks out those who remove entries, and waits for the one who does.
func hold(dir string) (*fileLock, error) {
	return lock(filepath.Join(dir, "hold"), os.O_RDONLY, unix.LOCK_SH)
}

// noHolds locks out those who hold them.
func noHolds(dir string) (*fileLock, error) {
	l, err := lock(filepath.Join(dir, "hold"), os.O_RDWR, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: of %s", eventlog.ErrHeld, dir)
	}
	return l, err
}

func lock(path string, flag, how int) (*fileLock, error) {
	file, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("natslog: locking %s: %w", path, err)
	}
	return &fileLock{file}, nil
}

// release unlocks, and does not leave that to the closing: a process that another goroutine is starting
// has the file open, too, until it runs its program.
func (l *fileLock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
