package decision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"vitrine"
	"vitrine/service/budget"
	"vitrine/service/eventlog"
)

// Options are what an engine is made of.
type Options struct {
	Store Log // the engine is its only writer, and does not close it
	Build func(Spec) (vitrine.Learner, error)

	// Size returns how large a learner will be, for the Budget, and what is wrong with its policy. nil counts 0.
	Size func(Spec) (Size, error)
	// Budget is what placements are charged to: a new one that does not fit is refused, those in the log are not.
	// nil has no bound.
	Budget *budget.Budget

	Snapshot []byte // of [Engine.Snapshot]; nil replays the log from its first entry

	// BeginAgain lets a learner begin again whose state in the snapshot cannot be read, where a log without its
	// first entries leaves nothing else: [Stats.Forgotten] has what it knew. The rest of the state stays.
	BeginAgain bool

	// Gather is how long the writer waits for more to append, where it had several callers
	// the last time: fewer appends take less of the processor. A caller alone does not wait. On
	// Linux a process with nothing else to do wakes up to a millisecond late.
	Gather time.Duration

	// Applied, if not nil, is told of every entry after it is durable and part of the
	// state, in their order, on the writer's goroutine; not of those replayed.
	// It must not keep the event, nor wait for the engine.
	Applied func(sequence uint64, e *eventlog.Event)
	// Progress, if not nil, is told how many entries were replayed, now and then.
	Progress func(entries int)
}

// Engine decides, records and learns. It is safe for concurrent use.
//
// One goroutine, the writer, takes what callers propose, checks it against the
// state, appends all that came while the last append was under way as one commit group, and
// applies it once it is durable. So the order of the log is the order of the
// state, whatever the number of callers, and every entry was lawful when it
// was written.
type Engine struct {
	store   Log
	applied func(uint64, *eventlog.Event)
	gather  time.Duration

	mu    sync.RWMutex // the writer's, for changes of state
	state *fold

	proposals chan *proposal
	quit      chan struct{} // closed by Close
	stopped   chan struct{} // closed by the writer
	closing   sync.Once
	failure   error // why no more can be written; the writer's, and everyone's once it has stopped
}

// proposal asks for entries. propose runs on the writer: it adds entries to the
// batch, and its error is what is told once they are durable.
type proposal struct {
	propose func(b *batch) error
	err     error
	done    chan error
}

var (
	errLater = errors.New("not in this batch")
	errMoved = errors.New("the state has moved")
	errFull  = errors.New("a decision has to expire first")
)

// largestBatch bounds the bytes of an append.
const largestBatch = eventlog.MaxFrame - eventlog.EmptyFrame

// Open makes the state from a snapshot and the entries of the log after it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	s := newFold(o.Build)
	s.beginAgain, s.size, s.budget = o.BeginAgain, o.Size, o.Budget
	e := &Engine{
		store: o.Store, applied: o.Applied, gather: o.Gather, state: s,
		proposals: make(chan *proposal, 256), quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	err := e.replay(ctx, o)
	if err != nil {
		s.end()
		for _, p := range s.placements {
			s.recharge(p, 0, 0)
		}
		return nil, err
	}
	for _, p := range s.placements {
		p.upcoming.Store(p.numbers)
	}
	go e.write(context.WithoutCancel(ctx))
	return e, nil
}

// progressEntries is how often replay reports progress.
const progressEntries = 10_000

func (e *Engine) replay(ctx context.Context, o Options) error {
	if o.Snapshot != nil {
		if err := e.state.restore(o.Snapshot); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	var err error
	if e.state.position, err = Locate(ctx, o.Store, e.state.position); err != nil {
		return err
	}
	n := 0
	for entry, err := range o.Store.Entries(ctx, e.state.position.Sequence+1) {
		if err != nil {
			return err
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.state.position.Sequence+1, err)
		}
		var offer *offer
		if r := e.state.closes(&event); r != nil {
			if offer, err = r.read(ctx, o.Store); err != nil {
				return fmt.Errorf("entry %d: %w", e.state.position.Sequence+1, err)
			}
		}
		if err := e.state.apply(entry, &event, offer); err != nil {
			return err
		}
		if n++; n%progressEntries == 0 && o.Progress != nil {
			o.Progress(n)
		}
	}
	if o.Progress != nil {
		o.Progress(n)
	}
	end, err := o.Store.Position(ctx, e.state.position.Sequence)
	if at := e.state.position; err == nil && at != end && !at.Log.IsZero() {
		err = fmt.Errorf("entries up to %d are not those that the log's running hash is of", at.Sequence)
	}
	e.state.position = end
	return err
}

// end stops the workers and waits for them a little.
func (s *fold) end() {
	for _, p := range s.placements {
		p.worker.stop()
	}
	s.rest()
}

// largestRest bounds the wait for workers that were stopped: each ends its task, and nobody needs what it has learned.
const largestRest = time.Second

func (s *fold) rest() {
	ended := make(chan struct{})
	go func() { s.workers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(largestRest):
	}
}

// Close waits for the append under way. What was not durable by then is refused with ErrStopped.
// A learner in the middle of a round that takes more than a second ends by itself after it.
func (e *Engine) Close() {
	e.closing.Do(func() { close(e.quit) })
	<-e.stopped
	e.state.rest()
}

// submit has a proposal written, and waits until it is durable and applied.
func (e *Engine) submit(ctx context.Context, propose func(b *batch) error) error {
	p := &proposal{propose: propose, done: make(chan error, 1)}
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

// stop says why the engine has stopped, after it has.
func (e *Engine) stop() error {
	if e.failure != nil {
		return fmt.Errorf("%w: %w", ErrStopped, e.failure)
	}
	return ErrStopped
}

// write is the writer. It ends at Close, or when the log cannot be written.
func (e *Engine) write(ctx context.Context) {
	defer close(e.stopped)
	defer func() {
		for _, p := range e.state.placements {
			p.worker.stop()
		}
	}()
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

// collect adds proposals to the batch, this one and those that wait, and
// returns the first that must be in the next batch.
func (e *Engine) collect(b *batch, p *proposal) (carried *proposal) {
	for {
		before := len(b.events)
		err := p.propose(b)
		switch {
		case errors.Is(err, errLater):
			return p
		case len(b.events) == before:
			p.done <- err
		default:
			p.err = err
			b.waiting = append(b.waiting, p)
		}
		if b.alone || b.bytes > largestBatch/2 {
			return nil
		}
		select {
		case p = <-e.proposals:
		default:
			return nil
		}
	}
}

// commit appends the batch and applies it. An error leaves open what of it is in
// the log.
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
	if e.applied != nil {
		for i, event := range b.events {
			e.applied(first+uint64(i), event)
		}
	}
	return nil
}

// fitting returns how many entries, from the first, one append takes.
func fitting(entries [][]byte) int {
	size := 0
	for i, entry := range entries {
		if size += eventlog.EntrySize(entry); size > largestBatch {
			return i
		}
	}
	return len(entries)
}

func (e *Engine) apply(b *batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.ready = b.ready
	for i, event := range b.events {
		if err := e.state.apply(b.entries[i], event, b.offers[i]); err != nil {
			return err
		}
	}
	return nil
}

// batch is a commit group that is being made. Its maps are what it will change: a
// decision is in a batch once.
type batch struct {
	state   *fold
	waiting []*proposal
	events  []*eventlog.Event
	entries [][]byte
	offers  []*offer // of the decisions that they close
	bytes   int
	alone   bool      // nothing else may be in it
	ready   *prepared // what its PlacementPut needs

	touched map[decisionKey]bool
	open    map[*placement]int // bytes of open decisions, more
	rounds  map[*placement]int // bytes for the learner
}

// decisionKey names a decision.
type decisionKey struct {
	placement *placement
	id        string
}

func (r *record) key() decisionKey { return decisionKey{r.placement, r.id} }

func (b *batch) reset() {
	*b = batch{
		state: b.state, waiting: b.waiting[:0], events: b.events[:0], entries: b.entries[:0], offers: b.offers[:0],
		touched: map[decisionKey]bool{}, open: map[*placement]int{}, rounds: map[*placement]int{},
	}
}

func (b *batch) add(e *eventlog.Event, entry []byte, o *offer) {
	b.events = append(b.events, e)
	b.entries = append(b.entries, entry)
	b.offers = append(b.offers, o)
	b.bytes += eventlog.EntrySize(entry)
}

// encode adds an event that is known to be lawful.
func (b *batch) encode(e *eventlog.Event, o *offer) {
	entry, err := e.Encode(nil)
	if err != nil {
		panic(fmt.Sprintf("decision: an unlawful event: %v", err))
	}
	b.add(e, entry, o)
}

// room reports whether the learner can take the round of a decision.
func (b *batch) room(r *record, o *offer) bool {
	p := r.placement
	return !r.isOf(p.learner) || p.worker.queue.room(b.rounds[p], o.roundBytes())
}

// canExpire reports the same of a decision that expires. There is no round of one that is deferred.
func (b *batch) canExpire(r *record, o *offer) bool { return r.status == deferred || b.room(r, o) }

func behind(p *placement) error {
	return fmt.Errorf("placement %q: %w by %d rounds: try again later", p.name, ErrBehind, p.worker.given.Load()-p.worker.done.Load())
}

func (b *batch) expire(r *record, o *offer, now int64) {
	b.close(r, o, now, &eventlog.Expired{Decision: r.id})
}

// close ends the wait for a decision's outcome. Without an offer there is no round.
func (b *batch) close(r *record, o *offer, now int64, body eventlog.Body) {
	p := r.placement
	b.touched[r.key()] = true
	b.open[p] -= r.size()
	if o != nil {
		b.rounds[p] += o.roundBytes()
	}
	b.encode(&eventlog.Event{Time: now, Placement: p.name, Body: body}, o)
}

// offer adds a decision. Where open decisions would exceed the placement's
// memory, others leave it. The decision that had its id before, which the log has forgotten, may be remembered yet.
func (b *batch) offer(v view, e *eventlog.Event, o *eventlog.Offered, forgotten *record, entry []byte) error {
	p := v.placement
	key := decisionKey{p, o.Decision}
	if b.touched[key] {
		return errLater
	}
	before := b.state.decisions.find(p, o.Decision)
	if b.state.placements[p.name] != p || p.changed != v.changed || before != nil && before != forgotten {
		return errMoved
	}
	size := recordBytes + idBytes(o.Decision)
	if _, err := b.makeRoom(p, p.open.bytes+b.open[p]+size-p.config.Memory, e.Time, math.MaxInt); err != nil {
		return err
	}
	b.touched[key] = true
	b.open[p] += size
	b.add(e, entry, nil)
	return nil
}

// only adds an event to a batch of its own.
func (b *batch) only(e *eventlog.Event) error {
	b.alone = true
	b.encode(e, nil)
	return nil
}

const (
	largestPlacement = 64   // bytes of its name
	mostPlacements   = 1000 // each has a learner, a goroutine and memory of its own
)

// IsPlacementName reports whether a placement may have a name.
func IsPlacementName(name string) bool {
	return name != "" && len(name) <= largestPlacement && checkDecision(name) == nil
}

// about proposes an event about a placement; none where body returns nil.
func (e *Engine) about(ctx context.Context, name string, now int64, body func(p *placement) (eventlog.Body, error)) error {
	return e.submit(ctx, func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		p := b.state.placements[name]
		if p == nil {
			return fmt.Errorf("placement %q: %w", name, ErrNotFound)
		}
		what, err := body(p)
		if what == nil || err != nil {
			return err
		}
		return b.only(&eventlog.Event{Time: now, Placement: name, Body: what})
	})
}

// Delete ends a placement. Its decisions are forgotten.
func (e *Engine) Delete(ctx context.Context, name string, now int64) error {
	return e.about(ctx, name, now, func(*placement) (eventlog.Body, error) { return new(eventlog.PlacementDeleted), nil })
}

// Keep keeps what a placement's learner has learned from all outcomes so far,
// and returns its version to roll back to. The last few are kept; what is kept already has its version again.
func (e *Engine) Keep(ctx context.Context, name string, now int64) (version uint64, err error) {
	taken := new(eventlog.SnapshotTaken) // the writer's until it has answered
	err = e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		*taken = eventlog.SnapshotTaken{Version: p.learned, UpTo: e.state.position.Sequence, Name: fmt.Sprintf("%s@%d", name, p.learned)}
		if slices.Contains(p.kept, p.learned) {
			return nil, nil
		}
		return taken, nil
	})
	if err != nil {
		return 0, err
	}
	return taken.Version, nil
}

// RollBack makes a placement's learner forget what it has learned since a
// version was kept.
func (e *Engine) RollBack(ctx context.Context, name string, version uint64, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if !slices.Contains(p.kept, version) {
			return nil, fmt.Errorf("placement %q, version %d: %w: there are %v", name, version, ErrNotFound, p.kept)
		}
		return &eventlog.PolicyRolledBack{Version: version}, nil
	})
}

// barrier sends a call to every worker at one point of the log, and waits until
// they have come to it.
func (e *Engine) barrier(ctx context.Context, at func(*fold), call func(p *placement, w *worker)) error {
	var waiting sync.WaitGroup
	err := e.submit(ctx, func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		at(b.state)
		for _, p := range b.state.placements {
			waiting.Add(1)
			p.worker.send(task{what: toCall, call: func(w *worker) { defer waiting.Done(); call(p, w) }})
		}
		return nil
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { waiting.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait waits until the learners have learned all that is in the log by now, and
// their policies decide.
func (e *Engine) Wait(ctx context.Context) error {
	return e.barrier(ctx, func(*fold) {}, func(*placement, *worker) {})
}

// Placements returns their names, sorted.
func (e *Engine) Placements() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.state.placements))
}

// Config returns the configuration of a placement. It must not be changed.
func (e *Engine) Config(name string) (*Config, error) {
	v, err := e.view(name)
	return v.config, err
}

// Decision is what is known of a decision.
type Decision struct {
	Answer *Answer
	Time   int64
	Status string // "open", "chosen", "expired", "deferred", "withdrawn" or "evicted"
	Choice string // the item that was taken, "" for none
}

// Decision returns a decision of a placement that is remembered, or ErrNotFound. An empty name is the placement that
// Find returns, with its errors. Others are ErrUnread and that of ctx.
func (e *Engine) Decision(ctx context.Context, placement, id string) (Decision, error) {
	placement, err := e.placementOf(placement, id)
	if err != nil {
		return Decision{}, err
	}
	f, err := e.recall(ctx, placement, id)
	if err != nil {
		return Decision{}, err
	}
	if f == nil || f.offer == nil {
		return Decision{}, unknownDecision(id)
	}
	d := Decision{Answer: answerOf(placement, f.offer.Offered, &f.offer.estimates), Time: f.was.time, Status: f.was.status.String()}
	if f.was.choice > 0 {
		d.Choice = d.Answer.Shown[f.was.choice-1]
	}
	return d, nil
}

// Sequence returns the last entry that is part of the state.
func (e *Engine) Sequence() uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.position.Sequence
}
