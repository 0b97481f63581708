package filelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// asideName is the directory that keeps damaged segments in their original state.
const asideName = "damaged"

// flaw is the place where a log stops being intact.
type flaw struct {
	part *part
	at   int64   // end of the last intact append in the file
	size int64   // size of the file
	rest []*part // the segments after it
	err  error
}

func (f *flaw) Error() string {
	return fmt.Sprintf("%s is damaged after byte %d of %d: %v", f.part.path, f.at, f.size, f.err)
}

// verify reads the segments up to the first flaw, and sets the store's segments and end. It skips segments of removed
// entries, left behind by an interrupted removal.
func (s *Store) verify(ctx context.Context) (*flaw, error) {
	parts, err := s.list()
	if err != nil {
		return nil, err
	}
	for len(parts) > 1 && parts[1].info.BaseIndex <= min(s.mark.first, max(s.mark.next, 1)-1) {
		s.idle, parts = append(s.idle, parts[0]), parts[1:]
	}
	begin := s.options.Start
	if len(parts) > 0 {
		begin = eventlog.Position{Sequence: parts[0].info.BaseIndex - 1}
	}
	s.end, s.first = begin, max(s.mark.first, begin.Sequence+1)
	progress := s.progress(parts)
	for i, p := range parts {
		if known := s.known(p); known != nil {
			s.segments, s.end = append(s.segments, known), known.end
			progress(known.size)
			continue
		}
		file, err := os.Open(p.path)
		if err != nil { // it may be damaged or not
			return nil, unreadable(err)
		}
		c := check{store: s, part: p, isLast: i == len(parts)-1}
		at, err := c.run(ctx, file)
		file.Close()
		progress(at)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case at > 0:
			s.segments = append(s.segments, p)
		case err == nil: // without any commit
			s.idle = append(s.idle, p)
		}
		if err != nil {
			info, failed := os.Stat(p.path)
			if failed != nil {
				return nil, failed
			}
			s.first = min(s.first, s.end.Sequence+1) // if the flaw is among removed entries
			return &flaw{p, at, info.Size(), parts[i+1:], err}, nil
		}
	}
	return nil, nil
}

// unreadable adds the remedy to an error of opening a file.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("filelog: %w: run the program as the owner of the log's files, or change their owner", err)
	}
	return fmt.Errorf("filelog: %w", err)
}

// progress returns a function that reports the number of verified bytes.
func (s *Store) progress(parts []*part) func(int64) {
	if s.options.Progress == nil {
		return func(int64) {}
	}
	done, total := int64(0), int64(0)
	for _, p := range parts {
		if info, err := os.Stat(p.path); err == nil {
			total += info.Size()
		}
	}
	return func(n int64) { done += n; s.options.Progress(min(done, total), total) }
}

// check verifies a segment: records must follow one another, and the library must write the same bytes for them.
type check struct {
	store  *Store
	part   *part
	isLast bool // whether it is the last segment

	writer types.SegmentWriter // writes the records to same
	same   *same
	append []types.LogEntry // records of the current append
	end    eventlog.Position
	head   int64 // bytes of removed entries
}

// run returns the end of the segment's intact appends, and the reason why the segment does not end there.
func (c *check) run(ctx context.Context, file *os.File) (at int64, err error) {
	c.end, c.head = c.store.end, c.store.head
	c.part.begin = c.end
	if next := c.end.Sequence + 1; c.part.info.BaseIndex != next {
		return 0, fmt.Errorf("it begins with entry %d where %d follows", c.part.info.BaseIndex, next)
	}
	c.same = &same{file: file}
	if c.writer, err = segment.NewFiler("", comparing{file: c.same}).Create(c.part.info); err != nil {
		return 0, err
	}
	err = dumpFile(file, c.part, c.part.info.BaseIndex, func(version, sequence uint64, data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.record(version, sequence, data)
	})
	c.part.size = c.same.end
	info, failed := file.Stat()
	if err == nil {
		err = failed
	}
	if err == nil && info.Size() != c.same.end {
		err = fmt.Errorf("its last %d bytes are no whole append", info.Size()-c.same.end)
	}
	if err == nil && !c.isLast && !c.part.sealed() {
		err = errors.New("its index is missing")
	}
	if err == nil && c.part.sealed() {
		c.part.sealedAt(c.end)
	}
	return c.same.end, err
}

// record checks the next record and, at the end of an append, the append's bytes.
func (c *check) record(version, sequence uint64, data []byte) error {
	switch {
	case version == format:
	case version == 0, version > maxFormat:
		return fmt.Errorf("its header is damaged: there is no format %d", version)
	default:
		return fmt.Errorf("it is in format %d, and this program reads format %d: use the release of vitrine that "+
			"wrote the log", version, format)
	}
	r, err := decodeRecord(sequence, data)
	switch {
	case err != nil:
		return err
	case sequence != c.end.Sequence+1:
		return fmt.Errorf("record %d comes after record %d", sequence, c.end.Sequence)
	case c.end.Log.IsZero():
		c.end = r.start
	case r.start.Log != c.end.Log:
		return fmt.Errorf("entry %d is of the log %v after one of %v", sequence, r.start.Log, c.end.Log)
	case r.start.Hash != c.end.Hash:
		return fmt.Errorf("the entries before %d are not those that its running hash is of", sequence)
	}
	if sequence < c.store.first {
		c.head += recordSize(r.entry, r.ends)
	}
	c.append = append(c.append, types.LogEntry{Index: sequence, Data: bytes.Clone(data)})
	c.end = c.end.After(r.entry)
	if !r.ends {
		return nil
	}
	if err := c.writer.Append(c.append); err != nil {
		return err
	}
	sealed, index, err := c.writer.Sealed()
	if err != nil {
		return err
	}
	if sealed {
		c.part.seal(index, sequence)
	}
	c.append, c.store.end, c.store.head = c.append[:0], c.end, c.head
	return nil
}

// same compares a file with the bytes written to it.
type same struct {
	file   *os.File
	buffer []byte
	end    int64 // end of the matching bytes
}

var errOther = errors.New("its bytes are not those of its records")

func (s *same) WriteAt(b []byte, at int64) (int, error) {
	s.buffer = append(s.buffer[:0], b...)
	n, err := s.file.ReadAt(s.buffer, at)
	if err != nil && (err != io.EOF || n < len(b)) {
		return 0, err
	}
	if !bytes.Equal(s.buffer, b) {
		return 0, errOther
	}
	s.end = at + int64(len(b))
	return len(b), nil
}

func (s *same) ReadAt(b []byte, at int64) (int, error) { return s.file.ReadAt(b, at) }
func (*same) Sync() error                              { return nil }
func (*same) Close() error                             { return nil }

// comparing is a file system with a single file, which is compared with the bytes written to it.
type comparing struct {
	types.VFS // nil: the library creates the file, and no more
	file      *same
}

func (c comparing) Create(string, string, uint64) (types.WritableFile, error) { return c.file, nil }

// judge decides whether a flaw is damage. It returns nil for the half-written end of an append that was never
// acknowledged, and for a loss that the operator accepted by removing the mark.
func (s *Store) judge(f *flaw) error {
	next := s.end.Sequence + 1
	if f == nil || s.mark.next == 0 && !s.options.ReadOnly {
		return s.mark.missing(s.firstFile(), next)
	}
	isTail := true
	for _, p := range f.rest {
		info, err := os.Stat(p.path)
		isTail = isTail && err == nil && info.Size() == 0
	}
	if isTail && s.mark.next > 0 && next >= s.mark.next {
		return s.mark.missing(s.firstFile(), next)
	}
	if s.mark.next == 0 {
		return &eventlog.DamageError{Sequence: next, Err: f}
	}
	return &eventlog.DamageError{Sequence: next, Err: fmt.Errorf("%w: %s", f, s.mark.advice())}
}

// firstFile returns the first entry in any file.
func (s *Store) firstFile() uint64 {
	if len(s.segments) == 0 {
		return s.first
	}
	return s.segments[0].info.BaseIndex
}

// cut ends the log before a flaw. If the mark does not guard its end, the flawed segment and later ones are kept in a
// directory.
func (s *Store) cut(f *flaw) error {
	aside := filepath.Join(s.options.Dir, asideName)
	if s.mark.next > 0 {
		s.options.Logger.Warn("the log's last bytes are of no acknowledged entry, and are removed",
			"file", f.part.path, "from", f.at, "bytes", f.size-f.at, "cause", f.err.Error())
		for _, p := range f.rest {
			if err := os.Remove(p.path); err != nil {
				return err
			}
		}
	} else {
		s.options.Logger.Warn("the log is damaged, and nothing says what it must have: it ends before the damage",
			"next", s.end.Sequence+1, "kept", aside, "cause", f.Error())
		if err := keep(aside, f); err != nil {
			return err
		}
	}
	if f.at == 0 {
		return os.Remove(f.part.path)
	}
	return os.Truncate(f.part.path, f.at)
}

// keep copies the flawed segment to a directory, and moves later ones there.
func keep(aside string, f *flaw) error {
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	data, err := os.ReadFile(f.part.path)
	if err != nil {
		return err
	}
	if err := replace.Private(filepath.Join(aside, filepath.Base(f.part.path)), data); err != nil {
		return err
	}
	for _, p := range f.rest {
		if err := os.Rename(p.path, filepath.Join(aside, filepath.Base(p.path))); err != nil {
			return err
		}
	}
	return replace.Sync(aside)
}
