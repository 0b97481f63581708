package state

import (
	"cmp"
	"slices"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// MemorySeconds returns how long an open decision stays in memory under a configuration at the present rate; 0 if that is
// not known.
func (p *Placement) MemorySeconds(c *setup.Config) float64 { return p.pace.Seconds(c.MemoryBytes) }

// Stats returns the counters of a placement, given the log's first entry.
func (v *View) Stats(first uint64) api.Stats {
	p, config := v.Placement, v.Config()
	c := &p.Earnings.Counts
	seen, current := v.Worker.Progress(), v.Worker.Current()
	s := api.Stats{
		Placement: p.Name, Mode: config.Mode,
		Decisions: c.Offered, Outcomes: c.Chosen, Expired: c.Expired, Withdrawn: c.Withdrawn, Late: c.Late,
		Corrected: c.Corrected, Pending: p.Open.Len(), Memory: p.Open.Bytes + p.closed.bytes,
		Charged:      p.Charged + p.Items.charged + p.Items.Of.ListBytes(),
		ExpiredEarly: c.Evicted, MemorySeconds: p.MemorySeconds(config),
		PolicyEntry: current.Entry, Lag: seen.Lag, Empty: c.Empty, EmptyShare: c.EmptyShare,
		Learned: seen.Learned, Skipped: seen.Skipped, Forgotten: seen.Forgotten, Unlearned: c.Unlearned, Stale: c.Stale,
		Broken: seen.Broken, Problem: seen.Problem,
		ExpiredEarlyShare: c.EvictedShare, SinceExpiredEarly: c.SinceEvicted, SinceUnlearned: c.SinceUnlearned, SinceSkipped: seen.Since,
		Versions: p.numbersOf(nil),
		ByPolicy: c.Arms[0].Report(), ByChance: c.Arms[1].Report(), ByBaseline: c.Arms[2].Report(),
		Calibration: c.Calibration, Shadow: c.Shadow,
	}
	s.RememberedSince, s.Shoppers = p.rememberedSince(first), p.memory.Stats()
	if v.Page.Catalogue != nil {
		head := v.Page.Catalogue.Head()
		s.Items, s.CatalogueEntry = head.Items, head.Version
	}
	if p.Relearning != nil {
		s.Relearning = p.relearningProgress()
	}
	s.Held = p.Open.Held()
	if text := p.sound.Problem(); text != "" {
		s.Unsound, s.Problem = true, cmp.Or(s.Problem, text)
	}
	s.Clipped, s.Outliers = p.sound.Clipped.Load(), learner.Outliers(current.Policy, config.Schema())
	s.Categories, s.Guard = config.Schema().Categories(), p.Earnings.Guard.Report(p.fallsBack())
	s.Guard.Held, s.Drift = p.held.Rounds, p.Earnings.Drift.Report()
	s.Fell = p.Earnings.Series.Fell(config.Window())
	s.ExplorationShare = float64(c.Chance) / float64(max(c.Offered, 1))
	s.Gains = p.Gains(p.Earnings.Series.Recent(0, 0, 0))
	return s
}

// Gains returns the gain over the hold-out, and the gains of the running experiment or, if no experiment runs, of the
// policy.
func (p *Placement) Gains(r earnings.Recent) []api.Gain {
	list := r.Gains
	if p.Experiment != nil {
		list = p.report().Gains()
	}
	if p.Holdout != nil {
		if g, ok := p.Holdout.Gain(); ok {
			list = slices.Insert(list, 0, g)
		}
	}
	return list
}
