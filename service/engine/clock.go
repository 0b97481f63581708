package engine

import (
	"context"
	"time"

	"vitrine/service/state"
)

// MoveClock is [Engine.MoveClock] of an engine that is about to lead.
type MoveClock func(from, to int64) (open, late int, err error)

// MoveClock moves the attribution windows of all open decisions along with the service's clock, from the time of the
// log's end to the time at which the clock continues, in all placements or in none. So a window counts the time in
// which outcomes could be reported: neither an outage nor a wrong clock ends it. MoveClock returns the number of open
// decisions, and how many of them would otherwise be late now. Call it before requests use the new time. If both times
// are equal and decisions are open, the log ends at that time afterwards. MoveClock returns ErrStopped or ctx's error.
func (e *Engine) MoveClock(ctx context.Context, from, to int64) (open, late int, err error) {
	err = e.submit(ctx, func(b *state.Batch) (err error) {
		open, late, err = b.MoveClock(from, to)
		return err
	})
	if err != nil { // the counts may still be the writer's
		return 0, 0, err
	}
	return open, late, nil
}

// Jumped returns by how much the log's clock moved ahead in the time span before now, and when it moved last: 0 if it
// did not move, or moved back again.
func (e *Engine) Jumped(now int64, span time.Duration) (by, at int64) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Jumped(now, span)
}
