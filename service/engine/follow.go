package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/state"
)

// Role is an engine's relation to its log.
type Role string

// The roles. A follower applies what the leader writes, in the same way, and becomes the leader by Lead.
const (
	Leader   Role = "leader"
	Follower Role = "follower"
)

// follower is the part of an engine that follows a log which another process writes.
type follower struct {
	log        eventlog.Followed
	leader     func() string
	lead       chan leading
	isFollower atomic.Bool
	fresh      atomic.Int64 // when the state last included all log entries, or the engine was opened, Unix nanoseconds
	sawEnd     atomic.Bool  // whether the state ever included all log entries
	awaited    awaited      // the follower's
	waiters
}

// leading is a call of Lead.
type leading struct {
	ctx  context.Context
	goOn func(move MoveClock) error
	done chan error
}

// waiters are the calls of WaitFor that wait, in their order.
type waiters struct {
	waiting atomic.Int64 // how many
	queue   sync.Mutex
	waiter  []waiter
}

type waiter struct {
	entry   uint64
	reached chan struct{}
}

// WaitFor waits until an entry is part of the state.
func (e *Engine) WaitFor(ctx context.Context, entry uint64) error {
	if e.Sequence() >= entry {
		return nil
	}
	reached := make(chan struct{})
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	e.queue.Lock()
	e.waiter = append(e.waiter, waiter{entry, reached})
	e.queue.Unlock()
	e.wake(e.Sequence()) // the entry may have arrived meanwhile
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
	case <-e.stopped:
	}
	e.queue.Lock()
	e.waiter = slices.DeleteFunc(e.waiter, func(w waiter) bool { return w.reached == reached })
	e.queue.Unlock()
	return cmp.Or(ctx.Err(), e.Failure())
}

// wakeWaiters wakes those who wait for an entry up to the last one that was applied.
func (e *Engine) wakeWaiters() {
	if e.waiting.Load() == 0 {
		return
	}
	e.wake(e.state.Position.Sequence)
}

func (e *Engine) wake(upTo uint64) {
	e.queue.Lock()
	defer e.queue.Unlock()
	e.waiter = slices.DeleteFunc(e.waiter, func(w waiter) bool {
		if w.entry > upTo {
			return false
		}
		close(w.reached)
		return true
	})
}

// awaited is an entry that was the log's last one at some time.
type awaited struct {
	sequence uint64
	at       time.Time
}

// Role returns what the engine does. Only Lead changes it.
func (e *Engine) Role() Role {
	if e.isFollower.Load() {
		return Follower
	}
	return Leader
}

// Leader names the process that writes the log while this one follows, "" if it is not known.
func (e *Engine) Leader() string {
	if e.leader == nil {
		return ""
	}
	return e.leader()
}

// refusal is ErrFollower that names the leader.
func (e *Engine) refusal() error {
	if leader := e.Leader(); leader != "" {
		return fmt.Errorf("%w: %s", ErrFollower, leader)
	}
	return fmt.Errorf("%w: none is known at present", ErrFollower)
}

// Lag returns how long ago the state included all log entries; a leader's lag is 0. On an idle log it is at most the
// time that the store needs to notice that nothing new was written. Until the state includes all entries for the first
// time, sawEnd is false and the lag is the time since the engine was opened.
func (e *Engine) Lag() (lag time.Duration, sawEnd bool) {
	if !e.isFollower.Load() {
		return 0, true
	}
	sawEnd = e.sawEnd.Load()
	return max(0, time.Since(time.Unix(0, e.fresh.Load()))), sawEnd
}

// Failure returns why the engine stopped, or nil while it runs.
func (e *Engine) Failure() error {
	select {
	case <-e.stopped:
		return e.stop()
	default:
		return nil
	}
}

// Lead makes a follower the writer of its log. Its store must already be able to append. Lead first applies the
// remaining entries. Then it calls goOn, if given, which may move the clock. No call writes before goOn returns. It
// returns errors of the log and of goOn, ErrStopped or ctx's error. If the log or goOn fails, or ctx ends while entries
// are applied, the engine has stopped.
func (e *Engine) Lead(ctx context.Context, goOn func(move MoveClock) error) error {
	l := leading{ctx, goOn, make(chan error, 1)}
	select {
	case e.lead <- l:
	case <-e.stopped:
		return e.stop()
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-l.done
}

// run runs the writer, after the follower. It ends at Close, or when the log cannot be followed or written.
func (e *Engine) run(ctx context.Context) {
	defer close(e.stopped)
	defer e.state.Stop()
	if !e.isFollower.Load() || e.follow(ctx) {
		e.write(ctx)
	}
}

// followed is an entry of the log that was read.
type followed struct {
	entry []byte
	event eventlog.Event
	err   error // of the entry; it is the last
}

const (
	maxRead    = 64                     // groups of entries that are read ahead, each up to a megabyte
	lookAround = 100 * time.Millisecond // how often a follower checks whether it is up to date
)

// follow applies the entries that come. It returns true when the engine is to write them from now on.
func (e *Engine) follow(ctx context.Context) bool {
	reading, stop := context.WithCancel(ctx)
	incoming := make(chan []followed, maxRead)
	go e.read(reading, e.state.Position.Sequence+1, incoming)
	go func() {
		select {
		case <-e.quit: // even while an entry is taken
			stop()
		case <-reading.Done():
		}
	}()
	defer func() {
		stop()
		for range incoming { // until the reader ends
		}
	}()
	ticker := time.NewTicker(lookAround)
	defer ticker.Stop()
	b := &state.Batch{State: e.state}
	for {
		select {
		case <-e.quit:
			return false
		case <-ticker.C:
			e.look()
		case p := <-e.proposals:
			if !p.reads {
				p.done <- ErrFollower
				continue
			}
			b.Reset()
			p.done <- p.propose(b)
		case some := <-incoming:
			if e.failure = e.takeAll(reading, some, incoming); e.failure != nil || reading.Err() != nil {
				return false
			}
			e.look()
		case l := <-e.lead:
			stop()
			err := e.catchUp(l.ctx, incoming)
			if err == nil && l.goOn != nil {
				err = l.goOn(func(from, to int64) (open, late int, err error) {
					b.Reset()
					if open, late, err = b.MoveClock(from, to); err == nil && len(b.Events) > 0 {
						err = e.commit(l.ctx, b)
					}
					return open, late, err
				})
			}
			if e.failure = err; err == nil {
				e.isFollower.Store(false)
			}
			l.done <- err
			return err == nil
		}
	}
}

// read sends the entries from the given one on, until ctx ends or an error occurs, which it sends last. It keeps the
// groups in which they came, so that the other goroutine is not woken for each entry.
func (e *Engine) read(ctx context.Context, from uint64, to chan<- []followed) {
	defer close(to)
	for entries, err := range e.log.Follow(ctx, from) {
		some := make([]followed, 0, len(entries)+1)
		for _, entry := range entries {
			f := followed{entry: entry}
			f.event, f.err = eventlog.Decode(entry)
			if some = append(some, f); f.err != nil {
				break
			}
		}
		if err != nil {
			some = append(some, followed{err: err})
		}
		select {
		case to <- some:
		case <-ctx.Done():
			return
		}
		if some[len(some)-1].err != nil {
			return
		}
	}
}

// takeAll applies entries, and others that were read meanwhile, until ctx ends.
func (e *Engine) takeAll(ctx context.Context, some []followed, incoming <-chan []followed) error {
	for more := len(incoming); ; more-- {
		for i := range some {
			if err := e.take(ctx, &some[i]); err != nil {
				return err
			}
			if ctx.Err() != nil { // the others are lost to this engine
				return nil
			}
		}
		e.state.Wake()
		if more == 0 {
			return nil
		}
		some = <-incoming
	}
}

// take applies an entry written by another process.
func (e *Engine) take(ctx context.Context, f *followed) error {
	sequence := e.state.Position.Sequence + 1
	switch {
	case errors.Is(f.err, eventlog.ErrRemoved): // it was too far behind; a later snapshot covers the entries
		return fmt.Errorf("%w: %w", eventlog.ErrReopen, f.err)
	case f.err != nil:
		return fmt.Errorf("entry %d: %w", sequence, f.err)
	}
	offer, err := e.state.Closed(ctx, e.store, &f.event)
	if errors.Is(err, ErrUnread) {
		err = fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
	}
	if err != nil {
		return err
	}
	if offer != nil { // waiting for slow learners in Apply would also hold up readers of the state
		for _, w := range e.state.Placements[f.event.Placement].Taught(offer) {
			w.AwaitRoom(learner.RoundBytes(offer))
		}
	}
	staged, moved, lost := e.state.PrepareItems(sequence, &f.event), e.state.PrepareRefit(&f.event),
		e.state.IsLost(&f.event)
	e.mu.Lock()
	e.state.Staged, e.state.Refit, e.state.Lost = staged, moved, lost
	if err = e.state.Apply(f.entry, &f.event, offer); err == nil {
		e.state.PublishAfter(&f.event)
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.announce(sequence, &f.event)
	if e.state.Position.Log.IsZero() {
		return e.compare(ctx)
	}
	return nil
}

// catchUp applies the entries read so far, and then the rest of the log, which this process writes by now.
func (e *Engine) catchUp(ctx context.Context, incoming <-chan []followed) error {
	for some := range incoming {
		for i := range some {
			if some[i].err != nil {
				break
			}
			if err := e.take(ctx, &some[i]); err != nil {
				return err
			}
		}
	}
	for entry, err := range e.store.Entries(ctx, e.state.Position.Sequence+1) {
		f := &followed{entry: entry, err: err}
		if err == nil {
			f.event, f.err = eventlog.Decode(entry)
		}
		if err := e.take(ctx, f); err != nil {
			return err
		}
	}
	e.state.Wake()
	if err := e.compare(ctx); err != nil {
		return err
	}
	e.state.ContinueNumbers()
	return nil
}

// compare compares the state's position with the log's. The log may have gained its identity since the snapshot.
func (e *Engine) compare(ctx context.Context) error {
	end, err := e.store.Position(ctx, e.state.Position.Sequence)
	if at := e.state.Position; err == nil && at != end && !at.Log.IsZero() {
		err = fmt.Errorf("entries up to %d are not those that the log's running hash is of", at.Sequence)
	}
	if err == nil {
		e.mu.Lock()
		e.state.Position = end
		e.mu.Unlock()
	}
	return err
}

// look notes the time if the state includes all log entries.
func (e *Engine) look() {
	if e.awaited.at.IsZero() {
		e.awaited.sequence, e.awaited.at = e.log.Synced()
	}
	if !e.awaited.at.IsZero() && e.state.Position.Sequence >= e.awaited.sequence {
		if at := e.awaited.at.UnixNano(); at > e.fresh.Load() || !e.sawEnd.Load() {
			e.fresh.Store(at)
		}
		e.sawEnd.Store(true)
		e.awaited.sequence, e.awaited.at = e.log.Synced()
	}
}
