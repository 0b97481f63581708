package natslog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/eventlog"
)

// Extent implements eventlog.Bounded. Bytes are those of the stream.
func (s *Store) Extent(ctx context.Context) (eventlog.Extent, error) {
	if s.isClosed() {
		return eventlog.Extent{}, eventlog.ErrClosed
	}
	f, state, err := s.first(ctx)
	if err != nil {
		return eventlog.Extent{}, s.explain(ctx, s.options.First, err)
	}
	next := s.acknowledged().next
	x := eventlog.Extent{First: next, Last: next - 1, Bytes: state.Bytes}
	if state.Msgs > 0 {
		x.First = f.First
	}
	return x, nil
}

// first reads the first frame, where there is one. It may be removed meanwhile.
func (s *Store) first(ctx context.Context) (eventlog.Frame, jetstream.StreamState, error) {
	for before := uint64(0); ; {
		info, err := s.stream.Info(ctx)
		if err != nil || info.State.Msgs == 0 {
			return eventlog.Frame{}, jetstream.StreamState{}, err
		}
		f, err := s.frame(ctx, info.State.FirstSeq)
		if !errors.Is(err, errUnreadable) || info.State.FirstSeq == before {
			return f, info.State, err
		}
		before = info.State.FirstSeq
	}
}

// TruncateBefore implements eventlog.Truncater. It removes whole frames, and
// leaves the last one, which has the numbers. A writer that another one has followed is
// refused: it has a frame acknowledged first.
func (s *Store) TruncateBefore(ctx context.Context, sequence uint64) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	if sequence > x.Last+1 {
		return x.CheckFrom(sequence)
	}
	if sequence <= x.First {
		return nil
	}
	message, err := s.find(ctx, sequence, s.acknowledged())
	if err != nil {
		return err
	}
	if _, err := s.submit(ctx, &request{confirm: true}); err != nil {
		return err
	}
	if err := s.stream.Purge(ctx, jetstream.WithPurgeSequence(message)); err != nil {
		return fmt.Errorf("natslog: removing the messages before %d of %s: %w", message, s.where(), err)
	}
	return nil
}
