package decision

import (
	"context"
	"fmt"

	"vitrine/service/eventlog"
)

// Activate says that what a deferred decision offered was shown, so that its
// outcome is waited for. An empty placement is the one that Find returns, with its errors. A decision that is not deferred, or was activated before, stays as
// it is. The attribution window is counted from the decision all the same:
// after it the decision is withdrawn, nothing is learned from it, and the error is ErrLate.
// Others are ErrEvicted, ErrNotFound, ErrStopped or that of ctx.
//
// An outcome of a deferred decision activates it too.
func (e *Engine) Activate(ctx context.Context, placement, decision string, now int64) error {
	placement, err := e.placementOf(placement, decision)
	if err != nil {
		return err
	}
	return e.submit(ctx, func(b *batch) error { return b.activate(placement, decision, now) })
}

func (b *batch) activate(placement, decision string, now int64) error {
	r, err := b.decision(placement, decision)
	if err != nil {
		return err
	}
	if r.status == deferred && !r.isLate(now) {
		b.touched[r.key()] = true
		b.encode(&eventlog.Event{Time: now, Placement: r.placement.name, Body: &eventlog.Activated{Decision: decision}}, nil)
		return nil
	}
	switch r.status {
	case deferred:
		b.expire(r, nil, now)
	case withdrawn:
	case evicted:
		return tooSmall(r.placement, decision)
	default:
		return nil
	}
	return fmt.Errorf("decision %q: %w: it was activated too late", decision, ErrLate)
}
