package engine

import (
	"bytes"
	"context"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/state"
)

type searchKey struct{}

// WithSearch returns a context with which Decision and Explain search the whole log for a decision that is no longer
// remembered, in the turn that the function waits for.
func WithSearch(ctx context.Context, turn func() (leave func(), err error)) context.Context {
	return context.WithValue(ctx, searchKey{}, turn)
}

// Decision returns a remembered decision of a placement, or ErrNotFound. Other errors are ErrUnread and ctx's.
func (e *Engine) Decision(ctx context.Context, placement, id string) (Decision, error) {
	f, err := e.anyDecision(ctx, placement, id)
	if err != nil {
		return Decision{}, err
	}
	if f == nil {
		return Decision{}, state.UnknownDecision(id)
	}
	return f.Decision(), nil
}

// found is the decision that the last search has found.
type found struct {
	placement, id string
	sequence      uint64 // the last entry that was searched
	lookup        *state.Lookup
}

// anyDecision is recallNow, and then a search if ctx asks for one. It returns nil for a decision that is not found.
func (e *Engine) anyDecision(ctx context.Context, placement, id string) (*state.Lookup, error) {
	f, err := e.recallNow(ctx, placement, id)
	if err != nil || f != nil && f.Offer != nil {
		return f, err
	}
	return e.search(ctx, placement, id)
}

// search finds a decision in the log and what became of it, or returns nil. The errors are ctx's and the log's.
func (e *Engine) search(ctx context.Context, placement, id string) (*state.Lookup, error) {
	turn, ok := ctx.Value(searchKey{}).(func() (func(), error))
	if !ok {
		return nil, nil
	}
	v, err := e.View(placement)
	if err != nil {
		return nil, err
	}
	leave, err := turn()
	if err != nil {
		return nil, err
	}
	defer leave()
	last := e.Sequence()
	if f := e.found.Load(); f != nil && f.placement == placement && f.id == id && f.sequence == last {
		return f.lookup, nil
	}
	from, err := e.firstEntry(ctx)
	if err != nil {
		return nil, err
	}
	var lookup *state.Lookup
	sequence, name := max(from, v.Page.Born+1)-1, []byte(id)
	for entry, err := range e.store.Entries(ctx, sequence+1) {
		if err != nil {
			return nil, err
		}
		if sequence++; sequence > last {
			break
		}
		if !bytes.Contains(entry, name) {
			continue
		}
		event, err := eventlog.Decode(entry)
		if err != nil || event.Placement != placement {
			continue
		}
		if o, ok := event.Body.(*eventlog.Offered); ok && o.Decision == id {
			made, err := offer.Of(o)
			if err != nil {
				return nil, err
			}
			lookup = state.Forgotten(v.Placement, sequence, event.Time, made)
		} else if lookup != nil {
			lookup.Add(event.Body)
		}
	}
	e.found.Store(&found{placement, id, last, lookup})
	return lookup, nil
}
