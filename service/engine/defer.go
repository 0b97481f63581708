package engine

import (
	"context"

	"vitrine/service/state"
)

// Activate records that the items of a deferred decision were shown, so that its outcome can come. An empty
// placement means the one that Find returns, with its errors. Activate does nothing if the decision is not
// deferred or was activated before. The attribution window still begins with the decision: after it the
// decision is withdrawn, nothing is learned from it, and the error is ErrWithdrawn. Other errors are ErrEvicted,
// ErrNotFound, ErrStopped or that of ctx.
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
