package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vitrine/internal/long"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
)

var powerCuts = flag.Int("power-cuts", 3, "how often TestPowerLoss cuts the power of the disk")

// cutDisk is an ext4 file system in a file, whose power can be cut. A cut keeps the data written to the
// device, and loses data and journal that were only in memory.
type cutDisk struct {
	*testing.T
	image, dir string
}

func newCutDisk(t *testing.T) *cutDisk {
	d := &cutDisk{t, filepath.Join(t.TempDir(), "image"), t.TempDir()}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 512<<20)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", d.image}, {"mount", "-o", "loop", d.image, d.dir}} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("this machine permits no file system in a file: %v: %v %s", args, err, said)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) })
	return d
}

// cut stops all that goes to the device. From then on every write and sync of the file system fails.
func (d *cutDisk) cut() {
	d.Helper()
	const shutdown, withoutJournal = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	root, err := os.Open(d.dir)
	if err != nil {
		d.Fatal(err)
	}
	defer root.Close()
	if err := unix.IoctlSetPointerInt(int(root.Fd()), shutdown, withoutJournal); err != nil {
		d.Fatalf("cutting the power: %v", err)
	}
}

// on mounts the disk again, as a machine does that starts.
func (d *cutDisk) on() {
	d.Helper()
	for _, args := range [][]string{{"umount", d.dir}, {"mount", "-o", "loop", d.image, d.dir}} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			d.Fatalf("%v: %v %s", args, err, said)
		}
	}
}

// doom writes a file that nobody syncs, the nth. Its name is new: ext4 writes a file early that is truncated and written again.
func (d *cutDisk) doom(n int) (path string) {
	d.Helper()
	path = filepath.Join(d.dir, fmt.Sprint("doomed-", n))
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, 1<<20), 0o600); err != nil {
		d.Fatal(err)
	}
	return path
}

// lost fails if that file is whole: then the cut shows nothing.
func (d *cutDisk) lost(path string) {
	d.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Count(text, []byte{1}) == 1<<20 {
		d.Fatalf("a file that was not synced has survived the cut: %d bytes, %v", len(text), err)
	}
}

// The power of the disk is cut under load: all acknowledged entries are in the log when it is back.
func TestPowerLoss(t *testing.T) {
	long.Test(t)
	disk := newCutDisk(t)
	file, _ := serviceFile(t, "[snapshots]\nevery = \"30ms\"\nkeep_every = \"250ms\"\n")
	data := filepath.Join(disk.dir, "data")
	live := func() *process { return serve(t, file, "--data", data) }
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*powerCuts)*time.Minute)
	defer cancel()
	v := &victim{T: t, data: data, rng: rand.New(rand.NewPCG(*killSeed, 3)), ledger: newLedger(t)}
	begin := func() *process {
		p := live()
		url := p.listening(t)
		v.ledger.url.Store(&url)
		return p
	}
	p := begin()
	v.ledger.open(ctx)
	wait := v.ledger.shop(ctx, 16, *killSeed)
	inStarts := 0
	for n := range *powerCuts {
		time.Sleep(within(v.rng, 400*time.Millisecond))
		if n%4 == 3 { // while it starts
			inStarts++
			p.kill()
			p = live()
			time.Sleep(within(v.rng, 100*time.Millisecond))
		}
		doomed := disk.doom(n)
		disk.cut()
		time.Sleep(within(v.rng, 50*time.Millisecond)) // it goes on without its disk for a moment
		p.kill()
		disk.on()
		disk.lost(doomed)
		p = begin()
		v.ledger.flows(ctx)
		v.ledger.holds(ctx, v.some())
		if t.Failed() {
			t.Fatalf("after %d cuts, -kill-seed %d:\n%s", n+1, *killSeed, p.said())
		}
	}
	v.ledger.leaving.Store(true)
	wait()
	v.ledger.holds(ctx, v.ledger.all())
	home, brief := v.ledger.settled(ctx, "home"), v.ledger.settled(ctx, "brief")
	p.stop(t)
	sound(t, data)
	decisions, of := readLog(t, natslog.Options{Dir: filepath.Join(data, host.LogDir)})
	v.ledger.isIn(decisions)
	home.once(t, "home", of["home"])
	brief.once(t, "brief", of["brief"])
	if !t.Failed() {
		t.Logf("verdict: -kill-seed %d: %d cuts of the power of an ext4 disk under load, %d of them while the service starts: %d decisions and %d outcomes acknowledged, none lost, changed, doubled or learned twice; each cut lost a file that was not synced",
			*killSeed, *powerCuts, inStarts, len(v.ledger.rounds), v.ledger.reported)
	}
}
