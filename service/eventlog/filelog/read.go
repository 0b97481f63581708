package filelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sort"

	"vitrine/service/eventlog"
)

// Entries implements eventlog.Log. It verifies that each entry is intact and follows the previous one.
func (s *Store) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return eventlog.Iterate(func(yield func([]byte) bool) error { return s.entries(ctx, from, yield) })
}

// entries yields entries until yield returns false or an error occurs.
func (s *Store) entries(ctx context.Context, from uint64, yield func([]byte) bool) error {
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	if err := x.CheckFrom(from); err != nil {
		return err
	}
	next, before := from, eventlog.Position{}
	for next <= x.Last {
		p := s.find(next)
		if p.info.BaseIndex > next { // its segment has just been removed
			return s.missing(ctx, next, fs.ErrNotExist)
		}
		begin := next
		err := s.read(p, begin, func(r record) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case !before.Log.IsZero() && before != r.start:
				return fmt.Errorf("the entries before %d are not those that its running hash is of", next)
			}
			before = r.start.After(r.entry)
			next++
			if !yield(bytes.Clone(r.entry)) || next > x.Last { // another process may be writing the next record
				return errStop
			}
			return nil
		})
		switch {
		case errors.Is(err, errStop):
			return nil
		case err == nil && next == begin:
			err = fmt.Errorf("%s ends before it", p.path)
		}
		if err != nil {
			return s.missing(ctx, next, err)
		}
	}
	return nil
}

// read decodes a segment's records, starting at a sequence.
func (s *Store) read(p *part, from uint64, each func(record) error) error {
	return dump(p, from, func(_, sequence uint64, data []byte) error {
		r, err := decodeRecord(sequence, data)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		return each(r)
	})
}

// find returns the segment that contains an entry.
func (s *Store) find(sequence uint64) *part {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].info.BaseIndex > sequence })
	return s.segments[max(i-1, 0)]
}

// missing returns the error for an unreadable entry, which is damaged, was just removed, or is in a file that cannot be
// opened at present.
func (s *Store) missing(ctx context.Context, entry uint64, err error) error {
	switch x, failed := s.Extent(ctx); {
	case failed != nil:
		return failed
	case entry < x.First:
		return x.CheckFrom(entry)
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Op == "open" && !errors.Is(err, fs.ErrNotExist) {
		return unreadable(err)
	}
	return &eventlog.DamageError{Sequence: entry, Err: err}
}

// Entry implements eventlog.Log. The most recent entries are in memory.
func (s *Store) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	x, err := s.Extent(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.CheckEntry(sequence); err != nil {
		return nil, err
	}
	s.mu.RLock()
	e := s.recent.entry(sequence)
	s.mu.RUnlock()
	if e != nil {
		return e, nil
	}
	r, err := s.record(ctx, sequence)
	return r.entry, err
}

func (s *Store) record(ctx context.Context, sequence uint64) (r record, err error) {
	data, err := s.data(s.find(sequence), sequence)
	if err == nil {
		r, err = decodeRecord(sequence, data)
	}
	if err != nil {
		return record{}, s.missing(ctx, sequence, err)
	}
	return r, nil
}

// data reads the bytes of one record. It uses the library's index, but in a damaged segment it reads everything before
// the record.
func (s *Store) data(p *part, sequence uint64) (data []byte, err error) {
	s.mu.RLock()
	reader, tail, sealed := p.reader, s.tail, p.sealed()
	s.mu.RUnlock()
	switch {
	case sequence < p.info.BaseIndex: // its segment has just been removed
		return nil, fs.ErrNotExist
	case reader != nil:
	case sealed:
		if reader, err = s.filer.Open(p.info); err != nil {
			return nil, err
		}
		s.mu.Lock()
		p.reader = reader
		s.mu.Unlock()
	case tail != nil:
		reader = tail
	default:
		err := dump(p, sequence, func(_, _ uint64, d []byte) error { data = bytes.Clone(d); return errStop })
		if !errors.Is(err, errStop) {
			return nil, errors.Join(errors.New("its segment ends before it"), err)
		}
		return data, nil
	}
	pooled, err := reader.GetLog(sequence)
	if err != nil {
		return nil, err
	}
	defer pooled.Close()
	return bytes.Clone(pooled.Bs), nil
}

// Position implements eventlog.Log.
func (s *Store) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	x, err := s.Extent(ctx)
	if err != nil {
		return eventlog.Position{}, err
	}
	if err := x.CheckFrom(sequence + 1); err != nil {
		return eventlog.Position{}, err
	}
	s.mu.RLock()
	end := s.end
	s.mu.RUnlock()
	if sequence == end.Sequence {
		return end, nil
	}
	r, err := s.record(ctx, sequence+1)
	return r.start, err
}

// Extent implements eventlog.Log. It counts file bytes from the first entry on.
func (s *Store) Extent(ctx context.Context) (eventlog.Extent, error) {
	if s.life.Closed() {
		return eventlog.Extent{}, eventlog.ErrClosed
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	x := eventlog.Extent{First: s.first, Last: s.end.Sequence}
	size := -s.head
	for _, p := range s.segments {
		size += p.size
	}
	x.Bytes = uint64(max(size, 0))
	return x, ctx.Err()
}

// recent holds the most recent entries, except large ones, up to a number of bytes.
type recent struct {
	first   uint64   // the sequence of the first entry
	entries [][]byte // nil in place of a large entry
	bytes   int
}

const (
	recentBytes = 16 << 20
	// recentEntry is the size of the largest entry to keep. Larger ones are parts of catalogues, which are not read
	// again; an offer takes a few kilobytes.
	recentEntry = 16 << 10
	entryCost   = 24 // bytes of overhead per entry
)

func (r *recent) add(sequence uint64, e []byte) {
	if len(r.entries) == 0 {
		r.first = sequence
	}
	if len(e) > recentEntry {
		e = nil
	}
	r.entries = append(r.entries, e)
	r.bytes += len(e) + entryCost
	for r.bytes > recentBytes {
		r.bytes -= len(r.entries[0]) + entryCost
		r.entries[0] = nil
		r.entries = r.entries[1:]
		r.first++
	}
}

// entry returns an entry, or nil if it is not in memory.
func (r *recent) entry(sequence uint64) []byte {
	if i := sequence - r.first; i < uint64(len(r.entries)) {
		return r.entries[i]
	}
	return nil
}
