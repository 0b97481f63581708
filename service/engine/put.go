package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Put is Change without permission to restart the learner.
func (e *Engine) Put(ctx context.Context, name string, config []byte, now int64) (created bool, err error) {
	return e.Change(ctx, name, config, Change{}, now)
}

// Change creates a placement or changes it; its decisions stay. An equal configuration changes nothing. If the policy,
// features, size, horizon or seed change, the learner cannot continue. A learner without rounds is simply replaced.
// Otherwise, with how.Reset a new learner starts: the old state is kept as a version, and decisions still open teach
// the new one nothing. With how.Relearn a second learner reads the placement's log while the first one decides, and
// [Engine.Exchange] then exchanges them; the features must stay the same. how.Accept exchanges them even if the second
// learner has learned less than half as many rounds, but not before it has read the log or while an alarm holds rounds
// back: then the error is ErrNotReady. Without these the error is a *LossError.
//
// During a relearning, putting the second learner's configuration is a no-op, the first learner's cancels the
// relearning, and others return ErrRelearning, unless the learner is reset. Other errors are *api.FieldError,
// ErrMemory, ErrUnread, the errors of how.Match, ErrStopped and ctx's.
//
// The learner is built on the caller's goroutine, so no other caller waits.
func (e *Engine) Change(ctx context.Context, name string, config []byte, how Change,
	now int64) (created bool, err error) {
	if how.Accept {
		return false, e.acceptRelearned(ctx, name, config, &how, now)
	}
	return e.put(ctx, name, config, now, &how)
}

// Create is Put for a new placement. It does not change an existing one.
func (e *Engine) Create(ctx context.Context, name string, config []byte, now int64) error {
	_, err := e.put(ctx, name, config, now, nil)
	return err
}

const unchanged = "the placement was not changed"

// put leaves an existing placement as it is if how is nil.
func (e *Engine) put(ctx context.Context, name string, config []byte, now int64,
	how *Change) (created bool, err error) {
	c, err := e.parsePut(name, config)
	if err != nil {
		return false, err
	}
	for {
		switch err := e.mayChange(name, c, how); {
		case err == state.ErrSame:
			return false, nil
		case err != nil:
			if loss, ok := errors.AsType[*LossError](err); ok {
				e.noteRemoved(ctx, name, c, &loss.Loss)
			}
			return false, err
		}
		from := uint64(1)
		if how.Relearns() {
			var err error
			if from, err = e.firstEntry(ctx); err != nil {
				return false, unfinished(err, unchanged)
			}
		}
		r, err := e.prepare(ctx, name, c, how)
		if err != nil {
			return false, unfinished(err, unchanged)
		}
		isNew := false // owned by the writer until submit returns
		err = e.submit(ctx, func(b *state.Batch) (err error) {
			isNew, err = b.Put(name, c, how, from, r, now)
			return err
		})
		unused := r.Claim() // by the writer, which will not use it either
		if unused {
			e.state.Budget.Charge(-r.Held)
		}
		e.state.Budget.Charge(-r.Spare)
		switch {
		case err == nil:
			return isNew, nil
		case errors.Is(err, page.ErrStale):
		case unused:
			return false, unfinished(err, unchanged)
		default:
			return false, unfinished(err, "the placement may have been changed: read it, or send the same "+
				"configuration again, which is safe")
		}
	}
}

// parsePut reads the configuration of a put.
func (e *Engine) parsePut(name string, config []byte) (*setup.Config, error) {
	if !setup.IsName(name) {
		return nil, api.Fieldf("/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':', and "+
			"be no step of a path", name, setup.MaxName)
	}
	c, err := setup.Parse(config)
	if err != nil {
		return nil, err
	}
	if x := c.Experiment; x != nil { // logs may hold larger ones
		if err := api.CheckAmount("/experiment/min_gain", x.MinGain, 0); err != nil {
			return nil, err
		}
	}
	if n := len(c.Canonical()); n > eventlog.MaxBatch/2 {
		return nil, api.Fieldf("", "the configuration has %d bytes, at most %d fit into the log", n,
			eventlog.MaxBatch/2)
	}
	return c, nil
}

// mayChange refuses a change before its learner is built. It reports an invalid policy before the losses of the change.
func (e *Engine) mayChange(name string, c *setup.Config, how *Change) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	err := how.Check(e.state.Placements[name], c)
	if errors.Is(err, ErrLoss) {
		if _, wrong := e.state.SizeOf(c); wrong != nil {
			return wrong
		}
	}
	return err
}

// firstEntry returns the log's first entry. Its errors are ErrUnread and ctx's.
func (e *Engine) firstEntry(ctx context.Context) (uint64, error) {
	x, err := e.store.Extent(ctx)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	e.beginsAt(x.First)
	return x.First, nil
}

// beginsAt notes that the log has lost all entries before the given one.
func (e *Engine) beginsAt(first uint64) {
	for was := e.state.First.Load(); was < first && !e.state.First.CompareAndSwap(was, first); {
		was = e.state.First.Load()
	}
}

// firstLimit bounds the wait for the log's first entry.
const firstLimit = 2 * time.Second

// askFirst calls firstEntry at most once a second: a client with unknown ids must not load the log's servers. Callers wait
// while another one asks, and within the next second they get the same error.
func (e *Engine) askFirst(ctx context.Context) error {
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Since(e.firstAt) < time.Second {
		return e.firstErr
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), firstLimit)
	defer cancel()
	if _, e.firstErr = e.firstEntry(limited); limited.Err() != nil {
		e.firstErr = fmt.Errorf("%w: no answer within %v", ErrUnread, firstLimit)
	}
	e.firstAt = time.Now()
	return e.firstErr
}

// prepare reserves memory for a placement and, if it needs a new learner, builds that learner. A placement must not
// enter the log unless its learner can be built.
func (e *Engine) prepare(ctx context.Context, name string, c *setup.Config, how *Change) (*state.Prepared, error) {
	s := e.state
	r := new(state.Prepared)
	var err error
	if r.Refit, r.Spare, err = e.checkItems(ctx, name, c, how); err != nil {
		return nil, err
	}
	goesOn, charged := false, int64(0)
	var others []*state.Worker
	e.mu.RLock()
	if p := s.Placements[name]; p != nil {
		r.Placement, r.Changed = p, p.Changed
		if goesOn = p.Config.SameLearner(c) || !how.IsReset() && p.Adoptable(c) >= 0; goesOn {
			charged = p.Charged
		}
		others = p.Learners()
	}
	charge, err := s.Charge(c, others...)
	if how.Relearns() && r.Placement != nil && !goesOn {
		charge = s.ChargeOfSecond(c)
	}
	e.mu.RUnlock()
	if err != nil {
		s.Budget.Charge(-r.Spare)
		return nil, err
	}
	r.Held = max(charge-charged, 0)
	if err := s.Budget.Hold(r.Held); err != nil {
		s.Budget.Charge(-r.Spare)
		return nil, fmt.Errorf("placement %q: %w: %w: its rows have %d columns, max_versions is %d and "+
			"memory_bytes %d: lower the columns of its features, max_versions or memory_bytes, "+
			"delete another placement, or give the service more, in [limits] memory", name, ErrMemory, err,
			c.Schema().Width(), c.MaxVersions, c.MemoryBytes)
	}
	if !goesOn {
		r.Worker, err = state.NewWorker(s.Build, c)
	}
	if err == nil {
		r.Variants, err = e.variants(r.Placement, c)
	}
	if err != nil {
		s.Budget.Charge(-r.Held - r.Spare)
		return nil, err
	}
	return r, nil
}

// variants builds the learners of the variants that need one, without holding the writer up. If the placement changes
// meanwhile, they are not used.
func (e *Engine) variants(p *state.Placement, c *setup.Config) ([]*state.Worker, error) {
	e.mu.RLock()
	begins := p.NewVariants(c)
	e.mu.RUnlock()
	if !begins {
		return nil, nil
	}
	return state.BuildVariants(e.state.Build, nil, c)
}

// Preview returns the effects that [Engine.Change] would have, and changes nothing. It ignores how.Reset and
// how.Relearn: the answer covers both. It returns Change's errors except *LossError.
func (e *Engine) Preview(ctx context.Context, name string, config []byte, how Change,
	now int64) (v api.Preview, err error) {
	c, err := e.parsePut(name, config)
	if err != nil {
		return v, err
	}
	how.Reset, how.Relearn = false, false
	e.mu.RLock()
	err = e.state.Preview(&v, name, c, how)
	var warnings []string
	if v.Change != api.PreviewNone {
		warnings = append(e.changeWarnings(name, c, now), sizeWarnings(v.MaxSize)...)
	}
	e.mu.RUnlock()
	if err != nil {
		return v, err
	}
	if v.Lost != nil {
		e.noteRemoved(ctx, name, c, v.Lost)
	}
	r, err := e.prepare(ctx, name, c, &how)
	if err != nil {
		return v, err
	}
	r.Claim()
	e.state.Budget.Charge(-r.Held - r.Spare)
	v.Placement = c.Answer()
	v.Placement.Notes = slices.DeleteFunc(v.Placement.Notes, func(note string) bool {
		return slices.ContainsFunc(warnings, func(warning string) bool { return strings.Contains(warning, note) })
	})
	limits, err := e.limitWarnings(ctx, name, c)
	v.Placement.Warnings = append(append(v.Placement.Warnings, warnings...), limits...)
	return v, err
}

// changeWarnings warns of fields that requests do not need before a change, of the end of a hold-out's comparison, which
// no undo brings back, and of a comparison that memory is too small for.
func (e *Engine) changeWarnings(name string, c *setup.Config, now int64) (list []string) {
	p := e.state.Placements[name]
	if p == nil {
		return nil
	}
	for _, duty := range p.Config.NewDuties(c, time.Unix(0, now)) {
		list = append(list, "check your callers before you make this change: "+duty+", or the service refuses it")
	}
	if p.Holdout != nil && p.Config.EndsHoldout(c) {
		if g, ok := p.Holdout.Gain(); ok {
			list = append(list, fmt.Sprintf("the comparison with shoppers held out since %s ends, with %d decisions: "+
				"undoing this change begins another one", g.Since.Format("2006-01-02 15:04 UTC"), g.Decisions))
		}
	}
	if held := p.MemorySeconds(c); held > 0 && held < c.Window().Seconds() && p.Config.WaitsOtherwise(c) {
		list = append(list, fmt.Sprintf("at the present rate memory_bytes hold the decisions of %s, which is shorter than "+
			"the attribution window of %s: report decisions without a sale, or raise memory_bytes, because decisions that "+
			"wait longer leave memory before their outcome, and stop an experiment",
			time.Duration(held*1e9).Round(time.Second), c.AttributionWindow))
	}
	return list
}
