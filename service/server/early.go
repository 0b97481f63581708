package server

import (
	"log/slog"
	"maps"
	"math"
	"time"

	"vitrine/service/decision"
)

// early warns about placements that evict decisions before their outcome can arrive. It warns when
// evictions begin, and again when they resume after a minute without any.
type early map[string]*eviction

// eviction is the last observation of a placement.
type eviction struct {
	count uint64    // decisions evicted so far
	last  time.Time // when count grew
}

const evictionIsOver = time.Minute // without an eviction

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
				logger.Warn("memory is too small: decisions are evicted before their outcome can arrive, and the policy learns nothing from them",
					"placement", name, "memory", config.Memory, "seconds", math.Round(s.MemorySeconds), "attribution_window", config.AttributionWindow)
			}
			before.last = now
		}
		before.count = s.ExpiredEarly
	}
	clear(w)
	maps.Copy(w, seen)
}
