package state

import (
	"fmt"
	"slices"
	"strings"

	"vitrine/service/eventlog"
)

// Measure notes measurements of a decision for the metrics of the running experiment. Others are ignored.
func (b *Batch) Measure(r *Record, metrics map[string]float64, now int64) error {
	if !r.Status.Waits() || r.isLate(now) {
		return fmt.Errorf("decision %q: %w: it has ended, and metrics are reported before its outcome", r.id,
			ErrConflict)
	}
	e := r.placement.Experiment
	if e == nil {
		return nil
	}
	body := &eventlog.Measured{Decision: r.id}
	for _, m := range e.Design.Metrics {
		v, ok := metrics[m.Name]
		if next := (eventlog.Measurement{Name: m.Name, Value: v}); ok && !slices.Contains(r.rare().measured, next) {
			body.List = append(body.List, next)
		}
	}
	if body.List == nil {
		return nil
	}
	slices.SortFunc(body.List, func(a, b eventlog.Measurement) int { return strings.Compare(a.Name, b.Name) })
	b.note(r, nil, now, body)
	return nil
}
