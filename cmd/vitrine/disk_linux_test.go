package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/host"
)

// The disk is full for a time: the service refuses requests that it cannot write, and continues by itself
// when there is room.
func TestDiskIsFull(t *testing.T) {
	long.Test(t)
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("vitrine", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	ballast := filepath.Join(disk, "ballast")
	fatal.If(t, os.WriteFile(ballast, make([]byte, 1_800_000), 0o600))
	s := newService(t)
	s.Data = filepath.Join(disk, "data")
	v := served(t, s)
	v.await(reopening)
	fatal.If(t, os.Remove(ballast))
	v.Flows(t.Context())
	v.end(filepath.Join(s.Data, host.LogDir))
	program.Sound(t, s.Data)
}
