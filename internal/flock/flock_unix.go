//go:build unix

// Package flock locks files and directories. The operating system releases a lock when its process ends. Systems other
// than Unix have no locks: there Take returns nil.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Ways to take a lock.
const (
	Shared       = unix.LOCK_SH                // waits for the exclusive holder
	Exclusive    = unix.LOCK_EX                // waits for all other holders
	TryExclusive = unix.LOCK_EX | unix.LOCK_NB // returns ErrTaken instead of waiting
)

// ErrTaken reports that another process holds the lock.
var ErrTaken = unix.EWOULDBLOCK

// Lock is a lock held by this process.
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

// Held reports whether the path still names the locked file, so it was neither moved nor removed. If the path cannot be
// read, Held assumes that it does.
func (l *Lock) Held() bool {
	named, err := os.Stat(l.file.Name())
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return os.SameFile(l.locked, named)
}

// Release unlocks explicitly; releasing a nil lock is a no-op. Closing the file would not be enough: a process that another
// goroutine is just starting holds the file open, too, until it executes its program.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
