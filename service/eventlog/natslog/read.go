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

// Entries implements eventlog.Store. It verifies that no message from the one of the first entry on is
// missing, and that each is an undamaged frame whose entries and epoch follow the frame before.
func (s *Store) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := s.entries(ctx, from, func(e []byte) bool { return yield(e, nil) })
		if err != nil {
			yield(nil, err)
		}
	}
}

// entries yields entries until yield returns false, or with an error.
func (s *Store) entries(ctx context.Context, from uint64, yield func([]byte) bool) error {
	end := s.acknowledged()
	x, err := s.Extent(ctx)
	if err != nil {
		return err
	}
	x.Last = end.next - 1
	if err := x.CheckFrom(from); err != nil {
		return err
	}
	if from == end.next {
		return nil
	}
	first, err := s.find(ctx, from, end)
	if err != nil {
		return err
	}
	next := from // the entry to be yielded
	for f, err := range s.frames(ctx, first, end.message) {
		if err == nil && f.First > next {
			err = fmt.Errorf("%w: the frame begins with entry %d", errUnreadable, f.First)
		}
		if err != nil {
			return s.missing(ctx, next, err)
		}
		for i, e := range f.Entries {
			if f.First+uint64(i) < next {
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
	if next != end.next {
		return s.missing(ctx, next, fmt.Errorf("%w: entries up to %d were acknowledged", errUnreadable, end.next-1))
	}
	return nil
}

// missing returns the error for an entry that cannot be read any more: it is damaged or was removed
// meanwhile.
func (s *Store) missing(ctx context.Context, entry uint64, err error) error {
	if x, err := s.Extent(ctx); err == nil && entry < x.First {
		return x.CheckFrom(entry)
	}
	return s.explain(ctx, entry, err)
}

// locate returns the first damage of the stream, or nil.
func (s *Store) locate(ctx context.Context, state jetstream.StreamState) error {
	next := s.options.Start.Sequence + 1
	for f, err := range s.frames(ctx, state.FirstSeq, state.LastSeq) {
		if err != nil {
			return s.explain(ctx, next, err)
		}
		next = f.Next()
	}
	return nil
}

// explain turns an error of reading an entry's message into an error of the store.
func (s *Store) explain(ctx context.Context, entry uint64, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.isClosed():
		return eventlog.ErrClosed
	case errors.Is(err, errUnreadable):
		return &eventlog.DamageError{Sequence: entry, Err: err}
	}
	return fmt.Errorf("natslog: reading entry %d of %s: %w", entry, s.where(), err)
}

// frames yields the frames of messages first to last, each following the one before, or an error.
func (s *Store) frames(ctx context.Context, first, last uint64) iter.Seq2[eventlog.Frame, error] {
	return func(yield func(eventlog.Frame, error) bool) {
		var c chain
		for m, err := range s.messages(ctx, first, last, true, nil) {
			var f eventlog.Frame
			if err == nil && isClaim(m.data) {
				continue
			}
			if err == nil {
				f, err = c.next(m)
			}
			if err == nil {
				s.memory.note(m.sequence, f)
			}
			if !yield(f, err) || err != nil {
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

// next decodes the next frame.
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

// message is a message of the stream, with its sequence there.
type message struct {
	sequence uint64
	data     []byte
	headers  nats.Header
	isLast   bool // whether the stream had none after it when it was sent
}

// messages yields the messages of the stream from first to last, without a gap, or an error. Without data
// they are cheaper. With idle it waits for messages that the stream does not have yet, and calls idle now and then
// with a time at which the stream had no other.
func (s *Store) messages(ctx context.Context, first, last uint64, data bool, idle func(time.Time)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for wait := attempt; first <= last; wait *= 2 {
			for m, err := range s.consume(ctx, first, last, data, wait, idle) {
				if errors.Is(err, errStalled) {
					break
				}
				if !yield(m, err) || err != nil {
					return
				}
				first, wait = m.sequence+1, attempt
			}
		}
	}
}

// errStalled means that a consumer delivers no messages although the stream has them. If the leader of a
// cluster changes, a consumer's request for messages can be lost, and nobody repeats it.
var errStalled = errors.New("no message comes")

// consume yields messages as one consumer delivers them, and errStalled if it delivers none for some time.
func (s *Store) consume(ctx context.Context, first, last uint64, data bool, wait time.Duration, idle func(time.Time)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		// An ordered consumer of the library would make itself again without an end, under a name that a server that is away may have.
		consumer, err := ask(ctx, s, func(ctx context.Context) (jetstream.Consumer, error) {
			return s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
				DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
				OptStartSeq:       first,
				AckPolicy:         jetstream.AckNonePolicy,
				HeadersOnly:       !data,
				MemoryStorage:     true,
				Replicas:          1,
				InactiveThreshold: inactive,
			})
		})
		if err != nil {
			yield(message{}, err)
			return
		}
		defer func() {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
			go func() { // a take-over does not wait for it
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

// inactive is how long a server keeps a consumer that nobody asks for messages.
const inactive = 5 * time.Minute

// discard ends a consumer. The server would keep it for minutes, and limits their number.
func (s *Store) discard(ctx context.Context, c jetstream.Consumer) {
	if info := c.CachedInfo(); info != nil {
		s.stream.DeleteConsumer(ctx, info.Name) // otherwise it ends by itself
	}
}

// errUnreadable is returned for messages that the stream should have but does not deliver.
var errUnreadable = errors.New("it cannot be read")

// next returns the message of a sequence, which must be the next to arrive, as the delivery of that number.
func (s *Store) next(ctx context.Context, incoming jetstream.MessagesContext, want, delivery uint64, wait time.Duration, idle func(time.Time)) (message, error) {
	if idle != nil {
		wait = renewal
	}
	var short time.Time // since when the stream ends before the message
	var m jetstream.Msg
	for {
		var err error
		m, err = incoming.Next(jetstream.NextMaxWait(wait)) // a context would take more processor time for each message
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return message{}, ctx.Err()
		}
		if errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, jetstream.ErrConsumerDeleted) {
			return message{}, errStalled
		}
		if !errors.Is(err, nats.ErrTimeout) {
			return message{}, err
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
				return message{}, err
			}
			short = time.Time{}
			if is {
				wait = renewal
				continue
			}
			if wait == renewal { // it may have come just now
				wait = max(shortAttempt, renewal+1)
				continue
			}
		}
		if err := s.lookUp(ctx, want); err != nil { // it is not just slow
			return message{}, err
		}
		return message{}, errStalled
	}
	meta, err := m.Metadata()
	if err != nil {
		return message{}, err
	}
	if meta.Sequence.Stream == want {
		return message{want, m.Data(), m.Headers(), meta.NumPending == 0}, nil
	}
	if meta.Sequence.Consumer != delivery { // the connection has lost those before
		return message{}, errStalled
	}
	if err := s.lookUp(ctx, want); err != nil {
		return message{}, err
	}
	return message{}, fmt.Errorf("message %d: %w: the server leaves it out", want, errUnreadable)
}

// errShort means that the stream ends before a message that it has delivered. It has lost it, or a server answers that has not
// stored it yet: after an election its leader may be behind for as long as its disk needs.
var errShort = errors.New("the stream has lost it")

// isIdle reports whether the stream has no message of a sequence yet, and calls idle with the time of the question.
func (s *Store) isIdle(ctx context.Context, want uint64, idle func(time.Time)) (bool, error) {
	asked := time.Now()
	state, err := s.info(ctx)
	switch {
	case err != nil:
		return false, err
	case state.LastSeq < want-1:
		return false, fmt.Errorf("message %d: %w: %w, and ends with message %d", want-1, errUnreadable, errShort, state.LastSeq)
	case state.LastSeq >= want:
		return false, nil
	}
	idle(asked)
	return true, nil
}

// lookUp returns why a message does not arrive: it was removed or is damaged. Nil means that it exists.
func (s *Store) lookUp(ctx context.Context, sequence uint64) error {
	_, err := s.get(ctx, sequence)
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return err
	}
	if state, err := s.info(ctx); err == nil && sequence < state.FirstSeq {
		return fmt.Errorf("%w: message %d, the first one left is %d", eventlog.ErrRemoved, sequence, state.FirstSeq)
	}
	return fmt.Errorf("message %d: %w: %w", sequence, errUnreadable, err)
}

// frame reads one message of the stream. The error for a claim is errClaim.
func (s *Store) frame(ctx context.Context, sequence uint64) (eventlog.Frame, error) {
	m, err := s.get(ctx, sequence)
	var refused *jetstream.APIError
	switch {
	case errors.As(err, &refused):
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

// frameFrom reads the first frame of messages from first on, before last, and returns its message, or last if
// there are only claims.
func (s *Store) frameFrom(ctx context.Context, first, last uint64) (f eventlog.Frame, at uint64, err error) {
	for at = first; at < last; at++ {
		if f, err = s.frame(ctx, at); !errors.Is(err, errClaim) {
			return f, at, err
		}
	}
	return eventlog.Frame{}, last, nil
}

// Position implements eventlog.Store.
func (s *Store) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	if sequence >= s.acknowledged().next {
		if err := s.lookAgain(ctx); err != nil {
			return eventlog.Position{}, err
		}
	}
	end := s.acknowledged()
	if sequence+1 == end.next && !s.isClosed() {
		return end.position(), ctx.Err()
	}
	x, err := s.Extent(ctx)
	if err != nil {
		return eventlog.Position{}, err
	}
	if err := x.CheckFrom(sequence + 1); err != nil {
		return eventlog.Position{}, err
	}
	message, err := s.find(ctx, sequence+1, end)
	if err != nil {
		return eventlog.Position{}, err
	}
	f, _, err := s.frameFrom(ctx, message, end.message+1)
	if n := sequence + 1 - f.First; err == nil && n < uint64(len(f.Entries)) {
		return f.Start().After(f.Entries[:n]...), nil
	} else if err == nil {
		err = fmt.Errorf("message %d: %w: it does not have the entry", message, errUnreadable)
	}
	return eventlog.Position{}, s.missing(ctx, sequence+1, err)
}

// lookAgain moves the end of a log that another process writes: a snapshot may have entries that came after the log was opened.
func (s *Store) lookAgain(ctx context.Context) error {
	if s.Leads() || s.options.ReadOnly || s.isClosed() {
		return ctx.Err()
	}
	state, err := s.info(ctx)
	if err != nil {
		return fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	end, err := s.endOf(ctx, state)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads && end.message > s.end.message {
		s.end = end
	}
	return nil
}

// find returns the message with an entry, or one before it, by bisection, without an index. If a message on
// the way cannot be read it returns the first of the stream, so that a reader finds the exact place of the
// damage.
func (s *Store) find(ctx context.Context, entry uint64, end tail) (uint64, error) {
	state, err := s.info(ctx)
	if err != nil {
		return 0, fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	low, high := state.FirstSeq, end.message+1
	for high-low > 1 { // the frame of low begins at or before the entry, that of high after it
		middle := low + (high-low)/2
		f, at, err := s.frameFrom(ctx, middle, high)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			return state.FirstSeq, nil
		}
		if at < high && f.First <= entry {
			low = at
		} else {
			high = middle
		}
	}
	return low, nil
}
