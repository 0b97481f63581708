package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// lookUp returns a remembered decision, or nil.
func (e *Engine) lookUp(placement, id string) *state.Lookup {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.LookUp(placement, id)
}

// recallNow is recall including all present log entries: if the decision is missing or forgotten, it catches up and
// looks again, because a forgotten decision's id may be in use again. If catching up fails, that error is returned: the
// decision may still be in the log.
func (e *Engine) recallNow(ctx context.Context, placement, id string) (*state.Lookup, error) {
	if f, err := e.recall(ctx, placement, id); f != nil && f.Offer != nil || err != nil {
		return f, err
	}
	if err := e.CatchUp(ctx); err != nil {
		return nil, err
	}
	return e.recall(ctx, placement, id)
}

// recall looks up a decision, and reads its offer. A closed decision whose entry was removed from the log is forgotten.
// It returns ErrUnread or ctx's error.
func (e *Engine) recall(ctx context.Context, placement, id string) (*state.Lookup, error) {
	var lost *state.Record // was open when its entry was missing
	var err error
	for {
		f := e.lookUp(placement, id)
		switch {
		case f == nil:
			return nil, nil
		case f.Record == lost && f.Was.Status.Waits():
			return nil, err
		}
		if err = f.Read(ctx, e.store); !errors.Is(err, eventlog.ErrRemoved) {
			return f, err
		}
		if !f.Was.Status.Waits() {
			return f, nil
		}
		lost = f.Record
	}
}

// earlier returns the offer that the same request got under this id before. If its entry was removed from the log, the
// offer is forgotten.
func (e *Engine) earlier(ctx context.Context, name, decision string,
	sum [32]byte) (o *offer.Offer, forgotten *state.Record, err error) {
	if decision == "" {
		return nil, nil, nil
	}
	f, err := e.recall(ctx, name, decision)
	switch {
	case f == nil || err != nil:
		return nil, nil, err
	case f.Offer == nil:
		return nil, f.Record, nil
	case f.Offer.Request != sum:
		return nil, nil, fmt.Errorf("decision id %q: %w: it was given to another request", decision, ErrConflict)
	}
	return f.Offer, nil, nil
}

// concerning submits a proposal about a remembered decision, and repeats it if the decision was replaced
// meanwhile. An empty placement means the one that Find returns, with its errors.
func (e *Engine) concerning(ctx context.Context, placement, id string,
	propose func(b *state.Batch, f *state.Lookup) error) error {
	placement, err := e.placementOf(ctx, placement, id)
	if err != nil {
		return err
	}
	for {
		f, err := e.recallNow(ctx, placement, id)
		switch {
		case err != nil:
			return err
		case f == nil:
			return e.missing(placement, id)
		case f.Offer == nil:
			return state.UnknownDecision(id)
		}
		err = e.submit(ctx, func(b *state.Batch) error {
			if err := b.Still(f); err != nil {
				return err
			}
			return propose(b, f)
		})
		if !errors.Is(err, page.ErrStale) {
			return err
		}
	}
}

// missing returns the error for a decision that is not remembered.
func (e *Engine) missing(placement, id string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Missing(e.state.Placements[placement], id)
}

// placementOf returns the named placement, or the one that Find returns.
func (e *Engine) placementOf(ctx context.Context, placement, id string) (string, error) {
	if placement != "" {
		return placement, nil
	}
	return e.Find(ctx, id, nil)
}

// Find returns the placement of the decision with an id, among the placements for which may returns true; nil means
// all. It returns ErrAmbiguous if several placements know the id, and ErrNotFound if no placement does. Before that it
// catches up and looks again, and may return CatchUp's errors.
func (e *Engine) Find(ctx context.Context, id string, may func(placement string) bool) (placement string, err error) {
	placement, err = e.find(id, may)
	if !errors.Is(err, ErrNotFound) {
		return placement, err
	}
	if err := e.CatchUp(ctx); err != nil {
		return "", err
	}
	return e.find(id, may)
}

// find is Find without catching up.
func (e *Engine) find(id string, may func(placement string) bool) (placement string, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	names := e.state.Find(id, may)
	switch len(names) {
	case 0:
		return "", state.UnknownDecision(id)
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("decision %q: %w: name one of %s", api.Abbreviate(id, setup.MaxDecision), ErrAmbiguous,
		strings.Join(names, ", "))
}

// Time returns the time of a log entry. Its errors are ErrUnread, which may wrap [eventlog.ErrRemoved], and ctx's.
func (e *Engine) Time(ctx context.Context, entry uint64) (time.Time, error) {
	event, err := e.event(ctx, entry)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, event.Time).UTC(), nil
}
