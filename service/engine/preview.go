package engine

import (
	"context"
	"errors"

	"vitrine/service/api"
	"vitrine/service/setup"
)

// Preview returns what [Engine.Change] would do with a configuration, and changes nothing. how.Reset and how.Relearn are
// ignored: the answer says what each would do. Errors are those of Change, except *LossError.
func (e *Engine) Preview(ctx context.Context, name string, config []byte, how Change) (v api.Preview, err error) {
	c, err := e.parsePut(name, config)
	if err != nil {
		return v, err
	}
	how.Reset, how.Relearn = false, false
	if err := e.preview(&v, name, c, how); err != nil {
		return v, err
	}
	how.Reset = true
	r, err := e.prepare(ctx, name, c, &how)
	if err != nil {
		return v, err
	}
	r.claim()
	e.state.budget.Charge(-r.held - r.spare)
	v.Placement = c.Answer()
	return v, nil
}

// preview says what becomes of the learner.
func (e *Engine) preview(v *api.Preview, name string, c *setup.Config, how Change) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p := e.state.placements[name]
	err := how.check(p, c)
	var loss *LossError
	switch {
	case err == errSame:
		v.Change = api.PreviewNone
		return nil
	case err != nil && !errors.As(err, &loss):
		return err
	case p == nil:
		v.Change = api.PreviewCreate
		if len(e.state.placements) >= maxPlacements {
			return errPlacements(name)
		}
		return nil
	case loss != nil && loss.Experiment != "":
		v.Change, v.Fields, v.Lost = api.PreviewEnd, loss.Fields, &loss.Loss
		return nil
	case p.config.SameLearner(c):
		v.Change = api.PreviewKeep
		return nil
	case p.adoptable(c) >= 0:
		v.Change = api.PreviewAdopt
		return nil
	}
	v.Change, v.Fields = api.PreviewRestart, p.config.LearnerFields(c)
	if loss != nil {
		v.Lost = &loss.Loss
		if err := (&Change{Relearn: true}).check(p, c); err == nil {
			v.CanRelearn, v.MaxSize = true, loss.MaxSize
		}
	}
	return nil
}
