package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"vitrine"
	"vitrine/service/budget"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
	"vitrine/service/state"
)

// Options configure an engine.
type Options struct {
	Store Log // the engine alone writes it, or follows it, and does not close it
	Build func(setup.Spec) (vitrine.Learner, error)

	// Size returns the size of a learner, for the Budget, or an error of its policy. nil counts 0.
	Size func(setup.Spec) (setup.Size, error)
	// Budget is charged with placements: a new one that does not fit is refused, but not one in the log. nil
	// means no bound.
	Budget *budget.Budget

	// Shoppers holds the keys of the shoppers that placements remember. Without it, requests of such a placement cannot
	// name their shopper.
	Shoppers shoppers.Store

	Snapshot []byte // of [Engine.Snapshot]; nil replays the log from its first entry

	// BeginAgain lets a learner begin again if its saved state is unreadable and the log lost its first entries.
	// [api.Stats.Forgotten] counts the lost rounds. The rest of the state stays.
	BeginAgain bool

	// Follow is the log if another process writes it: the engine follows it, until Lead. If nil, the engine leads.
	Follow eventlog.Followed
	// Confirm returns an error if another process may write the log by now, although this one still believes it leads.
	// A nil Confirm rules that out.
	Confirm func(ctx context.Context) error
	// Propose asks the writing process once, and that process answers with Accept. If nil, a follower cannot decide.
	Propose func(ctx context.Context, proposal []byte) (answer []byte, err error)
	// Clock returns the time in Unix nanoseconds, for calls that waited for a leader and continue after this engine
	// began to lead. If nil, they keep the time of the call.
	Clock func() int64
	// Replica is a number, from 1 on, that no other engine on this log uses or has used. It keeps the numbers of
	// decisions apart, and with them their random draws.
	Replica uint64
	// NewID returns the id of a decision whose request names none. If nil, ids are 130 random bits: whoever knows an id
	// may report its outcome, so an id must not be guessed. Engines on one log must never return the same id.
	NewID func() string
	// Leader names the process that writes the log while this one follows, "" if no process does. Nil is allowed.
	Leader func() string

	// Gather is how long the writer waits for more proposals if the last commit served several callers: fewer appends
	// take less processor time. A single caller does not wait. On Linux an idle process wakes up to a millisecond late.
	Gather time.Duration

	// Applied, if not nil, is called in order for every entry that is durable and applied, but not for
	// replayed ones. It runs on the writer's goroutine, and must not keep the event or wait for the engine.
	Applied func(sequence uint64, e *eventlog.Event)
	// Progress, if not nil, is called now and then with the number of replayed entries.
	Progress func(entries int)
}

// Open restores the state from a snapshot and the entries of the log after it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		store: o.Store, recent: offer.NewCandidateCache(), applied: o.Applied, gather: o.Gather, shoppers: o.Shoppers,
		newID:     o.NewID,
		flights:   flights{keys: map[shoppers.Key]int{}},
		proposals: make(chan *proposal, 256), crowded: make(chan *crowding),
		asking: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{}),
		follower:  follower{log: o.Follow, leader: o.Leader, lead: make(chan leading)},
		proposing: proposing{propose: o.Propose, replica: o.Replica, confirm: o.Confirm, clock: o.Clock},
	}
	if e.newID == nil {
		e.newID = rand.Text
	}
	s := state.NewState(o.Build, e.goroutines.Go)
	s.Log, e.state = o.Store, s
	s.BeginAgain, s.Size, s.Budget = o.BeginAgain, o.Size, o.Budget
	e.isFollower.Store(o.Follow != nil)
	if err := e.restore(ctx, o); err != nil {
		s.Stop()
		e.goroutines.rest()
		s.ReleaseAll()
		return nil, err
	}
	s.PublishAll()
	e.fresh.Store(time.Now().UnixNano())
	go e.run(context.WithoutCancel(ctx))
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.goroutines.Go(func() { e.relieve(ctx) })
	return e, nil
}

// restore restores the state, and waits until every learner that serves can decide.
func (e *Engine) restore(ctx context.Context, options Options) error {
	if err := e.replay(ctx, options); err != nil {
		return err
	}
	e.state.ContinueNumbers()
	return wait(ctx, e.state.Reached(state.Unready)...)
}

func (e *Engine) replay(ctx context.Context, options Options) error {
	if options.Snapshot != nil {
		if err := e.state.Restore(options.Snapshot); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	var err error
	if e.state.Position, err = eventlog.Locate(ctx, options.Store, e.state.Position); err != nil {
		return err
	}
	n := 0
	for entry, err := range options.Store.Entries(ctx, e.state.Position.Sequence+1) {
		if err != nil {
			return err
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.state.Position.Sequence+1, err)
		}
		o, err := e.state.Closed(ctx, e.store, &event)
		if err != nil {
			return err
		}
		e.state.Lost = e.state.IsLost(&event)
		if err := e.state.Apply(entry, &event, o); err != nil {
			return err
		}
		if n%learnEntries == 0 {
			e.state.Wake()
		}
		if n++; n%progressEntries == 0 && options.Progress != nil {
			options.Progress(n)
		}
	}
	e.state.Wake()
	if options.Progress != nil {
		options.Progress(n)
	}
	return e.compare(ctx)
}

// progressEntries is the number of replayed entries between two calls of Progress.
const progressEntries = 10_000

// learnEntries is the number of replayed entries after which learners are woken.
const learnEntries = 64
