package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/shoppers"
	"vitrine/service/state"
)

// maxReleases bounds how often a decision retries because the items it chose changed.
const maxReleases = 2

// Decide is DecideFor with the placement as it is now.
func (e *Engine) Decide(ctx context.Context, name string, r *api.Request, now int64) (*offer.Offer, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	return e.DecideFor(ctx, v, r, now)
}

// DecideFor makes the offer for a request as of the given time. The offer is durable before DecideFor returns it,
// without its rows. If the placement changed after the view was taken, DecideFor takes a new view.
//
// A repeated request (same decision id, same content) gets the original offer, read back from the log with Decoded set.
// Reusing an id for a different request, or after the placement's features changed, returns ErrConflict. Other errors
// are *api.FieldError, ErrNotFound, ErrUnread, page.ErrPolicy, ErrStopped and ctx's. After ctx's error the decision may
// or may not be recorded: ask again, under the same id.
func (e *Engine) DecideFor(ctx context.Context, v *View, r *api.Request, now int64) (*offer.Offer, error) {
	d := page.NewDecider()
	start := time.Now()
	for attempt := 1; ; attempt++ {
		followed := e.isFollower.Load()
		o, err := e.decide(ctx, d, v, r, now, attempt > maxReleases)
		if errors.Is(err, page.ErrStale) {
			if v, err = e.View(v.Page.Name); err != nil {
				return nil, err
			}
			if followed && e.clock != nil {
				now = e.clock()
			}
			continue
		}
		if err == nil && !o.Decoded {
			v.Took(o, time.Since(start))
			e.recent.Add(&d.Whole)
		}
		if err == nil || ctx.Err() == nil { // otherwise the writer may still read what is in d
			d.Release()
		}
		return o, err
	}
}

// decide decides once. It returns page.ErrStale if the placement changed, if its categories just learned values from
// the request, or if an identical request came first. With holds, the catalogue stays locked.
func (e *Engine) decide(ctx context.Context, d *page.Decider, v *View, r *api.Request, now int64,
	holds bool) (*offer.Offer, error) {
	follows, seen := e.isFollower.Load(), v.Current()
	asked := time.Now()
	r, shopper, key, err := e.recognize(ctx, seen, r, now, seen.Name)
	if err != nil {
		return nil, err
	}
	e.flights.add(key, 1)
	defer e.flights.add(key, -1)
	seen.Shopper = shopper
	q, err := d.Read(seen, r)
	if err != nil {
		return nil, err
	}
	q.Now, q.Holds, q.NewID = now, holds, e.newID
	q.Number = func() uint64 { return e.number(v.Placement, follows) }
	sum := q.Sum(shopper.Name)
	before, forgotten, err := e.earlier(ctx, seen.Name, r.Decision, sum)
	if before != nil || err != nil {
		return before, err
	}
	made, err := d.Decide(ctx, seen, q)
	if unseen, ok := errors.AsType[*page.UnseenError](err); ok {
		err = cmp.Or(e.logValues(ctx, seen.Name, v.Changed, unseen.Values, now), page.ErrStale)
	}
	if err != nil {
		return nil, err
	}
	v.Placement.Note(made)
	made.Request = sum
	event := &eventlog.Event{Time: now, Placement: seen.Name, Body: made.Offered}
	if d.Entry, err = offer.Encode(d.Entry[:0], event); err != nil {
		return nil, err
	}
	switch {
	case follows && isOld(asked): // paused, or asleep: the leader may have deleted the shopper's key
		return nil, page.ErrStale
	case follows: // the leader may know an earlier request
		before, err = e.proposeOffer(ctx, v, d.Entry, made.Offered)
	default:
		err = e.commitOffer(ctx, v, event, &made.Offer, forgotten, d.Entry)
	}
	if before != nil || err != nil {
		return before, err
	}
	return made.WithoutRows(), nil
}

// number returns the number of a new decision of a placement.
func (e *Engine) number(p *state.Placement, follows bool) uint64 {
	if follows {
		return e.replica<<state.ReplicaShift | p.Proposed.Add(1)
	}
	return p.LastIssued.Add(1)
}

// isOld reports whether a shopper's key was asked for too long ago to be used. The monotonic clock stands still while a
// machine sleeps.
func isOld(asked time.Time) bool {
	return max(time.Since(asked), time.Now().Round(0).Sub(asked.Round(0))) > shoppers.MaxFlight
}
