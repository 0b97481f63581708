//go:build unix

package natslog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dirLock keeps a directory for one store at a time. The system releases it when the process ends.
type dirLock struct{ file *os.File }

func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("natslog: %s is open in another process", dir)
		}
		return nil, fmt.Errorf("natslog: locking %s: %w", file.Name(), err)
	}
	return &dirLock{file}, nil
}

// release unlocks, and does not leave that to the closing: a process that another goroutine is starting
// has the file open, too, until it runs its program.
func (l *dirLock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
