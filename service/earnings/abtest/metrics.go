package abtest

import (
	"vitrine/service/api"
	"vitrine/service/offer"
)

// metricNames lists what the variants are compared by in addition to revenue.
var metricNames = []string{"conversion"}

func newMetrics(variants int) (list []*Results) {
	for range metricNames {
		list = append(list, NewResults(variants))
	}
	return list
}

// metricOf returns a closed decision's k-th metric, and its bound.
func metricOf(k int, o *offer.Closed) (x, bound float64) {
	if o.Choice > 0 {
		x = 1
	}
	return x, 1
}

// metricReports compares the variants by each metric. The differences of all metrics and variants from the control share
// the error.
func (e *Experiment) metricReports(control int) []api.MetricReport {
	list := []api.MetricReport{}
	alpha := experimentError / float64(len(e.metrics)*(len(e.shares)-1))
	for k, m := range e.metrics {
		r := api.MetricReport{Name: metricNames[k], Better: "higher"}
		for v := range e.shares {
			of := api.VariantMetric{Variant: e.Name(v)}
			if mean := &m.Variants[v].Mean; mean.N > 0 {
				low, high := m.Earns(v, experimentError)
				of.Mean = api.Interval{Low: max(low, 0), Estimate: mean.Average(), High: min(high, mean.Bound)}
			}
			if low, estimate, high, ok := m.Difference(v, control, alpha); ok && v != control {
				of.Difference = &api.Interval{Low: max(low, -m.Mean.Bound), Estimate: estimate, High: min(high, m.Mean.Bound)}
				of.Worse = high < 0
			}
			r.Variants = append(r.Variants, of)
		}
		list = append(list, r)
	}
	return list
}
