// Package metrics exposes a decision service's placements and process to Prometheus.
package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vitrine/service/alert"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Sources supply the metrics. Only the engine is required.
type Sources struct {
	Engine  *engine.Engine
	Log     eventlog.Log // its extent
	Appends *Appends     // to the log
	Alerts  *alert.Sender
	Budget  *budget.Budget

	Leads         func() bool          // whether the process writes the log and reaches its servers
	Reopened      func() int64         // how often the log was opened again
	SnapshotAge   func() time.Duration // the age of the last snapshot
	SnapshotEvery time.Duration        // how often there should be one
	ClockSkew     func() time.Duration // how far the time of day is ahead of the service's clock
}

// New returns a collector that reads the sources at each scrape.
func New(s Sources) prometheus.Collector { return collector{s} }

// Appends measures how long appends to a log take, for /metrics.
type Appends struct{ seconds prometheus.Histogram }

// NewAppends returns a measure for one server.
func NewAppends() *Appends {
	return &Appends{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "vitrine_log_append_seconds", Help: "Time to append a commit group to the log, until it is durable.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
	})}
}

// Observe counts an append.
func (a *Appends) Observe(took time.Duration) { a.seconds.Observe(took.Seconds()) }

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func about(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("vitrine_"+name, help, labels, nil)
}

// orZero returns the value at p, or the zero value if p is nil.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// placementMetrics calls each with the metrics of a placement that has the given statistics. A name that ends in _total
// is a counter's.
func placementMetrics(s *api.Stats, each func(name, help string, v float64)) {
	guard, relearning := orZero(s.Guard), orZero(s.Relearning)
	each("decisions_total", "Decisions.", float64(s.Decisions))
	each("outcomes_total", "Outcomes reported in time.", float64(s.Outcomes))
	each("expired_total", "Decisions without an outcome in time.", float64(s.Expired))
	each("empty_pages_total", "Decisions whose page the policy left empty: no item was allowed, or all revenues "+
		"were 0.", float64(s.Empty))
	each("expired_early_total", "Decisions that left memory before the end of their attribution window. The policy "+
		"learns nothing from them.", float64(s.ExpiredEarly))
	each("held_decisions", "Decisions that wait for an outcome longer than their attribution window, because the "+
		"clock moved.", float64(orZero(s.Held).Decisions))
	each("memory_seconds", "How long an open decision stays in the placement's memory at the rate of the minute "+
		"before the last decision. 0 if it is not known.", s.MemorySeconds)
	each("shoppers", "Shoppers of whom the placement remembers what they have seen and bought.",
		float64(orZero(s.Shoppers).Remembered))
	each("shoppers_forgotten_total", "Shoppers who were forgotten before their time, because memory_bytes of "+
		"shopper_history was full.", float64(orZero(s.Shoppers).Forgotten))
	each("withdrawn_total", "Deferred decisions that were not activated in time.", float64(s.Withdrawn))
	each("pending", "Decisions that wait for an outcome.", float64(s.Pending))
	each("remembered_bytes", "Memory of remembered decisions.", float64(s.Memory))
	each("charged_bytes", "Memory that the service reserves for the placement and its learner.", float64(s.Charged))
	each("learner_lag_rounds", "Outcomes that the learner has not processed yet.", float64(s.Lag))
	each("learned_rounds_total", "Rounds that the learner has learned from.", float64(s.Learned))
	each("forgotten_rounds_total", "Rounds that were lost because the saved state of the learner could not be read.",
		float64(s.Forgotten))
	each("unlearned_rounds_total", "Outcomes and expiries that the learner did not learn from, because its queue "+
		"was full.", float64(s.Unlearned))
	each("skipped_rounds_total", "Rounds that the learner skipped: see skipped in /stats.", float64(s.Skipped))
	each("learner_broken", "1 if the learner has failed.", indicator(s.Broken))
	each("clipped_values_total", "Values of features beyond their bounds.", float64(s.Clipped))
	each("outlier_values_total", "Values of features that the learner left out, because they were far beyond all "+
		"others.", float64(orZero(s.Outliers).Values))
	each("guard_alarm", "1 if the placement sells or earns less than it should, or differently from its predictions: see "+
		"guard in its statistics.", indicator(guard.Alarm != nil))
	each("no_sale_alarm", "1 if nothing has been sold for so long that the checkout has probably stopped reporting.",
		indicator(guard.Alarm != nil && guard.Alarm.Check == "no-sale"))
	each("decisions_without_sale", "Decisions in a row without a sale, the last ones whose outcomes are known or "+
		"overdue.", float64(guard.WithoutSale))
	each("held_rounds", "Outcomes that the learner has not been given because of an alarm about sales.",
		float64(guard.Held))
	each("earnings_fell", "1 if the policy certainly earned less than 0.9 times as much a decision in the last four weeks "+
		"as in the twelve weeks before.", indicator(s.Fell != nil))
	each("policy_unsound", "1 if the policy predicted NaN or an infinity, or was certain of something that did not "+
		"happen.", indicator(s.Unsound))
	each("policy_entry", "The last entry of the log that the policy has learned from.", float64(s.PolicyEntry))
	each("relearning_behind_entries", "Entries of the log that a second learner has not read yet, 0 if no "+
		"relearning is under way.", max(float64(relearning.To)-float64(relearning.Entry), 0))
	each("exploration_share", "Share of uniformly drawn sets among the decisions.", s.ExplorationShare)
	each("calibration_earned_total", "Revenue of the decisions with a predicted revenue.", s.Calibration.Revenue)
	each("calibration_predicted_total", "Predicted revenue of the same decisions: about as much as was earned, if "+
		"the policy is well calibrated.", s.Calibration.Predicted)
	each("shadow_rounds_total", "Decisions in the mode shadow with an estimated revenue.", float64(s.Shadow.Estimated))
	each("shadow_policy_total", "Estimated revenue of the policy's own sets in these decisions.", s.Shadow.Policy)
	each("shadow_baseline_total", "Estimated revenue of the baselines that were shown in these decisions.",
		s.Shadow.Baseline)
}

// ofPlacement maps the names of a placement's metrics to their descriptions.
var ofPlacement = func() map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	placementMetrics(new(api.Stats), func(name, help string, _ float64) { all[name] = about(name, help, "placement") })
	return all
}()

var (
	revenueDesc = about("revenue", "Revenue earned, less what came back, by how the set was found.", "placement", "source")
	roundsDesc  = about("rounds_total", "Decisions with an outcome, or expired, by how the set was found.", "placement",
		"source")
	gainDesc = about("gain", "Revenue a decision above what the placement, or a variant of its experiment, is "+
		"compared with: the estimate, and bounds that hold at all times with 95%.", "placement", "variant", "over",
		"bound")
	memoryUsed = about("memory_used_bytes", "Memory in use, by purpose.", "purpose")
)

// scraped holds a scrape's readings of the process. Extent is nil if the log did not report it.
type scraped struct {
	collector
	applied uint64
	alerts  alert.Stats
	memory  budget.Usage
	extent  *eventlog.Extent
}

// Conditions of metrics of the process.
func (s *scraped) isBounded() bool { return s.memory.Size > 0 }
func (s *scraped) hasLog() bool    { return s.extent != nil }

// ofProcess lists the metrics of the process, each with a condition; nil means always.
var ofProcess = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	has  func(s *scraped) bool
	of   func(s *scraped) float64
}{
	{about("leader", "1 if this process writes the log and reaches its servers, 0 otherwise."), prometheus.GaugeValue,
		nil, func(s *scraped) float64 { return indicator(s.Leads()) }},
	{about("follower_lag_seconds", "How long ago the state had all entries of the log that it follows, or before it "+
		"first did, the time since the start. 0 in the process that writes the log."), prometheus.GaugeValue, nil, func(s *scraped) float64 {
		lag, _ := s.Engine.Lag()
		return lag.Seconds()
	}},
	{about("applied_entries", "The last entry of the log that is part of the state."), prometheus.GaugeValue, nil,
		func(s *scraped) float64 { return float64(s.applied) }},
	{about("snapshot_age_seconds", "Age of the last snapshot; before the first snapshot, the time since the start."),
		prometheus.GaugeValue, func(s *scraped) bool { return s.SnapshotAge != nil },
		func(s *scraped) float64 { return s.SnapshotAge().Seconds() }},
	{about("snapshot_interval_seconds", "Time between snapshots, [snapshots] every."),
		prometheus.GaugeValue, func(s *scraped) bool { return s.SnapshotEvery > 0 },
		func(s *scraped) float64 { return s.SnapshotEvery.Seconds() }},
	{about("clock_skew_seconds", "By how much the machine's time of day is ahead of the service's time, by which "+
		"attribution windows end."), prometheus.GaugeValue, func(s *scraped) bool { return s.ClockSkew != nil },
		func(s *scraped) float64 { return s.ClockSkew().Seconds() }},
	{about("log_reopened_total", "How often the log was opened again since the process began: its servers were "+
		"away, the disk was full, or a file of it was removed."), prometheus.CounterValue,
		func(s *scraped) bool { return s.Reopened != nil }, func(s *scraped) float64 {
			return float64(s.Reopened())
		}},
	{about("log_lag_entries", "Entries of the log that are not yet part of the state."), prometheus.GaugeValue,
		(*scraped).hasLog, func(s *scraped) float64 { return max(float64(s.extent.Last)-float64(s.applied), 0) }},
	{about("log_first_entry", "The first entry of the log: earlier ones were removed."), prometheus.GaugeValue,
		(*scraped).hasLog, func(s *scraped) float64 { return float64(s.extent.First) }},
	{about("log_entries", "Entries in the log."), prometheus.GaugeValue, (*scraped).hasLog,
		func(s *scraped) float64 { return float64(s.extent.Last + 1 - s.extent.First) }},
	{about("log_bytes", "Bytes of the log."), prometheus.GaugeValue, (*scraped).hasLog,
		func(s *scraped) float64 { return float64(s.extent.Bytes) }},
	{about("log_replicas_missing", "Replicas of the log that are down or behind, for a log on NATS servers."),
		prometheus.GaugeValue, (*scraped).hasLog, func(s *scraped) float64 { return float64(s.extent.Missing) }},
	{about("log_epoch", "Epoch of the writer of a log on NATS servers, which grows with every start of a service "+
		"on the log."), prometheus.GaugeValue, func(s *scraped) bool { return s.hasLog() && s.extent.Epoch > 0 },
		func(s *scraped) float64 { return float64(s.extent.Epoch) }},
	{about("memory_limit_bytes", "Memory that placements and requests share, [limits] memory. Placements get "+
		"three quarters of it."), prometheus.GaugeValue, (*scraped).isBounded,
		func(s *scraped) float64 { return float64(s.memory.Size) }},
	{about("memory_waiting_requests", "Requests that wait for memory."), prometheus.GaugeValue, (*scraped).isBounded,
		func(s *scraped) float64 { return float64(s.memory.Waiting) }},
	{about("alerts_delivered_total", "Messages that the receiver of alerts accepted."), prometheus.CounterValue, nil,
		func(s *scraped) float64 { return float64(s.alerts.Delivered) }},
	{about("alerts_failed_total", "Attempts to deliver an alert that failed."), prometheus.CounterValue, nil,
		func(s *scraped) float64 { return float64(s.alerts.Failed) }},
	{about("alerts_dropped_total", "Problems without an alert, because too many stood at once."),
		prometheus.CounterValue, nil, func(s *scraped) float64 { return float64(s.alerts.Dropped) }},
	{about("alerts_waiting", "Alerts that wait to be delivered."), prometheus.GaugeValue, nil,
		func(s *scraped) float64 { return float64(s.alerts.Waiting) }},
	{about("alerts_failing", "1 if the last attempt to deliver an alert failed."), prometheus.GaugeValue, nil,
		func(s *scraped) float64 { return indicator(s.alerts.Failure != "") }},
}

// collector reads the counters of the placements and of the process at each scrape.
type collector struct{ Sources }

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	NewAppends().seconds.Describe(to)
	for _, d := range ofPlacement {
		to <- d
	}
	for _, m := range ofProcess {
		to <- m.desc
	}
	for _, d := range []*prometheus.Desc{revenueDesc, roundsDesc, gainDesc, memoryUsed} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	if c.Appends != nil {
		c.Appends.seconds.Collect(to)
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, name := range c.Engine.Placements() {
		s, err := c.Engine.Stats(name)
		if err != nil {
			continue // deleted meanwhile
		}
		placementMetrics(&s, func(metric, _ string, v float64) {
			kind := prometheus.GaugeValue
			if strings.HasSuffix(metric, "_total") {
				kind = prometheus.CounterValue
			}
			send(ofPlacement[metric], kind, v, name)
		})
		for mode, group := range map[uint8]api.Totals{offer.ByPolicy: s.ByPolicy, offer.ByChance: s.ByChance,
			offer.ByBaseline: s.ByBaseline} {
			send(revenueDesc, prometheus.GaugeValue, group.Revenue, name, offer.SourceNames[mode])
			send(roundsDesc, prometheus.CounterValue, float64(group.Rounds), name, offer.SourceNames[mode])
		}
		for _, g := range s.Gains {
			for bound, v := range map[string]float64{"low": g.PerDecision.Low, "estimate": g.PerDecision.Estimate,
				"high": g.PerDecision.High} {
				send(gainDesc, prometheus.GaugeValue, v, name, g.Variant, g.Over, bound)
			}
		}
	}
	s := &scraped{collector: c, applied: c.Engine.Sequence(), alerts: c.Alerts.Stats(), memory: c.Budget.Usage()}
	if c.Log != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if x, err := c.Log.Extent(ctx); err == nil {
			s.extent = &x
		}
	}
	for _, m := range ofProcess {
		if m.has == nil || m.has(s) {
			send(m.desc, m.kind, m.of(s))
		}
	}
	if s.isBounded() {
		send(memoryUsed, prometheus.GaugeValue, float64(s.memory.Placements), "placements")
		send(memoryUsed, prometheus.GaugeValue, float64(s.memory.Requests), "requests")
	}
}
