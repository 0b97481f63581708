package natslog

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// SetAttempt changes the wait for a server's answer. undo restores it.
func SetAttempt(d time.Duration) (undo func()) {
	before := attempt
	attempt = d
	return func() { attempt = before }
}

// SetPatientAttempts makes every request wait for its answer. undo restores the default.
func SetPatientAttempts() (undo func()) {
	long, short := attempt, shortAttempt
	attempt, shortAttempt = time.Hour, time.Hour
	return func() { attempt, shortAttempt = long, short }
}

// SetLease changes how often a lease is renewed, and how long it holds without renewal. undo restores both.
func SetLease(every, hold time.Duration) (undo func()) {
	before, held := renewal, silence
	renewal, silence = every, hold
	return func() { renewal, silence = before, held }
}

// Unanswered lets no server answer the n-th request for a message from now on, counted from 0.
func Unanswered(s *Store, n int) { s.stream = &unanswered{Stream: s.stream, left: n} }

type unanswered struct {
	jetstream.Stream
	left int
}

func (u *unanswered) GetMsg(ctx context.Context, sequence uint64,
	o ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if u.left--; u.left == -1 {
		return nil, errUnanswered
	}
	return u.Stream.GetMsg(ctx, sequence, o...)
}

// NobodyHears lets every second request of a sweep fail: for keys after some of them, as from a server that does not yet
// know the sweep's consumer.
func NobodyHears(s *Store) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.shoppers = &deafKeys{Stream: s.shoppers}
}

type deafKeys struct {
	jetstream.Stream
	deaf bool
}

func (d *deafKeys) Info(ctx context.Context, o ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if d.deaf = !d.deaf; d.deaf {
		return nil, nats.ErrNoResponders
	}
	return d.Stream.Info(ctx, o...)
}

func (d *deafKeys) OrderedConsumer(ctx context.Context, c jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	if d.deaf = !d.deaf; d.deaf {
		return nil, nats.ErrNoResponders
	}
	all, err := d.Stream.OrderedConsumer(ctx, c)
	return &deafConsumer{Consumer: all}, err
}

type deafConsumer struct {
	jetstream.Consumer
	deaf bool
}

func (d *deafConsumer) FetchNoWait(n int) (jetstream.MessageBatch, error) {
	if d.deaf = !d.deaf; d.deaf {
		some, err := d.Consumer.FetchNoWait(7)
		return deafBatch{some}, err
	}
	return d.Consumer.FetchNoWait(n)
}

type deafBatch struct{ jetstream.MessageBatch }

func (deafBatch) Error() error { return nats.ErrNoResponders }

// Abandon leaves the log as a killed process does, without releasing it.
func Abandon(s *Store) { s.conn.Close() }

// Ask sends a request as a store with the given patience does.
func Ask(ctx context.Context, patience time.Duration, request func(context.Context) (int, error)) (int, error) {
	return ask(ctx, &Store{life: eventlog.NewLife(), options: Options{Patience: patience}}, request)
}

// Reopens adds ErrReopen to an error that means that a server does not answer.
var Reopens = reopens

// Missing returns how many of a stream's replicas are down or behind.
var Missing = missing

// Refused adds ErrReopen to the error of a server that rejects a write.
var Refused = refused

// IsUnanswered reports whether a request is sent again after this error.
func IsUnanswered(err error) bool { return isUnanswered(err) }

// SetMemory changes how many bytes of frames, and how many of their beginnings, a store caches. undo restores the
// sizes.
func SetMemory(bytes, begins, coarse int) (undo func()) {
	b, n, c := memoryBytes, memoryBegins, memoryCoarse
	memoryBytes, memoryBegins, memoryCoarse = bytes, begins, coarse
	return func() { memoryBytes, memoryBegins, memoryCoarse = b, n, c }
}

// SetParts changes how long, and how many bytes of, request parts are kept. undo restores the limits.
func SetParts(kept time.Duration, bytes int) (undo func()) {
	k, b := partTime, maxParts
	partTime, maxParts = kept, bytes
	return func() { partTime, maxParts = k, b }
}

// Part sends one part of a request with a header to the store's writer, and returns the refusal.
func Part(ctx context.Context, s *Store, service, header string, data []byte) (refusal string, err error) {
	m := nats.NewMsg(s.subjectOf(service))
	m.Header.Set(partHeader, header)
	m.Data = data
	answer, err := s.conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return "", err
	}
	return answer.Header.Get(refusalHeader), nil
}

// SetAbandoned changes the age at which parts of unfinished snapshots count as abandoned. undo restores it.
func SetAbandoned(age time.Duration) (undo func()) {
	before := abandoned
	abandoned = age
	return func() { abandoned = before }
}

// Sent returns the number of messages that a store sent to its server.
func Sent(s *Store) uint64 { return s.conn.(netConn).Stats().OutMsgs }

// Age backdates a store's last lease renewal, by the monotonic clock and by the time of day.
func Age(s *Store, steady, day time.Duration) {
	i := s.now()
	s.lease.renewed.Store(&instant{i.steady.Add(-steady), i.day.Add(-day)})
}

// SetFreshKey changes for how long keys of shoppers are fresh, until the test ends.
func SetFreshKey(t testing.TB, d time.Duration) {
	was := freshKey
	freshKey = d
	t.Cleanup(func() { freshKey = was })
}

// TakeOver takes a lease from a live process, as a standby does.
func TakeOver(ctx context.Context, bucket jetstream.KeyValue, process string) error {
	l := &lease{bucket: bucket}
	return l.take(ctx, &Store{lease: l, life: eventlog.NewLife(), options: Options{Process: process, Standby: true,
		TakeOver: true, Patience: time.Minute, Now: clocks}}, true)
}

// Asynchronous passes an error to the connection's handler.
func Asynchronous(s *Store, err error) {
	c := s.conn.(netConn).Conn
	c.Opts.AsyncErrorCB(c, nil, err)
}
