package shoppers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// File is a [Store] in a file of one process. After a header of 16 bytes it holds records of 32 bytes: the hash of an id
// and the key, or zeros for a free one. Keys are deleted in place. The first key creates the file.
//
// A new key is not synced: if the machine fails before the system has written it, its shopper is unknown at the next
// visit. There are at most 2²⁰ keys: then a new one takes the place of any other, which was most likely to be swept.
type File struct {
	mu     sync.Mutex
	path   string
	most   int      // keys
	file   *os.File // nil before the first key
	keys   map[Hash]*record
	free   []int64 // offsets of free records
	end    int64
	isHalf bool  // a failed write may have left a part of a record, or of the header
	half   int64 // its offset

	syncing sync.Mutex
	isLost  bool // the last sync failed: the system may have dropped deletions
}

type record struct {
	key    Key
	at     int64 // offset in the file
	isLive bool  // whether it was asked for since the last sweep
}

const (
	header     = "VITRINE SHOPPERS"
	recordSize = 32
	maxKeys    = 1 << 20 // 32 MB in the file, and some 130 MB in memory
	sweepKeys  = 256     // deleted with the file locked
)

// Open opens the file at a path, which need not exist.
func Open(path string) (*File, error) {
	f := &File{path: path, most: maxKeys, keys: map[Hash]*record{}, end: int64(len(header))}
	var err error
	f.file, err = os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f.file = nil
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.file.Close())
	}
	return f, nil
}

func (f *File) read() error {
	data, err := io.ReadAll(f.file)
	if err != nil {
		return err
	}
	if len(data) < len(header) && header[:len(data)] == string(data) { // new, or a start that was cut short
		return f.write([]byte(header), 0)
	}
	if string(data[:min(len(header), len(data))]) != header {
		return errors.New("this is not a file of shoppers' keys: move it away, and all shoppers are new")
	}
	rest := data[len(header):]
	for ; len(rest) >= recordSize; rest = rest[recordSize:] {
		id, r := Hash(rest[:16]), &record{key: Key(rest[16:recordSize]), at: f.end}
		switch {
		case id == (Hash{}), r.key == (Key{}):
			f.free = append(f.free, f.end)
		case f.keys[id] != nil: // an erasure must find the only one
			if err := f.write(make([]byte, recordSize), f.end); err != nil {
				return err
			}
			f.free = append(f.free, f.end)
		default:
			f.keys[id] = r
		}
		f.end += recordSize
	}
	f.isHalf, f.half = len(rest) > 0, f.end
	return nil
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
		_, err = f.file.WriteAt([]byte(header), 0)
	case f.half == f.end:
		err = f.file.Truncate(f.end) // works on a full disk
	default:
		_, err = f.file.WriteAt(make([]byte, recordSize), f.half)
	}
	f.isHalf = err != nil
	return err
}

// Key implements Store.
func (f *File) Key(_ context.Context, id string, draws bool) (Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := HashOf(id)
	r := f.keys[h]
	if r == nil && !draws {
		return Key{}, nil
	}
	if r == nil {
		for other := range f.keys {
			if len(f.keys) < f.most {
				break
			}
			if err := f.delete(other); err != nil {
				return Key{}, err
			}
		}
		r = &record{key: Draw(), at: f.end}
		if n := len(f.free); n > 0 {
			r.at = f.free[n-1]
		}
		if err := f.write(append(h[:], r.key[:]...), r.at); err != nil {
			return Key{}, err
		}
		if n := len(f.free); n > 0 {
			f.free = f.free[:n-1]
		} else {
			f.end += recordSize
		}
		f.keys[h] = r
	}
	r.isLive = true
	return r.key, nil
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
	at := f.keys[h].at
	if err := f.tidy(); err != nil {
		return err
	}
	f.free = append(f.free, at)
	delete(f.keys, h)
	return f.write(make([]byte, recordSize), at)
}

// sync makes deletions last, while others ask for keys.
func (f *File) sync() (err error) {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.isLost {
		err = f.rewrite()
	}
	if err == nil {
		err = f.file.Sync()
	}
	f.isLost = err != nil
	return err
}

// rewrite writes all free records again, because the system does not retry a write that failed.
func (f *File) rewrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.free {
		if err := f.write(make([]byte, recordSize), at); err != nil {
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
	if len(unused) == 0 {
		return nil
	}
	for some := range slices.Chunk(unused, sweepKeys) {
		if err := f.deleteUnused(some); err != nil {
			return err
		}
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
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return errors.Join(f.file.Sync(), f.file.Close())
}
