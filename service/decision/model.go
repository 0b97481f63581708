package decision

import (
	"context"
	"encoding/base64"
	"fmt"

	"vitrine/service/api"
)

// Model returns what the learner of a placement has learned from all outcomes so far. Errors are ErrNotFound, ErrStopped and
// that of ctx.
func (e *Engine) Model(ctx context.Context, name string) (api.LearnerState, error) {
	m := api.LearnerState{Placement: name}
	var saved chan frozenWorker
	err := e.inspect(ctx, func(s *fold) {
		if p := s.placements[name]; p != nil {
			m.Config = p.config.Placement
			saved = p.worker.freeze(false)
		}
	})
	if err != nil {
		return m, err
	}
	if saved != nil {
		select {
		case w, ok := <-saved:
			if ok {
				m.PolicyVersion, m.Learned, m.State = w.version, w.observed, base64.StdEncoding.EncodeToString(w.data)
				return m, nil
			}
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
	return m, fmt.Errorf("placement %q: %w", name, ErrNotFound) // or its learner has just ended
}
