package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Engine decides, records and learns. It is safe for concurrent use.
//
// One goroutine, the writer, takes the proposals of callers and checks them against the state. It appends all
// proposals that came during the last append as one commit group, and applies them when they are durable. So
// the log and the state have the same order with any number of callers, and every entry was lawful when it
// was written.
type Engine struct {
	store   Log
	recent  *offer.CandidateCache
	applied func(uint64, *eventlog.Event)
	gather  time.Duration

	mu    sync.RWMutex // owned by the writer, which changes the state
	state *fold

	proposals chan *proposal
	quit      chan struct{} // closed by Close
	stopped   chan struct{} // closed by the writer
	closing   sync.Once
	failure   error // why no more can be written; owned by the writer, readable after it has stopped

	following
	proposing
}

// proposal asks for entries. propose runs on the writer and adds entries to the batch; the caller gets its
// error after they are durable.
type proposal struct {
	propose func(b *batch) error
	reads   bool // it adds no entries
	err     error
	entry   uint64 // the last of its entries; if it has none, the last one that is applied
	done    chan error
}

// submit passes a proposal to the writer, and waits until it is durable and applied. The error of a follower is
// ErrFollower.
func (e *Engine) submit(ctx context.Context, propose func(b *batch) error) error {
	err := e.hand(ctx, &proposal{propose: propose, done: make(chan error, 1)})
	if err == ErrFollower {
		err = e.refusal()
	}
	return err
}

// inspect calls look with the state between two entries.
func (e *Engine) inspect(ctx context.Context, look func(s *fold)) error {
	return e.hand(ctx, &proposal{reads: true, done: make(chan error, 1), propose: func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		look(b.state)
		return nil
	}})
}

func (e *Engine) hand(ctx context.Context, p *proposal) error {
	select {
	case e.proposals <- p:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		return e.stop()
	}
	select {
	case err := <-p.done:
		noteEntry(ctx, p.entry)
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
	}
	select {
	case err := <-p.done:
		noteEntry(ctx, p.entry)
		return err
	default:
		return e.stop()
	}
}

// stop returns why the engine has stopped, after it has.
func (e *Engine) stop() error {
	if e.failure != nil {
		return fmt.Errorf("%w: %w", ErrStopped, e.failure)
	}
	return ErrStopped
}

// write runs the writer. It ends at Close, or when the log cannot be written.
func (e *Engine) write(ctx context.Context) {
	b := &batch{state: e.state}
	var carried *proposal
	for {
		if carried == nil {
			select {
			case <-e.quit:
				return
			case carried = <-e.proposals:
			}
		}
		if len(b.waiting) > 1 {
			time.Sleep(e.gather)
		}
		b.reset()
		carried = e.collect(b, carried)
		if len(b.events) == 0 {
			continue
		}
		if err := e.commit(ctx, b); err != nil {
			e.failure = err
			for _, p := range b.waiting {
				p.done <- e.stop()
			}
			return
		}
		for _, p := range b.waiting {
			p.done <- p.err
		}
	}
}

// collect adds this proposal and the waiting ones to the batch, and returns the first that must be in the
// next batch.
func (e *Engine) collect(b *batch, p *proposal) (carried *proposal) {
	for {
		before := len(b.events)
		err := p.propose(b)
		switch {
		case errors.Is(err, errLater):
			return p
		case len(b.events) == before:
			p.entry = b.state.position.Sequence
			p.done <- err
		default:
			p.err, p.entry = err, b.state.position.Sequence+uint64(len(b.events))
			b.waiting = append(b.waiting, p)
		}
		if b.alone || b.bytes > eventlog.MaxBatch/2 {
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
func (e *Engine) commit(ctx context.Context, b *batch) error {
	for from := 0; from < len(b.entries); {
		to := from + fitting(b.entries[from:])
		last, err := e.store.Append(ctx, b.entries[from:to]...)
		if err != nil {
			return err
		}
		if want := e.state.position.Sequence + uint64(to); last != want {
			return fmt.Errorf("the log is at entry %d where this engine is at %d: it has another writer", last, want)
		}
		from = to
	}
	first := e.state.position.Sequence + 1
	if err := e.apply(b); err != nil {
		return err
	}
	e.state.wake()
	e.announce(first, b.events...)
	return nil
}

// announce reports entries that were applied.
func (e *Engine) announce(first uint64, events ...*eventlog.Event) {
	e.reached()
	if e.applied != nil {
		for i, event := range events {
			e.applied(first+uint64(i), event)
		}
	}
}

// fitting returns the number of entries, from the first, that one append takes.
func fitting(entries [][]byte) int {
	size := 0
	for i, entry := range entries {
		if size += eventlog.EntrySize(entry); size > eventlog.MaxBatch {
			return i
		}
	}
	return len(entries)
}

func (e *Engine) apply(b *batch) error {
	if b.staged != nil { // decisions that begin meanwhile wait for the catalogue, and not for the whole state
		b.staged.items.Apply(e.state.position.Sequence+1, b.staged.change)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.ready, e.state.staged, e.state.moved = b.ready, b.staged, nil
	if b.ready != nil {
		e.state.moved = b.ready.moved
	}
	for i, event := range b.events {
		if err := e.state.apply(b.entries[i], event, b.offers[i]); err != nil {
			return err
		}
		e.state.publishAfter(event)
	}
	return nil
}

// batch is a commit group under construction. Its maps hold the changes that it will make; a decision is in a
// batch once.
type batch struct {
	state   *fold
	waiting []*proposal
	events  []*eventlog.Event
	entries [][]byte
	offers  []*offer.Offer // of the decisions that they close
	bytes   int
	alone   bool      // no other event may be in it
	ready   *prepared // prepared for its PlacementPut
	staged  *staged   // its ItemsChanged

	touched map[decisionKey]bool
	open    map[*placement]int // additional bytes of open decisions
	rounds  map[*placement]int // bytes of rounds for the learner
}

func (b *batch) reset() {
	*b = batch{
		state: b.state, waiting: b.waiting[:0], events: b.events[:0], entries: b.entries[:0], offers: b.offers[:0],
		touched: map[decisionKey]bool{}, open: map[*placement]int{}, rounds: map[*placement]int{},
	}
}

func (b *batch) add(e *eventlog.Event, entry []byte, o *offer.Offer) {
	b.events = append(b.events, e)
	b.entries = append(b.entries, entry)
	b.offers = append(b.offers, o)
	b.bytes += eventlog.EntrySize(entry)
}

// encode adds a lawful event.
func (b *batch) encode(e *eventlog.Event, o *offer.Offer) {
	entry, err := e.Encode(nil)
	if err != nil {
		panic(fmt.Sprintf("decision: an unlawful event: %v", err))
	}
	b.add(e, entry, o)
}

// room reports whether the learner can take the round of a decision.
func (b *batch) room(r *record, o *offer.Offer) bool {
	p := r.placement
	return !r.isOf(p.learner) || !slices.ContainsFunc(p.taught(o), func(w *worker) bool { return !w.HasRoom(b.rounds[p], learner.RoundBytes(o)) })
}

// canExpire reports the same for a decision that expires. A deferred one has no round.
func (b *batch) canExpire(r *record, o *offer.Offer) bool {
	return r.status == deferred || b.room(r, o)
}

// choose gives a decision its outcome. A learner without room for the round does not learn from it: its
// slowness is no reason to refuse an outcome.
func (b *batch) choose(r *record, o *offer.Offer, choice int32, now int64) {
	b.close(r, o, now, &eventlog.Chosen{Decision: r.id, Choice: choice, Unlearned: !b.room(r, o)})
}

func (b *batch) expire(r *record, o *offer.Offer, now int64) {
	b.close(r, o, now, &eventlog.Expired{Decision: r.id, Unlearned: !b.canExpire(r, o)})
}

// close ends the wait for a decision's outcome. Without an offer there is no round.
func (b *batch) close(r *record, o *offer.Offer, now int64, body eventlog.Body) {
	p := r.placement
	b.touched[r.key()] = true
	b.open[p] -= r.size()
	if o != nil && b.canExpire(r, o) {
		b.rounds[p] += learner.RoundBytes(o)
	}
	b.encode(&eventlog.Event{Time: now, Placement: p.name, Body: body}, o)
}

// offer adds a decision. If open decisions exceed the placement's memory, others are evicted. An earlier
// decision of this id, whose entry was removed, may still be remembered.
func (b *batch) offer(v *View, e *eventlog.Event, o *offer.Offer, forgotten *record, entry []byte) error {
	p := v.placement
	key := decisionKey{p, o.Decision}
	if b.touched[key] {
		return errLater
	}
	before := b.state.decisions.find(p, o.Decision)
	if b.state.placements[p.name] != p || p.changed != v.changed || before != nil && before != forgotten {
		return errMoved
	}
	size := setup.RecordBytes + idBytes(o.Decision)
	if _, err := b.makeRoom(p, p.open.bytes+b.open[p]+size-p.config.MemoryBytes, e.Time, math.MaxInt); err != nil {
		return err
	}
	b.touched[key] = true
	b.open[p] += size
	b.add(e, entry, o)
	return nil
}

// only adds an event to a batch of its own.
func (b *batch) only(e *eventlog.Event) error {
	b.alone = true
	b.encode(e, nil)
	return nil
}

// makeRoom evicts at most the given number of open decisions, in the order of their expiry, until their
// placement has enough bytes, and returns their number. Nothing is learned from evicted decisions. A decision
// whose window is over must expire instead, and its offer must be read first: the error is then errFull.
func (b *batch) makeRoom(p *placement, bytes int, now int64, maximum int) (n int, err error) {
	if bytes <= 0 {
		return 0, nil
	}
	for r := range p.open.all() {
		switch {
		case bytes <= 0 || n == maximum:
			return n, nil
		case b.touched[r.key()]:
			continue
		case r.isLate(now) && r.status != deferred:
			return n, errFull
		case r.isLate(now):
			b.expire(r, nil, now)
		default:
			b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
		}
		bytes -= r.size()
		n++
	}
	if bytes > 0 { // the batch itself fills the memory
		return n, errLater
	}
	return n, nil
}
