package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

var powerCuts = flag.Int("power-cuts", 3, "how often TestPowerLoss cuts the power of the disk")

// cut stops all that goes to the device, and loses data and journal that are only in memory. From then on every write
// and sync of the file system fails.
func (d *disk) cut(t *testing.T) {
	t.Helper()
	const shutdown, withoutJournal = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	root := fatal.Or(os.Open(d.dir))(t)
	defer root.Close()
	fatal.If(t, unix.IoctlSetPointerInt(int(root.Fd()), shutdown, withoutJournal), "cutting the power")
}

// on mounts the disk again, as a machine does that starts.
func (d *disk) on(t *testing.T) {
	t.Helper()
	here.must(t, "umount", d.dir)
	here.must(t, "mount", "-o", "loop", d.image, d.dir)
}

// doom writes a file, the nth, without syncing it. Its name is new: ext4 writes a file early that is truncated and
// written again.
func (d *disk) doom(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(d.dir, fmt.Sprint("doomed-", n))
	fatal.If(t, os.WriteFile(path, bytes.Repeat([]byte{1}, 1<<20), 0o600))
	return path
}

// TestPowerLoss cuts the power of the service's disk under load: all acknowledged entries must be in the log when it is
// back.
func TestPowerLoss(t *testing.T) {
	long.Test(t)
	disk, err := newDisk(t)
	if err != nil {
		t.Skipf("this machine permits no file system in a file: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*powerCuts))
	defer cancel()
	data := filepath.Join(disk.dir, "data")
	v := newVictim(t, ctx, *killSeed, "[snapshots]\nevery = \"30ms\"\nkeep_every = \"250ms\"\n", "--data", data)
	v.Shop(ctx, 16, *killSeed)
	v.data, v.log = data, filepath.Join(data, filepath.Base(v.log))
	for n := range *powerCuts {
		time.Sleep(within(v.rng, 400*time.Millisecond))
		if n%4 == 3 { // while it starts
			v.Kill()
			v.process = program.Serve(t, v.file, v.flags...)
			time.Sleep(within(v.rng, 100*time.Millisecond))
		}
		doomed := disk.doom(t, n)
		disk.cut(t)
		time.Sleep(within(v.rng, 50*time.Millisecond)) // it goes on without its disk for a moment
		v.Kill()
		disk.on(t)
		if text, err := os.ReadFile(doomed); err != nil && !errors.Is(err, fs.ErrNotExist) ||
			bytes.Count(text, []byte{1}) == 1<<20 {
			t.Fatalf("a file that was not synced has survived the cut, which shows nothing then: %d bytes, %v",
				len(text), err)
		}
		v.start()
		v.Flows(ctx)
		v.remembers(ctx)
		v.intact(n)
	}
	held(t, fmt.Sprintf("seed %d: %d cuts of the power of an ext4 disk under load, %d of them while the service "+
		"starts, each of which lost a file that was not synced: %s",
		*killSeed, *powerCuts, *powerCuts/4, v.accounts(ctx)))
}
