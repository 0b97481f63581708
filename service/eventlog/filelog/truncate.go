package filelog

import (
	"context"
	"errors"
	"fmt"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// FirstWithin implements eventlog.Log. It reads part of one segment.
func (s *Store) FirstWithin(ctx context.Context, bytes uint64) (uint64, error) {
	x, err := s.Extent(ctx)
	if err != nil {
		return 0, err
	}
	excess := int64(x.Bytes) - int64(min(bytes, x.Bytes))
	s.mu.RLock()
	segments, size := s.segments, -s.head
	sizes := make([]int64, len(segments)) // the last segment grows
	for i, p := range segments {
		sizes[i] = p.size
	}
	s.mu.RUnlock()
	first := x.First
	for i, p := range segments {
		if excess <= 0 || first > x.Last {
			return first, nil
		}
		size += sizes[i]
		if excess >= size {
			excess -= size
			if first = x.Last + 1; i+1 < len(segments) {
				first = segments[i+1].info.BaseIndex
			}
			size = 0
			continue
		}
		err := s.read(p, first, func(r record) error {
			if first > x.Last || excess <= 0 {
				return errStop
			}
			excess -= recordSize(r.entry, r.ends)
			first++
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, errStop) {
			return 0, s.missing(ctx, first, err)
		}
		return first, nil
	}
	return first, nil
}

// TruncateBefore implements eventlog.Log. The entries are gone at once. A segment goes when all its entries are
// removed, except for the segment with the last entry. If another process is reading the log, the error is ErrHeld.
func (s *Store) TruncateBefore(ctx context.Context, sequence uint64) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	s.cutting.Lock()
	defer s.cutting.Unlock()
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	if err := x.CheckFrom(max(sequence, x.First)); err != nil || sequence <= x.First {
		return err
	}
	if err := s.Loss(); err != nil {
		return err
	}
	alone, err := noHolds(s.options.Dir)
	if err != nil {
		return err
	}
	defer alone.Release()
	last := s.find(min(sequence, x.Last)) // first remaining segment
	head := int64(0)
	err = s.read(last, last.info.BaseIndex, func(r record) error {
		if r.start.Sequence+1 >= sequence {
			return errStop
		}
		head += recordSize(r.entry, r.ends)
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return s.missing(ctx, last.info.BaseIndex, err)
	}
	if err := s.mark.cut(sequence); err != nil {
		return fmt.Errorf("filelog: %w", err)
	}
	var removed []*part
	s.mu.Lock()
	for len(s.segments) > 0 && s.segments[0] != last {
		removed, s.segments = append(removed, s.segments[0]), s.segments[1:]
	}
	s.first, s.head = sequence, head
	s.mu.Unlock()
	for _, p := range removed {
		if err := s.files.remove(p.path); err != nil {
			return fmt.Errorf("filelog: %w", err)
		}
	}
	return replace.Sync(s.options.Dir)
}
