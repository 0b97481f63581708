package engine

import (
	"vitrine/service/api"
)

// Experiments returns a placement's running experiment, if any, and its ended ones.
func (e *Engine) Experiments(name string) (*api.Experiments, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	return p.Experiments()
}
