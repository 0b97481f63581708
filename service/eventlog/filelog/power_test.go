package filelog_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft-wal/types"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
)

var powerSeed = flag.Uint64("power-seed", 0, "the seed of TestPowerIsCut; 0 plays some")

// disk is a disk that forgets what was not synced when its power is cut, and whose calls fail now and then. Files in
// the directory are what a process sees of it.
type disk struct {
	types.VFS
	r     *rand.Rand
	fails bool
	files map[string]*diskFile
}

type diskFile struct {
	types.WritableFile
	on     *disk
	synced []byte // nil before the first sync
	writes []written
}

type written struct {
	at   int64
	data []byte
}

var errDisk = errors.New("the disk fails")

func (d *disk) on(vfs types.VFS) types.VFS {
	d.VFS = vfs
	return d
}

func (d *disk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if d.fails && d.r.IntN(10) == 0 {
		return nil, errDisk
	}
	return d.file(filepath.Join(dir, name), nil, func() (types.WritableFile, error) {
		return d.VFS.Create(dir, name, size)
	})
}

func (d *disk) OpenWriter(dir, name string) (types.WritableFile, error) {
	path := filepath.Join(dir, name)
	have, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return d.file(path, have, func() (types.WritableFile, error) { return d.VFS.OpenWriter(dir, name) })
}

func (d *disk) Delete(dir, name string) error {
	delete(d.files, filepath.Join(dir, name))
	return d.VFS.Delete(dir, name)
}

func (d *disk) file(path string, have []byte, open func() (types.WritableFile, error)) (types.WritableFile, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	f := d.files[path]
	switch {
	case f == nil:
		f = &diskFile{on: d, synced: have}
		d.files[path] = f
	case len(f.writes) > 0: // of a process that was killed; the next one may have cut them
		f.synced, f.writes = f.synced[:min(len(f.synced), len(have))], []written{{0, have}}
	}
	f.WritableFile = file
	return f, nil
}

func (f *diskFile) WriteAt(b []byte, at int64) (int, error) {
	n := len(b)
	if f.on.fails && f.on.r.IntN(20) == 0 {
		n = f.on.r.IntN(n + 1)
	}
	f.writes = append(f.writes, written{at, bytes.Clone(b[:n])})
	if m, err := f.WritableFile.WriteAt(b[:n], at); err != nil || n < len(b) {
		return m, errors.Join(err, errDisk)
	}
	return n, nil
}

func (f *diskFile) Sync() error {
	if f.on.fails && f.on.r.IntN(20) == 0 {
		return errDisk
	}
	if err := f.WritableFile.Sync(); err != nil {
		return err
	}
	f.synced = f.with(len(f.writes), 0)
	f.writes = nil
	return nil
}

// with returns what was synced and some of the writes since, the last of them torn.
func (f *diskFile) with(writes, torn int) []byte {
	data := slices.Clone(f.synced)
	if data == nil {
		data = []byte{}
	}
	for i, w := range f.writes[:writes] {
		b := w.data
		if i == writes-1 && torn > 0 {
			b = b[:min(torn, len(b))]
		}
		if end := int(w.at) + len(b); end > len(data) {
			data = append(data, make([]byte, end-len(data))...)
		}
		copy(data[w.at:], b)
	}
	return data
}

// cut cuts the power: each file has some of what was not synced.
func (d *disk) cut(t *testing.T) {
	for path, f := range d.files {
		n := d.r.IntN(len(f.writes) + 1)
		torn := 0
		if n > 0 {
			torn = d.r.IntN(len(f.writes[n-1].data) + 1)
		}
		if f.synced == nil && d.r.IntN(2) == 0 { // nor was its name
			_ = os.Remove(path)
			continue
		}
		fatal.If(t, os.WriteFile(path, f.with(n, torn), 0o600))
	}
	clear(d.files)
}

// Acknowledged entries are there after the power was cut, calls of the disk failed and entries were removed. Other
// entries are there as a whole or not at all. A flipped bit is found.
func TestPowerIsCut(t *testing.T) {
	filelog.SetSegmentBytes(t, 4<<10)
	first, last := uint64(1), uint64(40)
	if *powerSeed > 0 {
		first, last = *powerSeed, *powerSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { cutPower(t, seed) })
	}
}

func cutPower(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	dir, ctx := t.TempDir(), context.Background()
	d := &disk{r: r, files: map[string]*diskFile{}}
	mark := filepath.Join(dir, "mark")
	var known [][]byte // by sequence − 1; nil is removed or not known to be
	var doubtful [][]byte
	n := 0
	for life := range 12 {
		d.fails = false
		s, err := filelog.Open(ctx, filelog.Options{Dir: dir}.On(d.on))
		fatal.If(t, err, "life", life)
		x := fatal.Or(s.Extent(ctx))(t)
		switch x.Last {
		case uint64(len(known)):
		case uint64(len(known) + len(doubtful)):
			known = append(known, doubtful...)
		default:
			t.Fatalf("life %d: the log ends with entry %d, of %d acknowledged and %d doubtful ones", life, x.Last,
				len(known), len(doubtful))
		}
		doubtful = nil
		check(t, s, x.First, known)
		synced := fatal.Or(os.ReadFile(mark))(t)
		d.fails = true
		for range 5 + r.IntN(30) {
			some := make([][]byte, 1+r.IntN(4))
			for i := range some {
				n++
				some[i] = []byte(strings.Repeat(fmt.Sprint("entry ", n, " "), 1+r.IntN(40)))
			}
			if _, err := s.Append(ctx, some...); err != nil {
				expect.Error(fatal.T(t), err, eventlog.ErrReopen, life)
				expect.Fails(s.Append(ctx, []byte("more")))(fatal.T(t), eventlog.ErrReopen, life)
				doubtful = some
				break
			}
			known = append(known, some...)
			if r.IntN(15) == 0 {
				fatal.If(t, s.TruncateBefore(ctx, x.First+uint64(r.IntN(len(known)-int(x.First)+1))))
				x = fatal.Or(s.Extent(ctx))(t)
				synced = fatal.Or(os.ReadFile(mark))(t)
			}
		}
		newest := fatal.Or(os.ReadFile(mark))(t)
		fatal.If(t, s.Close())
		if r.IntN(3) > 0 {
			d.cut(t)
			if r.IntN(2) == 0 {
				newest = synced
			}
			fatal.If(t, os.WriteFile(mark, newest, 0o600))
		} else if doubtful == nil {
			flip(t, r, dir, x.First, known)
		}
	}
}

func check(t *testing.T, s *filelog.Store, from uint64, known [][]byte) {
	t.Helper()
	at := from
	for e, err := range s.Entries(context.Background(), from) {
		fatal.If(t, err)
		if !bytes.Equal(e, known[at-1]) {
			t.Fatalf("entry %d is %q, want %q", at, e, known[at-1])
		}
		at++
	}
	if at != uint64(len(known))+1 {
		t.Fatalf("entries end before %d, want %d", at, len(known)+1)
	}
}

// flip flips a bit of a segment, and back after the log was opened: it is damaged, or has every entry.
func flip(t *testing.T, r *rand.Rand, dir string, first uint64, known [][]byte) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.wal"))
	if len(paths) == 0 {
		return
	}
	path := paths[r.IntN(len(paths))]
	sound := fatal.Or(os.ReadFile(path))(t)
	data := slices.Clone(sound)
	data[r.IntN(len(data))] ^= 1 << r.IntN(8)
	fatal.If(t, os.WriteFile(path, data, 0o600))
	s, err := filelog.Open(context.Background(), filelog.Options{Dir: dir, ReadOnly: true})
	fatal.If(t, err)
	if s.Damage() == nil {
		check(t, s, first, known)
	}
	fatal.If(t, s.Close())
	fatal.If(t, os.WriteFile(path, sound, 0o600))
}
