package decision

import (
	"context"

	"vitrine/service/eventlog"
)

// MoveClock moves the attribution windows of all open decisions with the service's clock, which goes on at the time to,
// although the log ends at the time from. A window thus counts the time in which outcomes could be reported: neither an
// outage nor a wrong clock ends it. MoveClock returns the number of open decisions, and of those that would be late now.
// Call it before requests have the new time. Errors are ErrStopped and that of ctx.
func (e *Engine) MoveClock(ctx context.Context, from, to int64) (open, late int, err error) {
	if from == to {
		return 0, 0, nil
	}
	for _, name := range e.Placements() {
		n, over := 0, 0 // the writer's until about returns
		err := e.about(ctx, name, to, func(p *placement) (eventlog.Body, error) {
			if n = len(p.open.heap); n == 0 {
				return nil, nil
			}
			for _, r := range p.open.heap {
				if r.isLate(to) && !r.isLate(from) {
					over++
				}
			}
			return &eventlog.ClockMoved{By: to - from}, nil
		})
		if err != nil {
			return open, late, err
		}
		open, late = open+n, late+over
	}
	return open, late, nil
}
