package decision

import (
	"context"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// restartGuard restarts the guard after an entry, and ends its alarm.
func (p *placement) restartGuard(sequence uint64) {
	p.guard.Restart(sequence)
	p.worker.substitute.Store(nil)
}

// advance adds to the guard the cohorts that are complete by a time. It reports a new alarm.
func (p *placement) advance(now int64, sequence uint64) bool {
	if !p.guard.Advance(now, sequence) {
		return false
	}
	p.guard.Alarm.Version = p.lastGood()
	p.fallBack()
	return true
}

// lastGood returns the version that decides after an alarm: the last one of the learner from before the period in which
// the test failed, or else its oldest one; 0 if it has none.
func (p *placement) lastGood() (number uint64) {
	for _, v := range p.versions {
		if v.learner == p.worker && (number == 0 || v.number <= p.guard.Entry) {
			number = v.number
		}
	}
	return number
}

// fallsBack returns what decides instead of the policy: "" unless there is an alarm and a fallback.
func (p *placement) fallsBack() string {
	if p.guard.Alarm == nil {
		return ""
	}
	return p.config.Fallback
}

// fallBack has the learner make the policy of the last good version, if it is needed.
func (p *placement) fallBack() {
	if p.fallsBack() != api.FallbackVersion || p.guard.Alarm.Version == 0 {
		return
	}
	version := p.guard.Alarm.Version
	p.worker.send(task{what: toCall, call: func(w *worker) { w.recallPolicy(version) }})
}

// recallPolicy makes the policy of a kept version the substitute of the current one.
func (w *worker) recallPolicy(version uint64) {
	k := stateOf(w.kept, version)
	if k == nil {
		return
	}
	_, _ = safely(func() error {
		l, err := w.restored(k.data)
		if err == nil {
			w.substitute.Store(&published{l.Policy(), version})
		}
		return err
	})
}

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. Without an alarm
// nothing changes. Errors are ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) ClearAlarm(ctx context.Context, name string, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if p.guard.Alarm == nil {
			return nil, nil
		}
		return new(eventlog.AlarmCleared), nil
	})
}
