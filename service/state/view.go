package state

import (
	"context"
	"time"

	"vitrine/service/api"
	"vitrine/service/live"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// View is a placement as it was after some log entry. A view never changes.
type View struct {
	Page        page.View // without the policies, which are newer than the entry
	Placement   *Placement
	Changed     uint64
	Worker      *Worker
	Challengers []*Worker      // by variant; their configurations never change
	fallback    string         // decides instead of the policy, or ""
	took        live.Latencies // nil without an experiment
}

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
