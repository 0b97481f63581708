package engine

import (
	"context"

	"vitrine/service/state"
)

// Activate records that the items of a deferred decision were shown, so that its outcome can come. An empty placement
// means the result of Find, with its errors. Activating a decision twice, or one that is not deferred, is a no-op. The
// attribution window begins with the decision: after it the decision is withdrawn, teaches nothing, and Activate
// returns ErrWithdrawn. Other errors are ErrEvicted, ErrNotFound, ErrStopped and ctx's.
//
// An outcome also activates a deferred decision.
func (e *Engine) Activate(ctx context.Context, placement, decision string, now int64) error {
	return e.forward(ctx, &remoteCall{what: callActivate, placement: placement, decision: decision}, now, func(now int64) error {
		placement, err := e.placementOf(ctx, placement, decision)
		if err != nil {
			return err
		}
		return e.submit(ctx, func(b *state.Batch) error { return b.Activate(placement, decision, now) })
	})
}
