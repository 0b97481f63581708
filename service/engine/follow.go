package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// Role is what an engine does with its log.
type Role string

// The roles. A follower applies what the leader writes, by the same fold, and becomes the leader by Lead.
const (
	Leader   Role = "leader"
	Follower Role = "follower"
)

// following is the part of an engine that follows a log which another process writes.
type following struct {
	leader  func() string
	lead    chan leading
	follows atomic.Bool
	fresh   atomic.Int64 // when the state had all entries of the log, Unix nanoseconds
	awaited awaited      // the follower's
	reaching
}

// leading is a call of Lead.
type leading struct {
	ctx  context.Context
	done chan error
}

// reaching are the calls of Reach that wait.
type reaching struct {
	waiting atomic.Int64
	waiters sync.Map // of chan struct{} to the entry
}

// Reach waits until an entry is part of the state.
func (e *Engine) Reach(ctx context.Context, entry uint64) error {
	if e.Sequence() >= entry {
		return nil
	}
	reached := make(chan struct{})
	e.waiting.Add(1)
	e.waiters.Store(reached, entry)
	defer func() {
		e.waiters.Delete(reached)
		e.waiting.Add(-1)
	}()
	if e.Sequence() >= entry {
		return nil
	}
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		return e.stop()
	}
}

// reached wakes those who wait for an entry up to the last one that was applied.
func (e *Engine) reached() {
	if e.waiting.Load() == 0 {
		return
	}
	e.waiters.Range(func(reached, entry any) bool {
		if entry.(uint64) <= e.state.position.Sequence {
			if _, waits := e.waiters.LoadAndDelete(reached); waits {
				close(reached.(chan struct{}))
			}
		}
		return true
	})
}

// awaited is an entry after which the log had none at a time.
type awaited struct {
	sequence uint64
	at       time.Time
}

// Role returns what the engine does. Only Lead changes it.
func (e *Engine) Role() Role {
	if e.follows.Load() {
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

// Lag returns how long ago the state had all entries of the log: 0 of a leader. While nothing is written it is at most
// as long as the store needs to see that.
func (e *Engine) Lag() time.Duration {
	if !e.follows.Load() {
		return 0
	}
	return max(0, time.Since(time.Unix(0, e.fresh.Load())))
}

// Failure returns why the engine has stopped, nil while it runs.
func (e *Engine) Failure() error {
	select {
	case <-e.stopped:
		return e.stop()
	default:
		return nil
	}
}

// Lead makes a follower the writer of its log. Its store must be the one that can append by now. It first applies
// the entries that it has not seen. Errors are those of the log, ErrStopped and that of ctx. After one of the log, or of ctx
// while entries are applied, the engine has stopped.
func (e *Engine) Lead(ctx context.Context) error {
	l := leading{ctx, make(chan error, 1)}
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
	defer e.state.stop()
	if !e.follows.Load() || e.follow(ctx) {
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
	maxRead    = 64                     // groups of entries that are read ahead; each may have a megabyte
	lookAround = 100 * time.Millisecond // how often a follower looks whether it has all entries
)

// follow applies the entries that come. It returns true when the engine is to write them from now on.
func (e *Engine) follow(ctx context.Context) bool {
	reading, stop := context.WithCancel(ctx)
	incoming := make(chan []followed, maxRead)
	go e.read(reading, e.state.position.Sequence+1, incoming)
	go func() {
		select {
		case <-e.quit: // even while an entry is taken
			stop()
		case <-reading.Done():
		}
	}()
	defer func() {
		stop()
		for range incoming { // until the reader has ended
		}
	}()
	ticker := time.NewTicker(lookAround)
	defer ticker.Stop()
	b := &batch{state: e.state}
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
			b.reset()
			p.done <- p.propose(b)
		case some := <-incoming:
			if e.failure = e.takeAll(reading, some, incoming); e.failure != nil || reading.Err() != nil {
				return false
			}
			e.look()
		case l := <-e.lead:
			stop()
			err := e.catchUp(l.ctx, incoming)
			if e.failure = err; err == nil {
				e.follows.Store(false)
			}
			l.done <- err
			return err == nil
		}
	}
}

// read sends the entries from one on, until ctx ends or with an error. It keeps the groups in which they came, so that
// the other goroutine is not woken for each entry.
func (e *Engine) read(ctx context.Context, from uint64, to chan<- []followed) {
	defer close(to)
	for entries, err := range e.store.Follow(ctx, from) {
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
		e.state.wake()
		if more == 0 {
			return nil
		}
		some = <-incoming
	}
}

// take applies an entry that another process has written.
func (e *Engine) take(ctx context.Context, f *followed) error {
	sequence := e.state.position.Sequence + 1
	switch {
	case errors.Is(f.err, eventlog.ErrRemoved): // it was too far behind; a later snapshot has the entries
		return fmt.Errorf("%w: %w", eventlog.ErrReopen, f.err)
	case f.err != nil:
		return fmt.Errorf("entry %d: %w", sequence, f.err)
	}
	offer, err := e.closed(ctx, &f.event)
	if errors.Is(err, ErrUnread) {
		err = fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
	}
	if err != nil {
		return err
	}
	if offer != nil { // the fold would wait for slow learners too, but then callers would wait for the state
		for _, w := range e.state.placements[f.event.Placement].taught(offer) {
			w.AwaitRoom(learner.RoundBytes(offer))
		}
	}
	staged, moved := e.stage(sequence, &f.event), e.move(&f.event)
	e.mu.Lock()
	e.state.staged, e.state.moved = staged, moved
	if err = e.state.apply(f.entry, &f.event, offer); err == nil {
		e.state.publishAfter(&f.event)
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.announce(sequence, &f.event)
	if e.state.position.Log.IsZero() {
		return e.compare(ctx)
	}
	return nil
}

// stage applies a change of a catalogue, so that decisions wait for the catalogue and not for the whole state. What is
// wrong with it is left to the fold.
func (e *Engine) stage(sequence uint64, event *eventlog.Event) *staged {
	b, ok := event.Body.(*eventlog.ItemsChanged)
	if !ok {
		return nil
	}
	p := e.state.placements[event.Placement]
	if p == nil {
		return nil
	}
	change, err := p.items.of.NewChange(b.Put, b.Deleted)
	if err != nil || p.items.of.LenAfter(change) > catalogue.MaxItems {
		return nil
	}
	p.items.of.Apply(sequence, change)
	return &staged{items: p.items.of, change: change}
}

// move makes the catalogue for a change of features.
func (e *Engine) move(event *eventlog.Event) *moved {
	var config []byte
	switch b := event.Body.(type) {
	case *eventlog.PlacementPut:
		config = b.Config
	case *eventlog.LearnerReset:
		config = b.Config
	default:
		return nil
	}
	p := e.state.placements[event.Placement]
	c, err := setup.Parse(config)
	if p == nil || err != nil || c.Schema().Equal(p.config.Schema()) || p.items.of == nil {
		return nil
	}
	m, _, _ := newMoved(context.Background(), p.items.of, c.Inherit(p.config).Schema())
	return m
}

// catchUp applies the entries that were read, and then the rest of the log, whose writer this process is by now.
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
	for entry, err := range e.store.Entries(ctx, e.state.position.Sequence+1) {
		f := &followed{entry: entry, err: err}
		if err == nil {
			f.event, f.err = eventlog.Decode(entry)
		}
		if err := e.take(ctx, f); err != nil {
			return err
		}
	}
	e.state.wake()
	if err := e.compare(ctx); err != nil {
		return err
	}
	for _, p := range e.state.placements {
		p.upcoming.Store(p.numbers)
	}
	return nil
}

// look notes when the state had all entries of the log.
func (e *Engine) look() {
	store, ok := e.store.(eventlog.Synced)
	if !ok {
		return
	}
	if e.awaited.at.IsZero() {
		e.awaited.sequence, e.awaited.at = store.Synced()
	}
	if !e.awaited.at.IsZero() && e.state.position.Sequence >= e.awaited.sequence {
		e.fresh.Store(max(e.fresh.Load(), e.awaited.at.UnixNano()))
		e.awaited.sequence, e.awaited.at = store.Synced()
	}
}
