package decision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// Match reports why a placement of a revision must not be changed; the revision of one that is not there is 0. A nil
// Match lets every change through.
type Match func(revision uint64) error

func (m Match) check(p *placement) error {
	switch {
	case m == nil:
		return nil
	case p == nil:
		return m(0)
	}
	return m(p.changed)
}

// Change says what a put may do.
type Change struct {
	Reset bool  // begin the learner again
	Match Match // of the placement as it is
}

// Put is Change of a placement whose learner must not begin again.
func (e *Engine) Put(ctx context.Context, name string, config []byte, now int64) (created bool, err error) {
	return e.Change(ctx, name, config, Change{}, now)
}

// Change creates a placement or changes it; its decisions stay. An equal configuration changes nothing. If
// the policy, the features, the size, the horizon or the seed change, the learner cannot go on. One that has
// learned something then begins again if how.Reset says so: its state is kept as a version, and open
// decisions of before teach the new one nothing. Without Reset the error is a *LossError. Others are
// *api.FieldError, ErrMemory, those of how.Match, ErrStopped and that of ctx.
//
// The learner is built on the caller's goroutine, so no other caller waits.
func (e *Engine) Change(ctx context.Context, name string, config []byte, how Change, now int64) (created bool, err error) {
	return e.put(ctx, name, config, now, &how)
}

// Create is Put for a new placement. It does not change an existing one.
func (e *Engine) Create(ctx context.Context, name string, config []byte, now int64) error {
	_, err := e.put(ctx, name, config, now, nil)
	return err
}

// put changes nothing that is there if how is nil.
func (e *Engine) put(ctx context.Context, name string, config []byte, now int64, how *Change) (created bool, err error) {
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
		if err := e.mayChange(name, c, how); err != nil {
			return false, err
		}
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
			isNew = p == nil
			switch err := how.check(p, c); {
			case p != nil && (how == nil || string(p.canonical) == string(canonical)):
				return nil
			case err != nil:
				return err
			case p == nil && len(b.state.placements) >= maxPlacements:
				return api.Fieldf("/name", "%q would be one more than %d placements: delete one", name, maxPlacements)
			case !r.fits(p), !r.claim():
				return errMoved
			}
			b.ready = r
			return b.only(&eventlog.Event{Time: now, Placement: name, Body: p.change(c, canonical)})
		})
		if r.claim() { // the writer did not use it, and will not
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

// mayChange refuses a change before its learner is built.
func (e *Engine) mayChange(name string, c *Config, how *Change) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return how.check(e.state.placements[name], c)
}

// check reports why a placement, nil for a new one, must not have a configuration. A change that has happened is not
// refused.
func (how *Change) check(p *placement, c *Config) error {
	switch {
	case how == nil || p != nil && string(p.canonical) == string(c.Canonical()):
		return nil
	case p == nil || how.Reset || p.config.sameLearner(c) || !p.hasLearned():
		return how.Match.check(p)
	}
	if err := how.Match.check(p); err != nil {
		return err
	}
	return p.loss(c)
}

// loss is the error of a change that would begin the learner again.
func (p *placement) loss(c *Config) error {
	return &LossError{
		Placement: p.name, Fields: p.config.learnerFields(c),
		Loss: api.Loss{Rounds: p.worker.seen.Load().observed + p.worker.given.Load() - p.worker.done.Load(), Versions: len(p.numbersOf(p.worker))},
	}
}

// change is the event of a change.
func (p *placement) change(c *Config, canonical []byte) eventlog.Body {
	if p == nil || p.config.sameLearner(c) {
		return &eventlog.PlacementPut{Config: canonical}
	}
	return &eventlog.LearnerReset{Config: canonical, Note: "before a change of " + abbreviated(p.config.learnerFields(c))}
}

// abbreviated lists fields for a note.
func abbreviated(fields []string) string {
	return api.Abbreviate(strings.Join(fields, ", "), maxVersionNote-100)
}

// prepare reserves memory for a placement and builds its learner, if it needs a new one. A placement whose
// learner cannot be built must not enter the log.
func (e *Engine) prepare(name string, c *Config) (*prepared, error) {
	s := e.state
	if err := e.checkItems(name, c); err != nil {
		return nil, err
	}
	r := new(prepared)
	goesOn, charged := false, int64(0)
	var others []*worker
	e.mu.RLock()
	if p := s.placements[name]; p != nil {
		r.placement, r.changed = p, p.changed
		if goesOn = p.config.sameLearner(c); goesOn {
			charged = p.charged
		}
		others = p.learners()
	}
	charge, err := s.charge(c, others...)
	e.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	r.held = max(charge-charged, 0)
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
