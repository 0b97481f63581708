package decision

import (
	"context"
	"fmt"
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

	// Applied, if not nil, is called for every entry after it is durable and part of the
	// state, in their order, on the writer's goroutine; not of those replayed.
	// It must not keep the event, nor wait for the engine.
	Applied func(sequence uint64, e *eventlog.Event)
	// Progress, if not nil, is told how many entries were replayed, now and then.
	Progress func(entries int)
}

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
		if p.worker.current.Load().policy == nil { // it had retired, and is on its way back
			if err := p.worker.wait(ctx, func(*worker) {}); err != nil {
				s.end()
				return nil, err
			}
		}
	}
	go e.write(context.WithoutCancel(ctx))
	return e, nil
}

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

// progressEntries is how often replay reports progress.
const progressEntries = 10_000
