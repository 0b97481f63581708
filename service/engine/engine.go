package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"vitrine"
	"vitrine/bandit"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// stop stops the workers.
func (s *fold) stop() {
	for _, p := range s.placements {
		for _, w := range p.all() {
			w.Stop()
		}
	}
}

// end stops the workers and waits for them a little.
func (s *fold) end() {
	s.stop()
	s.rest()
}

// maxRest bounds the wait for stopped workers: each finishes its task, whose result nobody needs.
const maxRest = time.Second

func (s *fold) rest() {
	ended := make(chan struct{})
	go func() { s.workers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(maxRest):
	}
}

// Close waits for the running append. Proposals that are not durable by then fail with ErrStopped. A learner
// in a round that takes more than a second ends by itself after it.
func (e *Engine) Close() {
	e.closing.Do(func() { close(e.quit) })
	<-e.stopped
	e.state.rest()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.state.placements {
		e.state.release(p) // the budget may outlive the engine
	}
}

const (
	maxPlacements = 1000 // each has a learner, a goroutine and memory of its own
)

// about proposes an event about a placement, or none if body returns nil.
func (e *Engine) about(ctx context.Context, name string, now int64, body func(p *placement) (eventlog.Body, error)) error {
	return e.submit(ctx, func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		p, err := b.state.named(name)
		if err != nil {
			return err
		}
		what, err := body(p)
		if what == nil || err != nil {
			return err
		}
		return b.only(&eventlog.Event{Time: now, Placement: name, Body: what})
	})
}

// Delete removes a placement and forgets its decisions. Errors are ErrNotFound, those of match, ErrStopped
// and that of ctx.
func (e *Engine) Delete(ctx context.Context, name string, match Match, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if sharers := e.state.sharers(name); len(sharers) > 0 {
			return nil, api.Fieldf("", "placement %q has the catalogue of %s: change or delete these first", name, strings.Join(sharers, ", "))
		}
		return new(eventlog.PlacementDeleted), match.check(p)
	})
}

// Wait waits until the learners have learned all entries now in the log and published their policies.
func (e *Engine) Wait(ctx context.Context) error {
	var all []<-chan struct{}
	err := e.inspect(ctx, func(s *fold) {
		for _, p := range s.placements {
			for _, w := range p.all() {
				all = append(all, w.Reached())
			}
		}
	})
	for _, reached := range all {
		err = cmp.Or(err, wait(ctx, reached))
	}
	return err
}

// wait waits for a channel to be closed.
func wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Placements returns the names of the placements, sorted.
func (e *Engine) Placements() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.state.placements))
}

// Config returns the configuration of a placement. The caller must not change it.
func (e *Engine) Config(name string) (*setup.Config, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	return v.Config(), nil
}

// Revision returns the configuration of a placement as Config does, and its revision, which is another one after every change.
func (e *Engine) Revision(name string) (*setup.Config, uint64, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, 0, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return v.Config(), v.placement.revision(), nil
}

// Decision is the state of a decision.
type Decision struct {
	Placement string
	Offer     *offer.Offer // shared: do not change it
	Time      int64
	Status    string // "open", "chosen", "expired", "deferred", "withdrawn", "evicted" or "late"
	Choice    string // the item that was taken, "" for none

	Earned      float64 // by the choice, with its corrections
	Corrections []api.Correction
}

// Decision returns a remembered decision of a placement, or ErrNotFound. An empty name means the placement
// that Find returns, with its errors. Other errors are ErrUnread and that of ctx.
func (e *Engine) Decision(ctx context.Context, placement, id string) (Decision, error) {
	placement, err := e.placementOf(ctx, placement, id)
	if err != nil {
		return Decision{}, err
	}
	f, err := e.recallNow(ctx, placement, id)
	if err != nil {
		return Decision{}, err
	}
	if f == nil || f.offer == nil {
		return Decision{}, unknownDecision(id)
	}
	d := Decision{Placement: placement, Offer: f.offer, Time: f.was.time, Status: f.was.status.String()}
	if f.was.choice > 0 {
		d.Choice, d.Earned = f.offer.IDs()[f.was.choice-1], f.was.earned(priceOf(f.offer, f.was.choice))
	}
	for _, c := range f.was.corrections() {
		given := api.Correction{ID: c.id, Item: d.Choice}
		if !c.withdraws {
			given.Value = &c.value
		}
		d.Corrections = append(d.Corrections, given)
	}
	return d, nil
}

// Log returns the identity of the log, which the services on it share; it is zero before the first entry.
func (e *Engine) Log() eventlog.Identity {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.position.Log
}

// Sequence returns the last entry that is part of the state.
func (e *Engine) Sequence() uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.position.Sequence
}

// Stats returns the counters of a placement.
func (e *Engine) Stats(name string) (api.Stats, error) {
	v, err := e.View(name)
	if err != nil {
		return api.Stats{}, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, config := v.placement, v.Config()
	c := &p.earnings.Counts
	seen, current := v.worker.Progress(), v.worker.Current()
	s := api.Stats{
		Placement: name, Mode: config.Mode,
		Decisions: c.Offered, Outcomes: c.Chosen, Expired: c.Expired, Withdrawn: c.Withdrawn, Late: c.Late, Corrected: c.Corrected, Pending: len(p.open.heap), Memory: p.open.bytes + p.closed.bytes,
		Charged:      p.charged + p.items.charged + p.items.of.ListBytes(),
		ExpiredEarly: c.Evicted, MemorySeconds: p.pace.Seconds(config.MemoryBytes),
		PolicyEntry: current.Entry, Lag: seen.Lag,
		Learned: seen.Learned, Skipped: seen.Skipped, Forgotten: seen.Forgotten, Unlearned: c.Unlearned, Stale: c.Stale, Broken: seen.Broken, Problem: seen.Problem,
		Versions: p.numbersOf(nil),
		ByPolicy: c.Arms[0], ByChance: c.Arms[1], ByBaseline: c.Arms[2],
		Calibration: c.Calibration, Shadow: c.Shadow,
	}
	s.RememberedSince = p.rememberedSince()
	if v.page.Catalogue != nil {
		head := v.page.Catalogue.Head()
		s.Items, s.CatalogueEntry = head.Items, head.Version
	}
	if p.relearning != nil {
		s.Relearning = p.relearning.progress()
	}
	s.Held = p.open.report()
	if text := p.sound.Problem(); text != "" {
		s.Unsound, s.Problem = true, cmp.Or(s.Problem, text)
	}
	s.Clipped, s.Outliers = p.sound.Clipped.Load(), outliersOf(current.Policy, config.Schema())
	s.Categories, s.Guard, s.Eras = config.Schema().Categories(), p.earnings.Guard.Report(p.fallsBack()), p.earnings.Eras.Report()
	s.Guard.Held, s.Drift = p.held.Rounds, p.earnings.Items.Drift()
	if c.Offered > 0 {
		s.ExplorationShare = float64(c.Chance) / float64(c.Offered)
	}
	s.Gains = p.gains(p.earnings.Series.Recent(0, 0))
	return s, nil
}

// outliersOf returns the values that the learner of a policy left out, nil if there are none.
func outliersOf(pi vitrine.Policy, schema *feature.Schema) *api.Outliers {
	p, ok := pi.(interface{ Outliers() bandit.Outliers })
	if !ok {
		return nil
	}
	o := p.Outliers()
	if o.Values == 0 {
		return nil
	}
	return &api.Outliers{Values: uint64(o.Values), Feature: schema.At(o.Column), Since: uint64(o.Since), Rounds: uint64(o.Rounds)}
}

// Series returns what a placement did in some time before now, all of it if span is 0, in at most points points and one more.
func (e *Engine) Series(name string, now int64, span time.Duration, points int) (api.Series, error) {
	v, err := e.View(name)
	if err != nil {
		return api.Series{}, err
	}
	e.mu.RLock()
	s := v.placement.earnings.Series.Copy()
	e.mu.RUnlock()
	r := s.Report(name, v.Config().Window(), now, span, points)
	if v.Config().Mode == api.Experimenting {
		r.OverChance, r.OverBaseline = nil, nil // all variants of the policy together are no answer
	}
	return r, nil
}

// Recent returns what the decisions of a placement in a span of time before now have earned. A span of 0 means all decisions.
func (e *Engine) Recent(name string, now int64, span time.Duration) (r earnings.Recent, err error) {
	v, err := e.View(name)
	if err != nil {
		return r, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	r = v.placement.earnings.Series.Recent(now, span)
	r.Gains = v.placement.gains(r)
	return r, nil
}

// gains are those of the running experiment, or else those of the policy.
func (p *placement) gains(r earnings.Recent) []api.Gain {
	if p.experiment != nil {
		return p.report().Gains()
	}
	return r.Gains
}
