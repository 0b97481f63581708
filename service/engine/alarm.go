package engine

import (
	"context"

	"vitrine/service/eventlog"
	"vitrine/service/state"
)

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. The learner now learns the rounds
// that were held back, except those of decisions in doubt after an alarm that nothing was sold; all says whether it learns
// those, too. Without an alarm nothing changes. Errors are ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) ClearAlarm(ctx context.Context, name string, all bool, now int64) error {
	return e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		if p.Earnings.Guard.Alarm() == nil {
			return nil, nil
		}
		return &eventlog.AlarmCleared{All: all}, nil
	})
}
