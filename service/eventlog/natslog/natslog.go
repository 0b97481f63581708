// Package natslog keeps an event log in a stream of NATS JetStream, on an external server or cluster.
//
// A message in the stream is an eventlog.Frame: the entries from one call of Append. Frames are written one at a time.
//
// A log has one writer. Opening a log claims it, reads the last frame, and writes an empty one with the next epoch.
// Every frame names the sequence that the stream's last message must have, so the server rejects every writer except
// the last one to have opened the log: eventlog.ErrFenced.
package natslog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Options configure where a log is and how it is opened.
type Options struct {
	URL      string        // servers, nats://host:4222, comma separated
	Connect  []nats.Option // credentials and the like for URL
	Stream   string        // "vitrine" if empty
	Replicas int           // for a new stream; if 0, 3 on a cluster of three or more servers, else 1
	Process  string        // distinguishes the processes that open a log at URL; drawn if empty. See TakeOver
	Address  string        // where the process serves; put in the lease for processes that look for the leader
	// follow a log at URL that another process writes, instead of failing with ErrAlive. See Lead
	Standby  bool
	TakeOver bool // take a log at URL from a live process, instead of failing with ErrAlive
	// where a new log begins, as the continuation of another log; the zero value begins an independent log
	Start    eventlog.Position
	Copies   bool          // write to an unfinished copy, too, to finish it
	ReadOnly bool          // do not take over the log; Append fails
	Patience time.Duration // for the server's answers, over several attempts; 30 s if 0
	MadeKeys func()        // called after the store made the missing stream of shoppers' keys; may be nil
	Logger   *slog.Logger  // gets the server's warnings; nil discards them

	// how long this process's lease holds without a renewal; 0 means a second
	Lease   time.Duration
	Now     func() (steady, day time.Time)     // the monotonic clock and the time of day; nil means time.Now
	Servers func() (Conn, jetstream.JetStream) // connects to simulated servers; nil connects to URL
}

// Store is an eventlog.Log in a JetStream stream.
type Store struct {
	options  Options       // URL is without its user
	user     *url.Userinfo // from URL; nil if absent
	writer   string        // distinguishes this store from all others that open the log
	conn     Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
	replicas int                    // for the stream
	absent   atomic.Int64           // of the stream's replicas, as last seen
	lease    *lease                 // nil if the log is open for reading
	holder   atomic.Pointer[Holder] // the lease's holder, as last seen

	life  *eventlog.Life
	close func() error
	cut   atomic.Bool // whether the connection is closed for good

	mu     sync.RWMutex
	end    tail
	leads  bool // whether this store writes the log
	synced synced
	turned time.Time // time of the last switch to another server

	wrote atomic.Pointer[time.Time] // send time of the last write or look that the servers answered, on the monotonic clock

	opening  sync.Mutex
	shoppers jetstream.Stream // nil until it is needed; guarded by opening

	memory memory // caches frames for Entry
}

// tail is the acknowledged end of the log: the position after its last entry.
type tail struct {
	eventlog.Position        // its identity is zero until a frame sets it
	message           uint64 // the stream's last message number
	epoch             uint64
}

func (t tail) frame(entries [][]byte) eventlog.Frame {
	return eventlog.Frame{Epoch: t.epoch, First: t.Sequence + 1, Log: t.Log, Before: t.Hash, Entries: entries}
}

var _ interface {
	eventlog.Log
	eventlog.Followed
} = (*Store)(nil)

// Open opens a log, creating it if necessary, and takes it over from its last writer. It returns connection errors,
// ErrReopen if the server or its cluster does not answer, ErrLease if the log's lease is missing, ErrAlive if another
// process writes the log and the store is not a standby, ErrFenced if another process opens it at the same moment, and
// a *eventlog.DamageError if acknowledged entries are missing at its end.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	if err := reopens(ctx, s.connect(ctx)); err != nil {
		s.Close()
		return nil, err
	}
	if !o.ReadOnly {
		s.life.Watch(renewal, s.look)
		s.life.Watch(streamLooks, s.lookForStream())
	}
	return s, nil
}

const defaultStream = "vitrine"

// newStore returns an unconnected store.
func newStore(o Options) (_ *Store, err error) {
	var user *url.Userinfo
	if o.URL, user, err = SplitURL(o.URL); err != nil {
		return nil, err
	}
	if o.Stream == "" {
		o.Stream = defaultStream
	}
	if o.Process == "" {
		o.Process = rand.Text()
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Lease == 0 {
		o.Lease = silence
	}
	if o.Now == nil {
		o.Now = clocks
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, user: user, writer: rand.Text(), life: eventlog.NewLife()}
	s.close = sync.OnceValue(s.shut)
	return s, nil
}

// reopens adds ErrReopen if the error means that a server does not answer.
func reopens(ctx context.Context, err error) error {
	if errors.Is(err, eventlog.ErrReopen) {
		return err
	}
	var network net.Error
	if errors.Is(err, errUnanswered) || errors.Is(err, nats.ErrNoServers) ||
		errors.As(err, &network) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
	}
	return err
}

func (s *Store) connect(ctx context.Context) (err error) {
	o := s.options
	if s.conn, s.js, err = s.dial(); err != nil {
		return fmt.Errorf("natslog: connecting to %s: %w", s.where(), err)
	}
	s.took(s.now().steady)
	if err := s.findStream(ctx); err != nil {
		return fmt.Errorf("natslog: stream %q of %s: %w", o.Stream, s.where(), err)
	}
	writes := !o.ReadOnly
	if writes {
		if err := s.openLease(ctx, !o.Standby || o.TakeOver || s.stream.CachedInfo().State.LastSeq == 0); err != nil {
			return err
		}
		err := s.lease.take(ctx, s, false)
		if o.Standby && errors.Is(err, eventlog.ErrAlive) {
			writes = false
		} else if err != nil {
			return err
		}
	}
	state, err := s.info(ctx)
	if err != nil {
		return fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	if state.Msgs > 0 && state.Msgs != state.LastSeq-state.FirstSeq+1 {
		if damage := s.locate(ctx, state); damage != nil {
			return damage
		}
		return fmt.Errorf("natslog: %s has %d messages from %d to %d",
			s.where(), state.Msgs, state.FirstSeq, state.LastSeq)
	}
	if err := s.findEnd(ctx, state); err != nil {
		return err
	}
	if !writes {
		return nil
	}
	if err := s.claimEnd(ctx); err != nil { // only after the log's end proved readable
		return err
	}
	if err := s.startOver(ctx); err != nil {
		return err
	}
	return s.begin(ctx)
}

// startOver makes a claimed log without entries the continuation of another log. A service that ran before its log was
// copied here leaves frames without entries.
func (s *Store) startOver(ctx context.Context) error {
	start, end := s.options.Start, s.acknowledged()
	if end.Sequence > 0 || start.Log.IsZero() || end.Log == start.Log {
		return nil
	}
	if err := s.stream.Purge(ctx, jetstream.WithPurgeSequence(end.message)); err != nil {
		return fmt.Errorf("natslog: removing the empty log of %s: %w", s.where(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end.Position = start
	return nil
}

// begin opens an epoch at the end of the log.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	s.leads = true
	if s.end.Log.IsZero() {
		s.end.Log = eventlog.NewIdentity()
	}
	s.end.epoch++
	s.mu.Unlock()
	return s.commit(ctx, nil)
}

// Leads reports whether this store writes the log.
func (s *Store) Leads() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.leads
}

// Lead makes a standby the writer of the log. It waits until the lease is free, takes it, and claims the log. Entries
// then includes all entries up to the claim. Errors are ErrLease, ErrFenced if another process claims the log at the
// same moment, the errors from Append, and ctx's error. After an error the store still follows, except after ErrFenced
// and ErrReopen.
func (s *Store) Lead(ctx context.Context) error {
	if s.Leads() {
		return nil
	}
	if err := s.lease.take(ctx, s, true); err != nil {
		return err
	}
	if err := s.claimEnd(ctx); err != nil {
		return err
	}
	return s.begin(ctx)
}

// claimEnd claims the log, and reads the end of the log before the claim. The lease is this process's afterwards.
func (s *Store) claimEnd(ctx context.Context) error {
	stop := s.lease.hold(s)
	err := s.findClaimed(ctx)
	if stop(); err != nil {
		return err
	}
	return s.lease.keep(ctx, s)
}

func (s *Store) findClaimed(ctx context.Context) error {
	claimed, err := s.claim(ctx)
	if err != nil {
		return err
	}
	state, err := s.info(ctx)
	if err != nil {
		return fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	state.LastSeq = claimed
	return s.findEnd(ctx, state)
}

func (s *Store) where() string { return s.options.URL }

func (s *Store) subject() string { return s.options.Stream + ".log" }

// findEnd advances the end past the last frame of a stream in the given state.
func (s *Store) findEnd(ctx context.Context, state jetstream.StreamState) error {
	end, err := s.endOf(ctx, state)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
	return nil
}

// endOf reads the last frame of a stream in the given state.
func (s *Store) endOf(ctx context.Context, state jetstream.StreamState) (tail, error) {
	end := tail{Position: s.options.Start, message: state.LastSeq}
	var f eventlog.Frame
	err := errClaim
	for at := state.LastSeq; errors.Is(err, errClaim); at-- {
		if at < max(state.FirstSeq, 1) {
			return end, nil // without any frames
		}
		f, err = s.frame(ctx, at)
	}
	if err != nil {
		if damage := s.locate(ctx, state); damage != nil {
			return end, damage
		}
		return end, fmt.Errorf("natslog: the end of %s: %w", s.where(), err)
	}
	end.epoch, end.Position = f.Epoch, f.End()
	return end, nil
}

// acknowledged returns the log's end. If the log is open for reading, that is the end when it was opened.
func (s *Store) acknowledged() tail {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.end
}

// Close implements eventlog.Log.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.life.End()
	if s.Leads() && s.conn.IsConnected() {
		s.lease.release()
	}
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}

// Lost returns a channel that is closed when another process takes over the log, or the connection is closed for good.
// Appends then fail with [Store.Loss].
func (s *Store) Lost() <-chan struct{} { return s.life.Lost() }

// Loss returns why the store lost its log, or nil. A loss is known after the next append, or within a second.
func (s *Store) Loss() error { return s.life.Loss() }

// look returns why the store lost its log, or nil.
func (s *Store) look() error {
	if s.cut.Load() {
		return fmt.Errorf("%w: the connection to %s is closed", eventlog.ErrReopen, s.where())
	}
	if !s.Leads() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Lease)
	defer cancel()
	if s.lease.renew(ctx, s) {
		return nil
	}
	// Only the log itself shows who the writer is.
	if err := s.confirm(ctx); errors.Is(err, eventlog.ErrFenced) {
		return err
	}
	return nil
}
