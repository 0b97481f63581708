package server

import (
	"log/slog"
	"math"
	"time"

	"vitrine/service/decision"
)

// early warns of placements whose memory is too small to wait for outcomes: once when it begins, and again
// after it had been over for a minute.
type early map[string]*eviction

// eviction is what was seen of a placement.
type eviction struct {
	count uint64    // of decisions
	last  time.Time // when it grew
}

const evictionIsOver = time.Minute

func newEarly(e *decision.Engine) early {
	w := early{}
	for _, name := range e.Placements() {
		if s, err := e.Stats(name); err == nil {
			w[name] = &eviction{count: s.ExpiredEarly}
		}
	}
	return w
}

func (w early) look(e *decision.Engine, now time.Time, logger *slog.Logger) {
	seen := early{}
	for _, name := range e.Placements() {
		s, err := e.Stats(name)
		if err != nil {
			continue // deleted meanwhile
		}
		before := w[name]
		if before == nil {
			before = new(eviction)
		}
		seen[name] = before
		if s.ExpiredEarly > before.count {
			if config, err := e.Config(name); err == nil && (before.last.IsZero() || now.Sub(before.last) > evictionIsOver) {
				logger.Warn("memory is too small: decisions leave it before their outcome can come, and teach nothing",
					"placement", name, "memory", config.Memory, "seconds", math.Round(s.MemorySeconds), "attribution_window", config.AttributionWindow)
			}
			before.last = now
		}
		before.count = s.ExpiredEarly
	}
	clear(w)
	for name, v := range seen {
		w[name] = v
	}
}
