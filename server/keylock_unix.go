//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockDir waits until nobody else has the directory locked. The system releases a lock when its process ends.
func lockDir(path string) (unlock func() error, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		dir.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return dir.Close, nil
}
