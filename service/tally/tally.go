// Package tally sums up what the decisions of a placement have shown and earned. The sums are a function of the log, and
// bounded.
//
//	counts.go  in all, and against the policy's predictions
//	items.go   by item, by place, and in the last decisions
//	series.go  over time
//	eras.go    by the ways in which the placement decided
package tally

import (
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Tally are the sums of a placement.
type Tally struct {
	Counts Counts
	Items  Items
	Series Series
	Eras   Eras
}

// Offered adds the decision of an entry.
func (t *Tally) Offered(entry uint64, time int64, o *offer.Offer) {
	t.Counts.offered(o)
	if o.Mode == offer.ByImport {
		return
	}
	t.Series.offered(time)
	if era := t.Eras.of(entry); era != nil {
		era.decisions++
		compare(&era.shadow, o)
	}
}

// Lead returns what a round is evidence of the lead of the policy over chance, around a centre; ok is false if it is none.
type Lead func(c *offer.Closed, centre float64) (lead float64, ok bool)

// Closed adds the outcome of a decision. Without a round, which is nil, decisions are only counted. At most twice
// maxItems items have counts of their own.
func (t *Tally) Closed(time int64, isChosen bool, c *offer.Closed, lead Lead, maxItems int) {
	t.Counts.closed(isChosen, c)
	t.Series.closed(time, c, lead)
	if c == nil {
		return
	}
	t.Items.closed(c, maxItems)
	if era := t.Eras.of(c.Entry); era != nil && c.Mode != offer.ByImport {
		era.groups[c.Mode-offer.ByPolicy].Add(c.Group())
	}
}

// Abandoned counts a decision that has ended without an outcome.
func (t *Tally) Abandoned(time int64, isEvicted bool) {
	if isEvicted {
		t.Counts.Evicted++
	} else {
		t.Counts.Withdrawn++
	}
	t.Series.closed(time, nil, nil)
}

// Copy returns a copy that shares nothing with t.
func (t *Tally) Copy() Tally {
	return Tally{t.Counts, t.Items.Copy(), t.Series.Copy(), t.Eras.copy()}
}

// Fields passes over the sums.
func (t *Tally) Fields(f *fields.Fields) {
	t.Counts.fields(f)
	t.Series.fields(f)
	t.Items.fields(f)
	t.Eras.fields(f)
}

func comparison(f *fields.Fields, c *api.Comparison) {
	f.Uvarint(&c.Rounds, &c.Agreements, &c.Estimated)
	f.Float(&c.Policy, &c.Baseline)
}
