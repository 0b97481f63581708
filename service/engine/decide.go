package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/page"
)

// maxReleases is how many times a decision retries because the items it chose have changed.
const maxReleases = 2

// Decide answers a request as of the given time. The decision is durable before Decide returns.
//
// A repeated request (same decision id, same content) gets the original answer. Reusing an id for a different request, or after
// the placement's features changed, returns ErrConflict. Other errors are *api.FieldError, ErrNotFound, ErrUnread, page.ErrPolicy,
// ErrStopped and the error of ctx. After an error of ctx the decision may or may not be recorded: ask again, under the same id.
func (e *Engine) Decide(ctx context.Context, name string, r *api.Request, now int64) (*Answer, error) {
	d := page.NewDecider()
	start := time.Now()
	for attempt := 1; ; attempt++ {
		v, err := e.view(name)
		if err != nil {
			return nil, err
		}
		a, err := e.decide(ctx, d, v, r, now, attempt > maxReleases)
		if errors.Is(err, errMoved) {
			continue
		}
		if a != nil && !a.Repeated {
			v.placement.latency.Add(time.Since(start))
			e.recent.Add(&d.Whole)
		}
		if err == nil || ctx.Err() == nil { // otherwise the writer may still read what is in d
			d.Release()
		}
		return a, err
	}
}

// decide decides once. It returns errMoved if the placement has changed, if its categories have just learned values from the
// request, or if an identical request came first. With holds, the catalogue stays locked.
func (e *Engine) decide(ctx context.Context, d *page.Decider, v view, r *api.Request, now int64, holds bool) (*Answer, error) {
	q, err := d.Read(&v.View, r)
	if err != nil {
		return nil, err
	}
	q.Now, q.Number, q.Holds = now, v.number, holds
	sum := q.Sum()
	before, forgotten, err := e.earlier(ctx, v.Name, r.Decision, sum)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return repeated(v.Name, before), nil
	}
	made, err := d.Decide(ctx, &v.View, q)
	if unseen := new(page.UnseenError); errors.As(err, &unseen) {
		err = cmp.Or(e.see(ctx, v.Name, v.changed, unseen.Values, now), errMoved)
	}
	if err != nil {
		return nil, err
	}
	v.note(made)
	made.Request = sum
	event := &eventlog.Event{Time: now, Placement: v.Name, Body: made.Offered}
	if err := encodeOffer(d, event, made.Offered); err != nil {
		return nil, err
	}
	if v.follows { // the leader may have decided an earlier request
		before, err = e.proposeOffer(ctx, v, d.Entry, made.Offered)
	} else {
		err = e.commitOffer(ctx, v, event, &made.Offer, forgotten, d.Entry, now)
	}
	switch {
	case err != nil:
		return nil, err
	case before != nil:
		return repeated(v.Name, before), nil
	}
	return answerOf(v.Name, &made.Offer), nil
}

// encodeOffer encodes the event of an offer in d's memory.
func encodeOffer(d *page.Decider, event *eventlog.Event, o *eventlog.Offered) (err error) {
	size := 8 * (len(o.Features) + len(o.Revenue))
	if size <= eventlog.MaxBatch { // otherwise the entry is useless
		if d.Entry, err = event.Encode(d.Entry[:0]); err != nil {
			return api.Fieldf("/items", "%v", err)
		}
		size = eventlog.EntrySize(d.Entry)
	}
	if size > eventlog.MaxBatch {
		return api.Fieldf("/items", "the decision takes %d bytes of the log, at most %d fit: send fewer items, record only the items shown, or do not ask for payloads", size, eventlog.MaxBatch)
	}
	return nil
}

// repeated returns the answer to a request that was answered before.
func repeated(placement string, o *offer.Offer) *Answer {
	a := answerOf(placement, o)
	a.Repeated = true
	return a
}

// commitOffer writes an offer. It returns errMoved if the placement has changed or an identical request came first.
func (e *Engine) commitOffer(ctx context.Context, v view, event *eventlog.Event, o *offer.Offer, forgotten *record, entry []byte, now int64) error {
	for urgent := false; ; {
		err := e.submit(ctx, func(b *batch) error { return b.offer(v, event, o, forgotten, entry) })
		if !errors.Is(err, errFull) {
			return err
		}
		n, err := e.expire(ctx, v.name, now, urgent)
		if err != nil {
			return err
		}
		urgent = n == 0 // the learner has no room for them, unless another caller was quicker
	}
}

// earlier returns the offer of a decision id that was given to the same request before. One whose entry was removed from the
// log counts as forgotten.
func (e *Engine) earlier(ctx context.Context, name, decision string, sum [32]byte) (o *offer.Offer, forgotten *record, err error) {
	if decision == "" {
		return nil, nil, nil
	}
	f, err := e.recall(ctx, name, decision)
	switch {
	case f == nil || err != nil:
		return nil, nil, err
	case f.offer == nil:
		return nil, f.record, nil
	case f.offer.Request != sum:
		return nil, nil, fmt.Errorf("decision id %q: %w: it was given to another request", decision, ErrConflict)
	}
	noteEntry(ctx, f.was.entry)
	return f.offer, nil, nil
}

// view returns the placement as decisions see it now. It takes no lock.
func (e *Engine) view(name string) (view, error) {
	p := (*e.state.published.Load())[name]
	if p == nil {
		return view{}, unknownPlacement(name)
	}
	v := *p.view.Load()
	v.follows, v.replica = e.follows.Load(), e.replica
	current := v.worker.Current()
	if s := v.worker.Substitute(); s != nil && v.fallback == api.FallbackVersion {
		current = s
	}
	v.Policy.Policy, v.Policy.Entry = current.Policy, current.Entry
	if v.challengers != nil {
		v.Variants = make([]*page.Policy, len(v.challengers))
		for i, w := range v.challengers {
			if w != nil {
				current := w.Current()
				v.Variants[i] = &page.Policy{Policy: current.Policy, Entry: current.Entry, Config: w.config}
			}
		}
	}
	return v, nil
}

// CatalogueSize bounds the bytes that the candidates of a request from the catalogue take while it is decided: see
// [page.View.CatalogueSize].
func (e *Engine) CatalogueSize(name string, r *api.Request) int64 {
	v, err := e.view(name)
	if err != nil {
		return 0
	}
	return v.CatalogueSize(r)
}

// see logs new category values, unless another request has already logged them.
func (e *Engine) see(ctx context.Context, name string, changed uint64, values []feature.Seen, now int64) error {
	if e.follows.Load() {
		a, err := e.call(ctx, &remoteCall{what: callSee, placement: name, changed: changed, seen: values})
		if err != nil {
			return err
		}
		return e.Reach(ctx, a.entry)
	}
	return e.submit(ctx, func(b *batch) error {
		p := b.state.placements[name]
		switch {
		case len(b.events) > 0:
			return errLater
		case p == nil || p.changed != changed:
			return errMoved
		}
		owner := b.state.owner(p)
		schema := owner.config.Schema()
		for _, seen := range values {
			if seen = schema.Fresh(seen); seen.Values != nil {
				b.alone = true
				b.encode(&eventlog.Event{Time: now, Placement: owner.name, Body: &eventlog.ValuesSeen{Feature: seen.Feature, Values: seen.Values}}, nil)
			}
		}
		return nil
	})
}
