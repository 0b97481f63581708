package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"vitrine/service/eventlog"
)

// MoveClock moves the attribution windows of all open decisions along with the service's clock, which continues at the time to,
// although the log ends at the time from, in all placements or in none. A window thus counts the time in which outcomes could be reported: neither an
// outage nor a wrong clock ends it. MoveClock returns the number of open decisions, and of those that would be late now.
// Call it before requests have the new time. Errors are ErrStopped and that of ctx.
func (e *Engine) MoveClock(ctx context.Context, from, to int64) (open, late int, err error) {
	if from == to {
		return 0, 0, nil
	}
	err = e.submit(ctx, func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		open, late = 0, 0
		for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
			p := b.state.placements[name]
			open += len(p.open.heap)
			for _, r := range p.open.heap {
				if r.isLate(to) && !r.isLate(from) {
					late++
				}
			}
			b.encode(&eventlog.Event{Time: to, Placement: name, Body: &eventlog.ClockMoved{By: to - from}}, nil)
		}
		b.alone = true
		return nil
	})
	return open, late, err
}

// Jumped returns by how much the clock has moved ahead in the time span before now, by the log, and when it moved last: 0 if it has
// not, or back again.
func (e *Engine) Jumped(now int64, span time.Duration) (by, at int64) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, p := range e.state.placements {
		sum, last := int64(0), int64(0)
		for _, m := range p.open.moves {
			if now-m.time < int64(span) {
				sum, last = sum+m.by, max(last, m.time)
			}
		}
		if sum > by {
			by, at = sum, last
		}
	}
	return by, at
}
