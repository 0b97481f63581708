package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Extent implements eventlog.Log, with the stream's own count of bytes.
func (s *Store) Extent(ctx context.Context) (eventlog.Extent, error) {
	if s.life.Closed() {
		return eventlog.Extent{}, eventlog.ErrClosed
	}
	f, state, err := s.first(ctx)
	if err != nil {
		return eventlog.Extent{}, s.explain(ctx, s.options.Start.Sequence+1, err)
	}
	end := s.acknowledged()
	x := eventlog.Extent{First: end.Sequence + 1, Last: end.Sequence, Bytes: state.Bytes, Epoch: end.epoch,
		Missing: int(s.absent.Load())}
	if state.Msgs > 0 {
		x.First = f.First
	}
	return x, nil
}

// first reads the first frame and the stream's state, or the empty state if there is no frame. The frame may be removed
// meanwhile.
func (s *Store) first(ctx context.Context) (eventlog.Frame, jetstream.StreamState, error) {
	for before := uint64(0); ; {
		state, err := s.info(ctx)
		if err != nil || state.Msgs == 0 {
			return eventlog.Frame{}, jetstream.StreamState{}, err
		}
		f, at, err := s.frameFrom(ctx, state.FirstSeq, state.LastSeq+1)
		if err == nil && at > state.LastSeq {
			return f, jetstream.StreamState{}, nil
		}
		if !errors.Is(err, errUnreadable) || state.FirstSeq == before {
			return f, state, err
		}
		before = state.FirstSeq
	}
}

// FirstWithin implements eventlog.Log.
func (s *Store) FirstWithin(ctx context.Context, bytes uint64) (uint64, error) {
	end := s.acknowledged()
	first, state, err := s.first(ctx)
	if err != nil {
		return 0, s.explain(ctx, s.options.Start.Sequence+1, err)
	}
	if state.Msgs == 0 {
		return end.Sequence + 1, nil
	}
	if state.Bytes <= bytes {
		return first.First, nil
	}
	left := state.Bytes
	for m, err := range s.messages(ctx, state.FirstSeq, end.message, false, nil) {
		if err != nil {
			return 0, s.missing(ctx, first.First, err)
		}
		if left -= min(left, s.stored(m.headers)); left > bytes {
			continue
		}
		f, err := s.frame(ctx, m.sequence)
		if errors.Is(err, errClaim) {
			continue
		}
		if err != nil {
			return 0, s.missing(ctx, first.First, err)
		}
		if f.Next() > first.First { // the frame contains entries
			return f.Next(), nil
		}
	}
	return end.Sequence + 1, nil
}

// stored returns a message's size in a file of the server: its data, with the size taken from the headers, its subject,
// its headers as text, and 34 bytes for the record.
func (s *Store) stored(headers nats.Header) uint64 {
	size := 34 + len(s.subject()) + len("NATS/1.0\r\n\r\n")
	for name, values := range headers {
		for _, v := range values {
			if name == nats.MsgSize {
				data, _ := strconv.Atoi(v)
				size += data
			} else {
				size += len(name) + len(": \r\n") + len(v)
			}
		}
	}
	return uint64(size)
}

// TruncateBefore implements eventlog.Log. It removes whole frames, but not the last one, which carries the
// sequence and the epoch. First it confirms that this store is the writer; otherwise the error is ErrFenced.
func (s *Store) TruncateBefore(ctx context.Context, sequence uint64) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	if err := x.CheckFrom(max(sequence, x.First)); err != nil || sequence <= x.First {
		return err
	}
	message, err := s.beginAt(ctx, sequence, s.acknowledged())
	if err != nil {
		return err
	}
	if err := s.confirm(ctx); err != nil {
		return err
	}
	if err := s.stream.Purge(ctx, jetstream.WithPurgeSequence(message)); err != nil {
		return fmt.Errorf("natslog: removing the messages before %d of %s: %w", message, s.where(), err)
	}
	return nil
}
