package engine

import (
	"context"
	"math"

	"vitrine/service/api"
	"vitrine/service/state"
)

// Measure reports values of an experiment's metrics for a decision that waits for its outcome. Values of other names
// are ignored. A value may be reported again, and another value replaces it. After the outcome Measure
// returns ErrConflict. Other errors are *api.FieldError, ErrNotFound, ErrStopped or ctx's; after the last report
// them again.
func (e *Engine) Measure(ctx context.Context, placement, decision string, metrics map[string]float64, now int64) error {
	for name, v := range metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return api.Fieldf("/metrics/"+name, "%v: must be finite", v)
		}
	}
	return e.forward(ctx, &remoteCall{what: callMeasure, placement: placement, decision: decision, metrics: metrics},
		now, func(now int64) error {
			return e.concerning(ctx, placement, decision, func(b *state.Batch, f *state.Lookup) error {
				return b.Measure(f.Record, metrics, now)
			})
		})
}
