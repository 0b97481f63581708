package abtest

import (
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// The metrics of every experiment come before the metrics of its design.
const (
	conversion = iota
	items
	numMetrics
)

// maxUnits is the number of units per page beyond which more do not count in the metric items.
const maxUnits = 10

// newMetrics returns empty results for all metrics.
func newMetrics(d *api.Experiment) (list []*Results) {
	for range numMetrics + len(d.Metrics) {
		list = append(list, NewResults(len(d.Variants)))
	}
	return list
}

// metric returns a closed decision's k-th metric, the largest distance between two values of the metric, and whether the
// caller reported it.
func (e *Experiment) metric(k int, o *offer.Closed) (x, bound float64, isReported bool) {
	switch k {
	case conversion:
		if o.Choice > 0 {
			x = 1
		}
		return x, 1, true
	case items:
		return min(float64(o.Units()), maxUnits), maxUnits, true
	}
	m := &e.Design.Metrics[k-numMetrics]
	at := slices.IndexFunc(o.Measured, func(v eventlog.Measurement) bool { return v.Name == m.Name })
	if at < 0 {
		return 0, 2 * m.Max, false
	}
	return min(max(o.Measured[at].Value, -m.Max), m.Max), 2 * m.Max, true
}

// metricReports compares the variants by each metric. The differences of all metrics and variants from the control
// share the error.
func (e *Experiment) metricReports(control int) []api.MetricReport {
	list := []api.MetricReport{}
	alpha := experimentError / float64(len(e.metrics)*(len(e.shares)-1))
	for k, m := range e.metrics {
		r := api.MetricReport{Name: api.Conversion, Better: api.BetterHigher, Reported: e.reported[k]}
		switch {
		case k == items:
			r.Name = api.ItemsTaken
		case k >= numMetrics:
			m := &e.Design.Metrics[k-numMetrics]
			r.Name, r.Better = m.Name, m.Better
		}
		bound, least := m.Mean.Bound, 0.0
		if k >= numMetrics {
			bound /= 2
			least = -bound
		}
		for v := range e.shares {
			of := api.VariantMetric{Variant: e.Name(v)}
			if mean := &m.Variants[v].Mean; mean.N > 0 {
				low, high := m.Earns(v, experimentError)
				of.Mean = api.Interval{Low: max(low, least), Estimate: mean.Average(), High: min(high, bound)}
			}
			if low, estimate, high, ok := m.Difference(v, control, alpha); ok && v != control {
				of.Difference = &api.Interval{Low: max(low, least-bound), Estimate: estimate,
					High: min(high, bound-least)}
				of.Worse = r.Better == api.BetterHigher && high < 0 || r.Better == api.BetterLower && low > 0
			}
			r.Variants = append(r.Variants, of)
		}
		list = append(list, r)
	}
	return list
}
