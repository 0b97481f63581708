package decision

import (
	"context"
	"errors"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// Put creates a placement or changes it; its decisions stay. Its learner begins again
// if the policy, the features, the size, the horizon or the seed change, and
// open decisions of before then teach it nothing. The same configuration
// again changes nothing. Errors are *api.FieldError, ErrMemory, ErrStopped or that of ctx.
//
// The caller's goroutine builds the learner, so that nobody else waits for it.
func (e *Engine) Put(ctx context.Context, name string, config []byte, now int64) (created bool, err error) {
	return e.put(ctx, name, config, now, true)
}

// Create is Put of a placement that is not there. One that is there stays as it is.
func (e *Engine) Create(ctx context.Context, name string, config []byte, now int64) error {
	_, err := e.put(ctx, name, config, now, false)
	return err
}

func (e *Engine) put(ctx context.Context, name string, config []byte, now int64, change bool) (created bool, err error) {
	if !IsPlacementName(name) {
		return false, api.Fieldf("/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':', and be no step of a path", name, maxPlacement)
	}
	c, err := ParseConfig(config)
	if err != nil {
		return false, err
	}
	canonical := c.Canonical()
	if len(canonical) > maxBatch/2 {
		return false, api.Fieldf("", "the configuration has %d bytes, at most %d fit into the log", len(canonical), maxBatch/2)
	}
	for {
		r, err := e.prepare(name, c)
		if err != nil {
			return false, err
		}
		isNew := false // the writer's until submit has its answer
		err = e.submit(ctx, func(b *batch) error {
			if len(b.events) > 0 {
				return errLater
			}
			p := b.state.placements[name]
			switch isNew = p == nil; {
			case p != nil && (!change || string(p.canonical) == string(canonical)):
				return nil
			case p == nil && len(b.state.placements) >= maxPlacements:
				return api.Fieldf("/name", "%q would be one more than %d placements: delete one", name, maxPlacements)
			case !r.fits(p), !r.claim():
				return errMoved
			}
			b.ready = r
			return b.only(&eventlog.Event{Time: now, Placement: name, Body: &eventlog.PlacementPut{Config: canonical}})
		})
		if r.claim() { // the writer has not, and will not
			e.state.budget.Charge(-r.held)
		}
		switch {
		case err == nil:
			return isNew, nil
		case !errors.Is(err, errMoved):
			return false, err
		}
	}
}

// prepare takes memory for a placement and builds its learner, if it needs a new one. What cannot be built must not be
// in the log.
func (e *Engine) prepare(name string, c *Config) (*prepared, error) {
	s := e.state
	charge, err := s.charge(c)
	if err != nil {
		return nil, err
	}
	r := &prepared{charge: charge, held: charge}
	goesOn := false
	e.mu.RLock()
	if p := s.placements[name]; p != nil {
		r.placement, r.changed = p, p.changed
		if goesOn = p.config.sameLearner(c); goesOn {
			r.held = max(charge-p.charged, 0)
		}
	}
	e.mu.RUnlock()
	if err := s.budget.Hold(r.held); err != nil {
		return nil, fmt.Errorf("placement %q: %w: %w: its rows have %d columns, keep is %d and memory %d: lower the buckets of its features, keep or memory, "+
			"delete another placement, or give the service more, in [limits] memory", name, ErrMemory, err, c.schema.Width(), c.Keep, c.Memory)
	}
	if goesOn {
		return r, nil
	}
	if r.worker, err = newWorker(s.build, c, 0); err != nil {
		s.budget.Charge(-r.held)
		return nil, err
	}
	return r, nil
}
