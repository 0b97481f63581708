package engine

import (
	"context"
	"fmt"

	"vitrine/service/eventlog"
)

// Activate records that the items of a deferred decision were shown, so that its outcome can come. An empty
// placement means the one that Find returns, with its errors. Activate does nothing if the decision is not
// deferred or was activated before. The attribution window still begins with the decision: after it the
// decision is withdrawn, nothing is learned from it, and the error is ErrWithdrawn. Other errors are ErrEvicted,
// ErrNotFound, ErrStopped or that of ctx.
//
// An outcome also activates a deferred decision.
func (e *Engine) Activate(ctx context.Context, placement, decision string, now int64) error {
	return e.ask(ctx, &remoteCall{what: callActivate, placement: placement, decision: decision}, func() error {
		placement, err := e.placementOf(ctx, placement, decision)
		if err != nil {
			return err
		}
		return e.submit(ctx, func(b *batch) error { return b.activate(placement, decision, now) })
	})
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
	return fmt.Errorf("decision %q: %w", decision, ErrWithdrawn)
}
