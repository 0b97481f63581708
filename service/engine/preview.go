package engine

import (
	"context"

	"vitrine/service/api"
)

// Preview returns the effects that [Engine.Change] would have, and changes nothing. It ignores how.Reset and
// how.Relearn: the answer covers both. It returns Change's errors except *LossError.
func (e *Engine) Preview(ctx context.Context, name string, config []byte, how Change) (v api.Preview, err error) {
	c, err := e.parsePut(name, config)
	if err != nil {
		return v, err
	}
	how.Reset, how.Relearn = false, false
	e.mu.RLock()
	err = e.state.Preview(&v, name, c, how)
	e.mu.RUnlock()
	if err != nil {
		return v, err
	}
	how.Reset = true
	r, err := e.prepare(ctx, name, c, &how)
	if err != nil {
		return v, err
	}
	r.Claim()
	e.state.Budget.Charge(-r.Held - r.Spare)
	v.Placement = c.Answer()
	return v, nil
}
