package engine

import (
	"context"

	"vitrine/service/eventlog"
	"vitrine/service/state"
)

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. The learner now learns the
// rounds that were held back. After an alarm about missing sales it skips the decisions in doubt, unless all is set.
// Without an alarm, ClearAlarm does nothing. It returns ErrNotFound, ErrStopped or ctx's error.
func (e *Engine) ClearAlarm(ctx context.Context, name string, all bool, now int64) error {
	return e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		if p.Earnings.Guard.Alarm() == nil {
			return nil, nil
		}
		return &eventlog.AlarmCleared{All: all}, nil
	})
}
