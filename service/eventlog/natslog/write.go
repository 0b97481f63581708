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

	"vitrine/internal/wait"
	"vitrine/service/eventlog"
)

// Append implements eventlog.Log. It waits for the running frame and writes its own. Callers that append often should
// batch their entries, as the engine does.
func (s *Store) Append(ctx context.Context, entries ...[]byte) (last uint64, err error) {
	if _, err := eventlog.EntriesSize(entries...); err != nil {
		return 0, err
	}
	if s.options.ReadOnly {
		return 0, eventlog.ErrReadOnly
	}
	return s.write(ctx, entries, len(entries) > 0)
}

// confirm writes an empty frame, which succeeds only for the log's writer.
func (s *Store) confirm(ctx context.Context) error {
	_, err := s.write(ctx, nil, true)
	return err
}

// write commits a frame if asked to, and returns the log's last entry.
func (s *Store) write(ctx context.Context, entries [][]byte, commit bool) (last uint64, err error) {
	mayWrite := func() error {
		if !s.Leads() {
			return eventlog.ErrFollower
		}
		return nil
	}
	return s.life.Write(ctx, mayWrite, func() (uint64, error) {
		if commit {
			if err := s.commit(context.Background(), entries); err != nil {
				return 0, err
			}
		}
		return s.acknowledged().Sequence, nil
	})
}

// commit writes a frame with the entries at the log's end, and moves the end. Without entries, the frame opens the
// epoch or confirms the previous frame.
func (s *Store) commit(ctx context.Context, entries [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	end, begin := s.acknowledged(), s.now().steady
	for acknowledged, stored := false, false; !acknowledged; entries, stored = nil, true {
		f := end.frame(entries)
		end.Position = f.End()
		end.message++
		data := f.Encode(nil)
		var err error
		acknowledged, err = s.place(ctx, data, end)
		switch {
		case err != nil && stored: // by the previous frame; another writer's may now follow it
			return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
		case err != nil:
			return err
		}
		if f, err = eventlog.DecodeFrame(data); err != nil { // the entries belong to the store
			return err
		}
		s.memory.note(end.message, f)
		// A frame that was read back is not acknowledged yet: a server that failed to write it may still return it, but
		// accepts no more messages. An empty frame after it confirms it.
	}
	s.took(begin)
	s.mu.Lock()
	s.end = end
	s.mu.Unlock()
	return nil
}

// attempt is the wait for a server's answer. Afterwards we pause and send the message again.
var attempt = 2 * time.Second

const pause = 50 * time.Millisecond

// errTaken means that the stream has another message in our place, or soon will: a leader that waits for its replicas
// rejects a copy of a message that it has not yet stored.
var errTaken = errors.New("the place in the stream is taken")

// place puts a message at the end of the stream. It reports whether the server acknowledged the message; if not, the
// message is in the stream and can be read back.
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
		if wait.For(ctx, pause) != nil {
			return false, fmt.Errorf("%w: message %d is neither stored nor refused within %v",
				eventlog.ErrReopen, end.message, s.options.Patience)
		}
	}
}

// publish sends a message for a place in the stream, and waits for its acknowledgement. An unanswered message is sent
// again, and at most one copy gets the place.
func (s *Store) publish(ctx context.Context, data []byte, place uint64) error {
	begin := time.Now()
	for {
		ack, err := s.send(ctx, data, place)
		switch {
		case err == nil && ack.Stream == s.options.Stream && ack.Sequence == place && !ack.Duplicate:
			return nil
		case err == nil:
			return fmt.Errorf("%w: message %d was acknowledged as %d of stream %q",
				eventlog.ErrReopen, place, ack.Sequence, ack.Stream)
		case isWrongLast(err):
			return errTaken
		case isRefusal(err):
			return refused(err)
		}
		s.turn(begin)
		if wait.For(ctx, pause) != nil {
			return fmt.Errorf("%w: no answer within %v: %w", eventlog.ErrReopen, s.options.Patience, err)
		}
	}
}

func (s *Store) send(ctx context.Context, data []byte, place uint64) (*jetstream.PubAck, error) {
	message := &nats.Msg{Subject: s.subject(), Header: nats.Header{
		writerHeader: {s.writer}, jetstream.ExpectedLastSeqHeader: {strconv.FormatUint(place-1, 10)},
		jetstream.ExpectedStreamHeader: {s.options.Stream},
	}, Data: data}
	return within(ctx, attempt, func(ctx context.Context) (*jetstream.PubAck, error) {
		return s.js.PublishMsg(ctx, message, jetstream.WithRetryAttempts(0))
	})
}

// refused adds ErrReopen to the error of a server that rejects a write, for instance because its disk is full.
func refused(err error) error {
	answer, is := errors.AsType[*jetstream.APIError](err)
	switch {
	case is && (answer.ErrorCode == noRoom || answer.ErrorCode == noStorage):
		return fmt.Errorf("%w: the servers' disk or their max_file_store is full: %w", eventlog.ErrReopen, answer)
	case is:
		return fmt.Errorf("%w: %w", eventlog.ErrReopen, answer)
	}
	return err
}

// isRefusal reports whether a server answered with an error.
func isRefusal(err error) bool {
	_, is := errors.AsType[*jetstream.APIError](err)
	return is
}

// isWrongLast reports whether the server rejected a message because of the sequence it named.
func isWrongLast(err error) bool {
	answer, is := errors.AsType[*jetstream.APIError](err)
	return is && (answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// writerHeader names a message's writer: two writers that open a log at the same moment send first messages with the
// same data.
const writerHeader = "Vitrine-Writer"

// A claim is a message by which a writer takes over a log. It does not name a sequence that it must follow, so it
// always succeeds, however fast the previous writer appends. It fences that writer, because its next frame names a
// sequence that is no longer the last. The claimant then reads the end of the log before its claim, and opens its epoch
// with a frame that must follow the claim. If several processes claim the log, the last one gets it.
//
// Claims carry no entries, and readers of the log skip them.
const claimText = "VLOGCLAIM"

func isClaim(data []byte) bool { return string(data) == claimText }

// errClaim means that a message is a claim rather than a frame.
var errClaim = errors.New("the message is a claim")

// claim claims the log, and returns the claim's message number. After a lost acknowledgement the message is sent again,
// and the server drops the copy.
func (s *Store) claim(ctx context.Context) (uint64, error) {
	ack, err := ask(ctx, s, func(ctx context.Context) (*jetstream.PubAck, error) {
		return s.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject(), Data: []byte(claimText), Header: nats.Header{
			writerHeader: {s.writer}, jetstream.MsgIDHeader: {s.writer},
			jetstream.ExpectedStreamHeader: {s.options.Stream},
		}}, jetstream.WithRetryAttempts(0))
	})
	if err != nil {
		return 0, reopens(ctx, fmt.Errorf("natslog: claiming %s: %w", s.where(), refused(err)))
	}
	return ack.Sequence, nil
}
