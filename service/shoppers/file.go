package shoppers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// File is a [Store] in a file of one process. Numbers are little-endian, checksums CRC-32C:
//
//	"VITRINE SHOPKEYS", uint32 n, checksum of both: the file held at least n records when it was last synced
//	records: the hash of an id, the key, the CRC-32C of the name of the placement that drew the key, checksum of all three;
//	a free record is zeros and their checksum
//
// Keys are deleted in place. The first key creates the file.
//
// A new key is not synced: if the machine fails before the system has written it, its shopper is unknown at the next
// visit. There are at most 2²⁰ keys: then a new one replaces any key of the placement that drew most of them, so that a
// placement with many shoppers, or invented ones, does not take the keys of the others.
type File struct {
	mu     sync.Mutex
	path   string
	most   int      // keys
	lost   int      // keys that were replaced since there was room
	file   *os.File // nil before the first key
	isHalf bool     // a failed write may have left a part of a record, or of the header
	half   int64    // its offset
	contents

	syncing sync.Mutex
	isLost  bool // the last sync failed: the system may have dropped deletions
}

// contents are what a file holds.
type contents struct {
	keys    map[Hash]*record
	drawn   map[uint32]int // keys by placement
	free    []int64        // offsets of free records
	end     int64
	useless []int64 // offsets of records that are damaged, or of a key's second record
	isNew   bool    // it is missing, or its header is
	wrong   string  // what is damaged or missing, or "" once Begin returned it
}

type record struct {
	key    Key
	at     int64  // offset in the file
	by     uint32 // the placement
	isLive bool   // whether it was asked for since the last sweep
}

const (
	magic      = "VITRINE SHOPKEYS"
	headerSize = int64(len(magic) + 8)
	recordSize = 40
	maxKeys    = 1 << 20 // 42 MB in the file, and some 130 MB in memory
	sweepKeys  = 256     // deleted with the file locked
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checked(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func isChecked(b []byte) bool { return bytes.Equal(checked(slices.Clone(b[:len(b)-4])), b) }

// header returns the header of a file that holds at least n records.
func header(n int64) []byte {
	return checked(binary.LittleEndian.AppendUint32([]byte(magic), uint32(n)))
}

var freeRecord = checked(make([]byte, recordSize-4))

// Open opens the file at a path, which need not exist. It changes nothing: call [File.Begin] before the file is used.
func Open(path string) (*File, error) {
	data, err := os.ReadFile(path)
	f := &File{path: path, most: maxKeys}
	if errors.Is(err, fs.ErrNotExist) {
		f.contents, err = read(nil)
		return f, err
	}
	if err != nil {
		return nil, err
	}
	if f.contents, err = read(data); err == nil {
		f.file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.isHalf = int64(len(data)) != f.end; int64(len(data)) >= headerSize {
		f.half = f.end
	}
	return f, nil
}

// read returns the contents of a file. A last record that is cut short, or that the system has not filled, was being
// written when the machine failed. A damaged record beyond the header's count was never synced.
func read(data []byte) (contents, error) {
	c := contents{keys: map[Hash]*record{}, drawn: map[uint32]int{}, end: headerSize}
	if !strings.HasPrefix(string(data), magic) && !strings.HasPrefix(magic, string(data)) {
		return c, errors.New("this is not a file of shoppers' keys: move it away, and all shoppers are new")
	}
	if int64(len(data)) < headerSize {
		c.isNew, c.wrong = true, "is missing"
		return c, nil
	}
	rest := data[headerSize:]
	n := len(rest) / recordSize
	for n > 0 && !slices.ContainsFunc(rest[(n-1)*recordSize:n*recordSize], func(b byte) bool { return b != 0 }) {
		n--
	}
	had, isCounted := int64(binary.LittleEndian.Uint32(data[len(magic):])), isChecked(data[:headerSize])
	damaged := 0
	for i := range n {
		b := rest[i*recordSize : (i+1)*recordSize]
		id, r := Hash(b[:16]), &record{key: Key(b[16:32]), at: c.end, by: binary.LittleEndian.Uint32(b[32:])}
		switch {
		case !isChecked(b):
			if !isCounted || int64(i) < had {
				damaged++
			}
			c.useless = append(c.useless, c.end)
		case id == (Hash{}):
			c.free = append(c.free, c.end)
		case c.keys[id] != nil: // an erasure must find the only one
			c.useless = append(c.useless, c.end)
		default:
			c.keys[id] = r
			c.drawn[r.by]++
		}
		c.end += recordSize
	}
	switch {
	case damaged > 0:
		c.wrong = fmt.Sprintf("is damaged in %d of %d records", damaged, n)
	case !isCounted:
		c.wrong = "is damaged in its header"
	case int64(n) < had:
		c.wrong = fmt.Sprintf("was cut short: it holds %d of %d records", n, had)
	}
	return c, nil
}

// Begin repairs the file, and returns what was wrong with it if placements remember shoppers, or "". If they do, a missing
// file is created, so that the next start finds it. A file that is closed before Begin stays as it was.
func (f *File) Begin(remembered int) (wrong string, err error) {
	if f.file != nil || remembered > 0 {
		err = f.repair()
	}
	if remembered > 0 {
		wrong = f.wrong
	}
	if err == nil {
		f.wrong = ""
	}
	return wrong, err
}

// repair frees useless records, so that no key is left that an erasure does not find. Then it counts the others.
func (f *File) repair() error {
	for _, at := range f.useless {
		if err := f.write(freeRecord, at); err != nil {
			return err
		}
	}
	f.free, f.useless = append(f.free, f.useless...), nil
	if f.file == nil {
		return f.write(header(0), 0)
	}
	if f.wrong == "" {
		return nil
	}
	return f.save()
}

// Check returns an error if the file at a path is damaged, or is missing although placements remember shoppers.
func Check(path string, remembered int) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := read(data)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case c.wrong == "", c.isNew && remembered == 0:
		return nil
	}
	if remembered == 0 {
		return fmt.Errorf("%s %s", path, c.wrong)
	}
	return fmt.Errorf("%s %s: up to %d remembered shoppers are new when they return", path, c.wrong, remembered)
}

// Create creates a file without keys, unless there is a file at the path.
func Create(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	if f.isNew {
		_, err = f.Begin(1)
	}
	return errors.Join(err, f.Close())
}

// write writes a record, unless an earlier one is still half written.
func (f *File) write(b []byte, at int64) error {
	if f.file == nil {
		file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f.file, f.isHalf, f.half = file, true, 0
	}
	if err := f.tidy(); err != nil {
		return err
	}
	_, err := f.file.WriteAt(b, at)
	f.isHalf, f.half = err != nil, at
	return err
}

// tidy removes a half-written record, or completes the header.
func (f *File) tidy() (err error) {
	switch {
	case !f.isHalf:
	case f.half == 0:
		_, err = f.file.WriteAt(header(0), 0)
	case f.half == f.end:
		err = f.file.Truncate(f.end) // works on a full disk
	default:
		_, err = f.file.WriteAt(freeRecord, f.half)
	}
	f.isHalf = err != nil
	return err
}

// Key implements Store.
func (f *File) Key(_ context.Context, id, drawsFor string) (Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := HashOf(id)
	r := f.keys[h]
	if r == nil && drawsFor == "" {
		return Key{}, nil
	}
	if r == nil {
		if len(f.keys) >= f.most {
			if err := f.replace(); err != nil {
				return Key{}, err
			}
		}
		r = &record{key: Draw(), at: f.end, by: crc32.Checksum([]byte(drawsFor), castagnoli)}
		if n := len(f.free); n > 0 {
			r.at = f.free[n-1]
		}
		if err := f.write(checked(binary.LittleEndian.AppendUint32(append(h[:], r.key[:]...), r.by)), r.at); err != nil {
			return Key{}, err
		}
		if n := len(f.free); n > 0 {
			f.free = f.free[:n-1]
		} else {
			f.end += recordSize
		}
		f.keys[h] = r
		f.drawn[r.by]++
	}
	r.isLive = true
	return r.key, nil
}

// replace deletes a key of the placement that drew most.
func (f *File) replace() error {
	var by uint32
	for other, n := range f.drawn {
		if n > f.drawn[by] {
			by = other
		}
	}
	for h, r := range f.keys {
		if r.by == by {
			if err := f.delete(h); err != nil {
				return err
			}
			f.lost++
			return nil
		}
	}
	return nil
}

// Replaced returns how many keys new ones have replaced since a sweep found a tenth of the room free.
func (f *File) Replaced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Erase implements Store. A key that is gone already may not have been synced yet.
func (f *File) Erase(_ context.Context, id string) error {
	f.mu.Lock()
	h := HashOf(id)
	err, isEmpty := f.tidy(), f.file == nil
	if err == nil && f.keys[h] != nil {
		err = f.delete(h)
	}
	f.mu.Unlock()
	if err != nil || isEmpty {
		return err
	}
	return f.sync()
}

// delete forgets a key and overwrites it. If writing fails, tidy overwrites it later.
func (f *File) delete(h Hash) error {
	r := f.keys[h]
	if err := f.tidy(); err != nil {
		return err
	}
	f.free = append(f.free, r.at)
	delete(f.keys, h)
	f.drawn[r.by]--
	return f.write(freeRecord, r.at)
}

// sync makes deletions last, while others ask for keys.
func (f *File) sync() (err error) {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.isLost {
		err = f.rewrite()
	}
	if err == nil {
		err = f.save()
	}
	f.isLost = err != nil
	return err
}

// save syncs the file, and then notes how many records it holds.
func (f *File) save() error {
	f.mu.Lock()
	n := (f.end - headerSize) / recordSize
	f.mu.Unlock()
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(header(n), 0)
}

// rewrite writes all free records again, because the system does not retry a write that failed.
func (f *File) rewrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.free {
		if err := f.write(freeRecord, at); err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements Store.
func (f *File) Sweep(ctx context.Context, isUsed func(Key) bool) error {
	f.mu.Lock()
	old := map[Hash]Key{}
	for h, r := range f.keys {
		if !r.isLive {
			old[h] = r.key
		}
		r.isLive = false
	}
	f.mu.Unlock()
	var unused []Hash
	for h, key := range old {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !isUsed(key) {
			unused = append(unused, h)
		}
	}
	for some := range slices.Chunk(unused, sweepKeys) {
		if err := f.deleteUnused(some); err != nil {
			return err
		}
	}
	f.mu.Lock()
	if len(f.keys) < f.most*9/10 {
		f.lost = 0
	}
	f.mu.Unlock()
	if len(unused) == 0 {
		return nil
	}
	return f.sync()
}

func (f *File) deleteUnused(list []Hash) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range list {
		if r := f.keys[h]; r == nil || r.isLive {
			continue
		}
		if err := f.delete(h); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	isEmpty, wrong := f.file == nil, f.wrong
	f.mu.Unlock()
	switch {
	case isEmpty:
		return nil
	case wrong != "": // the next start says so
		return f.file.Close()
	}
	return errors.Join(f.save(), f.file.Close())
}
