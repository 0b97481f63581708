package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/long"
	"vitrine/service/eventlog/natslog"
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
	v.flows(t.Context())
	v.leave()
	v.holds(t.Context(), v.all())
	v.stop()
	if err := <-v.ended; err != nil {
		t.Fatal(err)
	}
	sound(t, s.Data)
	decisions, _ := readLog(t, natslog.Options{Dir: filepath.Join(s.Data, "log")})
	v.isIn(decisions)
}
