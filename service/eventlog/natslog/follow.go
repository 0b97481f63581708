package natslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"vitrine/internal/wait"
	"vitrine/service/eventlog"
)

// Follow implements eventlog.Followed. It waits if a server is away. If another process writes the log, the yielded
// entries become visible to the store's other methods.
func (s *Store) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	return eventlog.Iterate(func(yield func([][]byte) bool) error { return s.follow(ctx, from, yield) })
}

// follow yields the entries of frames until yield returns false or an error occurs.
func (s *Store) follow(ctx context.Context, next uint64, yield func([][]byte) bool) error {
	end := s.acknowledged()
	if err := s.readable(ctx, next, end); err != nil {
		return err
	}
	at, err := s.beginAt(ctx, next, end) // at is the message number
	if err != nil {
		return err
	}
	var c chain
	for said := ""; ; {
		for m, err := range s.frames(ctx, &c, at, math.MaxUint64, s.isUpToDate) {
			f := &m.frame
			if err == nil && f.First > next {
				err = fmt.Errorf("message %d: %w: the frame begins with entry %d", m.sequence, errUnreadable, f.First)
			}
			switch {
			case err == nil:
			case ctx.Err() != nil || s.life.Closed() || errors.Is(err, errUnreadable) ||
				errors.Is(err, eventlog.ErrRemoved):
				return s.missing(ctx, next, err)
			default:
				if text := err.Error(); text != said {
					said = text
					s.options.Logger.Warn("the log cannot be followed: it is tried again", "cause", text)
				}
				if err := wait.For(ctx, pause); err != nil {
					return err
				}
			}
			if err != nil {
				break
			}
			said = ""
			s.see(m, c.end)
			at = m.sequence + 1
			if next < f.Next() {
				if !yield(f.Entries[next-f.First:]) {
					return nil
				}
				next = f.Next()
			}
		}
	}
}

// see advances the end of another process's log past a frame that ends at a position.
func (s *Store) see(m message, end eventlog.Position) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads && m.sequence > s.end.message {
		s.end = tail{end, m.sequence, m.frame.Epoch}
	}
	if m.isLast {
		s.synced = synced{m.frame.Next() - 1, now}
	}
}

// synced records a time at which the log ended with an entry.
type synced struct {
	sequence uint64
	at       time.Time
}

// isUpToDate records that the stream ended with the followed messages.
func (s *Store) isUpToDate(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = synced{s.end.Sequence, at}
}

// Synced implements eventlog.Followed.
func (s *Store) Synced() (sequence uint64, at time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced.sequence, s.synced.at
}

// Epoch returns the writer's epoch, as far as this store knows.
func (s *Store) Epoch() uint64 { return s.acknowledged().epoch }
