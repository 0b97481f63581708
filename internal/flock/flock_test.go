//go:build unix

package flock

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// A file is free as soon as its lock is released, even if a child process that is being started holds it open.
func TestReleaseBesideAChild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	take := func() (*Lock, error) { return Take(path, os.O_RDWR|os.O_CREATE, TryExclusive) }
	l := fatal.Or(take())(t)
	child := fatal.Or(unix.Dup(int(l.file.Fd())))(t)
	defer unix.Close(child)
	expect.Fails(take())(t, ErrTaken)
	fatal.If(t, l.Release())
	again := fatal.Or(take())(t)
	expect.Error(t, again.Release(), nil)
}
