package engine

import (
	"context"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/page"
)

// Try returns the offer that a request would get now, and its explanation. It records nothing and changes nothing. Errors are
// those of [page.Try].
func (v *View) Try(ctx context.Context, r *api.Request, now int64) (*offer.Offer, *api.Explanation, error) {
	return page.Try(ctx, v.current(), r, now, func() uint64 { return v.placement.upcoming.Load() + 1 })
}

// Explain explains a remembered decision, as far as the log and the policies that are still there allow it. Errors are those
// of [Engine.Decision].
func (e *Engine) Explain(ctx context.Context, placement, id string) (*api.Explanation, error) {
	placement, err := e.placementOf(ctx, placement, id)
	if err != nil {
		return nil, err
	}
	f, err := e.recallNow(ctx, placement, id)
	if err != nil {
		return nil, err
	}
	if f == nil || f.offer == nil {
		return nil, e.missing(placement, id)
	}
	view, err := e.View(placement)
	if err != nil {
		return nil, err
	}
	v, l := view.current(), new(page.Logged)
	l.Offer, l.Complete = e.recent.Complete(v.Name, v.Born, f.offer)
	e.mu.RLock()
	sameRows := f.was.entry > view.placement.rows
	l.OwnRows = f.was.isOf(view.placement.learner)
	e.mu.RUnlock()
	if page.KnowsCandidates(l.Offer) && sameRows && v.Catalogue != nil {
		request, whole, err := e.rebuild(ctx, v, l.Offer)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			l.Unknown = append(l.Unknown, "the candidates that were not shown: "+err.Error())
		default:
			l.Offer, l.Request = whole, request
		}
	}
	w := view.worker
	l.Policy = v.Policy
	if v.Routes != nil {
		if class := v.Routes.ClassOf(l.Variant); class >= 0 && class < len(view.challengers) && view.challengers[class] != nil {
			w, l.Policy = view.challengers[class], *v.Variants[class]
		}
	}
	then := w.PolicyOf(l.PolicyEntry)
	l.Policy.Policy, l.Policy.Entry = then.Policy, then.Entry
	if !l.OwnRows || l.Width != v.Config.Schema().Width() {
		l.Policy.Policy = nil
		l.Unknown = append(l.Unknown, "the utilities: the features or the learner of the placement have changed since")
	}
	if l.Variant != "" && (v.Routes == nil || f.was.entry <= v.Routes.Number) {
		l.Policy.Policy = nil
		l.Unknown = append(l.Unknown, fmt.Sprintf("the utilities: the experiment of the variant %q has ended", l.Variant))
	}
	return page.Explain(v, l), nil
}

// rebuild returns the request and the candidates of an offer from the catalogue at its version.
func (e *Engine) rebuild(ctx context.Context, v *page.View, o *offer.Offer) (*page.Request, *offer.Offer, error) {
	if o.Candidates > page.MaxRebuilt {
		return nil, nil, fmt.Errorf("%d items were candidates, and an explanation has at most %d", o.Candidates, page.MaxRebuilt)
	}
	items := v.Catalogue.Freeze()
	if err := Rewind(ctx, e.store, items, o.Catalogue.Version, maxUndone); err != nil {
		return nil, nil, err
	}
	return page.Rebuild(ctx, v.Config, o, items)
}
