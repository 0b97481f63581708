package state

import (
	"context"
	"maps"
	"time"

	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Took notes how long the decision of an offer took.
func (v *View) Took(o *offer.Offer, d time.Duration) {
	v.Placement.Latency.Add(d)
	if variant := v.took[o.Variant]; variant != nil {
		variant.Add(d)
	}
}

// Config returns the placement's configuration. The caller must not change it.
func (v *View) Config() *setup.Config { return v.Page.Config }

// Current returns what a decision sees now: the view with the current policies.
func (v *View) Current() *page.View {
	seen := v.Page
	decides := v.Worker.Current()
	if s := v.Worker.Substitute(); s != nil && v.fallback == api.FallbackVersion {
		decides = s
	}
	seen.Policy.Policy, seen.Policy.Entry = decides.Policy, decides.Entry
	if v.Challengers != nil {
		seen.Variants = make([]*page.Policy, len(v.Challengers))
		for i, w := range v.Challengers {
			if w != nil {
				decides := w.Current()
				seen.Variants[i] = &page.Policy{Policy: decides.Policy, Entry: decides.Entry, Config: w.Config}
			}
		}
	}
	return &seen
}

// Try returns the offer that a request would get now, and its explanation, without recording anything. The explanation
// compares with the shopper of the row typical. seen comes from [View.Current]. Errors are [page.Try]'s.
func (v *View) Try(ctx context.Context, seen *page.View, r *api.Request, now int64,
	typical []float64) (*offer.Offer, *api.Explanation, error) {
	return page.Try(ctx, seen, r, now, typical, func() uint64 { return v.Placement.LastIssued.Load() + 1 })
}

// Note records signs of an unsound policy in a decision.
func (p *Placement) Note(made *page.Decision) {
	if made.Clipped > 0 {
		p.sound.Clipped.Add(uint64(made.Clipped))
	}
	if made.Estimated {
		p.sound.Predicted(made.Usable)
	}
}

// publish makes the placement's state the view of later decisions. An alarm can change the view after any event.
func (s *State) publish(p *Placement) {
	v := View{
		Placement: p, Changed: p.Changed, Worker: p.Worker, fallback: p.fallsBack(),
		Page: page.View{Name: p.Name, Born: p.born, Config: p.Config, Catalogue: s.ItemsOf(p),
			Policy: page.Policy{Config: p.Worker.Config}},
	}
	v.Page.ByBaseline = v.fallback == api.FallbackBaseline
	v.Page.Holdout, v.Page.Routes = p.routes()
	if x := p.Experiment; x != nil {
		v.Challengers, v.took = x.workers, x.took
	}
	before := p.View.Load()
	if before == nil || before.Changed != v.Changed || before.Worker != v.Worker || before.fallback != v.fallback ||
		before.Page.Config != v.Page.Config || before.Page.Catalogue != v.Page.Catalogue ||
		before.Page.Holdout != v.Page.Holdout || before.Page.Routes != v.Page.Routes {
		p.View.Store(new(v))
	}
}

// PublishAll publishes all placements, and the list of placements.
func (s *State) PublishAll() {
	for _, p := range s.Placements {
		s.publish(p)
	}
	s.Published.Store(new(maps.Clone(s.Placements)))
}
