package abtest

import (
	"slices"

	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Experiment is the state of an experiment, except for its learners. Its decisions count by [earnings.Cohorts].
type Experiment struct {
	*Routes
	Results *Results
	Ratio   Ratio

	begun    int64
	phases   []phase        // periods of constant shares, oldest first
	metrics  []*Results     // by metric, the conversion first
	firsts   *Results       // of units' first decisions that were deferred: 1 if it was seen, or 0; without clusters
	reported []uint64       // decisions with a value, by metric
	parts    []segment      // by segment, in the order of their first decision that ended
	groups   []offer.Totals // by class, which is a variant
	later    []precise.Sum  // revenue from late outcomes and corrections, by class
	asked    []uint64       // number of decisions, by class
	evicted  []uint64       // decisions that left memory before their outcome, by class
	missing  []float64      // Σ 1/p of these
	units    []float64      // estimated number of units, by class
	signs    []signs        // by class
	widest   widest         // of the decisions that count
	seen     []uint64       // one bit per unit hash seen, modulo seenUnits
	taken    uint64         // number of these bits
	cohorts  earnings.Cohorts[*sample]
	points   []point
	step     int64 // minimum time between points
}

// phase is a period of constant shares.
type phase struct {
	entry  uint64
	time   int64
	shares []float64
	moved  int // number of buckets moved
}

// sample holds a cohort's sums.
type sample struct {
	entry   uint64 // of its first decision
	block   *Block
	metrics []*Block
	firsts  *Block
	parts   []part // by segment
	groups  []offer.Totals
	peaks   earnings.Peaks[place]
}

// place is a decision's place in a cohort's sums.
type place struct {
	class, part int // part is 1 + the index of its segment, or 0
}

// widest is the decision with the largest earnings that widen the bounds.
type widest = earnings.Peak[struct{}]

// point is an experiment's state at a time.
type point struct {
	time        int64
	decisions   uint64
	means       []api.Interval
	differences []api.Interval
}

const (
	seenUnits       = 1 << 20
	maxPoints       = 256
	maxPhases       = 100
	experimentError = 0.05
	ratioError      = 0.001

	// Size is an experiment's memory in bytes without its learners and metrics: its clusters, its segments, the seen
	// units and its points.
	Size = 6 << 18
	// MetricSize is the memory of a metric.
	MetricSize = 1 << 18
)

// New returns the experiment that starts with a log entry. Its points are initially a step apart.
func New(entry uint64, time int64, design *api.Experiment, step int64) *Experiment {
	return Empty(design).begin(entry, time, step)
}

func (e *Experiment) begin(entry uint64, time, step int64) *Experiment {
	e.Number, e.begun, e.step = entry, time, step
	e.Divide(e.Design, entry, time)
	return e
}

// NewHoldout returns the comparison of a placement's hold-out, a share of its units, with all others: an experiment in
// which every decision takes part, also while another one runs. The units in the last buckets are held out, so a larger
// share adds units and a smaller one returns some.
func NewHoldout(share float64, entry uint64, time, step int64) *Experiment {
	return EmptyHoldout(share).begin(entry, time, step)
}

// EmptyHoldout returns a hold-out to decode into.
func EmptyHoldout(share float64) *Experiment {
	e := Empty(HoldoutDesign(share))
	e.IsHoldout = true
	return e
}

// HoldoutDesign returns the design of a hold-out with the given share.
func HoldoutDesign(share float64) *api.Experiment {
	return &api.Experiment{Name: api.Holdout, Control: api.Holdout, Learn: api.LearnAll, Variants: []api.Variant{
		notHeldOut: {Name: api.NotHeldOut, Show: api.ShowPolicy, Share: 1 - share},
		heldOut:    {Name: api.Holdout, Show: api.ShowBaseline, Share: share},
	}}
}

// Empty returns an experiment to decode into.
func Empty(design *api.Experiment) *Experiment {
	n := len(design.Variants)
	return &Experiment{
		Routes:  &Routes{Design: design},
		Results: NewResults(n), metrics: newMetrics(design), firsts: newResults(n),
		reported: make([]uint64, numMetrics+len(design.Metrics)),
		groups:   make([]offer.Totals, n), later: make([]precise.Sum, n), asked: make([]uint64, n),
		evicted: make([]uint64, n), missing: make([]float64, n), units: make([]float64, n),
		signs: make([]signs, n), seen: make([]uint64, seenUnits/64),
	}
}

// Divide sets the variants' shares. If they change, a new phase begins.
func (e *Experiment) Divide(design *api.Experiment, entry uint64, time int64) {
	next := &Routes{Number: e.Number, Design: design, Table: e.Table, IsHoldout: e.IsHoldout}
	counts := make([]int, len(design.Variants))
	for v := range counts {
		counts[v], _ = Count(design.Variants[v].Share)
		next.shares = append(next.shares, float64(counts[v])/Buckets)
	}
	if e.Table != nil && slices.Equal(e.shares, next.shares) {
		e.Routes = next
		return
	}
	table, moved := Allocate(e.Table, counts)
	if e.IsHoldout { // its units depend only on the share
		table, _ = Allocate(nil, counts)
	}
	if e.Table != nil {
		e.Results.Move(e.Table, table)
		for _, m := range e.metrics {
			m.Move(e.Table, table)
		}
	}
	next.Table, e.Routes = table, next
	e.phases = append(e.phases, phase{entry, time, next.shares, moved})
	e.phases = e.phases[max(0, len(e.phases)-maxPhases):]
	e.Ratio.Begin(len(counts))
}

func (e *Experiment) newSample() *sample {
	s := &sample{block: e.Results.Begin(), firsts: e.firsts.Begin(), groups: make([]offer.Totals, len(e.groups))}
	for _, m := range e.metrics {
		s.metrics = append(s.metrics, m.Begin())
	}
	return s
}

// Mark is how a decision takes part in an experiment: 0 if it does not count, otherwise 1 + its class, plus MaxVariants
// if it is also its unit's first decision, and deferred.
type Mark = uint8

// MaxMark is the largest mark.
const MaxMark = 2 * MaxVariants

// Enter adds an open decision to its cohort of the given length, and counts its unit if this is its first decision.
func (e *Experiment) Enter(entry uint64, time, length int64, o *offer.Offer) (m Mark) {
	class := e.ClassOf(o.Variant)
	if entry <= e.Number || class < 0 || o.Mode == offer.ByImport {
		return 0
	}
	e.cohorts.Enter(time/length, func() *sample {
		s := e.newSample()
		s.entry = entry
		return s
	})
	e.asked[class]++
	if o.Mode == offer.ByBaseline && e.Show(class) == api.ShowPolicy && !e.IsHoldout {
		e.signs[class].fallback++
	}
	if word, bit := o.Unit%seenUnits/64, uint64(1)<<(o.Unit%64); e.seen[word]&bit == 0 {
		e.seen[word] |= bit
		e.units[class] += seenUnits / float64(seenUnits-e.taken) // with the units since the last one that share a hash
		e.taken++
		if p := e.shares[class]; p > 0 {
			e.Ratio.Add(class, p)
			if o.Deferred {
				(*e.cohorts.Sums(time / length)).firsts.Add(class, 0, 1, e.shares)
				return 1 + Mark(class) + MaxVariants
			}
		}
	}
	return 1 + Mark(class)
}

// See notes that a decision was activated or got its outcome. Call it before Leave.
func (e *Experiment) See(m Mark, entry uint64, time, length int64) {
	class := int(m) - 1 - MaxVariants
	if class < 0 || class >= len(e.shares) || entry <= e.Number {
		return
	}
	if s := e.cohorts.Sums(time / length); s != nil {
		(*s).firsts.Replace(class, 0, 1, e.phaseOf(entry).shares)
	}
}

// Lose notes that a decision left memory before its outcome.
func (e *Experiment) Lose(m Mark, entry uint64) {
	class := int(m-1) % MaxVariants
	if m == 0 || class >= len(e.shares) || entry <= e.Number {
		return
	}
	e.evicted[class]++
	if p := e.phaseOf(entry).shares[class]; p > 0 {
		e.missing[class] += 1 / p
	}
}

// Leave removes a closed decision that counts; o is nil if there is no round for it. segment is the shopper's value of
// the feature that has the segments.
func (e *Experiment) Leave(entry uint64, time, length int64, o *offer.Closed, segment string) {
	if entry <= e.Number { // of an earlier experiment
		return
	}
	left := e.cohorts.Leave(time / length)
	if left == nil || o == nil {
		return
	}
	s := *left
	class, x, bound := e.ClassOf(o.Variant), o.Earned(), o.PageBound()
	s.groups[class].Count(o)
	e.signs[class].value(o)
	made := e.phaseOf(entry)
	if made.shares[class] > 0 {
		at := place{class: class}
		s.block.Add(class, x, bound, made.shares)
		bucket := e.clusterOf(o.Unit, class)
		e.Results.Cluster(bucket, class, x, s.block.Centre, made.shares)
		for k, m := range e.metrics {
			x, bound, isReported := e.metric(k, o)
			if isReported {
				e.reported[k]++
			}
			s.metrics[k].Add(class, x, bound, made.shares)
			m.Cluster(bucket, class, x, s.metrics[k].Centre, made.shares)
		}
		if e.Design.Segments != "" {
			k := e.segmentOf(segment)
			e.addToSegment(s, k, o, made.shares)
			at.part = k + 1
		}
		if x > bound {
			if out, isFull := s.peaks.Add(earnings.Peak[place]{Entry: entry, Value: x, Of: at}); isFull {
				e.widen(s, &out)
			}
		}
	}
}

// widen gives a cohort's sums the bound of a decision that earned more than the items on its page: its earnings.
//
// This happens when the cohort counts, with the decision's earnings by then, and not when its outcome comes. Until then
// no report depends on the cohort's sums, except for V_n by buckets, and neither does another cohort: the confidence
// sequences see the decision as if it had been reported with its final earnings. Its bound is the page's, which is known
// before, or else these earnings, as for any basket (ADR 112). A value that was mistyped and corrected in time bounds
// nothing, so that later cohorts cannot inherit it.
//
// The cohort widens at once for a peak that the list dropped, and for a correction that makes it exceed its bound again:
// [earnings.RecountOf] admits the decision's first earnings. It also widens for a correction after the bucket moved,
// because V_n still contains the earnings before: the report then names the decision.
func (e *Experiment) widen(s *sample, p *earnings.Peak[place]) {
	shares, before := e.phaseOf(p.Entry).shares, s.block.Mean.Sums.Bound
	s.block.Widen(p.Of.class, p.Value, shares)
	if k := p.Of.part - 1; k >= 0 {
		e.contrasts(p.Of.class, shares, func(v, _ int, c earnings.Contrast) {
			c.Widen(&s.parts[k].leads[v].Sums, p.Value)
		})
	}
	if p.Value > before && p.Value > e.widest.Value { // otherwise another page sets this bound anyway
		e.widest = widest{Entry: p.Entry, Value: p.Value}
	}
}

// phaseOf returns the phase in which a decision was made, given its entry.
func (e *Experiment) phaseOf(entry uint64) *phase {
	at, _ := slices.BinarySearchFunc(e.phases, entry, func(p phase, entry uint64) int {
		if p.entry < entry {
			return -1
		}
		return 1
	})
	return &e.phases[max(at-1, 0)]
}

// clusterOf returns the bucket of a unit that was shown a class, or -1 if the bucket has moved.
func (e *Experiment) clusterOf(unit uint64, class int) int {
	bucket := e.bucket(unit)
	if int(e.Table[bucket]) != class {
		return -1
	}
	return bucket
}

// Correct applies a late outcome or a correction. A correction counts if its decision's cohort does not count yet: all
// variants' decisions count as they were at that time. Everything else is later revenue. If the clock is set back, a
// cohort may begin again after it counted, without the decisions that counted.
func (e *Experiment) Correct(c *eventlog.Corrected, length int64) {
	class := e.ClassOf(c.Variant)
	if c.Entry <= e.Number || class < 0 || c.Mode == offer.ByImport {
		return
	}
	if s := e.cohorts.Sums(c.Made / length); s != nil && c.InTime && c.Entry >= (*s).entry {
		n := earnings.RecountOf(c)
		e.later[class].Add(n.Rest)
		e.recount(*s, class, c, n)
		return
	}
	e.later[class].Add(c.Value)
}

// recount changes the revenue of a decision in its cohort. Its sale stays one: only money is corrected.
func (e *Experiment) recount(s *sample, class int, c *eventlog.Corrected, n earnings.Recount) {
	n.In(&s.groups[class])
	shares := e.phaseOf(c.Entry).shares
	if shares[class] == 0 {
		return
	}
	at := place{class: class}
	if e.Design.Segments != "" {
		if k := e.segmentOf(c.Segment); k < len(s.parts) {
			at.part = k + 1
		}
	}
	s.block.Replace(class, n.Before, n.After, shares)
	e.recountSegment(s, at, c.Unit, n, shares)
	isOpen := e.Results.Recluster(e.clusterOf(c.Unit, class), class, n.After-n.Before, shares)
	isPeak := s.peaks.Correct(c.Entry, n.After)
	if isPeak && !isOpen || !isPeak && n.After > n.Before {
		e.widen(s, &earnings.Peak[place]{Entry: c.Entry, Value: max(n.Before, n.After), Of: at})
	}
}

// Advance adds the cohorts that are complete at a time.
func (e *Experiment) Advance(now, length int64) {
	for c := e.cohorts.Take(now / length); c != nil; c = e.cohorts.Take(now / length) {
		e.take(c.Sums, (c.Number+1)*length)
	}
}

// take adds a cohort that ended at a time.
func (e *Experiment) take(s *sample, at int64) {
	for i := range s.peaks {
		e.widen(s, &s.peaks[i])
	}
	e.Results.Take(s.block)
	for k, m := range e.metrics {
		m.Take(s.metrics[k])
	}
	e.firsts.Take(s.firsts)
	for i := range s.parts {
		part, to := &s.parts[i], &e.parts[i]
		for v := range to.groups {
			to.groups[v].Add(&part.groups[v])
			to.leads[v].Add(&part.leads[v])
		}
	}
	e.listen(s.groups)
	for class := range e.groups {
		e.groups[class].Add(&s.groups[class])
	}
	e.note(at)
}

// note adds a point. If there are too many, it drops every second one.
func (e *Experiment) note(at int64) {
	if n := len(e.points); n > 0 && at-e.points[n-1].time < e.step {
		return
	}
	if len(e.points) == maxPoints {
		for i := range maxPoints / 2 {
			e.points[i] = e.points[2*i+1]
		}
		e.points = e.points[:maxPoints/2]
		e.step = max(2*e.step, (e.points[maxPoints/2-1].time-e.points[0].time)/(maxPoints/2-1))
	}
	e.points = append(e.points, e.point(at))
}
