package natslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Entries implements eventlog.Log. It verifies that no message is missing from the first entry's message on, and that
// each is an intact frame whose entries and epoch continue the previous frame.
func (s *Store) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return eventlog.Iterate(func(yield func([]byte) bool) error { return s.entries(ctx, from, yield) })
}

// entries yields entries until yield returns false or an error occurs.
func (s *Store) entries(ctx context.Context, from uint64, yield func([]byte) bool) error {
	end := s.acknowledged()
	if err := s.readable(ctx, from, end); err != nil {
		return err
	}
	if from > end.Sequence {
		return nil
	}
	first, err := s.beginAt(ctx, from, end)
	if err != nil {
		return err
	}
	next := from // next entry to yield
	for m, err := range s.frames(ctx, new(chain), first, end.message, nil) {
		if err == nil && m.frame.First > next {
			err = fmt.Errorf("%w: the frame begins with entry %d", errUnreadable, m.frame.First)
		}
		if err != nil {
			return s.missing(ctx, next, err)
		}
		for i, e := range m.frame.Entries {
			if m.frame.First+uint64(i) < next {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(e) {
				return nil
			}
			next++
		}
	}
	if next <= end.Sequence {
		return s.missing(ctx, next, fmt.Errorf("%w: entries up to %d were acknowledged", errUnreadable, end.Sequence))
	}
	return nil
}

// readable returns an error if entries from a sequence to the end cannot be read.
func (s *Store) readable(ctx context.Context, from uint64, end tail) error {
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	x.Last = end.Sequence
	return x.CheckFrom(from)
}

// missing returns the error for an entry that cannot be read any more, because it is damaged or was just removed.
func (s *Store) missing(ctx context.Context, entry uint64, err error) error {
	if x, err := s.Extent(ctx); err == nil && entry < x.First {
		return x.CheckFrom(entry)
	}
	return s.explain(ctx, entry, err)
}

// locate returns the stream's first damage, or nil.
func (s *Store) locate(ctx context.Context, state jetstream.StreamState) error {
	next := s.options.Start.Sequence + 1
	for m, err := range s.frames(ctx, new(chain), state.FirstSeq, state.LastSeq, nil) {
		if err != nil {
			return s.explain(ctx, next, err)
		}
		next = m.frame.Next()
	}
	return nil
}

// explain turns an error from reading an entry's message into an error of the store. It is ErrReopen if no server
// answers.
func (s *Store) explain(ctx context.Context, entry uint64, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.life.Closed():
		return eventlog.ErrClosed
	case errors.Is(err, errUnreadable):
		return &eventlog.DamageError{Sequence: entry, Err: err}
	}
	return reopens(ctx, fmt.Errorf("natslog: reading entry %d of %s: %w", entry, s.where(), err))
}

// frames yields messages first to last with their frames, leaving out claims, and checks that each frame follows the
// previous one of the chain. With idle it waits for messages that do not exist yet, as messages does.
func (s *Store) frames(ctx context.Context, c *chain, first, last uint64,
	idle func(time.Time)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for m, err := range s.messages(ctx, first, last, true, idle) {
			if err == nil && isClaim(m.data) {
				continue
			}
			if err == nil {
				m.frame, err = c.next(m)
			}
			if err == nil {
				s.memory.note(m.sequence, m.frame)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// chain checks that frames follow one another.
type chain struct {
	before *eventlog.Frame
	end    eventlog.Position
}

func (c *chain) next(m message) (eventlog.Frame, error) {
	f, err := decodeAfter(c.before, m.data)
	if err == nil && !c.end.Log.IsZero() && f.Before != c.end.Hash {
		err = errors.New("the entries before it are not those that its running hash is of")
	}
	if err != nil {
		return f, fmt.Errorf("message %d: %w: %w", m.sequence, errUnreadable, err)
	}
	c.before, c.end = &f, f.End()
	return f, nil
}

// decodeAfter decodes a frame and checks that it follows the previous one, if there is one.
func decodeAfter(before *eventlog.Frame, data []byte) (eventlog.Frame, error) {
	f, err := eventlog.DecodeFrame(data)
	switch {
	case err != nil || before == nil:
		return f, err
	case f.First != before.Next():
		return f, fmt.Errorf("it begins with entry %d where %d follows", f.First, before.Next())
	case f.Log != before.Log:
		return f, fmt.Errorf("it is of the log %v after a frame of %v", f.Log, before.Log)
	case f.Epoch < before.Epoch:
		return f, fmt.Errorf("it is of epoch %d after one of epoch %d", f.Epoch, before.Epoch)
	}
	return f, nil
}

// message is a message in the stream, with its number there.
type message struct {
	sequence uint64
	data     []byte
	headers  nats.Header
	isLast   bool           // whether it was the stream's last message when it was sent
	frame    eventlog.Frame // set by frames
}

// messages yields the stream's messages from first to last, without a gap, or an error. Leaving out the data makes them
// cheaper. If idle is set, messages waits for messages that do not exist yet, and regularly calls idle with a time at
// which the stream had ended.
func (s *Store) messages(ctx context.Context, first, last uint64, data bool,
	idle func(time.Time)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		// A lost request for messages is repeated soon, because a new leader reads the log's end this way.
		for wait := shortAttempt; first <= last; wait *= 2 {
			for m, err := range s.consume(ctx, first, last, data, wait, idle) {
				if errors.Is(err, errStalled) {
					break
				}
				if !yield(m, err) || err != nil {
					return
				}
				first, wait = m.sequence+1, shortAttempt
			}
		}
	}
}

// errStalled means that a consumer delivers no messages although the stream contains them. When a cluster changes its
// leader, a consumer's request for messages can get lost, and it is never repeated.
var errStalled = errors.New("no message comes")

// consume yields the messages that one consumer delivers, and errStalled after some time without any.
func (s *Store) consume(ctx context.Context, first, last uint64, data bool, wait time.Duration,
	idle func(time.Time)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		// The library's ordered consumer would recreate itself forever, under a name that an unreachable server may
		// still use.
		consumer, err := askFor(ctx, s, s.stream.CreateConsumer, jetstream.ConsumerConfig{
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       first,
			AckPolicy:         jetstream.AckNonePolicy,
			HeadersOnly:       !data,
			MemoryStorage:     true,
			Replicas:          1,
			InactiveThreshold: inactive,
		})
		if err != nil {
			yield(message{}, err)
			return
		}
		defer func() {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
			go func() { // so that a take-over need not wait
				defer cancel()
				s.discard(late, consumer)
			}()
		}()
		incoming, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(4096, 16*eventlog.MaxFrame))
		if err != nil {
			yield(message{}, err)
			return
		}
		defer incoming.Stop()
		defer context.AfterFunc(ctx, incoming.Stop)()
		for want := first; want <= last; want++ {
			m, err := s.next(ctx, incoming, want, want-first+1, wait, idle)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// inactive is how long a server keeps an unused consumer.
const inactive = 5 * time.Minute

// discard deletes a consumer. The server would keep it for minutes, and limits their number.
func (s *Store) discard(ctx context.Context, c jetstream.Consumer) {
	if info := c.CachedInfo(); info != nil {
		s.stream.DeleteConsumer(ctx, info.Name) // otherwise the consumer times out
	}
}

// errUnreadable is returned for messages that the stream should contain but does not deliver.
var errUnreadable = errors.New("it cannot be read")

// next returns the message with a sequence. It must arrive next, with the given delivery number.
func (s *Store) next(ctx context.Context, incoming jetstream.MessagesContext, want, delivery uint64, wait time.Duration,
	idle func(time.Time)) (message, error) {
	m, err := s.arrival(ctx, incoming, want, wait, idle)
	if err != nil {
		return message{}, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return message{}, err
	}
	if meta.Sequence.Stream == want {
		return message{sequence: want, data: m.Data(), headers: m.Headers(), isLast: meta.NumPending == 0}, nil
	}
	if meta.Sequence.Consumer != delivery { // the connection lost earlier messages
		return message{}, errStalled
	}
	if err := s.lookUp(ctx, want); err != nil {
		return message{}, err
	}
	return message{}, fmt.Errorf("message %d: %w: the server leaves it out", want, errUnreadable)
}

// arrival waits for the message that arrives next, which should be the wanted one. With idle it waits until that
// message exists.
func (s *Store) arrival(ctx context.Context, incoming jetstream.MessagesContext, want uint64, wait time.Duration,
	idle func(time.Time)) (jetstream.Msg, error) {
	if idle != nil {
		wait = renewal
	}
	var short time.Time // since when the stream seems to end before the message
	for {
		m, err := incoming.Next(jetstream.NextMaxWait(wait)) // a context would cost more processor time per message
		switch {
		case err == nil:
			return m, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, jetstream.ErrConsumerDeleted):
			return nil, errStalled
		case !errors.Is(err, nats.ErrTimeout):
			return nil, err
		}
		if idle != nil {
			is, err := s.isIdle(ctx, want, idle)
			if errors.Is(err, errShort) && (short.IsZero() || time.Since(short) < s.options.Patience) {
				if short.IsZero() {
					short = time.Now()
				}
				continue
			}
			if err != nil {
				return nil, err
			}
			short = time.Time{}
			if is {
				wait = renewal
				continue
			}
			if wait == renewal { // the message may have just arrived
				wait = max(shortAttempt, renewal+1)
				continue
			}
		}
		if err := s.lookUp(ctx, want); err != nil { // not merely slow
			return nil, err
		}
		return nil, errStalled
	}
}

// errShort means that the stream ends before a message that it has delivered. Either the message is lost, or the answer
// came from a server that has not stored it yet: after an election, the leader may lag for as long as its disk needs.
var errShort = errors.New("the stream has lost it")

// isIdle reports whether a message does not exist yet, and if so calls idle with the time of the question.
func (s *Store) isIdle(ctx context.Context, want uint64, idle func(time.Time)) (bool, error) {
	asked := time.Now()
	state, err := s.info(ctx)
	switch {
	case err != nil:
		return false, err
	case state.LastSeq < want-1:
		return false, fmt.Errorf("message %d: %w: %w, and ends with message %d",
			want-1, errUnreadable, errShort, state.LastSeq)
	case state.LastSeq >= want:
		return false, nil
	}
	idle(asked)
	return true, nil
}

// lookUp returns why a message does not arrive: it was removed or is damaged. Nil means that it exists.
func (s *Store) lookUp(ctx context.Context, sequence uint64) error {
	_, err := s.get(ctx, sequence)
	if !isRefusal(err) {
		return err
	}
	if state, err := s.info(ctx); err == nil && sequence < state.FirstSeq {
		return fmt.Errorf("%w: message %d, the first one left is %d", eventlog.ErrRemoved, sequence, state.FirstSeq)
	}
	return fmt.Errorf("message %d: %w: %w", sequence, errUnreadable, err)
}

// frame reads one message from the stream. For a claim the error is errClaim.
func (s *Store) frame(ctx context.Context, sequence uint64) (eventlog.Frame, error) {
	m, err := s.get(ctx, sequence)
	switch {
	case isRefusal(err):
		return eventlog.Frame{}, fmt.Errorf("message %d: %w: %w", sequence, errUnreadable, err)
	case err != nil:
		return eventlog.Frame{}, err
	}
	if isClaim(m.Data) {
		return eventlog.Frame{}, errClaim
	}
	f, err := eventlog.DecodeFrame(m.Data)
	if err != nil {
		err = fmt.Errorf("message %d: %w: %w", sequence, errUnreadable, err)
	}
	return f, err
}

// frameFrom reads the first frame from message first on and before last, and returns its message number, or last if
// there are only claims.
func (s *Store) frameFrom(ctx context.Context, first, last uint64) (f eventlog.Frame, at uint64, err error) {
	for at = first; at < last; at++ {
		if f, err = s.frame(ctx, at); !errors.Is(err, errClaim) {
			return f, at, err
		}
	}
	return eventlog.Frame{}, last, nil
}

// Position implements eventlog.Log.
func (s *Store) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	if sequence > s.acknowledged().Sequence {
		if err := s.lookAgain(ctx); err != nil {
			return eventlog.Position{}, err
		}
	}
	end := s.acknowledged()
	if sequence == end.Sequence && !s.life.Closed() {
		return end.Position, ctx.Err()
	}
	if err := s.readable(ctx, sequence+1, end); err != nil {
		return eventlog.Position{}, err
	}
	message, err := s.beginAt(ctx, sequence+1, end)
	if err != nil {
		return eventlog.Position{}, err
	}
	for {
		f, at, err := s.frameFrom(ctx, message, end.message+1)
		if err == nil && (at > end.message || f.First > sequence+1) {
			err = fmt.Errorf("message %d: %w: it does not have the entry", message, errUnreadable)
		}
		if err != nil {
			return eventlog.Position{}, s.missing(ctx, sequence+1, err)
		}
		if n := sequence + 1 - f.First; n < uint64(len(f.Entries)) {
			return f.Start().After(f.Entries[:n]...), nil
		}
		message = at + 1 // find met damage, and message was the first one; or a frame has no entries
	}
}

// lookAgain updates the end of another process's log: a snapshot may include entries that came after the log was
// opened.
func (s *Store) lookAgain(ctx context.Context) error {
	if s.Leads() || s.options.ReadOnly || s.life.Closed() {
		return ctx.Err()
	}
	state, err := s.info(ctx)
	if err != nil {
		return reopens(ctx, fmt.Errorf("natslog: %s: %w", s.where(), err))
	}
	end, err := s.endOf(ctx, state)
	if err != nil {
		return reopens(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads && end.message > s.end.message {
		s.end = end
	}
	return nil
}
