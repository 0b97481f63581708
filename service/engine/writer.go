package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"vitrine/service/budget"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/shoppers"
	"vitrine/service/state"
)

// Engine decides, records and learns. It is safe for concurrent use.
//
// One goroutine, the writer, takes the callers' proposals and checks them against the state. It appends all proposals
// that arrived during the last append as one commit group, and applies them when they are durable. So log and state
// share one order with any number of callers, and every entry was valid when it was written.
type Engine struct {
	store   Log
	recent  *offer.CandidateCache
	applied func(uint64, *eventlog.Event)
	gather  time.Duration
	newID   func() string

	shoppers shoppers.Store // nil: no shopper is recognised
	flights  flights

	mu    sync.RWMutex // owned by the writer, which changes the state
	state *state.State

	proposals  chan *proposal
	crowded    chan *crowding
	pushes     budget.Turns          // of changes of catalogues
	asking     chan struct{}         // holds a token while the log is asked for its first entry
	firstAt    time.Time             // when the last question ended; the token guards it
	firstErr   error                 // of that question; the token guards it
	found      atomic.Pointer[found] // of the last search
	quit       chan struct{}         // closed by Close
	stopped    chan struct{}         // closed by the writer
	closing    sync.Once
	group      []*proposal // for the next commit; owned by the writer
	failure    error       // why writing stopped; owned by the writer, readable after it stopped
	goroutines goroutines
	cancel     context.CancelFunc // of those that the engine started

	follower
	proposing
}

// proposal asks for entries. propose runs on the writer and adds entries to the batch; the caller gets its
// error after they are durable.
type proposal struct {
	propose func(b *state.Batch) error
	by      string // the caller, if the log names it
	reads   bool   // it adds no entries
	err     error
	done    chan error
}

// submit passes a proposal to the writer, and waits until it is durable and applied. The error of a follower is
// ErrFollower.
func (e *Engine) submit(ctx context.Context, propose func(b *state.Batch) error) error {
	by, _ := ctx.Value(callerKey{}).(string)
	err := e.enqueue(ctx, &proposal{propose: propose, by: by, done: make(chan error, 1)})
	if err == ErrFollower {
		err = e.refusal()
	}
	return err
}

// commitOffer writes an offer. It returns page.ErrStale if the placement changed or an identical request came first.
func (e *Engine) commitOffer(ctx context.Context, v *View, event *eventlog.Event, o *offer.Offer,
	forgotten *state.Record, entry []byte) error {
	for urgent := false; ; {
		err := e.submit(ctx, func(b *state.Batch) error { return b.Offer(v, event, o, forgotten, entry) })
		if !errors.Is(err, state.ErrExpireFirst) {
			return err
		}
		made, err := e.awaitRoom(ctx, v.Placement.Name, event.Time, urgent)
		if err != nil {
			return err
		}
		urgent = !made // the learner lacks room for them, unless another caller was quicker
	}
}

// inspect calls look with the state between two entries.
func (e *Engine) inspect(ctx context.Context, look func(s *state.State)) error {
	return e.enqueue(ctx, &proposal{reads: true, done: make(chan error, 1), propose: func(b *state.Batch) error {
		if len(b.Events) > 0 {
			return state.ErrRetryBatch
		}
		look(b.State)
		return nil
	}})
}

func (e *Engine) enqueue(ctx context.Context, p *proposal) error {
	select {
	case e.proposals <- p:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		return e.stop()
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
	}
	select {
	case err := <-p.done:
		return err
	default:
		return e.stop()
	}
}

// stop returns the reason why the engine stopped.
func (e *Engine) stop() error {
	if e.failure != nil {
		return fmt.Errorf("%w: %w", ErrStopped, e.failure)
	}
	return ErrStopped
}

// write runs the writer. It ends at Close, or when the log cannot be written.
func (e *Engine) write(ctx context.Context) {
	b := &state.Batch{State: e.state}
	var carried *proposal
	for {
		if carried == nil {
			select {
			case <-e.quit:
				return
			case carried = <-e.proposals:
			}
		}
		if len(e.group) > 1 {
			time.Sleep(e.gather)
			runtime.Gosched() // yield to callers that are ready: on a busy machine they fill the group
		}
		b.Reset()
		e.group = e.group[:0]
		carried = e.collect(b, carried)
		if len(b.Events) == 0 {
			continue
		}
		if err := e.commit(ctx, b); err != nil {
			e.failure = err
			for _, p := range e.group {
				p.done <- e.stop()
			}
			return
		}
		for _, p := range e.group {
			p.done <- p.err
		}
	}
}

// collect adds this proposal and the waiting ones to the batch, and returns the first that must be in the
// next batch.
func (e *Engine) collect(b *state.Batch, p *proposal) (carried *proposal) {
	for {
		before := len(b.Events)
		b.By = p.by
		err := p.propose(b)
		switch {
		case errors.Is(err, state.ErrRetryBatch):
			return p
		case len(b.Events) == before:
			p.done <- err
		default:
			p.err = err
			e.group = append(e.group, p)
		}
		if b.Alone || b.Bytes > eventlog.MaxBatch/2 {
			return nil
		}
		select {
		case p = <-e.proposals:
		default:
			return nil
		}
	}
}

// commit appends the batch and applies it. After an error any part of it may be in the log.
func (e *Engine) commit(ctx context.Context, b *state.Batch) error {
	for from := 0; from < len(b.Entries); {
		to := from + fitting(b.Entries[from:])
		last, err := e.store.Append(ctx, b.Entries[from:to]...)
		if err != nil {
			return err
		}
		if want := e.state.Position.Sequence + uint64(to); last != want {
			return fmt.Errorf("the log is at entry %d where this engine is at %d: it has another writer", last, want)
		}
		from = to
	}
	first := e.state.Position.Sequence + 1
	if err := e.apply(b); err != nil {
		return err
	}
	e.state.Wake()
	e.announce(first, b.Events...)
	return nil
}

// announce reports entries that were applied.
func (e *Engine) announce(first uint64, events ...*eventlog.Event) {
	e.wakeWaiters()
	if e.applied != nil {
		for i, event := range events {
			e.applied(first+uint64(i), event)
		}
	}
}

// fitting returns the number of entries, from the first, that one append takes, and at least one: the log refuses an
// entry that is too large.
func fitting(entries [][]byte) int {
	size := 0
	for i, entry := range entries {
		if size += eventlog.EntrySize(entry); size > eventlog.MaxBatch {
			return max(i, 1)
		}
	}
	return len(entries)
}

func (e *Engine) apply(b *state.Batch) error {
	if b.Staged != nil { // decisions that begin meanwhile wait for the catalogue, and not for the whole state
		b.Staged.Items.Apply(e.state.Position.Sequence+1, b.Staged.Change)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Ready, e.state.Staged, e.state.Refit = b.Ready, b.Staged, nil
	if b.Ready != nil {
		e.state.Refit = b.Ready.Refit
	}
	for i, event := range b.Events {
		if err := e.state.Apply(b.Entries[i], event, b.Offers[i]); err != nil {
			return err
		}
		e.state.PublishAfter(event)
	}
	return nil
}

type callerKey struct{}

// WithCaller returns a context that makes the log name the API key behind the engine's changes.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}
