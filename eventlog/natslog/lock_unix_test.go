//go:build unix

package natslog

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A directory is free once it is released, though a child that is being started has its lock open.
func TestReleaseBesideAChild(t *testing.T) {
	dir := t.TempDir()
	l, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(l.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if _, err := lockDir(dir); err == nil {
		t.Error("it is locked twice")
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}
