package earnings

import (
	"slices"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Drift compares a placement's recent decisions with all before, in cohorts: see [Cohorts].
type Drift struct {
	since   uint64 // only later entries count
	pending Cohorts[span]
	all     span
	recent  []span // the last decisions, recentLength in each span but the last; without the first fewer than recentTotal
}

// span sums up consecutive decisions.
type span struct {
	decisions, estimated uint64 // the second counts those with a prediction
	earned, predicted    float64
	arms                 [3]offer.Totals // offer.ByPolicy, offer.ByChance, offer.ByBaseline
}

func (s *span) add(o *span) {
	s.decisions, s.estimated = s.decisions+o.decisions, s.estimated+o.estimated
	s.earned += o.earned
	s.predicted += o.predicted
	for i := range s.arms {
		s.arms[i].Add(&o.arms[i])
	}
}

// less takes the sums of decisions out.
func (s *span) less(o *span) {
	s.decisions, s.estimated = s.decisions-o.decisions, s.estimated-o.estimated
	s.earned -= o.earned
	s.predicted -= o.predicted
	for i := range s.arms {
		s.arms[i].Less(&o.arms[i])
	}
}

const (
	recentLength = 100
	recentTotal  = 1000
)

func (d *Drift) enter(time int64, w *Watch) {
	d.pending.Enter(time/w.Cohort(), func() (s span) { return s })
}

// leave removes a closed decision. o is its outcome, or nil without one.
func (d *Drift) leave(entry uint64, time int64, o *offer.Closed, w *Watch) {
	if entry <= d.since {
		return
	}
	if s := d.pending.Leave(time / w.Cohort()); s != nil && o != nil {
		s.add(new(spanOf(o)))
	}
}

// spanOf returns a span of one decision.
func spanOf(o *offer.Closed) span {
	s := span{decisions: 1}
	if o.Predicted {
		s.estimated, s.earned, s.predicted = 1, o.PerUnit(), o.Expected
	}
	if o.Mode != offer.ByImport {
		s.arms[o.Mode-offer.ByPolicy].Count(o)
	}
	return s
}

// advance adds the cohorts of a length that are complete at a time.
func (d *Drift) advance(now, length int64) {
	for c := d.pending.Next(now / length); c != nil; c = d.pending.Next(now / length) {
		d.all.add(&c.Sums)
		if n := len(d.recent); n == 0 || d.recent[n-1].decisions >= recentLength {
			d.recent = append(d.recent, span{})
		}
		d.recent[len(d.recent)-1].add(&c.Sums)
		for d.total().decisions-d.recent[0].decisions >= recentTotal {
			d.recent = slices.Delete(d.recent, 0, 1)
		}
	}
}

// total sums the recent decisions.
func (d *Drift) total() (sum span) {
	for i := range d.recent {
		sum.add(&d.recent[i])
	}
	return sum
}

// Report compares the recent decisions with earlier ones. It returns nil if there are no earlier ones.
func (d *Drift) Report() *api.Drift {
	recent, before := d.total(), d.all
	if before.less(&recent); before.decisions == 0 {
		return nil
	}
	return &api.Drift{Recent: recent.report(), Before: before.report()}
}

func (s *span) report() api.Span {
	return api.Span{
		Decisions: s.decisions, Estimated: s.estimated, Earned: s.earned, Predicted: s.predicted,
		ByPolicy: s.arms[0].Report(), ByChance: s.arms[1].Report(), ByBaseline: s.arms[2].Report(),
	}
}

// Copy returns a deep copy.
func (d *Drift) Copy() Drift {
	c := *d
	c.pending, c.recent = d.pending.Copy(func(s *span) span { return *s }), slices.Clone(d.recent)
	return c
}

func (s *span) fields(f *fields.Fields) {
	f.Uvarint(&s.decisions, &s.estimated)
	f.Float(&s.earned, &s.predicted)
	offer.GroupFields(f, s.arms[:])
}

func (d *Drift) fields(f *fields.Fields) {
	f.Uvarint(&d.since)
	d.pending.Fields(f, func() (s span) { return s }, (*span).fields)
	d.all.fields(f)
	fields.List(f, &d.recent, (*span).fields)
	f.Check(len(d.recent) <= recentTotal/recentLength+1, "%d spans of recent decisions", len(d.recent))
}
