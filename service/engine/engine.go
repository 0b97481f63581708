package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// goroutines counts the running goroutines other than the writer.
type goroutines struct{ sync.WaitGroup }

// maxRest bounds the wait for stopped goroutines: a learner finishes its round, although the result is no longer needed.
const maxRest = time.Second

// rest waits a little for stopped goroutines.
func (g *goroutines) rest() {
	ended := make(chan struct{})
	go func() { g.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(maxRest):
	}
}

// Close waits for the running append. Proposals that are not durable by then fail with ErrStopped. A learner that is
// still busy after a second ends on its own after its round.
func (e *Engine) Close() {
	e.closing.Do(func() { close(e.quit); e.cancel() })
	<-e.stopped
	e.goroutines.rest()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.ReleaseAll() // the budget may outlive the engine
}

// about proposes an event about a placement, unless body returns nil.
func (e *Engine) about(ctx context.Context, name string, now int64,
	body func(p *state.Placement) (eventlog.Body, error)) error {
	return e.submit(ctx, func(b *state.Batch) error {
		if len(b.Events) > 0 {
			return state.ErrRetryBatch
		}
		p, err := b.State.Named(name)
		if err != nil {
			return err
		}
		what, err := body(p)
		if what == nil || err != nil {
			return err
		}
		return b.Only(&eventlog.Event{Time: now, Placement: name, Body: what})
	})
}

// Delete removes a placement and forgets its decisions, if how.Match permits it; a nil how does, and may name all
// sharers. It returns ErrNotFound, the errors of how.Match, ErrStopped or ctx's error.
func (e *Engine) Delete(ctx context.Context, name string, how *Change, now int64) error {
	if how == nil {
		how = new(Change)
	}
	return e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		if sharers := e.state.Sharers(name, how); sharers != "" {
			return nil, api.Fieldf("", "placement %q shares its catalogue with %s: change or delete these first", name,
				sharers)
		}
		return new(eventlog.PlacementDeleted), how.Match.Check(p)
	})
}

// Wait waits until the learners have learned all present log entries and published their policies.
func (e *Engine) Wait(ctx context.Context) error {
	var all []<-chan struct{}
	err := e.inspect(ctx, func(s *state.State) {
		all = s.Reached(func(*state.Placement, *state.Worker) bool { return true })
	})
	if err != nil { // all may still be the writer's
		return err
	}
	return wait(ctx, all...)
}

func wait(ctx context.Context, closed ...<-chan struct{}) error {
	for _, c := range closed {
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Placements returns the names of the placements, sorted.
func (e *Engine) Placements() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.state.Placements))
}

// View returns a placement as decisions see it now. It takes no lock.
func (e *Engine) View(name string) (*View, error) {
	p := (*e.state.Published.Load())[name]
	if p == nil {
		return nil, state.UnknownPlacement(name)
	}
	return p.View.Load(), nil
}

// Config returns the configuration of a placement. The caller must not change it.
func (e *Engine) Config(name string) (*setup.Config, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	return v.Config(), nil
}

// Revision returns a placement's configuration, which the caller must not change, and its revision. Each change
// gets a new revision.
func (e *Engine) Revision(name string) (*setup.Config, uint64, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, 0, err
	}
	return p.Config, p.Revision(), nil
}

// Log returns the identity of the log, which the services on it share; it is zero before the first entry.
func (e *Engine) Log() eventlog.Identity {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Position.Log
}

// Sequence returns the last entry that is part of the state.
func (e *Engine) Sequence() uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Position.Sequence
}

// Stats returns the counters of a placement.
func (e *Engine) Stats(name string) (api.Stats, error) {
	v, err := e.View(name)
	if err != nil {
		return api.Stats{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return v.Stats(e.state.First.Load()), nil
}

// StatsNow is [Engine.Stats] after asking the log for its first entry, before which decisions are forgotten, unless it
// was asked within the last second.
func (e *Engine) StatsNow(ctx context.Context, name string) (api.Stats, error) {
	if err := e.askFirst(ctx); err != nil {
		return api.Stats{}, err
	}
	return e.Stats(name)
}

// Series returns a placement's sums for the time span before now (0: all time), in at most points + 1 points.
func (e *Engine) Series(name string, now int64, span time.Duration, points int) (api.Series, error) {
	v, err := e.View(name)
	if err != nil {
		return api.Series{}, err
	}
	e.mu.RLock()
	s := v.Placement.Earnings.Series.Copy()
	e.mu.RUnlock()
	r := s.Report(name, v.Config().Window(), now, span, points)
	if v.Config().Mode == api.Experimenting {
		r.OverChance, r.OverBaseline = nil, nil // the comparison would mix the variants
	}
	return r, nil
}

// Recent returns the earnings of a placement's decisions in the time span before now (0: all decisions).
func (e *Engine) Recent(name string, now int64, span time.Duration) (r earnings.Recent, err error) {
	v, err := e.View(name)
	if err != nil {
		return r, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	r = v.Placement.Earnings.Series.Recent(now, span, v.Config().Window())
	r.Gains, r.Latency = v.Placement.Gains(r), v.Placement.Latency.Report()
	return r, nil
}

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

// planSpan is the time before now that plans are based on.
const planSpan = 28 * 24 * time.Hour

// Plan says how long an experiment with the given shares, the control's first, takes to show gains. See
// [abtest.Basis.Report].
func (e *Engine) Plan(name string, shares, gains []float64, now int64) (*api.ExperimentPlan, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	var b abtest.Basis
	b.Totals, b.Bound, b.Rate, b.Seconds = p.Earnings.Series.Past(now, planSpan, p.Config.Window())
	if p.Holdout != nil {
		b.Dispersion = p.Holdout.Dispersion()
	}
	if p.Experiment != nil {
		b.Dispersion = max(b.Dispersion, p.Experiment.Dispersion())
	}
	return b.Report(shares, p.Config.Holdout, gains, p.Config.Window().Seconds()), nil
}

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

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. The learner now learns the
// rounds that were held back. After an alarm about missing sales it skips the decisions in doubt, unless all is set.
// Without an alarm, ClearAlarm does nothing. It returns ErrNotFound, ErrStopped or ctx's error.
func (e *Engine) ClearAlarm(ctx context.Context, name string, all bool, now int64) error {
	return e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		if p.Earnings.Guard.Alarm() == nil {
			return nil, nil
		}
		return &eventlog.AlarmCleared{All: all}, nil
	})
}
