// Package filelog keeps an event log in a directory on one machine, in segment files written by the segment package of
// github.com/hashicorp/raft-wal. docs/eventlog-format.md describes the files.
//
// The library numbers records 1, 2, 3, … and commits the records of one append together. This package stores each entry
// as one record, so that a record's number is the entry's sequence. It also checks more than the library: each record
// carries a checksum and the running hash before it, and on opening, every segment must equal, byte for byte, the
// output of the library for its records.
package filelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"vitrine/internal/flock"
	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// Options configure how a log is opened.
type Options struct {
	Dir      string // created if missing, unless the log is opened for reading
	ReadOnly bool   // read a log that another process may be writing; Append fails
	// where a new log begins, as the continuation of another log; the zero value begins an independent log
	Start  eventlog.Position
	Copies bool         // write to an unfinished copy, too, to finish it
	Logger *slog.Logger // gets warnings; nil discards them

	// Earlier, if set, is a closed store of this process that had the log open for writing. The segments that it verified
	// or filled, with files unchanged since, are not verified again.
	Earlier *Store
	// Progress, if set, is called during verification with the number of bytes verified so far and the total.
	Progress func(done, total int64)

	wrap func(types.VFS) types.VFS // the file system of the segments; nil leaves it as it is
}

// Store is an eventlog.Log in a directory.
type Store struct {
	options Options
	vfs     types.VFS   // of the segments
	lock    *flock.Lock // the writer's lock; a reader's lock against removals
	mark    *mark
	filer   *segment.Filer
	files   files

	life  *eventlog.Life
	close func() error

	cutting  sync.Mutex // held during the removal of entries
	mu       sync.RWMutex
	segments []*part // the log's segments, by first entry
	tail     types.SegmentWriter
	first    uint64            // earlier entries count as removed
	head     int64             // bytes of the first segment before entry first
	end      eventlog.Position // position after the last acknowledged entry
	damage   error             // why a log open for reading ends early; nil if it is intact
	idle     []*part           // segments without live entries, for the writer to remove
	recent   recent
}

var _ eventlog.Log = (*Store)(nil)

// Open opens a log and verifies all its files. It creates the log if necessary. If a process or machine failed during
// the last append, before acknowledging it, Open drops that append with a warning. Any other damage is a
// *eventlog.DamageError and leaves the files unchanged. A log opened for reading then ends before the damage, which
// [Store.Damage] returns.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, life: eventlog.NewLife()}
	s.files.dir = o.Dir
	s.vfs = disk{&s.files, o.ReadOnly}
	if o.wrap != nil {
		s.vfs = o.wrap(s.vfs)
	}
	s.filer = segment.NewFiler(o.Dir, s.vfs)
	s.close = sync.OnceValue(s.shut)
	if o.ReadOnly {
		err = s.openReader(ctx)
	} else {
		err = s.openWriter(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.options.Earlier = nil
	if !o.ReadOnly {
		s.life.Watch(watchEvery, func() error { return cmp.Or(s.checkDir(), s.files.look(s.sizes())) })
	}
	return s, nil
}

func (s *Store) openReader(ctx context.Context) (err error) {
	if !Exists(s.options.Dir) {
		return fmt.Errorf("filelog: %s: %w: it has no log", s.options.Dir, fs.ErrNotExist)
	}
	if s.lock, err = hold(s.options.Dir); err != nil {
		return err
	}
	path := filepath.Join(s.options.Dir, markName)
	if s.mark, err = readMark(path); err != nil {
		s.damage, s.mark = err, &mark{path: path}
	}
	flaw, err := s.verify(ctx)
	if err != nil {
		return err
	}
	if s.damage == nil {
		s.damage = s.judge(flaw)
	}
	if n := len(s.segments); n > 0 && !s.segments[n-1].sealed() && s.damage == nil {
		s.tail, err = s.filer.RecoverTail(s.segments[n-1].info)
	}
	return err
}

func (s *Store) openWriter(ctx context.Context) (err error) {
	dir := s.options.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockDir(dir); err != nil {
		return err
	}
	if err := s.checkCopy(); err != nil {
		return err
	}
	if s.mark, err = openMark(filepath.Join(dir, markName)); err != nil {
		return err
	}
	flaw, err := s.verify(ctx)
	if err != nil {
		return err
	}
	if damage := s.judge(flaw); damage != nil {
		return damage
	}
	if flaw != nil {
		if err := s.cut(flaw); err != nil {
			return err
		}
	}
	for _, p := range s.idle {
		if err := os.Remove(p.path); err != nil {
			return err
		}
	}
	if len(s.segments) == 0 && s.end.Sequence == s.options.Start.Sequence {
		s.end = s.options.Start
	}
	if s.end.Log.IsZero() {
		s.end.Log = eventlog.NewIdentity()
	}
	if n := len(s.segments); n > 0 {
		last := s.segments[n-1]
		// A killed process may have left writes that are not on the disk yet, in a full segment, too. We are about to
		// rely on them.
		file, err := s.vfs.OpenWriter(dir, filepath.Base(last.path))
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			return err
		}
		if !last.sealed() {
			if s.tail, err = s.filer.RecoverTail(last.info); err != nil {
				return fmt.Errorf("filelog: %s: %w", last.path, err)
			}
		}
	}
	return errors.Join(s.mark.begin(s.first, s.end.Sequence+1), s.holdFiles(), replace.Sync(dir))
}

// Exists reports whether a directory contains a log.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markName))
	if err == nil {
		return true
	}
	files, _ := os.ReadDir(dir)
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), suffix) })
}

// Damage returns why a log open for reading ends before its last entry or lacks its first; nil if it is intact.
func (s *Store) Damage() error { return s.damage }

// Append implements eventlog.Log. It waits for the running commit and writes its own. Callers that append often
// should batch their entries, as the engine does. If ctx ends, a running write continues.
func (s *Store) Append(ctx context.Context, entries ...[]byte) (last uint64, err error) {
	if _, err := eventlog.EntriesSize(entries...); err != nil {
		return 0, err
	}
	if s.options.ReadOnly {
		return 0, eventlog.ErrReadOnly
	}
	return s.life.Write(ctx, s.checkDir, func() (uint64, error) {
		if len(entries) > 0 {
			if err := s.commit(entries); err != nil {
				return 0, fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
			}
		}
		return s.end.Sequence, nil
	})
}

func (s *Store) commit(entries [][]byte) error {
	records, end := s.records(entries)
	if s.tail == nil {
		if err := s.grow(); err != nil {
			return err
		}
	}
	if err := s.tail.Append(records); err != nil {
		return fmt.Errorf("filelog: %s: %w", s.options.Dir, err)
	}
	if err := s.mark.set(end.Sequence + 1); err != nil {
		return err
	}
	sealed, index, err := s.tail.Sealed()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.segments[len(s.segments)-1]
	if last.size == 0 {
		last.size = headerSize
	}
	for i, r := range records {
		last.size += recordSize(entries[i], i == len(records)-1)
		s.recent.add(r.Index, r.Data[headSize:headSize+len(entries[i])])
	}
	s.end = end
	if sealed {
		last.seal(index, end.Sequence)
		last.sealedAt(end)
		s.tail = nil // the file stays open for readers
	}
	return nil
}

// grow starts a new segment.
func (s *Store) grow() error {
	p := newPart(s.options.Dir, s.end.Sequence+1)
	p.begin = s.end
	tail, err := s.filer.Create(p.info)
	if err != nil {
		return fmt.Errorf("filelog: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail, s.segments = tail, append(s.segments, p)
	return nil
}

// Close implements eventlog.Log. It restores the log's files that were removed while the log was open.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.life.End()
	s.mu.Lock()
	s.recent = recent{}
	s.mu.Unlock()
	var err error
	if !s.options.ReadOnly && s.mark != nil {
		err = s.files.restore(s.checkDir() == nil, s.options.Logger)
	}
	return errors.Join(err, s.files.close(), s.mark.close(), s.lock.Release())
}
