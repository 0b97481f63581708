package engine

import (
	"context"
	"errors"
	"slices"

	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Needs returns the first entry that must stay in the log for second learners, which learn from it. These are the
// ones that learn now, and those that learned after the entry upTo, because a replay from a snapshot of that entry
// lets them learn again. It is [math.MaxUint64] if there are none.
func (e *Engine) Needs(upTo uint64) uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Needs(upTo)
}

// Exchange makes the second learners that have caught up with the log the ones that decide, and ends the relearning of
// those that cannot. It returns the placements. Call it now and then. Errors are ErrStopped and that of ctx.
func (e *Engine) Exchange(ctx context.Context, now int64) (exchanged, ended []string, err error) {
	for _, name := range e.relearning() {
		var event eventlog.Body // the writer's until submit has its answer
		err := e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
			event = p.NextOfRelearning()
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

// Relearning returns the configuration that a placement will have after its relearning, nil if none is under way.
func (e *Engine) Relearning(name string) *setup.Config {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if p := e.state.Placements[name]; p != nil && p.Relearning != nil {
		return p.Relearning.Worker.Config
	}
	return nil
}
