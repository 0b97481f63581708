package engine

import (
	"context"
	"encoding/base64"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/learner"
	"vitrine/service/state"
)

// Model returns what a placement's learner knows from all outcomes so far. It returns ErrNotFound, ErrStopped or ctx's
// error.
func (e *Engine) Model(ctx context.Context, name string) (api.LearnerState, error) {
	m := api.LearnerState{Placement: name}
	var saved <-chan learner.State
	err := e.inspect(ctx, func(s *state.State) {
		if p := s.Placements[name]; p != nil {
			m.Config = p.Config.Placement
			saved = p.Worker.Freeze(false)
		}
	})
	if err != nil { // m may still be the writer's
		return api.LearnerState{}, err
	}
	if saved != nil {
		select {
		case w, ok := <-saved:
			if ok {
				m.PolicyEntry, m.Learned, m.State = w.Entry, w.Learned, base64.StdEncoding.EncodeToString(w.Data)
				return m, nil
			}
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
	return m, fmt.Errorf("placement %q: %w", name, ErrNotFound) // or its learner just ended
}
