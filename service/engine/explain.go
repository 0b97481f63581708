package engine

import (
	"context"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Explain explains a remembered decision, as far as the log and the remaining policies allow it. Unless turn is nil, it
// calls turn once it has found the decision, and leave when it returns. It returns the errors of [Engine.Decision] and
// turn.
func (e *Engine) Explain(ctx context.Context, placement, id string, now int64,
	turn func() (leave func(), err error)) (*api.Explanation, error) {
	f, err := e.anyDecision(ctx, placement, id)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, e.missing(ctx, placement, id)
	}
	if turn != nil {
		leave, err := turn()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	view, err := e.View(placement)
	if err != nil {
		return nil, err
	}
	l := new(page.Logged)
	v, err := e.ruledThen(ctx, view, f.Was.Entry, l)
	if err != nil {
		return nil, err
	}
	l.Offer, l.Complete = e.recent.Complete(v.Name, v.Born, f.Offer)
	e.mu.RLock()
	sameRows, ownRows := view.Placement.RowsOf(f)
	e.mu.RUnlock()
	l.OwnRows, l.SameRows = ownRows, sameRows
	if l.Typical, err = e.typical(ctx, view, now); err != nil {
		return nil, err
	}
	if page.KnowsCandidates(l.Offer) && sameRows && v.Catalogue != nil {
		request, whole, err := e.rebuild(ctx, v, l.Offer)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			l.Unknown = append(l.Unknown, page.Unseen+err.Error())
		default:
			l.Offer, l.Request = whole, request
		}
	}
	addPolicy(view, v, l, f.Was.Entry)
	return page.Explain(v, l), nil
}

// ruledThen returns the present view with the placement's rules as they were at an entry of the log, or says that the log
// does not have them.
func (e *Engine) ruledThen(ctx context.Context, view *View, entry uint64, l *page.Logged) (*page.View, error) {
	v := view.Current()
	e.mu.RLock()
	changes, _ := view.Placement.History()
	e.mu.RUnlock()
	if len(changes) == 0 || changes[0] <= entry {
		return v, nil
	}
	for _, at := range changes {
		if at > entry {
			continue
		}
		event, err := e.event(ctx, at)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			break
		}
		if _, config := pastEvent(event); len(config) > 0 {
			then, err := setup.Parse(config)
			if err != nil {
				break
			}
			old, c := *v, *v.Config
			c.Include, c.Exclude, c.Limits, c.Capacity, c.MinSize = then.Include, then.Exclude, then.Limits, then.Capacity,
				then.MinSize
			old.Config = &c
			return &old, nil
		}
	}
	l.Unknown = append(l.Unknown, "the placement's rules at that time: the log does not have them. Sets are compared by "+
		"the present ones")
	return v, nil
}

// addPolicy adds the policy that decided in an entry of the log, or says why it is unknown.
func addPolicy(view *View, v *page.View, l *page.Logged, entry uint64) {
	w := view.Worker
	l.Policy = v.Policy
	if v.Routes != nil {
		if class := v.Routes.ClassOf(l.Variant); class >= 0 && class < len(view.Challengers) &&
			view.Challengers[class] != nil {
			w, l.Policy = view.Challengers[class], *v.Variants[class]
		}
	}
	then := w.PolicyOf(l.PolicyEntry)
	l.Policy.Policy, l.Policy.Entry = then.Policy, then.Entry
	if !l.OwnRows || l.Width != v.Config.Schema().Width() {
		l.Policy.Policy = nil
		l.Unknown = append(l.Unknown, "the utilities: the features or the learner of the placement have changed since")
	}
	if l.Variant != "" && l.Variant != api.Holdout && (v.Routes == nil || entry <= v.Routes.Number) {
		l.Policy.Policy = nil
		l.Unknown = append(l.Unknown, fmt.Sprintf("the utilities: the experiment of the variant %q has ended",
			l.Variant))
	}
}

// rebuild returns the request and the candidates of an offer from the catalogue at its version.
func (e *Engine) rebuild(ctx context.Context, v *page.View, o *offer.Offer) (*page.Request, *offer.Offer, error) {
	if o.Candidates > page.MaxRebuilt {
		return nil, nil, fmt.Errorf("%d items were candidates, and an explanation has at most %d", o.Candidates,
			page.MaxRebuilt)
	}
	items := v.Catalogue.Freeze()
	if err := Rewind(ctx, e.store, items, o.Catalogue.Version, maxUndone); err != nil {
		return nil, nil, err
	}
	return page.Rebuild(ctx, v.Config, o, items)
}
