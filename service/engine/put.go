package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
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
	return m(p.revision())
}

// Change says what a put may do.
type Change struct {
	Reset   bool  // begin the learner again
	Relearn bool  // let another learner learn from the log, which then takes its place; not with Reset
	Match   Match // of the placement as it is

	// Uses reports whether the placement may begin to use the catalogue of another one; nil lets it use every one.
	Uses func(owner string) bool
}

// Put is Change of a placement whose learner must not begin again.
func (e *Engine) Put(ctx context.Context, name string, config []byte, now int64) (created bool, err error) {
	return e.Change(ctx, name, config, Change{}, now)
}

// Change creates a placement or changes it; its decisions stay. An equal configuration changes nothing. If
// the policy, the features, the size, the horizon or the seed change, the learner cannot go on. One that has
// learned something then begins again if how.Reset says so: its state is kept as a version, and open
// decisions of before teach the new one nothing. If how.Relearn says so, a second learner learns what the log
// has of the placement while the first one decides; [Engine.Exchange] then exchanges them. The features must
// be the same. Without either the error is a *LossError.
//
// During a relearning the configuration of the second learner changes nothing, that of the first one gives
// the relearning up, and others are ErrRelearning, unless the learner begins again. Other errors are *api.FieldError,
// ErrMemory, ErrUnread, those of how.Match, ErrStopped and that of ctx.
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

const unchanged = "the placement was not changed"

// put changes nothing that is there if how is nil.
func (e *Engine) put(ctx context.Context, name string, config []byte, now int64, how *Change) (created bool, err error) {
	c, err := e.parsePut(name, config)
	if err != nil {
		return false, err
	}
	canonical := c.Canonical()
	for {
		switch err := e.mayChange(name, c, how); {
		case err == errSame:
			return false, nil
		case err != nil:
			return false, err
		}
		from, err := e.first(ctx, how)
		if err != nil {
			return false, unfinished(err, unchanged)
		}
		r, err := e.prepare(ctx, name, c, how)
		if err != nil {
			return false, unfinished(err, unchanged)
		}
		isNew := false // the writer's until submit has its answer
		err = e.submit(ctx, func(b *batch) error {
			if len(b.events) > 0 {
				return errLater
			}
			p := b.state.placements[name]
			isNew = p == nil
			switch err := how.check(p, c); {
			case how == nil && p != nil || err == errSame:
				return nil
			case err != nil:
				return err
			case p == nil && len(b.state.placements) >= maxPlacements:
				return errPlacements(name)
			case !r.fits(p, c), !r.claim():
				return errMoved
			}
			b.ready = r
			return b.only(&eventlog.Event{Time: now, Placement: name, Body: p.change(c, canonical, how, from)})
		})
		unused := r.claim() // by the writer, which will not use it either
		if unused {
			e.state.budget.Charge(-r.held)
		}
		e.state.budget.Charge(-r.spare)
		switch {
		case err == nil:
			return isNew, nil
		case errors.Is(err, errMoved):
		case unused:
			return false, unfinished(err, unchanged)
		default:
			return false, unfinished(err, "the placement may have been changed: read it, or send the same configuration again, which is safe")
		}
	}
}

// parsePut reads the configuration of a put.
func (e *Engine) parsePut(name string, config []byte) (*setup.Config, error) {
	if !setup.IsName(name) {
		return nil, api.Fieldf("/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':', and be no step of a path", name, setup.MaxName)
	}
	c, err := setup.Parse(config)
	if err != nil {
		return nil, err
	}
	if n := len(c.Canonical()); n > eventlog.MaxBatch/2 {
		return nil, api.Fieldf("", "the configuration has %d bytes, at most %d fit into the log", n, eventlog.MaxBatch/2)
	}
	return c, nil
}

func errPlacements(name string) error {
	return api.Fieldf("/name", "%q would be one more than %d placements: delete one", name, maxPlacements)
}

// mayChange refuses a change before its learner is built. What is wrong with a policy is said before what the change
// would lose.
func (e *Engine) mayChange(name string, c *setup.Config, how *Change) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	err := how.check(e.state.placements[name], c)
	if errors.Is(err, ErrLoss) {
		if _, wrong := e.state.sizeOf(c); wrong != nil {
			return wrong
		}
	}
	return err
}

// check reports why a placement, nil for a new one, must not have a configuration, errSame if it has it. A change that
// has happened is not refused.
func (how *Change) check(p *placement, c *setup.Config) error {
	switch {
	case how == nil:
		return nil
	case p != nil && p.has(c):
		return errSame
	}
	if err := how.Match.check(p); err != nil {
		return err
	}
	switch {
	case p == nil || string(p.canonical) == string(c.Canonical()):
		return nil
	case p.relearning != nil && !how.Reset, p.relearning != nil && p.config.SameLearner(c): // which the exchange would undo
		return fmt.Errorf("placement %q: %w", p.name, ErrRelearning)
	}
	if done, err := p.ends(c, how); done || err != nil {
		return err
	}
	switch {
	case how.Reset || p.config.SameLearner(c):
		return nil
	case how.relearns() && !p.config.Schema().Equal(c.Schema()):
		return api.Fieldf("/features", "are not those of the decisions in the log, from which a learner could learn them")
	case how.Relearn || !p.hasLearned():
		return nil
	}
	return p.loss(c)
}

// mayUse reports whether a placement may have a configuration with the catalogue of another one. before is its present
// configuration, nil for a new one.
func (how *Change) mayUse(c, before *setup.Config) bool {
	return how == nil || how.Uses == nil || before != nil && before.CatalogueOf == c.CatalogueOf || how.Uses(c.CatalogueOf)
}

func (how *Change) isReset() bool { return how != nil && how.Reset }

// relearns reports whether a second learner is to learn from the log.
func (how *Change) relearns() bool { return how != nil && how.Relearn && !how.Reset }

// has reports whether the placement has a configuration already, or will have it after its relearning.
func (p *placement) has(c *setup.Config) bool {
	if p.relearning != nil {
		return bytes.Equal(p.relearning.worker.config.Canonical(), c.Canonical())
	}
	return bytes.Equal(p.canonical, c.Canonical())
}

// first returns the first entry of the log, if a learner is to learn from it.
func (e *Engine) first(ctx context.Context, how *Change) (uint64, error) {
	bounded, ok := e.store.(eventlog.Bounded)
	if !how.relearns() || !ok {
		return 1, nil
	}
	x, err := bounded.Extent(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return x.First, nil
}

// loss is the error of a change that would begin the learner again.
func (p *placement) loss(c *setup.Config) error {
	smaller := 0
	if c.MaxSize < p.config.MaxSize {
		smaller = c.MaxSize
	}
	return &LossError{
		Placement: p.name, Fields: p.config.LearnerFields(c), MaxSize: smaller, OtherRows: !p.config.Schema().Equal(c.Schema()),
		Loss: api.Loss{Rounds: p.worker.rounds(), Versions: len(p.numbersOf(p.worker))},
	}
}

// change is the event of a change. The log has entries from one on.
func (p *placement) change(c *setup.Config, canonical []byte, how *Change, from uint64) eventlog.Body {
	switch {
	case p == nil:
		return &eventlog.PlacementPut{Config: canonical}
	case p.relearning != nil && bytes.Equal(p.canonical, canonical):
		return &eventlog.RelearningEnded{Reason: "the configuration of before was put"}
	case p.config.SameLearner(c):
		return &eventlog.PlacementPut{Config: canonical}
	case !how.Reset && p.adoptable(c) >= 0:
		variant := p.experiment.Name(p.adoptable(c))
		return &eventlog.LearnerAdopted{Config: canonical, Variant: variant, Note: fmt.Sprintf("before variant %q of the experiment %q", variant, p.config.Experiment.Name)}
	}
	note := "before a change of " + abbreviated(p.config.LearnerFields(c))
	if how.relearns() {
		return &eventlog.RelearningBegun{Config: canonical, From: max(p.rows, from), Note: note}
	}
	return &eventlog.LearnerReset{Config: canonical, Note: note}
}

// abbreviated lists fields for a note.
func abbreviated(fields []string) string {
	return api.Abbreviate(strings.Join(fields, ", "), maxVersionNote-100)
}

// prepare reserves memory for a placement and builds its learner, if it needs a new one. A placement whose
// learner cannot be built must not enter the log.
func (e *Engine) prepare(ctx context.Context, name string, c *setup.Config, how *Change) (*prepared, error) {
	s := e.state
	r := new(prepared)
	var err error
	if r.moved, r.spare, err = e.checkItems(ctx, name, c, how); err != nil {
		return nil, err
	}
	goesOn, charged := false, int64(0)
	var others []*worker
	e.mu.RLock()
	if p := s.placements[name]; p != nil {
		r.placement, r.changed = p, p.changed
		if goesOn = p.config.SameLearner(c) || !how.isReset() && p.adoptable(c) >= 0; goesOn {
			charged = p.charged
		}
		others = p.learners()
	}
	charge, err := s.charge(c, others...)
	if how.relearns() && r.placement != nil && !goesOn {
		charge = s.chargeOfSecond(c)
	}
	e.mu.RUnlock()
	if err != nil {
		s.budget.Charge(-r.spare)
		return nil, err
	}
	r.held = max(charge-charged, 0)
	if err := s.budget.Hold(r.held); err != nil {
		s.budget.Charge(-r.spare)
		return nil, fmt.Errorf("placement %q: %w: %w: its rows have %d columns, keep is %d and memory %d: lower the buckets of its features, keep or memory, "+
			"delete another placement, or give the service more, in [limits] memory", name, ErrMemory, err, c.Schema().Width(), c.MaxVersions, c.MemoryBytes)
	}
	if !goesOn {
		r.worker, err = newWorker(s.build, c)
	}
	if err == nil {
		r.variants, err = e.variants(r.placement, c)
	}
	if err != nil {
		s.budget.Charge(-r.held - r.spare)
		return nil, err
	}
	return r, nil
}

// variants builds the learners of the variants that need one, without holding the writer up. If the placement changes
// meanwhile, they are not used.
func (e *Engine) variants(p *placement, c *setup.Config) ([]*worker, error) {
	e.mu.RLock()
	begins := p.newVariants(c)
	e.mu.RUnlock()
	if !begins {
		return nil, nil
	}
	return buildVariants(e.state.build, nil, c)
}
