package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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
	if err := os.WriteFile(ballast, make([]byte, 1_800_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newService()
	s.Data = filepath.Join(disk, "data")
	v := served(t, s)
	v.await(reopening)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	v.Flows(t.Context())
	v.end(filepath.Join(s.Data, host.LogDir))
	program.Sound(t, s.Data)
}
