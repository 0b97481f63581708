package natslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Append implements eventlog.Store. It writes one frame, after waiting for the running one. Callers that
// append often should gather their entries first, as the engine does.
func (s *Store) Append(ctx context.Context, entries ...[]byte) (last uint64, err error) {
	if _, err := eventlog.EntriesSize(entries...); err != nil {
		return 0, err
	}
	if s.options.ReadOnly {
		return 0, eventlog.ErrReadOnly
	}
	return s.write(ctx, entries, len(entries) > 0)
}

// confirm writes an empty frame, which only the writer of the log can.
func (s *Store) confirm(ctx context.Context) error {
	_, err := s.write(ctx, nil, true)
	return err
}

// write commits a frame, unless there is none to commit, and returns the last entry of the log. The end of
// ctx does not stop a running write.
func (s *Store) write(ctx context.Context, entries [][]byte, commit bool) (last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch {
	case s.isClosed():
		return 0, eventlog.ErrClosed
	case !s.Leads():
		return 0, eventlog.ErrFollower
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
		if err == nil && commit {
			if err = s.commit(context.Background(), entries); err != nil {
				s.failed = fmt.Errorf("an earlier append failed: %w", err)
			}
		}
		if err != nil {
			return 0, err
		}
		return s.acknowledged().next - 1, nil
	})
}

// commit writes a frame with the entries after the log's end, and moves the end. Without entries the frame
// opens the epoch or confirms the frame before.
func (s *Store) commit(ctx context.Context, entries [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	end := s.acknowledged()
	for acknowledged, stored := false, false; !acknowledged; entries, stored = nil, true {
		f := end.frame(entries)
		end.advance(&f)
		end.message++
		data := f.Encode(nil)
		var err error
		acknowledged, err = s.place(ctx, data, end)
		switch {
		case err != nil && stored: // by the frame before, which another writer's may now follow
			return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
		case err != nil:
			return err
		}
		if f, err = eventlog.DecodeFrame(data); err != nil { // its entries are the store's own
			return err
		}
		s.memory.note(end.message, f)
		// A frame that was read back is not yet acknowledged: a server that failed to write it may still
		// return it, but accepts no more. An empty frame after it confirms it.
	}
	s.mu.Lock()
	s.end = end
	s.mu.Unlock()
	return nil
}

// attempt is the wait for an answer of the server. After it and a pause the message is sent again.
var attempt = 2 * time.Second

const pause = 50 * time.Millisecond

// errTaken means that the stream has a message in our place, or soon will: a leader that waits for its
// replicas refuses a copy of a message that it has not yet stored.
var errTaken = errors.New("the place in the stream is taken")

// place puts a message at the end of the stream. It reports whether the server acknowledged the
// message; if not, the message is ours and can be read back.
func (s *Store) place(ctx context.Context, data []byte, end tail) (acknowledged bool, err error) {
	for {
		err := s.publish(ctx, data, end.message)
		if !errors.Is(err, errTaken) {
			return err == nil, err
		}
		m, err := s.get(ctx, end.message)
		switch {
		case err == nil && bytes.Equal(m.Data, data) && m.Header.Get(writerHeader) == s.writer:
			return false, nil
		case err == nil:
			return false, fmt.Errorf("%w: message %d is not of epoch %d", eventlog.ErrFenced, end.message, end.epoch)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return false, fmt.Errorf("%w: message %d: %w", eventlog.ErrReopen, end.message, err)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: message %d is neither stored nor refused within %v", eventlog.ErrReopen, end.message, s.options.Patience)
		case <-time.After(pause):
		}
	}
}

// publish sends a message for a place in the stream, and waits for its acknowledgement. An unanswered message
// is sent again: at most one of the copies gets the place.
func (s *Store) publish(ctx context.Context, data []byte, place uint64) error {
	begin := time.Now()
	for {
		ack, err := s.send(ctx, data, place)
		var refused *jetstream.APIError
		switch {
		case err == nil && ack.Stream == s.options.Stream && ack.Sequence == place && !ack.Duplicate:
			return nil
		case err == nil:
			return fmt.Errorf("%w: message %d was acknowledged as %d of stream %q", eventlog.ErrReopen, place, ack.Sequence, ack.Stream)
		case errors.As(err, &refused) && isWrongLast(refused):
			return errTaken
		case errors.As(err, &refused):
			return fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
		}
		s.turn(begin)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer within %v: %w", eventlog.ErrReopen, s.options.Patience, err)
		case <-time.After(pause):
		}
	}
}

func (s *Store) send(ctx context.Context, data []byte, place uint64) (*jetstream.PubAck, error) {
	message := &nats.Msg{Subject: s.subject(), Header: nats.Header{
		writerHeader: {s.writer}, jetstream.ExpectedLastSeqHeader: {strconv.FormatUint(place-1, 10)}, jetstream.ExpectedStreamHeader: {s.options.Stream},
	}, Data: data}
	return within(ctx, attempt, func(ctx context.Context) (*jetstream.PubAck, error) {
		return s.js.PublishMsg(ctx, message, jetstream.WithRetryAttempts(0))
	})
}

// isWrongLast reports whether a message was refused because of the sequence that it named.
func isWrongLast(err *jetstream.APIError) bool {
	return err.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || err.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// writerHeader names the writer of a message: two writers that open a log at the same moment send first
// messages with the same data.
const writerHeader = "Vitrine-Writer"
