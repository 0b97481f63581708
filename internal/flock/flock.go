//go:build unix

// Package flock locks files and directories. The system releases a lock when its
// process ends.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// How a lock is taken.
const (
	Shared       = unix.LOCK_SH                // waits for who has it exclusively
	Exclusive    = unix.LOCK_EX                // waits for all others
	TryExclusive = unix.LOCK_EX | unix.LOCK_NB // returns ErrTaken if others have it
)

// ErrTaken is returned for a lock that others have.
var ErrTaken = unix.EWOULDBLOCK

// Lock is a lock that was taken.
type Lock struct {
	file   *os.File
	locked os.FileInfo
}

// Take opens a file or a directory, with the flags of [os.OpenFile], and locks it.
func Take(path string, flag, how int) (*Lock, error) {
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err != nil {
		file.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	locked, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file, locked}, nil
}

// Held reports whether the path still names the locked file, which nobody has moved or removed. If the
// path cannot be read, it does not know better.
func (l *Lock) Held() bool {
	named, err := os.Stat(l.file.Name())
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return os.SameFile(l.locked, named)
}

// Release unlocks, and does not leave that to the closing: a process that another goroutine is starting
// has the file open, too, until it runs its program.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
