// Package memlog keeps an event log in memory, for tests and demonstrations. It does not survive the process.
package memlog

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"vitrine/service/eventlog"
)

// Store is an eventlog.Log in memory. The zero value is an empty log.
type Store struct {
	mu      sync.RWMutex
	removed uint64 // number of entries removed before entries[0]
	entries [][]byte
	hashes  [][16]byte // running hashes before each entry and after the last; nil if the log is empty
	bytes   uint64
	closed  bool
	changed chan struct{} // closed by the next append or by Close; nil if no follower waits
}

// identity is shared by all logs in memory. Their hashes distinguish them.
var identity = eventlog.Identity{'m', 'e', 'm', 'l', 'o', 'g'}

var _ interface {
	eventlog.Log
	eventlog.Followed
} = (*Store)(nil)

// Append implements eventlog.Log, without surviving the process.
func (s *Store) Append(ctx context.Context, entries ...[]byte) (last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if _, err := eventlog.EntriesSize(entries...); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.extent()
	if err != nil {
		return 0, err
	}
	if s.hashes == nil {
		s.hashes = make([][16]byte, 1)
	}
	for _, e := range entries {
		s.hashes = append(s.hashes, s.at(x.Last).After(e).Hash)
		s.entries = append(s.entries, slices.Clone(e))
		s.bytes += uint64(len(e))
		x.Last++
	}
	s.wake()
	return x.Last, nil
}

// Entries implements eventlog.Log.
func (s *Store) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return eventlog.Iterate(func(yield func([]byte) bool) error {
		entries, err := s.tail(from)
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(e) {
				return nil
			}
		}
		return err
	})
}

// Follow implements eventlog.Followed.
func (s *Store) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	return eventlog.Iterate(func(yield func([][]byte) bool) error {
		for {
			changed := s.change()
			entries, err := s.tail(from)
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			for some := range slices.Chunk(entries, together) {
				if !yield(some) {
					return nil
				}
				from += uint64(len(some))
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// together is the number of entries that Follow yields at a time.
const together = 8

// change returns a channel that is closed by the next change.
func (s *Store) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// wake wakes the followers, for callers that hold mu.
func (s *Store) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Entry implements eventlog.Log.
func (s *Store) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.extent()
	if err == nil {
		err = x.CheckEntry(sequence)
	}
	if err != nil {
		return nil, err
	}
	return s.entries[sequence-x.First], ctx.Err()
}

// tail returns the entries from a sequence on. Later appends leave it unchanged.
func (s *Store) tail(from uint64) ([][]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.extent()
	if err == nil {
		err = x.CheckFrom(from)
	}
	if err != nil {
		return nil, err
	}
	return s.entries[from-x.First:], nil
}

// Extent implements eventlog.Log.
func (s *Store) Extent(ctx context.Context) (eventlog.Extent, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.extent()
	return x, cmp.Or(err, ctx.Err())
}

// Synced implements eventlog.Followed.
func (s *Store) Synced() (sequence uint64, at time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.removed + uint64(len(s.entries)), time.Now()
}

// Position implements eventlog.Log.
func (s *Store) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.extent()
	if err == nil {
		err = x.CheckFrom(sequence + 1)
	}
	if err != nil {
		return eventlog.Position{}, err
	}
	return s.at(sequence), ctx.Err()
}

// at returns the position after an entry of the log.
func (s *Store) at(sequence uint64) eventlog.Position {
	p := eventlog.Position{Log: identity, Sequence: sequence}
	if s.hashes != nil {
		p.Hash = s.hashes[sequence-s.removed]
	}
	return p
}

// extent is Extent for callers that hold mu.
func (s *Store) extent() (x eventlog.Extent, err error) {
	if s.closed {
		return x, eventlog.ErrClosed
	}
	return eventlog.Extent{First: s.removed + 1, Last: s.removed + uint64(len(s.entries)), Bytes: s.bytes}, nil
}

// TruncateBefore implements eventlog.Log.
func (s *Store) TruncateBefore(ctx context.Context, sequence uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.extent()
	if err == nil {
		err = x.CheckFrom(max(sequence, x.First))
	}
	if err != nil || sequence <= x.First {
		return err
	}
	n := sequence - x.First
	for _, e := range s.entries[:n] {
		s.bytes -= uint64(len(e))
	}
	s.entries, s.hashes, s.removed = slices.Clone(s.entries[n:]), slices.Clone(s.hashes[n:]), sequence-1
	return nil
}

// FirstWithin implements eventlog.Log.
func (s *Store) FirstWithin(ctx context.Context, bytes uint64) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.extent()
	for i := 0; i < len(s.entries) && x.Bytes > bytes; i++ {
		x.Bytes -= uint64(len(s.entries[i]))
		x.First++
	}
	return x.First, cmp.Or(err, ctx.Err())
}

// Close implements eventlog.Log, and drops the entries.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.entries, s.hashes = true, nil, nil
	s.wake()
	return nil
}
