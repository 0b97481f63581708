package natslog

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"vitrine/service/eventlog"
)

// Entry implements eventlog.Log. If this store wrote or read the entry's frame recently, it sends the server at most
// one request.
func (s *Store) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	end := s.acknowledged()
	switch {
	case s.life.Closed():
		return nil, eventlog.ErrClosed
	case sequence > end.Sequence:
		return nil, eventlog.Extent{Last: end.Sequence}.CheckEntry(sequence)
	}
	message, err := s.find(ctx, sequence, end)
	var f eventlog.Frame
	if err == nil {
		f, err = s.recall(ctx, message)
	}
	switch {
	case errors.Is(err, errClaim):
		err = fmt.Errorf("message %d: %w: it has no entries", message, errUnreadable)
	case err == nil && sequence-f.First >= uint64(len(f.Entries)): // or if the entry is before the frame
		err = fmt.Errorf("%w: the frame has entries from %d to %d", errUnreadable, f.First, f.Next()-1)
	}
	if err != nil {
		return nil, s.missing(ctx, sequence, err)
	}
	return f.Entries[sequence-f.First], nil
}

// find returns the message of the last frame that begins at or before an entry, or the first remaining message if all
// begin later. It bisects the messages between the oldest and the end at numbers that do not depend on the end, so that
// later calls reuse known messages.
func (s *Store) find(ctx context.Context, entry uint64, end tail) (message uint64, err error) {
	low, high := s.memory.oldest(), end.message+1
	for high-low > 1 { // low's frame begins at or before the entry, high's frame after it
		bit := bits.Len64(low^(high-1)) - 1
		middle := (high - 1) >> bit << bit // in (low, high), with as many trailing zeros as possible
		first, at, err := s.firstFrom(ctx, middle, high)
		switch {
		case err != nil:
			before := low
			if low = s.memory.oldest(); low <= before || low >= high { // recall noted the removal
				return 0, err
			}
		case at < high && first <= entry:
			low = at
		default:
			high = middle
		}
	}
	return low, nil
}

// beginAt returns the message at which to begin reading, for the entries from a sequence on. If find meets an
// unreadable message, that is the first message, so that a reader finds the exact place of the damage.
func (s *Store) beginAt(ctx context.Context, entry uint64, end tail) (message uint64, err error) {
	message, err = s.find(ctx, entry, end)
	switch {
	case errors.Is(err, errUnreadable):
		return s.memory.oldest(), nil
	case err != nil:
		err = s.explain(ctx, entry, err)
	}
	return message, err
}

// firstFrom returns the first entry of the first frame from message on and before last, and the frame's message number.
// If there are only claims, that is last.
func (s *Store) firstFrom(ctx context.Context, message, last uint64) (first, at uint64, err error) {
	for at = message; at < last; at++ {
		if first, ok := s.memory.begin(at); ok {
			return first, at, nil
		}
		f, err := s.recall(ctx, at)
		if !errors.Is(err, errClaim) {
			return f.First, at, err
		}
	}
	return 0, last, nil
}

// recall returns a message's frame, and remembers it.
func (s *Store) recall(ctx context.Context, sequence uint64) (eventlog.Frame, error) {
	if f, ok := s.memory.frame(sequence); ok {
		return f, nil
	}
	f, err := s.frame(ctx, sequence)
	if err == nil {
		s.memory.note(sequence, f)
		return f, nil
	}
	if !errors.Is(err, errClaim) {
		_, _ = s.info(ctx) // notes a removal
	}
	return f, err
}

// memory caches frames: the most recent ones completely, unless their entries are large, the places of more, and the
// places of every sixteenth frame before those.
type memory struct {
	mu             sync.Mutex
	first          uint64 // first remaining message, as far as known
	last           ring[eventlog.Frame]
	begins, coarse ring[uint64]
}

// Cache sizes; tests change them.
var (
	memoryBytes  = 16 << 20 // bytes of frames
	memoryBegins = 1 << 16
	memoryCoarse = 1 << 18
)

const (
	coarseSpacing = 16

	// memoryEntry limits the mean entry size of frames that are cached completely. Larger entries are parts of
	// catalogues, which are not read again; an offer takes a few kilobytes.
	memoryEntry = 16 << 10
)

// ring is a map that drops its oldest entry.
type ring[T any] struct {
	of    map[uint64]T
	order []uint64
	bytes int
}

// put reports whether the key is new.
func (r *ring[T]) put(key uint64, value T) bool {
	if r.of == nil {
		r.of = map[uint64]T{}
	}
	n := len(r.of)
	r.of[key] = value
	if len(r.of) == n {
		return false
	}
	r.order = append(r.order, key)
	return true
}

func (r *ring[T]) pop() T {
	key := r.order[0]
	r.order = r.order[1:]
	value := r.of[key]
	delete(r.of, key)
	return value
}

func (m *memory) note(message uint64, f eventlog.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if frameBytes(f) <= memoryEntry*max(len(f.Entries), 1) && m.last.put(message, f) {
		m.last.bytes += frameBytes(f)
	}
	for m.last.bytes > memoryBytes {
		m.last.bytes -= frameBytes(m.last.pop())
	}
	m.begins.put(message, f.First)
	if len(m.begins.order) > memoryBegins {
		m.begins.pop()
	}
	if message%coarseSpacing == 0 {
		m.coarse.put(message, f.First)
		if len(m.coarse.order) > memoryCoarse {
			m.coarse.pop()
		}
	}
}

// frameBytes returns the approximate size of a frame.
func frameBytes(f eventlog.Frame) int {
	n := 200
	for _, e := range f.Entries {
		n += 24 + len(e)
	}
	return n
}

func (m *memory) frame(message uint64) (eventlog.Frame, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.last.of[message]
	return f, ok
}

func (m *memory) begin(message uint64) (first uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok = m.begins.of[message]; !ok {
		first, ok = m.coarse.of[message]
	}
	return first, ok
}

func (m *memory) oldest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.first, 1)
}

func (m *memory) removed(first uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = max(m.first, first)
}
