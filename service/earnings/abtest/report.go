package abtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// mean returns a class's revenue per decision, or the zero interval without decisions.
func (e *Experiment) mean(class int) (i api.Interval) {
	m := &e.Results.Variants[class].Mean
	if m.N == 0 {
		return i
	}
	low, high := e.Results.Earns(class, experimentError)
	return api.Interval{Low: max(low, 0), Estimate: m.Average(), High: min(high, m.Bound)}
}

// difference returns how much more variant v earns per decision than variant u. The differences of all pairs share the
// error.
//
// Decisions that left memory count as missing: if they sold nothing, their variant's estimate is too high by their share,
// Σ 1/p / N, of the mean revenue. The interval contains the difference with and without that.
func (e *Experiment) difference(v, u int) (i api.Interval, ok bool) {
	low, estimate, high, ok := e.Results.Difference(v, u, e.pairError())
	if !ok {
		return i, false
	}
	all := &e.Results.Mean
	pair, _, _ := e.Results.lead(v, u)
	each := all.Average() / float64(pair.N)
	low, high = low-float64(each*e.missing[v]), high+float64(each*e.missing[u])
	return api.Interval{Low: max(low, -all.Bound), Estimate: estimate, High: min(high, all.Bound)}, true
}

func (e *Experiment) pairError() float64 { return experimentError / float64(len(e.Results.Pairs)) }

// left estimates how long the experiment must go on until the interval of the variant with the largest difference lies
// on one side of the least gain, at the rate of decisions since a time. It returns nil if that cannot be estimated.
func (e *Experiment) left(control int, since time.Time) *api.Left {
	best := -math.MaxFloat64
	var lead confseq.Mean
	for v := range e.shares {
		if m, sign, ok := e.Results.lead(v, control); ok && sign*m.Average() > best {
			best, lead = sign*m.Average(), m
		}
	}
	if len(e.points) == 0 || lead.N == 0 {
		return nil
	}
	more := lead.Until(e.pairError(), math.Abs(best-e.Design.MinGain)) - float64(lead.N)
	last := &e.points[len(e.points)-1]
	rate := float64(last.decisions) / timeOf(last.time).Sub(since).Seconds()
	if !(rate > 0 && more > 0 && more <= maxLeft*float64(lead.N)) {
		return nil
	}
	return &api.Left{Decisions: uint64(more), Seconds: more / rate}
}

// maxLeft limits the forecast to a multiple of the decisions so far: beyond it, the estimate is too rough.
const maxLeft = 20

// point returns the state at a time.
func (e *Experiment) point(at int64) point {
	p := point{time: at, decisions: e.Results.Mean.N}
	control := Of(e.Design, e.Design.Control)
	for v := range e.shares {
		difference, _ := e.difference(v, control)
		p.means, p.differences = append(p.means, e.mean(v)), append(p.differences, difference)
	}
	return p
}

// Report returns the experiment's findings for decisions with an attribution window, and revenues in a currency, "" for
// an unnamed one. It leaves out the learners.
func (e *Experiment) Report(currency string, window time.Duration, cohort int64) *api.ExperimentReport {
	d := e.Design
	control := Of(d, d.Control)
	r := &api.ExperimentReport{
		Name: d.Name, Number: e.Number, Begun: timeOf(e.begun), Control: d.Control, Learn: d.Learn, MinGain: d.MinGain,
		Starts: d.Starts, Ends: d.Ends, SegmentBy: d.Segments,
		Decisions: e.Results.Mean.N,
		Pairs:     []api.Pair{}, Phases: []api.Phase{}, Points: []api.ReportPoint{},
		Ratio: api.Ratio{P: e.Ratio.P(), Mismatch: e.Ratio.P() < ratioError},
	}
	r.Counts = e.nextCounts(window, cohort)
	few, unseen, most := "", "", 0.0
	for class := range e.groups {
		v := api.VariantReport{Name: e.Name(class), Show: e.Show(class), Made: e.asked[class],
			ExpiredEarly: e.evicted[class], Units: uint64(math.Round(e.units[class])), Group: e.groups[class].Report(),
			Later: e.later[class].Value(), Share: e.shares[class]}
		v.Mean = e.mean(class)
		if less := e.unseen(class, &v); less > most {
			most = less
			unseen = fmt.Sprintf("deferred first decisions of %q were seen less often than of %q, by about %.3g percentage "+
				"points: "+distrust+", find the cause, and %s", v.Name, v.SeenLess, 100*less, compareAgain(r))
		}
		if e.look(class, &v) {
			few = v.Name
		}
		r.Ratio.Units += v.Units
		if difference, ok := e.difference(class, control); ok {
			v.Difference = &difference
		}
		r.Variants = append(r.Variants, v)
	}
	for v := range e.shares {
		for u := range v {
			difference, ok := e.difference(v, u)
			switch {
			case !ok || v == control || u == control:
			case difference.Estimate < 0:
				difference, _ = e.difference(u, v)
				r.Pairs = append(r.Pairs, api.Pair{Variant: e.Name(u), Over: e.Name(v), Difference: difference})
			default:
				r.Pairs = append(r.Pairs, api.Pair{Variant: e.Name(v), Over: e.Name(u), Difference: difference})
			}
		}
	}
	r.Metrics, r.Segments = e.metricReports(control), e.segmentReports(control)
	for _, p := range e.phases {
		r.Phases = append(r.Phases, api.Phase{Entry: p.entry, Time: timeOf(p.time), Shares: p.shares,
			Moved: float64(p.moved) / Buckets})
	}
	for _, p := range e.points {
		r.Points = append(r.Points, api.ReportPoint{Time: timeOf(p.time), Decisions: p.decisions, Means: p.means,
			Differences: p.differences})
	}
	own := slices.IndexFunc(d.Variants, func(v api.Variant) bool { return v.Show == api.ShowPolicy && v.Policy == nil })
	if r.Verdict = delayed(r, weighed(r, verdict(r, unseen, few, own, currency)), currency); r.Verdict.Result == api.Continue {
		r.Left = e.left(control, r.From())
		r.Verdict.Reason += e.outlier(currency)
	}
	for _, v := range r.Variants {
		if v.Fallback > 0 {
			r.Verdict.Reason += fmt.Sprintf("; %q showed your own pages in %d of its %d decisions, during an alarm",
				v.Name, v.Fallback, v.Made)
		}
	}
	return r
}

// nextCounts returns the latest time at which the next cohort counts, or nil if it waits for no outcome.
func (e *Experiment) nextCounts(window time.Duration, length int64) *time.Time {
	if len(e.cohorts) == 0 || e.cohorts[0].Open == 0 {
		return nil
	}
	return new(timeOf((e.cohorts[0].Number+1)*length + int64(window)))
}

// outlier names the decision whose earnings widen all intervals, if it earned far more than the other sales on average.
func (e *Experiment) outlier(currency string) string {
	var all offer.Totals
	for i := range e.groups {
		all.Add(&e.groups[i])
	}
	p := &e.widest
	all.Revenue.Add(-p.Value)
	if p.Value != e.Results.Mean.Bound || p.Value*float64(all.Purchases-1) <= outlierTimes*all.Revenue.Value() {
		return ""
	}
	return fmt.Sprintf("; all intervals are wide because the decision of log entry %d earned %s: if that value is wrong, "+
		"end this experiment and begin another one, because the value already counts, and corrections cannot change that",
		p.Entry, api.Amount(p.Value, currency))
}

// outlierTimes is how many times more than the average sale a decision earned that is named.
const outlierTimes = 100

// Gain returns how much more the decisions earn that a hold-out compares with; ok is false before both sides have some.
// There is no gain while too many decisions of one side left memory.
func (e *Experiment) Gain() (g api.Gain, ok bool) {
	d, ok := e.difference(notHeldOut, heldOut)
	for class, n := range e.evicted {
		ok = ok && !api.ManyEvicted(n, e.asked[class])
	}
	n := e.groups[notHeldOut].Rounds
	late := api.PerDecision(e.later[notHeldOut].Value(), n) - api.PerDecision(e.later[heldOut].Value(), e.groups[heldOut].Rounds)
	return api.Gain{Over: api.Holdout, Randomized: true, Since: timeOf(e.begun), Decisions: n, PerDecision: d,
		Total: d.Times(n), Late: float64(n) * late}, ok
}

func timeOf(t int64) time.Time { return time.Unix(0, t).UTC() }
