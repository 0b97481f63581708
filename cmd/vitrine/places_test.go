package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine/internal/fatal"
)

// place is a machine of its own: a network namespace with one address, on a bridge with the others. A nil place is this
// machine.
type place struct {
	name, address string
}

// command returns a command that runs in the place.
func (p *place) command(name string, args ...string) *exec.Cmd {
	if p == nil {
		return exec.Command(name, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", p.name, name}, args...)...)
}

// direction says which packets between two places are lost.
type direction int

const (
	both direction = iota
	incoming
	outgoing
)

// cut loses the packets between a place and others, until the next heal.
func (p *place) cut(t *testing.T, which direction, others ...*place) {
	t.Helper()
	for _, other := range others {
		if which != outgoing {
			p.must(t, "iptables", "-A", "INPUT", "-s", other.address, "-j", "DROP")
		}
		if which != incoming {
			p.must(t, "iptables", "-A", "OUTPUT", "-d", other.address, "-j", "DROP")
		}
	}
}

// heal lets all packets pass again.
func (p *place) heal(t *testing.T) {
	t.Helper()
	p.must(t, "iptables", "-F")
}

func (p *place) must(t *testing.T, name string, args ...string) {
	t.Helper()
	fatal.If(t, p.does(name, args...))
}

// does runs a command in the place, and returns what it says if it fails.
func (p *place) does(name string, args ...string) error {
	cmd := p.command(name, args...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}

// here is this machine.
var here *place

// newPlaces makes n places. The error says why this machine does not permit it. The test reaches all of them.
func newPlaces(t *testing.T, n int) (places []*place, err error) {
	name := fmt.Sprint("vt", os.Getpid()%1e6)
	ip := func(args ...string) {
		if err == nil {
			err = here.does("ip", args...)
		}
	}
	network := fmt.Sprintf("198.18.%d.", os.Getpid()%256) // of the range for tests of networks
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
	ip("link", "add", name, "type", "bridge")
	ip("addr", "add", network+"254/24", "dev", name)
	ip("link", "set", name, "up")
	ip("link", "set", "lo", "up")
	for i := range n {
		p := &place{name: fmt.Sprint(name, "-", i+1), address: fmt.Sprint(network, i+1)}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", p.name).Run() })
		ip("netns", "add", p.name)
		outside, inside := p.name+"o", p.name+"i"
		ip("link", "add", outside, "type", "veth", "peer", "name", inside)
		ip("link", "set", outside, "master", name, "up")
		ip("link", "set", inside, "netns", p.name)
		ip("-n", p.name, "addr", "add", p.address+"/24", "dev", inside)
		ip("-n", p.name, "link", "set", inside, "up")
		ip("-n", p.name, "link", "set", "lo", "up")
		if err == nil {
			err = p.does("iptables", "-L")
		}
		places = append(places, p)
	}
	if err != nil {
		return nil, err
	}
	return places, nil
}

// disk is an ext4 file system in a file.
type disk struct {
	image, dir string
	device     string // its numbers, once it can be slowed down
	stopped    bool
}

// newDisk mounts a disk. The error says why this machine does not permit it.
func newDisk(t *testing.T) (*disk, error) {
	d := &disk{image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 512<<20)); err != nil {
		return nil, err
	}
	if err := here.does("mkfs.ext4", "-q", "-F", d.image); err != nil {
		return nil, err
	}
	if err := here.does("mount", "-o", "loop", d.image, d.dir); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		d.goOn(t)
		_ = d.limit(0, 0) // a removed device is unlimited
		_ = here.does("umount", "-l", d.dir)
	})
	return d, nil
}

// throttles limit the writes to a device, a second, of all processes outside of groups of their own.
var throttles = []string{"/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device",
	"/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device"}

// A slow disk takes slowWrites of 4 kB a second. A synced write is some of them.
const slowWrites = 80

// newSlowDisk makes a disk that can be slowed down.
func newSlowDisk(t *testing.T) (*disk, error) {
	d, err := newDisk(t)
	if err != nil {
		return nil, err
	}
	numbers, err := exec.Command("mountpoint", "-d", d.dir).Output()
	if err != nil {
		return nil, err
	}
	d.device = strings.TrimSpace(string(numbers))
	return d, d.obeys()
}

// limit sets how many writes and bytes a second the disk takes, 0 without a limit.
func (d *disk) limit(writes, bytes int) error {
	if d.device == "" {
		return nil
	}
	var errs []error
	for i, value := range []int{writes, bytes} {
		errs = append(errs, os.WriteFile(throttles[i], fmt.Appendf(nil, "%s %d", d.device, value), 0o600))
	}
	return errors.Join(errs...)
}

// obeys is an error if a limit does not slow the disk down.
func (d *disk) obeys() error {
	if err := d.limit(slowWrites, slowWrites*4096); err != nil {
		return err
	}
	const synced = 15
	begin := time.Now()
	for range synced {
		file, err := os.Create(filepath.Join(d.dir, "probe"))
		if err != nil {
			return err
		}
		_, err = file.Write(make([]byte, 4096))
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	if took, want := time.Since(begin), synced*time.Second/slowWrites; took < want/2 {
		return fmt.Errorf("%d synced writes took %v, although the disk takes %d a second", synced, took, slowWrites)
	}
	return d.limit(0, 0)
}

// stop makes all writes of the disk wait, until goOn.
func (d *disk) stop(t *testing.T) {
	t.Helper()
	here.must(t, "fsfreeze", "-f", d.dir)
	d.stopped = true
}

func (d *disk) goOn(t *testing.T) {
	t.Helper()
	if d.stopped {
		here.must(t, "fsfreeze", "-u", d.dir)
	}
	d.stopped = false
}
