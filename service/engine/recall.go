package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
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
			e.beginsAt(f.Was.Entry + 1) // or at a later entry
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
// meanwhile.
func (e *Engine) concerning(ctx context.Context, placement, id string,
	propose func(b *state.Batch, f *state.Lookup) error) error {
	for {
		f, err := e.recallNow(ctx, placement, id)
		switch {
		case err != nil:
			return err
		case f == nil, f.Offer == nil:
			return e.missing(ctx, placement, id)
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
func (e *Engine) missing(ctx context.Context, placement, id string) error {
	if err := e.askFirst(ctx); err != nil {
		return err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Missing(e.state.Placements[placement], id)
}

// Time returns the time of a log entry. Its errors are ErrUnread, which may wrap [eventlog.ErrRemoved], and ctx's.
func (e *Engine) Time(ctx context.Context, entry uint64) (time.Time, error) {
	event, err := e.event(ctx, entry)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, event.Time).UTC(), nil
}
