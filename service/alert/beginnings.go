package alert

import (
	"log/slog"
	"maps"
	"time"
)

// Beginnings logs problems when they begin. The zero value is ready to use.
type Beginnings struct {
	last map[[2]string]time.Time // when each problem of a placement was last seen
}

// problemIsOver is how long a problem must be gone before its return is logged again.
const problemIsOver = time.Minute

// Log logs problems that began as warnings, unless they are Logged. Problems that exist at the first call count as new.
func (b *Beginnings) Log(problems []Problem, now time.Time, logger *slog.Logger) {
	if b.last == nil {
		b.last = map[[2]string]time.Time{}
	}
	for _, p := range problems {
		id := [2]string{p.Placement, p.Key}
		if last, ok := b.last[id]; !p.Logged && (!ok || now.Sub(last) > problemIsOver) {
			logger.Warn(p.Text, "placement", p.Placement, "level", p.Level)
		}
		b.last[id] = now
	}
	maps.DeleteFunc(b.last, func(_ [2]string, last time.Time) bool { return now.Sub(last) > problemIsOver })
}
