// Package filelog keeps an event log in a directory on one machine, as segment files that the segment package of
// github.com/hashicorp/raft-wal writes. docs/eventlog-format.md describes the files.
//
// The library numbers records 1, 2, 3, … and commits the records of one append together; this package makes an entry
// one record, so a record's number is the entry's sequence. On top of the library it checks more: each record has a
// checksum and the running hash before it, and when a log is opened, every segment must equal, byte for byte, the one
// that the library would write of its records.
package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// Options say how a log is opened.
type Options struct {
	Dir      string            // created if it is missing, unless the log is opened for reading
	ReadOnly bool              // read a log that another process may be writing; Append is refused
	Start    eventlog.Position // where a new log begins, as the continuation of another one; the zero value begins a log of its own
	Logger   *slog.Logger      // of warnings; nil discards them

	// Progress, if set, is called while the log is verified, with the bytes that were and all.
	Progress func(done, total int64)
}

// Store is an eventlog.Store in a directory.
type Store struct {
	options Options
	lock    *fileLock // of the writer; of readers, against removals
	mark    *mark
	filer   *segment.Filer
	files   files

	writing chan struct{} // holds one element while an append runs
	failed  error         // returned by all appends after a failure; guarded by writing
	closing chan struct{} // closed by Close
	lost    chan struct{} // closed when the store has lost its log
	loss    error         // why; set before lost is closed
	watched chan struct{} // closed when watch has ended
	close   func() error

	cutting  sync.Mutex // held while entries are removed
	mu       sync.RWMutex
	segments []*part // of the log, by their first entries
	tail     types.SegmentWriter
	first    uint64            // earlier entries count as removed
	head     int64             // bytes of the first segment before that entry
	end      eventlog.Position // of the last acknowledged entry
	damage   error             // why a log that is open for reading ends there; nil if it is sound
	idle     []*part           // segments without entries of the log, which the writer removes
	recent   recent
	changed  chan struct{} // closed by the next append and by Close; nil if nobody follows
}

var (
	_ eventlog.Store     = (*Store)(nil)
	_ eventlog.Reader    = (*Store)(nil)
	_ eventlog.Bounded   = (*Store)(nil)
	_ eventlog.Truncater = (*Store)(nil)
	_ eventlog.Synced    = (*Store)(nil)
)

// Open opens a log and verifies all its files. It creates the log if there is none. A last append that was never
// acknowledged because its process or its machine failed is dropped, with a warning. All other damage is a
// *eventlog.DamageError, and the files stay as they are; a log opened for reading then ends before the damage, which
// [Store.Damage] returns.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		options: o, writing: make(chan struct{}, 1),
		closing: make(chan struct{}), lost: make(chan struct{}), watched: make(chan struct{}),
	}
	s.files.dir = o.Dir
	s.filer = segment.NewFiler(o.Dir, disk{&s.files, o.ReadOnly})
	s.close = sync.OnceValue(s.shut)
	if o.ReadOnly {
		err = s.openReader(ctx)
	} else {
		err = s.openWriter(ctx)
	}
	if err != nil {
		close(s.watched)
		return nil, errors.Join(err, s.Close())
	}
	go s.watch()
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
	if n := len(s.segments); n > 0 && !s.segments[n-1].sealed() {
		if s.tail, err = s.filer.RecoverTail(s.segments[n-1].info); err != nil {
			return fmt.Errorf("filelog: %s: %w", s.segments[n-1].path, err)
		}
		// What a killed process has written may not be on the disk yet, but it is acted on from now on.
		if err := s.files.sync(s.segments[n-1].path); err != nil {
			return err
		}
	}
	return errors.Join(s.mark.begin(s.first, s.end.Sequence+1), s.holdFiles(), replace.Sync(dir))
}

// Exists reports whether a directory has a log.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markName))
	if err == nil {
		return true
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	return len(paths) > 0
}

// Damage returns why a log that is open for reading ends before its last entry, or lacks its first; nil if it is sound.
func (s *Store) Damage() error { return s.damage }

// Append implements eventlog.Store. It writes one commit, after waiting for the running one. Callers that append often
// should gather their entries first, as the engine does. The end of ctx does not stop a running write.
func (s *Store) Append(ctx context.Context, entries ...[]byte) (last uint64, err error) {
	if _, err := eventlog.EntriesSize(entries...); err != nil {
		return 0, err
	}
	if s.options.ReadOnly {
		return 0, eventlog.ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.isClosed() {
		return 0, eventlog.ErrClosed
	}
	if err := s.Loss(); err != nil {
		return 0, err
	}
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.closing:
		return 0, eventlog.ErrClosed
	}
	return eventlog.Uninterrupted(ctx, func() (uint64, error) {
		defer func() { <-s.writing }()
		err := s.failed
		if err == nil && len(entries) > 0 {
			if err = s.commit(entries); err != nil {
				err = fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
				s.failed = fmt.Errorf("an earlier append failed: %w", err)
			}
		}
		if err != nil {
			return 0, err
		}
		return s.end.Sequence, nil
	})
}

// commit writes entries after the log's end, syncs them, and moves the end.
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
		s.tail = nil // its file stays open for readers
	}
	s.tell()
	return nil
}

// grow begins a segment at the end of the log.
func (s *Store) grow() error {
	p := newPart(s.options.Dir, s.end.Sequence+1)
	tail, err := s.filer.Create(p.info)
	if err != nil {
		return fmt.Errorf("filelog: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail, s.segments = tail, append(s.segments, p)
	return nil
}

// tell wakes those that follow the log.
func (s *Store) tell() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Synced implements eventlog.Synced: nobody else writes the log.
func (s *Store) Synced() (sequence uint64, at time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.end.Sequence, time.Now()
}

// Close implements eventlog.Store. It puts back files of the log that were removed while it was open.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.closing)
	s.writing <- struct{}{} // only the running append is completed
	<-s.watched
	s.mu.Lock()
	s.tell()
	s.recent = recent{}
	s.mu.Unlock()
	var err error
	if !s.options.ReadOnly && s.mark != nil {
		err = s.files.restore(s.checkDir() == nil, s.options.Logger)
	}
	return errors.Join(err, s.files.close(), s.mark.close(), s.lock.release())
}
