package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Needs returns the first entry that second learners still need in the log, or [math.MaxUint64] without such learners.
// It counts those that learn now, and those that learned after the entry upTo, because a replay from a snapshot of that
// entry repeats their learning.
func (e *Engine) Needs(upTo uint64) uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Needs(upTo)
}

// Exchange lets second learners decide once they have caught up with the log, and ends the relearning of those that
// cannot. It returns both lists of placements. A second learner decides once it has learned half as many rounds as the
// present one, or when a change accepts it. Call Exchange now and then. It returns ErrStopped or ctx's error.
func (e *Engine) Exchange(ctx context.Context, now int64) (exchanged, ended []string, err error) {
	for _, name := range e.relearning() {
		var event eventlog.Body // owned by the writer until submit returns
		err := e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
			event = p.NextOfRelearning(false)
			return event, nil
		})
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return exchanged, ended, err
		}
		switch event.(type) {
		case *eventlog.LearnerSwapped:
			exchanged = append(exchanged, name)
		case *eventlog.RelearningEnded:
			ended = append(ended, name)
		}
	}
	return exchanged, ended, nil
}

// relearning returns the placements with a second learner, sorted.
func (e *Engine) relearning() (names []string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for name, p := range e.state.Placements {
		if p.Relearning != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Relearning returns a placement's configuration after its relearning; ok is false if it is not relearning.
func (e *Engine) Relearning(name string) (next api.Placement, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p := e.state.Placements[name]
	if p == nil || p.Relearning == nil {
		return next, false
	}
	c := p.Relearning.Worker.Config
	next = c.Answer()
	next.Warnings = append(next.Warnings, sizeWarnings(p.Smaller(c))...)
	return next, true
}

// sizeWarnings warns of a second learner with a smaller size; size is 0 if it is not smaller.
func sizeWarnings(size int) []string {
	if size == 0 {
		return nil
	}
	return []string{"the second learner of relearn=log " + api.SkipsLarger(size)}
}

// acceptRelearned lets a placement's second learner decide although it learned less than the present one.
func (e *Engine) acceptRelearned(ctx context.Context, name string, config []byte, how *Change, now int64) error {
	c, err := e.parsePut(name, config)
	if err != nil {
		return err
	}
	return e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		if how.Check(p, c) != state.ErrSame {
			return nil, api.Fieldf("/relearn", "accept: no learner of this configuration learns from the log")
		}
		if p.Relearning == nil {
			return nil, nil // it decides already
		}
		if err := how.Match.Check(p); err != nil {
			return nil, err
		}
		swap, ok := p.NextOfRelearning(true).(*eventlog.LearnerSwapped)
		if !ok {
			return nil, fmt.Errorf("placement %q: %w", name, ErrNotReady)
		}
		return swap, nil
	})
}

// noteRemoved notes in the loss of a change that the log lost entries from which a second learner could have learned.
func (e *Engine) noteRemoved(ctx context.Context, name string, c *setup.Config, loss *api.Loss) {
	first, err := e.firstEntry(ctx)
	e.mu.RLock()
	defer e.mu.RUnlock()
	if p := e.state.Placements[name]; err == nil && p != nil && first > p.Rows && (&Change{Relearn: true}).Check(p, c) == nil {
		loss.LogFrom = first
	}
}
