package engine

import (
	"vitrine/service/api"
)

// Experiments returns the experiment of a placement, if one runs, and those that have ended.
func (e *Engine) Experiments(name string) (*api.Experiments, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	return p.Experiments()
}
